"""Which workflows a site runs: what the modules of EVEREST_WORKFLOWS hold, nested ones and older versions included."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from everest import bootstrap
from everest.workflow.builder import workflow


def work(state: dict[str, Any], step: Any) -> None:
    """Works."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of another team, and the setting that names it."""
    module = ModuleType("site_of_a_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("EVEREST_WORKFLOWS", f" {module.__name__} ,")
    return module


@pytest.mark.parametrize("value", [None, "", " , "])
def test_a_site_that_says_nothing_runs_the_posting_and_the_example(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("EVEREST_WORKFLOWS", raising=False)
    else:
        monkeypatch.setenv("EVEREST_WORKFLOWS", value)

    expected = {"opname_posting", "opname_reversal", "monthly_closing", "closing_report"}
    assert set(bootstrap.definitions()) == expected


def test_what_a_workflow_runs_inside_is_known_with_it(site: ModuleType) -> None:
    inner = workflow("inner").then(work).build()
    site.OUTER = workflow("outer").run_workflow(inner).build()  # type: ignore[attr-defined]

    assert dict(bootstrap.definitions()) == {"inner": inner, "outer": site.OUTER}
    assert bootstrap.deployed("inner", "1") == inner


def test_an_older_version_beside_the_current_one_is_found_by_its_version_and_never_dispatched(site: ModuleType) -> None:
    site.NEW = workflow("report", version="2").then(work).build()  # type: ignore[attr-defined]
    site.OLD = workflow("report", version="1", dag_id="report_v1").then(work).build()  # type: ignore[attr-defined]

    assert bootstrap.definitions()["report"] is site.NEW
    assert bootstrap.deployed("report", "1") is site.OLD
    assert bootstrap.deployed("report", "2") is site.NEW
    assert bootstrap.deployed("report", "3") is None
