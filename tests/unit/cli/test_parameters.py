"""What a person types beyond any calendar, or a site sets to what is not there, is a sentence."""

from __future__ import annotations

import click
import pytest

from everest import bootstrap
from everest.cli.workflow_parts import Age
from everest.errors import SettingsError


@pytest.mark.parametrize("text", ["36501d", "999999d", "0d", "-1d", "1w", ""])
def test_an_age_that_no_row_can_have_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Age().convert(text, None, None)
    assert Age().convert("36500d", None, None).days == 36500


@pytest.mark.parametrize("name", ["nowhere", "everest.nowhere", "nowhere.at_all"])
def test_a_module_of_workflows_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVEREST_WORKFLOWS", name)
    with pytest.raises(SettingsError, match=f"EVEREST_WORKFLOWS names {name}"):
        bootstrap.definitions()
