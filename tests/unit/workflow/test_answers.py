"""An answer of a person has to fit its question, as a signal has to; else it is a conflict that says what would fit."""

from __future__ import annotations

from typing import Any

import pytest

from everest.errors import Conflict
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.inline import run_inline


@pytest.mark.parametrize("kind", ["approval", "decision", "input"])
def test_an_answer_must_match_what_the_wait_asks_for(kind: str) -> None:
    options: dict[str, Any] = {"match_payload": {"level": 2}, "correlation_key": "order"}
    builder = workflow("asks")
    built = {
        "approval": builder.wait_for_approval,
        "decision": builder.wait_for_decision,
        "input": builder.wait_for_input,
    }[kind](**options).build()
    run = run_inline(built, {"order": "A-7"})
    answer = control.submit_input if kind == "input" else control.approve

    for payload in ({}, {"level": 2}, {"level": 1, "order": "A-7"}, {"level": 2, "order": "A-8"}):
        with pytest.raises(Conflict, match="payload has level = 2, order = A-7"):
            run.do(answer, "budi", payload=payload)
    assert run.status == "waiting_for_signal"
    run.do(answer, "budi", payload={"level": 2, "order": "A-7"})

    assert run.status == "completed"


def test_a_rejection_must_match_as_well() -> None:
    run = run_inline(workflow("asks").wait_for_decision(match_payload={"level": 2}).build())

    with pytest.raises(Conflict, match="level = 2"):
        run.reject("budi", "no")
    run.reject("budi", "no", payload={"level": 2})

    assert run.state["decision"]["outcome"] == "rejected"
