"""The hash of a definition is the same at every start and on every machine, moves with what the definition means, and
stands still when only the way it is run changes: else a tuned queue would strand the runs on their way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from everest.workflow.builder import Builder, workflow
from everest.workflow.definition import Definition
from everest.workflow.fields import Field

ROOT = Path(__file__).resolve().parents[3]
MINUTE = timedelta(minutes=1)


def work(state: dict[str, Any], step: Any) -> None:
    """Works."""


def other(state: dict[str, Any], step: Any) -> None:
    """Works otherwise."""


def chunks(state: dict[str, Any], step: Any, stored: list[Any]) -> Iterator[int]:
    yield 1


def joined(stored: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    return {}


def enough(state: dict[str, Any]) -> bool:
    return True


CHILD = workflow("child").then(work).build()


def everything(
    begin: Builder | None = None,
    handler: Callable[..., None] = work,
    timeout: timedelta | None = None,
    concurrency: int = 8,
    child: Definition = CHILD,
) -> Builder:
    """All eleven types."""
    return (
        (begin or workflow("everything"))
        .then(handler, name="first", timeout=timeout)
        .parallel({"a": handler, "b": handler}, timeout=timeout)
        .for_each("items", handler, name="each", concurrency=concurrency, timeout=timeout)
        .start_workflows("items", child)
        .repeat_until("first", "done", expected=Decimal("1.0"), max_iterations=3)
        .run_workflow(child)
        .delay(hours=1)
        .wait_for_approval(match_payload={"level": 2}, timeout=MINUTE, on_timeout={"late": True})
        .wait_for_signals(["x", "y"], mode="any")
        .wait_for_agents()
        .stream(chunks, joined, timeout=timeout)
    )


def hash_of(builder: Builder) -> str:
    return builder.build().definition_hash


def test_it_is_64_hex_digits_and_the_same_whenever_it_is_built() -> None:
    assert hash_of(everything()) == hash_of(everything())
    assert len(hash_of(everything())) == 64
    assert int(hash_of(everything()), 16)


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_it_is_the_same_in_every_process(seed: str) -> None:
    code = "from tests.unit.workflow.test_definition_hash import everything, hash_of; print(hash_of(everything()))"
    env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=ROOT, check=True)

    assert done.stdout.strip() == hash_of(everything())


@pytest.mark.parametrize(
    "tuned",
    [
        everything().max_attempts(9),
        everything().on_queue("heavy"),
        everything().with_priority("urgent"),
        everything().tasks("fused"),
        everything().on_failure(lambda state, step, error: None),
        everything(timeout=MINUTE),
        everything(concurrency=2),
        everything(handler=other),
        everything(workflow("everything", doc="Explained better.")),
        everything(workflow("everything", dag_id="everything_v1")),
        everything(child=workflow("child").then(work).max_attempts(1).build()),
    ],
    ids=["attempts", "queue", "priority", "fused", "on_failure", "timeout", "slots", "code", "doc", "dag_id", "child"],
)
def test_how_it_is_run_does_not_change_it(tuned: Builder) -> None:
    assert hash_of(tuned) == hash_of(everything())


def begun() -> Builder:
    return workflow("w").then(work)


@pytest.mark.parametrize(
    ("one", "another"),
    [
        (begun(), begun().version("2")),
        (begun(), workflow("v").then(work)),
        (begun(), workflow("w").then(work, name="other")),
        (begun(), workflow("w").then(work, compensate_with=other)),
        (begun().then(other), workflow("w").then(other).then(work)),
        (begun().parallel({"a": work}), begun().parallel({"b": work})),
        (begun().parallel({"a": work}), begun().parallel({"a": work}, on_conflict="last")),
        (begun().for_each("i", other), begun().for_each("j", other)),
        (begun().for_each("i", other), begun().for_each("i", other, mode="first_success")),
        (begun().for_each("i", other), begun().for_each("i", other, result_key="r")),
        (begun().for_each("i", other), begun().for_each("i", other, reducer=work)),
        (begun().start_workflows("i", CHILD), begun().start_workflows("i", CHILD, inherit_state=False)),
        (begun().repeat_until("work", "k"), begun().repeat_while("work", "k")),
        (begun().repeat_until("work", "k", expected=True), begun().repeat_until("work", "k", expected=1)),
        (begun().repeat_until("work", "k", expected="1"), begun().repeat_until("work", "k", expected=Decimal(1))),
        (begun().repeat_until("work", "k"), begun().repeat_until("work", condition=enough)),
        (begun().run_workflow(CHILD), begun().run_workflow(workflow("child").then(work).version("2").build())),
        (begun().delay(hours=1), begun().delay(hours=2)),
        (begun().wait_for_approval(), begun().wait_for_decision(name="wait_for_approval")),
        (begun().wait_for_signal("a", name="s"), begun().wait_for_signal("b", name="s")),
        (begun().wait_for_signal("a"), begun().wait_for_signal("a", timeout=MINUTE)),
        (begun().wait_for_signal("a"), begun().wait_for_signal("a", correlation_key="k")),
        (begun().wait_for_workflow(1), begun().wait_for_workflow(2)),
        (begun().wait_for_workflows("k"), begun().wait_for_workflows("k", mode="any")),
        (begun().stream(chunks, joined), begun().stream(chunks, joined, compensate_with=work)),
        (begun(), begun().compensate_on_failure()),
        (begun(), begun().on_cancel(work)),
        (begun(), begun().prune_state_after(2)),
        (begun(), begun().must_complete_within(MINUTE)),
        (begun(), begun().max_transitions(9)),
        (begun(), begun().idempotency_key("{k}")),
    ],
)
def test_what_it_means_changes_it(one: Builder, another: Builder) -> None:
    assert hash_of(one) != hash_of(another)


def test_how_an_input_is_drawn_is_no_part_of_what_it_means() -> None:
    """A field more strands no run that waits for the answer already."""
    asked = begun().wait_for_input("kurs", fields=[Field("usd", "number", "Kurs USD")])
    assert hash_of(asked) == hash_of(begun().wait_for_input("kurs"))
