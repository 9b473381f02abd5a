"""Where one workflow stands and why, for people and pages. SELECTs only; lists and history: `workflow_lists`.

Everything is read from the rows alone. The deployed definition adds what rows cannot know: how many steps there are
and which budgets hold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from everest.store.database import Connection, aware, load_queries
from everest.store.workflow_dag_runs import EVERY_N, DagRun, dag_runs
from everest.store.workflow_trace import standing
from everest.workflow import codec, state
from everest.workflow.definition import Definition

QUERIES = load_queries("workflow_views")

MAX_CHILDREN = 100
"""Shown of one run; their numbers by status are complete."""

_JSON = ("payload", "state", "waiting", "counters", "error", "detail")
_BUDGETS = ("transitions", "for_each_items", "started_workflows")

Deployed = Callable[[str, str], Definition | None]


@dataclass(frozen=True)
class Wait:
    """An open wait. sequence: the number of the question, which an answer may name. matched: what came, by name, with
    payload, by and at; of workflows, how many completed. until: its timeout. reasons, evidence, not_by: of a question
    that a step asked itself, with its details and when it was asked."""

    kind: str
    step: str
    sequence: int
    names: list[str]
    matched: Any
    remaining: list[Any]
    correlation: dict[str, Any] | None
    until: datetime | None
    mode: str | None
    quorum: int | None
    workflows: list[dict[str, Any]]
    reasons: list[dict[str, Any]]
    evidence: str | None
    not_by: list[str]
    details: dict[str, Any]
    asked_at: datetime | None


@dataclass(frozen=True)
class Budget:
    """What a run used of a limit; limit None: there is none, or the definition is not deployed."""

    name: str
    used: int
    limit: int | None


@dataclass(frozen=True)
class RunView:
    """One run. Instants are aware UTC; position and total_steps are None without its definition.

    definition: "deployed", "changed" (another hash under this version) or "missing".
    """

    id: int
    workflow: str
    version: str
    definition_hash: str
    definition: str
    idempotency_key: str | None
    status: str
    paused_status: str | None
    current_step: str | None
    position: int | None
    total_steps: int | None
    visit: int
    state: dict[str, Any]
    payload: dict[str, Any]
    waiting: Wait | None
    wakes_at: datetime | None
    deadline_at: datetime | None
    parent: dict[str, Any] | None
    children: list[dict[str, Any]]
    children_by_status: dict[str, int]
    group_key: str | None
    items: dict[str, int]
    branches: list[dict[str, Any]]
    budgets: list[Budget]
    loops: dict[str, int]
    recovered: int
    error: dict[str, Any] | None
    compensation: str | None
    compensations: list[dict[str, Any]]
    dag_runs: list[DagRun]
    unsent: list[dict[str, Any]]
    shadow_id: int | None
    worker_status: str | None
    transaksi_id: int | None
    nomer_nota: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    def as_json(self) -> dict[str, Any]:
        answer: dict[str, Any] = plain(self)
        return answer


def status(
    conn: Connection,
    run_id: int,
    deployed: Deployed = lambda name, version: None,
    before_n: int = EVERY_N,
) -> RunView | None:
    """Everything about a run, None if there is none; of its DAG runs the newest MAX_DAG_RUNS before `before_n`."""
    found = decoded(QUERIES.run(conn, run_id=run_id))
    if found is None:
        return None
    definition = deployed(found["workflow"], found["version"])
    fits = definition is not None and definition.definition_hash == found["definition_hash"]
    known = definition if fits else None
    step, visit = found["current_step"], found["visit"]
    at = {"run_id": run_id, "step": step, "visit": visit}
    counters = found["counters"] or {}
    total = None if known is None else len(known.steps)
    children = list(QUERIES.children(conn, parent_id=run_id, batch=MAX_CHILDREN))
    return RunView(
        definition="deployed" if fits else "missing" if definition is None else "changed",
        position=_position(known, step, found["status"]),
        total_steps=total,
        state=state.public_part(found["state"]),
        waiting=_wait(conn, found),
        parent=_parent(conn, found),
        children=children,
        children_by_status={row["status"]: row["n"] for row in QUERIES.count_children(conn, parent_id=run_id)},
        items={row["status"]: row["n"] for row in QUERIES.items(conn, **at)} if step else {},
        branches=_branches(conn, at, found["status"]) if step else [],
        budgets=_budgets(known, found, counters),
        loops=counters.get("loops", {}),
        error=found["error"],
        compensations=[decoded(row) for row in QUERIES.compensations(conn, run_id=run_id)],
        dag_runs=dag_runs(conn, found, before_n),
        unsent=[decoded(row) for row in QUERIES.outbox(conn, run_id=run_id)],
        shadow_id=found["carrier_shadow_id"],
        **{name: found[name] for name in _SAME},
    )


def nested(conn: Connection, run_id: int) -> list[int]:
    """The runs inside a run, the deepest first: what a cancel takes along, in the order in which to undo it."""
    levels = [[run_id]]
    while levels[-1]:
        levels.append([row["id"] for row in QUERIES.nested(conn, parent_ids=levels[-1])])
    return [one for level in reversed(levels[1:]) for one in level]


def _branches(conn: Connection, at: dict[str, Any], run_status: str) -> list[dict[str, Any]]:
    rows = [decoded(row) for row in QUERIES.branches(conn, **at)]
    group = next((row["status"] for row in rows if row["branch"] == ""), None)
    return [row | {"status": standing(row["status"], run_status, group)} for row in rows if row["branch"] != ""]


_SAME = (
    "id", "workflow", "version", "definition_hash", "idempotency_key", "status", "paused_status", "current_step",
    "visit", "payload", "wakes_at", "deadline_at", "group_key", "recovered", "compensation", "worker_status",
    "transaksi_id", "nomer_nota", "created_at", "updated_at", "finished_at",
)  # fmt: skip


def _position(definition: Definition | None, step: str | None, status: str) -> int | None:
    if definition is None:
        return None
    return len(definition.steps) if step is None or status == "completed" else definition.index(step) + 1


def _wait(conn: Connection, run: dict[str, Any]) -> Wait | None:
    """What the run waits for, also while it is paused."""
    waiting = run["waiting"]
    if waiting is None or run["status"] in ("completed", "failed", "cancelled"):
        return None
    at = {"run_id": run["id"], "step": waiting["step"], "visit": waiting["visit"]}
    has_workflows = waiting["kind"] in ("workflows", "child")
    return Wait(
        kind=waiting["kind"],
        step=waiting["step"],
        sequence=waiting["sequence"],
        names=waiting.get("names", []),
        matched=waiting.get("matched", 0 if has_workflows else {}),
        remaining=waiting.get("remaining", []),
        correlation=waiting.get("correlation"),
        until=waiting.get("until"),
        mode=waiting.get("mode"),
        quorum=waiting.get("quorum"),
        workflows=list(QUERIES.depends_on(conn, batch=MAX_CHILDREN, **at)) if has_workflows else [],
        reasons=waiting.get("reasons", []),
        evidence=waiting.get("evidence"),
        not_by=waiting.get("not_by", []),
        details=waiting.get("details", {}),
        asked_at=waiting.get("asked_at"),
    )


def _parent(conn: Connection, run: dict[str, Any]) -> dict[str, Any] | None:
    if run["parent_id"] is None:
        return None
    row = QUERIES.run(conn, run_id=run["parent_id"])
    told = {"id": run["parent_id"], "step": run["parent_step"], "visit": run["parent_visit"]}
    about = {"workflow": row["workflow"], "status": row["status"]} if row else {"workflow": None, "status": "purged"}
    return {**told, "index": run["parent_index"], "is_nested": run["parent_step"] is not None, **about}


def _budgets(definition: Definition | None, run: dict[str, Any], counters: dict[str, Any]) -> list[Budget]:
    used = {name: int(counters.get(name, 0)) for name in _BUDGETS} | {
        "transitions": state.transitions_used(run["transitions"], counters),
        "state_bytes": len(codec.dumps(run["state"]).encode()),
    }
    options = definition.options if definition else None
    return [Budget(name, much, getattr(options, f"max_{name}", None)) for name, much in used.items()]


# ------------------------------------------------------------------------------------------------------ values


def decoded(row: dict[str, Any] | None) -> Any:
    """JSON columns as values, instants aware."""
    if row is None:
        return None
    values = {key: codec.loads(value) if key in _JSON else value for key, value in row.items()}
    return {
        key: aware(value) if isinstance(value, datetime) and key not in _JSON else value
        for key, value in values.items()
    }


def plain(value: Any) -> Any:
    """As JSON can hold it, for programs: amounts as text, instants in ISO 8601."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value
