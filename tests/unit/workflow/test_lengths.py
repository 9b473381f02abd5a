"""What would not fit into its column is refused with a sentence, before the database says it in its own words."""

from __future__ import annotations

import pytest

from everest.errors import DocumentRefused
from everest.workflow.builder import workflow
from everest.workflow.inline import run_inline

WAITS = workflow("waits").wait_for_signal("go").build()


@pytest.mark.parametrize("key", ["", "k" * 151])
def test_a_key_has_1_to_150_characters(key: str) -> None:
    with pytest.raises(DocumentRefused, match="a key has 1 to 150 characters"):
        run_inline(WAITS, {}, key)


def test_a_group_has_at_most_150_characters() -> None:
    built = workflow("groups").start_workflows("items", WAITS, group_key="group").build()

    run = run_inline(built, {"items": [1], "group": "g" * 151})

    assert (run.status, run.row.error_code) == ("failed", 422)
    assert "a group has 1 to 150 characters" in str(run.row.error)


@pytest.mark.parametrize(("name", "correlation"), [("", None), ("s" * 101, None), ("go", "c" * 151)])
def test_a_signal_has_a_name_and_a_correlation_that_fit(name: str, correlation: str | None) -> None:
    run = run_inline(WAITS)

    with pytest.raises(DocumentRefused, match="a signal's name has 1 to 100 characters"):
        run.signal(name, correlation=correlation)

    assert run.status == "waiting_for_signal"
