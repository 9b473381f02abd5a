"""What a site can decide, from the environment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everest.errors import SettingsError
from everest.settings import Settings


def test_without_anything_set_a_decision_takes_two_weeks_and_is_another_persons() -> None:
    settings = Settings.from_environment({})

    assert (settings.approval_timeout, settings.allow_self_approval) == (timedelta(days=14), False)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("3d", timedelta(days=3)),
        ("12h", timedelta(hours=12)),
        ("90m", timedelta(minutes=90)),
        ("30s", timedelta(seconds=30)),
    ],
)
def test_the_time_for_a_decision_has_a_unit(text: str, span: timedelta) -> None:
    env = {"EVEREST_APPROVAL_TIMEOUT": text, "EVEREST_ALLOW_SELF_APPROVAL": "1"}

    settings = Settings.from_environment(env)

    assert (settings.approval_timeout, settings.allow_self_approval) == (span, True)


@pytest.mark.parametrize("text", ["", "one", "Fused", "fused "])
def test_the_tasks_of_a_posting_are_one_of_two_words(text: str) -> None:
    with pytest.raises(SettingsError, match=r"EVEREST_POSTING_TASKS=.*per_step or fused"):
        Settings.from_environment({"EVEREST_POSTING_TASKS": text})


def test_everything_that_is_wrong_is_named_at_once() -> None:
    for text in ("", "14", "0d", "-3d", "2w", "1.5d"):
        env = {"EVEREST_APPROVAL_TIMEOUT": text, "EVEREST_ALLOW_SELF_APPROVAL": "yes"}
        with pytest.raises(SettingsError) as refused:
            Settings.from_environment(env)
        assert "EVEREST_APPROVAL_TIMEOUT" in refused.value.message
        assert "EVEREST_ALLOW_SELF_APPROVAL" in refused.value.message
