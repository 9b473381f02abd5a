"""A plain step that asks a person: its handler looks, and where it may not decide alone it returns `ask_decision(...)`.

What the handler wrote is committed, the run waits like at a `wait_for_decision`, and the pointer stays: the next DAG
run enters the same step, whose handler finds the answer in `step.decision`. So a definition needs no step for a
question that is asked rarely, and whoever looks again later can ask again. How they are answered: `answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from everest import people
from everest.errors import DocumentRefused, Forbidden, Problem, problems_json
from everest.words import heard, say
from everest.workflow import definition as d
from everest.workflow.handlers import WAIT_FOR_DECISION
from everest.workflow.records import Run
from everest.workflow.ticket import Decision, Token

DECISION = "decision"
MAX_REASONS = 1_000
"""Shown of one question; the evidence covers all. They stand in the run's row, which every commit reads and writes."""


def ask_decision(
    reasons: Sequence[Problem | str],
    evidence: str,
    timeout: timedelta | None = None,
    not_by: Sequence[str] = (),
    message: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a handler returns, alone, to let a person decide before the step goes on.

    reasons: why, one sentence each. evidence: a text (a hash) that differs whenever the person would have to look
    again; asked with the same one, an open question stays the same. timeout: how long to wait for an answer; the
    handler then sees the outcome "timeout". not_by: who may not answer. message: one line for the job's row.
    details: what a page may show beside the reasons; keep it small, it stands in the run's row.
    """
    problems = [reason if isinstance(reason, Problem) else Problem(None, "", reason) for reason in reasons]
    shown = problems_json(problems[:MAX_REASONS])
    if len(problems) > MAX_REASONS:
        more = say("id", "several.more_reasons", n=len(problems) - MAX_REASONS)
        shown.append(Problem(None, "", more).as_json())
    question = {
        "reasons": shown,
        "evidence": evidence,
        "timeout_s": None if timeout is None else timeout.total_seconds(),
        "not_by": list(not_by),
        "message": message or say("id", "engine.waits_for_decision", n=len(problems)),
        "details": dict(details or {}),
    }
    return {WAIT_FOR_DECISION: question}


@dataclass(frozen=True)
class Question:
    """What `ask_decision` put into a handler's output."""

    reasons: list[dict[str, Any]]
    evidence: str
    timeout: timedelta | None
    not_by: list[str]
    message: str
    details: dict[str, Any]

    @classmethod
    def of(cls, step: str, output: dict[str, Any] | None) -> Question | None:
        """The question in a handler's output, None when it asks nothing. Raises DocumentRefused (a bug of the step)
        for one that `ask_decision` did not make, or that comes with values, which nothing would keep."""
        if not output or WAIT_FOR_DECISION not in output:
            return None
        if len(output) > 1:
            others = sorted(output.keys() - {WAIT_FOR_DECISION})
            text = say("en", "engine.question_and_values", step=step, keys=others)
            raise DocumentRefused(text, code=500)
        told = output[WAIT_FOR_DECISION]
        try:
            limit = None if told["timeout_s"] is None else timedelta(seconds=told["timeout_s"])
            return cls(
                told["reasons"],
                str(told["evidence"]),
                limit,
                list(told["not_by"]),
                told["message"] if isinstance(told["message"], str) else str(told["message"]),
                dict(told["details"]),
            )
        except (KeyError, TypeError):
            text = say("en", "engine.question_by_hand", step=step, name=WAIT_FOR_DECISION)
            raise DocumentRefused(text, code=500) from None


def message_of(waiting: Mapping[str, Any]) -> str:
    """What the record of an open wait says of itself."""
    if "message" not in waiting:
        return say("id", "engine.waits")
    return heard(str(waiting["message"]), waiting.get("said"))


def refuse(step: str, output: dict[str, Any] | None, key: str, **about: Any) -> None:
    """Only a plain step can wait. Raises DocumentRefused that names the step when this output asks. key, about: who
    returned it."""
    if output and WAIT_FOR_DECISION in output:
        raise DocumentRefused(say("en", "engine.cannot_ask", step=step, who=say("en", key, **about)), code=500)


def is_asked_here(run: Run) -> bool:
    """Whether the run waits for the answer to a question that the step at the pointer asked itself."""
    waiting = run.waiting
    return (
        waiting is not None
        and waiting["kind"] == DECISION
        and "evidence" in waiting
        and (waiting["step"], waiting["visit"]) == (run.current_step, run.visit)
    )


def stand_in(run: Run) -> d.WaitForSignals:
    """The question as the waiting step that a definition could have had in its place, for who delivers answers."""
    return d.WaitForSignals(name=run.current_step or "", names=(DECISION,), kind="decision")


def decision_of(run: Run, now: datetime) -> Decision | None:
    """What came of the question that the step at the pointer asked; None while it is open, or none was asked."""
    if not is_asked_here(run) or run.waiting is None:
        return None
    waiting = run.waiting
    about: dict[str, Any] = {"evidence": waiting["evidence"], "sequence": waiting["sequence"]}
    answer = waiting.get("rejected") or waiting["matched"].get(DECISION)
    if answer is not None:
        return Decision(
            "rejected" if "rejected" in waiting else "approved", answer["by"], answer["at"], answer["reason"], **about
        )
    if waiting["until"] is not None and now >= waiting["until"]:
        return Decision("timeout", None, waiting["until"], None, **about)
    return None


def is_overtaken(run: Run, token: Token) -> bool:
    """Whether a person answered while the handler was at work: what it concluded without that answer is void."""
    if not is_asked_here(run) or run.waiting is None:
        return False
    is_answered = "rejected" in run.waiting or not run.waiting["remaining"]
    knew = token.decision is not None and token.decision.outcome != "timeout"
    return is_answered and not knew


def check_may_answer(waiting: dict[str, Any], who: str) -> None:
    """Raises Forbidden."""
    if people.is_among(who, waiting.get("not_by", ())):
        raise Forbidden(say("id", "engine.not_yours", who=who))
