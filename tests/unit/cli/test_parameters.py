"""What a person types beyond any calendar, or a site sets to what is not there, is a sentence."""

from __future__ import annotations

from datetime import timedelta

import click
import pytest
from click.testing import CliRunner

from everest import bootstrap
from everest.cli import audit_log, output
from everest.cli.main import main
from everest.cli.workflow_parts import Age
from everest.errors import SettingsError


@pytest.mark.parametrize("text", ["36501d", "999999d", "0d", "-1d", "1w", ""])
def test_an_age_that_no_row_can_have_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Age().convert(text, None, None)
    assert Age().convert("36500d", None, None).days == 36500


@pytest.mark.parametrize("text", ["20260801", "2026-W31-6", "2026-8-1", "01-08-2026", "2026-02-30", "2026-08-01 ", ""])
@pytest.mark.parametrize("command", [("report", "month", "--from"), ("report", "month", "--to"), ("audit", "--since"),
                                     ("audit-log", "--from"), ("audit-log", "--to")])  # fmt: skip
def test_a_day_is_written_in_one_way_wherever_one_is_asked_for(command: tuple[str, ...], text: str) -> None:
    refused = CliRunner().invoke(main, [*command, text])

    assert (refused.exit_code, f"{text!r} is not a day; write it like 2026-08-31" in refused.stderr) == (2, True)


@pytest.mark.parametrize("year", ["0001", "9999"])
def test_a_day_at_the_end_of_the_calendar_is_one(year: str) -> None:
    for month_and_day in ("01-01", "12-31"):
        assert audit_log._utc(output.Day().convert(f"{year}-{month_and_day}", None, None), timedelta(days=1))


@pytest.mark.parametrize("name", ["nowhere", "everest.nowhere", "nowhere.at_all"])
def test_a_module_of_workflows_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVEREST_WORKFLOWS", name)
    with pytest.raises(SettingsError, match=f"EVEREST_WORKFLOWS names {name}"):
        bootstrap.definitions()
