"""The workflow of the errands that a chaos run sends: it waits for a moment and for a word, and knows how to go back.

Small on purpose: a delay, a signal that may not come in time, a refusal after which everything is undone, an end after
a cancel. Each handler leaves one row, so whatever happened twice, or never, is seen (`errands.py` judges them).
Airflow's processes and the reconciler import this module.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from everest.errors import DocumentRefused
from everest.workflow.builder import workflow

ACTOR, ACTION = "chaos", "errand"
"""Of the rows that the handlers leave in the audit log; what they did stands in `reason`."""
BEGUN, TAKEN_BACK, TURNED_BACK, FINISHED, TOLD_OFF = "begun", "taken back", "turned back", "finished", "told off"
YES, NO, NO_NEWS = "ya", "tidak", "tidak ada kabar"
"""What a signal may say, and what the step goes on with when none comes in time."""
SIGNAL, HEAR = "kabar", "hear"
WAITS = timedelta(seconds=8)

State = dict[str, Any]


def went_on(word: str) -> str:
    return f"went on: {word}"


def note(step: Any, did: str) -> None:
    with step.tx.conn.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_log (actor, action, workflow_id, reason) VALUES (%s, %s, %s, %s)",
            (ACTOR, ACTION, step.workflow_id, did),
        )


def begin(state: State, step: Any) -> None:
    """Begins the errand."""
    note(step, BEGUN)


def take_back(state: State, step: Any) -> None:
    """Undoes the beginning."""
    note(step, TAKEN_BACK)


def go_on(state: State, step: Any) -> None:
    """Goes on as it was told, or refuses to."""
    word = state["heard"]["word"]
    note(step, went_on(word))
    if word == NO:
        raise DocumentRefused("tidak boleh diteruskan")


def turn_back(state: State, step: Any) -> None:
    """Undoes going on."""
    note(step, TURNED_BACK)


def finish(state: State, step: Any) -> None:
    """Ends the errand."""
    note(step, FINISHED)


def tell_off(state: State, step: Any) -> None:
    """Runs last when the errand is cancelled."""
    note(step, TOLD_OFF)


ERRAND = (
    workflow("test_chaos_errand")
    .idempotency_key("{errand}")
    .then(begin, compensate_with=take_back)
    .delay(seconds=2)
    .wait_for_signal(SIGNAL, name=HEAR, result_key="heard", timeout=WAITS, on_timeout={"heard": {"word": NO_NEWS}})
    .then(go_on, compensate_with=turn_back)
    .then(finish)
    .on_cancel(tell_off)
    .compensate_on_failure()
    .build()
)
WORKFLOWS = {ERRAND.dag_id: ERRAND}
