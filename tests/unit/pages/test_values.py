"""Every value that a row can hold, and every key that is put together at run time, has its words.

What there can be is read from where it is made: the statuses from the schema, the steps from the workflows that are
deployed, the actions and events from the calls that write them. So a new one without words is missed here, before a
person reads its name in code on a page.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from everest import bootstrap, preview
from everest.audit.invariants import BY_KEY
from everest.intake import files, header
from everest.opname import amounts, count
from everest.pages import broker, document_tabs, drafts, health, navigation, submit, view, words
from everest.reports.catalogue import REPORTS
from everest.reports.shape import Filters
from everest.store import workflow_views
from everest.workflow.definition import SignalKind, Step
from everest.workflow.fields import Flaw
from everest.workflow.records import RunStatus
from ingest_consumer import message, vitals

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = (ROOT / "sql" / "schema.sql").read_text(encoding="utf-8")
CONSUMER = sorted((ROOT / "ingest_consumer").rglob("*.py"))
MODULES = [*sorted((ROOT / "plugins" / "everest").rglob("*.py")), *CONSUMER]
INTAKE = sorted((ROOT / "plugins/everest/intake").glob("*.py"))
AUDIT = sorted((ROOT / "plugins/everest/audit").glob("*.py"))
PAGES = sorted(view.HERE.glob("*.py"))
REPORT_MODULES = [*sorted((ROOT / "plugins/everest/reports").glob("*.py")), view.HERE / "charts.py"]
OF_REPORTS = ("column", "filter", "note", "report", "unit")
TEMPLATES = sorted((view.HERE / "templates").glob("*.html"))


def calls(files: Iterable[Path], *names: str) -> Iterator[ast.Call]:
    """The calls of functions or methods of these names."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in names:
                    yield node


def texts(node: ast.AST | None) -> set[str]:
    """The texts that an argument can be, whichever way its conditions go."""
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def said(files: Iterable[Path], names: tuple[str, ...], place: int | None, keyword: str = "") -> set[str]:
    """What stands at this place, or under this keyword, of such calls."""
    found: set[str] = set()
    for call in calls(files, *names):
        if place is not None and len(call.args) > place:
            found |= texts(call.args[place])
        for one in call.keywords:
            if one.arg == keyword:
                found |= texts(one.value)
    return found


def checked(constraint: str) -> set[str]:
    """The values that a CHECK of the schema allows."""
    found = re.search(rf"{constraint} CHECK \(\w+ IN \(([^)]*)\)", SCHEMA)
    assert found, constraint
    return set(re.findall(r"'(\w+)'", found[1]))


def steps() -> set[str]:
    """Of every workflow that this site runs, nested ones and older versions included."""
    return {step.name for one in bootstrap._all_definitions() for step in one.steps}


def actions() -> set[str]:
    by_call = said(MODULES, ("audit", "_audit"), 1, "action") | said(CONSUMER, ("audit",), 2)
    answers = said([ROOT / "plugins/everest/workflow/control.py"], ("_answer",), 9)
    return by_call | answers | {f"mark_{state}" for state in ("success", "failed")}


def item_statuses() -> set[str]:
    written = said(MODULES, ("finish_item",), 4) | {"pending", "running", "failed"}
    return written | checked("ck_workflow_steps_status")


def checks() -> set[str]:
    keys = said(PAGES, ("Check",), 0) | set(health.PROCESSES) | {f"broker_{one}" for one in get_args(broker.Trouble)}
    return {f"{key}{part}" for key in keys for part in ("", "_is", "_do")}


def keys_of(section: str, files: Iterable[Path]) -> set[str]:
    """What `say` and `Reason.of` name of a section."""
    keys = said(files, ("say",), 1) | said(files, ("of",), 0)
    return {key.partition(".")[2] for key in keys if key.startswith(f"{section}.")}


