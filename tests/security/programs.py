"""Which program runs which named statement: a file's programs, and for some statements fewer.

A statement that a program runs and that is not here under it would first be refused in production, so this errs on the
generous side: the workflow layer is one body of code, and whoever may end a run may do all of it.
"""

from __future__ import annotations

import re
from pathlib import Path

from everest.store.database import SQL_DIR

ROOT = SQL_DIR.parent
PROGRAMS = ("consumer", "relay", "reconciler", "tasks", "pages", "operator", "reader")

_ENGINE = {"tasks", "reconciler", "pages", "operator"}
_PEOPLE = {"pages", "operator"}
_POSTING = {"tasks", "operator"}  # the operator by `everest post`

_FILES: dict[str, set[str]] = {
    "approvals": _PEOPLE,
    "audit": _POSTING,
    "attempts": {"pages", "operator", "reader"},
    "audit_log": {"pages", "operator", "reader"},
    "books": _POSTING,
    "intake": _PEOPLE,
    "metrics": {"reconciler"},
    "preview": _PEOPLE,
    "corrections": {"pages"},
    "drafts": {"pages"},
    "pages_documents": {"pages"},
    "pages_operations": {"pages"},
    "periods": {"operator"},
    "purge": {"operator"},
    "reconciler": {"reconciler"},
    "reports": {"pages", "operator", "reader"},
    "reports_document": {"pages"},
    "reports_trace": {"pages", "operator", "reader"},
    "reversal": _POSTING,
    "workflow": _ENGINE,
    "workflow_trace": _PEOPLE,
    "workflow_views": _PEOPLE,
}
_RERUN = {"respell", "lock_run", "rerun_run", "rerun_shadow", "rerun_followers", "audit", "run_event", "enqueue"}
_CANCEL = {"cancel_run", "cancel_shadow", "cancel_followers"}
_CONSUMER = (
    {
        "spent_copies",
        "drop_spent",
        "get_shadow",
        "relatives",
        "claim",
        "runs_at_work",
        "mark_dead_lettered",
        "hand_over",
        "postpone",
        "enqueue",
    }
    | _RERUN
    | {"beat", "forget_heartbeats"}
)
_RELAY = {
    "beat",
    "broken_letters_gone",
    "due_again",
    "due_as_meant",
    "due_of_waiting",
    "forget_broken_letters",
    "forget_heartbeats",
    "free_shadows",
    "get_lock",
    "get_shadows",
    "keep_broken_letter",
    "known_shadows",
    "lying_broken_letters",
    "mark_published",
    "mark_shadows_published",
    "mark_unpublished",
    "owns_lock",
    "end_when_silent",
    "release_lock",
    "take_due",
    "unmarked_shadows",
    "waiting_runs",
    "wake",
}
# What a rejected approval or a passed deadline looks at and writes when it ends a run: the failure is recorded.
_RECORDING = {"document_by_transaksi", "lines", "insert_attempt"}
# What a correction looks at, under the lock of the header.
_CORRECTING = {"lock_document", "document_by_transaksi", "posting_of", "lines", "insert_attempt"}
# What a preview looks at, without a lock.
_LOOKING_AHEAD = {
    "accounting_document",
    "accounts",
    "announced_at",
    "closed_periods",
    "correctors",
    "document_by_transaksi",
    "job_of_older_system",
    "journal_leftovers",
    "last_answer",
    "limits",
    "line_digests",
    "lines",
    "movements_since",
    "nota_of_job",
    "number_stands",
    "posting_of",
    "stock_card_leftovers",
    "told_before",
    "type_of_numbers",
    "values_of",
    "warehouse_accounts",
    "warehouses",
}
_LOOKING_BACK = {"posting", "reversal_of", "warehouses", "journal", "stock_card"}
_PURGE = "purge_"
# What the pages do to have a posting reversed; the reversal itself is a task's.
_ASKING_FOR_REVERSAL = {"posting", "lock_namesakes", "reversal_of", "requests", "warehouse_of", "nota_is_taken"}
_BEATING = {"beat", "forget_heartbeats"}

_OWNERS = {"demo", "migrations"}
"""Files of the demo and the migration runner, which work as the schema's owner."""


def files() -> list[Path]:
    found = [*SQL_DIR.glob("queries/*.sql"), *ROOT.glob("ingest_consumer/*.sql"), *ROOT.glob("plugins/*/queries.sql")]
    return sorted(path for path in found if path.stem not in _OWNERS)


def programs_of(path: Path, name: str) -> set[str]:
    """Empty when nobody has said it."""
    if path.parent.name == "ingest_consumer":
        return {
            program
            for program, names in (
                ("consumer", _CONSUMER),
                ("relay", _RELAY),
                ("reconciler", {"get_shadow", "mark_dead_lettered", "enqueue"} | _RERUN | _BEATING),
                ("tasks", {"get_shadow", "enqueue"} | _RERUN),
                ("pages", {"get_shadow", "get_shadows"} | _RERUN | _CANCEL),
                ("operator", {"get_shadow", "get_shadows", "get_lock", "release_lock"} | _RERUN | _CANCEL),
            )
            if name in names
        }
    if path.name == "queries.sql":  # another module's workflow
        return {"tasks"}
    programs = set(_FILES.get(path.stem, set()))
    if path.stem == "workflow_views" and (name.startswith(_PURGE) or name in ("purgeable", "claim_purgeable")):
        return {"operator"}
    if path.stem == "reversal" and name in _ASKING_FOR_REVERSAL | _LOOKING_BACK:
        programs |= {"pages"}
    if path.stem == "books" and name in _RECORDING:
        programs |= {"reconciler", "pages"}
    if path.stem == "books" and name in _CORRECTING | _LOOKING_AHEAD:
        programs |= {"pages"}
    return programs


NAMED = re.compile(r"^-- name: (\w+).*\n", re.MULTILINE)


def statements(path: Path) -> dict[str, str]:
    """The named statements of a file, with a question mark for each parameter."""
    _, *parts = NAMED.split(path.read_text(encoding="utf-8"))
    found = {}
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        sql = re.sub(r"^\s*--.*\n", "", text, flags=re.MULTILINE).strip().rstrip(";").replace("%%", "%")
        found[name] = re.sub(r"(?<![:\w']):[a-z]\w*", "?", re.sub(r"\bIN :\w+", "IN (?)", sql))
    return found
