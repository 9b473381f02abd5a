"""New runs: dispatched from outside, nested in a step, or handed off one per item. Run, shadow and outbox row are
always one transaction, the caller's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from everest.errors import Conflict, DocumentRefused
from everest.words import say
from everest.workflow import clock, codec, state
from everest.workflow import definition as d
from everest.workflow.definition import PRIORITY_WEIGHT, Definition
from everest.workflow.ports import Transaction
from everest.workflow.records import Outcome, Run

MAX_KEY = 150
"""Characters of an idempotency key and of a group key; their columns."""


_KEY_OF_A_STEP = re.compile(r"[0-9]+:[A-Za-z][A-Za-z0-9_]*:[0-9]+(?::[0-9]+)?")
"""What a step gives to the runs that it begins: run, step, visit and, of one item, its index. By it a second try finds
the first one's child, so nobody else may name a run like that."""


@dataclass(frozen=True)
class Dispatched:
    """A workflow that will run: its row, its job and the DAG run that is announced for it."""

    workflow_id: int
    shadow_id: int
    dag_run_id: str


def new_run(definition: Definition, payload: dict[str, Any], key: str | None) -> Run:
    return Run(
        id=0,
        workflow=definition.name,
        version=definition.version,
        definition_hash=definition.definition_hash,
        idempotency_key=key,
        payload=payload,
        state=dict(payload),
        status="running",
        current_step=definition.steps[0].name,
        visit=1,
        n=1,
        dag_id=definition.dag_id,
        dag_run_id="",
        carrier_shadow_id=None,
        priority=PRIORITY_WEIGHT[definition.options.priority],
        counters={"failed_n": 0},
    )


def dispatch(
    tx: Transaction,
    definition: Definition,
    payload: dict[str, Any],
    key: str | None = None,
    transaksi_id: int | None = None,
    nomer_nota: str | None = None,
) -> Dispatched:
    """Writes the run, its shadow row and the outbox row that announces DAG run 1. Raises Conflict when the key is
    taken: the caller knows whether that is an "already submitted" or a mistake; DocumentRefused for a key that only a
    step may give."""
    key = key if key is not None else definition.key(payload)
    if key is not None and _KEY_OF_A_STEP.fullmatch(key):
        raise DocumentRefused(say("en", "engine.key_of_a_step", name=repr(key)))
    if key is not None and tx.runs.find(definition.name, key) is not None:
        raise Conflict(say("en", "engine.key_taken", workflow=definition.name, name=key))
    return send(tx, definition, new_run(definition, payload, key), transaksi_id, nomer_nota)


def send(
    tx: Transaction, definition: Definition, run: Run, transaksi_id: int | None = None, nomer_nota: str | None = None
) -> Dispatched:
    for key, text in (("engine.key_length", run.idempotency_key), ("engine.group_length", run.group_key)):
        if text is not None and not 0 < len(text) <= MAX_KEY:
            raise DocumentRefused(say("en", key, workflow=run.workflow, most=MAX_KEY, n=len(text)))
    clock.start(run, definition.options.must_complete_within, tx.now)
    run.id = tx.runs.insert(run)
    if tx.runs.lock(run.id).carrier_shadow_id is not None:
        # Another transaction took the key after we had looked.
        raise Conflict(say("en", "engine.key_taken", workflow=run.workflow, name=run.idempotency_key))
    run.carrier_shadow_id = tx.runs.insert_shadow(run, transaksi_id, nomer_nota, codec.dumps(run.payload))
    run.dag_run_id = tx.runs.dag_run_id(run)
    tx.runs.save(run)
    tx.runs.announce(run, Outcome("PENDING"))
    tx.runs.enqueue(run)
    tx.runs.add_event(run, "dispatched", None, None, None)
    return Dispatched(run.id, run.carrier_shadow_id, run.dag_run_id)


def start_child(
    tx: Transaction,
    definition: Definition,
    payload: dict[str, Any],
    parent: Run,
    step: str | None,
    index: int | None,
    key: str,
    group_key: str | None = None,
) -> int:
    """A run begun by a step. `step` is given for a nested run, which its parent's cancel takes along; a handed-off one
    is independent. The key makes a second try of the step find the first one's child."""
    child = new_run(definition, payload, key)
    child.parent_id, child.parent_step, child.parent_visit, child.parent_index = parent.id, step, parent.visit, index
    child.group_key = group_key
    existing = tx.runs.find(definition.name, key)
    if existing is None:
        return send(tx, definition, child).workflow_id
    found = tx.runs.get(existing)
    if found is None or found.parent_id != parent.id:
        raise Conflict(say("en", "engine.key_of_another", run=existing, workflow=definition.name, name=key))
    return existing


def hand_off(tx: Transaction, definition: Definition, run: Run, step: d.StartWorkflows) -> dict[str, Any]:
    """One independent workflow per item, all in this transaction; returns the step's output."""
    items = run.state.get(step.items_key)
    if not isinstance(items, list):
        found = {"name": repr(step.items_key), "type": type(items).__name__}
        raise DocumentRefused(say("en", "engine.not_a_list", step=step.name, **found))
    state.count(run, definition, "started_workflows", len(items))
    inherited = state.public_part(run.state) if step.inherit_state else {}
    group = None if step.group_key is None else str(run.state.get(step.group_key, step.group_key))
    ids = []
    for index, item in enumerate(items):
        payload = {**inherited, step.payload_key: item, "start_item_index": index}
        key = f"{run.id}:{step.name}:{run.visit}:{index}"
        ids.append(start_child(tx, step.workflow, payload, run, None, index, key, group))
    return {step.result_key: ids}