VALUES = {
    "status": checked("ck_shadow_worker_status") | {"DRAFT"},  # before it has a job
    "run": set(get_args(RunStatus)),
    "part": item_statuses() | {"closed", "cancelled"},  # what workflow_trace.standing makes of a record left open
    "step": steps(),
    "field": set(get_args(Flaw)),
    "step_type": {one.type for one in Step.__subclasses__()},
    "event": said(MODULES, ("add_event",), 1) | {f"{kind}_handler_failed" for kind in ("failure", "deadline")},
    "action": actions(),
    "outcome": checked("ck_posting_attempts_outcome"),
    "audit": checked("ck_audit_runs_outcome") - {"RUNNING"},  # the page shows the newest that ended
    "heartbeat": {vitals.STARTING, vitals.ACTIVE, vitals.STANDBY} | said(MODULES, ("know",), None, "state") | {"lost"},
    "wait": set(get_args(SignalKind)) | said(MODULES, ("begin",), 3) | {"workflows", "child", "delay", "signals"},
    "compensation": {"pending", "running", "done", "failed"},
    "budget": {*workflow_views._BUDGETS, "state_bytes"},
    "smell": said([view.HERE / "second_look.py"], ("append",), 0),
    "preview": {one.value for one in preview.Outcome},
    "report": {key.replace("-", "_") for key in REPORTS},
    "documents": {"amount_min", "amount_max", "from", "until"},  # filters that can't be read
    "kind": checked("ck_posting_sets_jenis") | {count.OPNAME},
    "lines": {*document_tabs.SORTS, "asc", "desc"},
    "decimal": set(submit.DECIMALS),
    "document": set(document_tabs.TABS),
    "draft_order": set(drafts.SORTS),
    "filter": {field.name for field in fields(Filters)},
    "not_now": {"authorise", "decide", "reverse"},
    "nav": {key for key, _, _ in navigation.PAGES},
    "check": checks(),
    "invariant": set(BY_KEY),
    "health": {f"{verdict}{part}" for verdict in get_args(health.Verdict) for part in ("", "_text")},
    "done": said(PAGES, ("back",), 2) | said(PAGES, ("_act",), 2),
    "problem": said(PAGES, ("HTTPException",), 1) | said(PAGES, ("problem_page",), 2),
    "workflow": {"changed", "missing"},
    "attempt": {"added", "removed", "changed"},
    "letters": {"replayed", "dropped", "not_failed", "refused", "dropped_broken", "broken_gone"},
    "submit": said([view.HERE / "submit.py"], ("_page",), None, "why"),
    "unit": {"second", "minute", "hour", "day"},
    "vitals": {"new", "late", *(kind.lower() for kind in vitals.HOLDS_UP)},
    "broken": keys_of("broken", CONSUMER) | said([ROOT / "ingest_consumer/message.py"], ("_Wrong",), 0),
    "rerun": said(CONSUMER, ("_refused",), 0) | {"dropped"},
    "engine": keys_of("engine", MODULES) | {"rejected", "rejected_silently"},
    "audit_note": keys_of("audit_note", MODULES),
    "file": keys_of("file", MODULES)
    | said(INTAKE, ("wrong", "BookFlaw"), 0)
    | said([ROOT / "plugins/everest/intake/json_file.py"], ("_say",), 2)
    | {
        key.removeprefix("file.")
        for key in (*files._NOT_TEXT.values(), *amounts._HOW_TO_WRITE.values(), header.AUTHORITY)
    },
    "refused": keys_of("refused", MODULES)
    | said([ROOT / "plugins/everest/approvals.py"], ("_given",), 0)
    | {"journal_row", "card_row", "posting"}
    | {f"question_{outcome}" for outcome in ("approved", "rejected")},
    "finding": said(AUDIT, ("walked", "finding"), 0),
    "audit_state": keys_of("audit_state", AUDIT),
    "json_kind": {message._json_kind(value) for value in ([], "", True, None, 1)},
}
"""What the second half of a key can be, by its first half."""


@pytest.mark.parametrize("section", sorted(VALUES))
def test_every_value_of_a_row_has_its_words(section: str) -> None:
    assert VALUES[section], "nothing was found where these are made"
    assert not {value for value in VALUES[section] if not words.has(f"{section}.{value}")}


def test_the_values_are_found_where_they_are_made() -> None:
    """So that a call that is written otherwise one day does not empty a list in silence."""
    assert {"submit", "rerun", "authorise", "approve", "reverse", "replace", "drop", "purge"} <= VALUES["action"]
    assert {"started", "failed", "answered", "rejected", "woken", "signal"} <= VALUES["event"]
    assert {"post_jurnal", "reverse_posting", "warehouse_head_approves", "number_report"} <= VALUES["step"]
    assert {"starting", "active", "standby", "stopped", "lost"} == VALUES["heartbeat"]
    assert {"succeeded", "pending", "skipped"} <= VALUES["part"]
    assert {"kept", "rerun", "paused", "approved"} <= VALUES["done"]
    assert {"login", "role", "token", "missing", "size"} <= VALUES["problem"]


def asked_for(text: str) -> set[str]:
    """Sections whose keys a file puts together: t('status.' ~ x), word('status', x), f"status.{x}"."""
    return set(re.findall(r"""t\(['"]([a-z_]+)\.['"] ?~|word\(['"]([a-z_]+)['"],|f"([a-z_]+)\.\{""", text))


@pytest.mark.parametrize("file", [*TEMPLATES, *PAGES], ids=lambda file: file.name)
def test_no_key_is_put_together_of_values_that_nobody_checks(file: Path) -> None:
    sections = {part for one in asked_for(file.read_text(encoding="utf-8")) for part in one if part}
    assert sections - {"code"} <= set(VALUES)  # what an error number means is said for the common ones alone


def test_no_text_stands_there_that_nobody_asks_for() -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in [*TEMPLATES, *MODULES])
    of_reports = "".join(file.read_text(encoding="utf-8") for file in REPORT_MODULES)
    in_reports = {name.replace("-", "_") for name in re.findall(r"""['"]([\w-]+)['"]""", of_reports)}
    told = {key for key in words.catalogue() if key.split(".")[0] in OF_REPORTS and key.split(".")[1] in in_reports}
    named = set(re.findall(r"""['"]([a-z_]+\.\w+)['"]""", sources + of_reports))
    built = {f"{section}.{value}" for section, values in VALUES.items() for value in values}
    by_number = {key for key in words.catalogue() if re.fullmatch(r"(code|problem)\.(\d+|other)", key)}
    assert not set(words.catalogue()) - named - told - built - by_number
