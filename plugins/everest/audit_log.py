"""Who did what, when, on which document: the audit log, read.

Every action of a person writes its entry in the transaction that does it, whoever calls (commands, pages, dead
letters), so that there is no action without its entry and no entry without its action. What people do inside Airflow
is entered when it is noticed: the reconciler names who marked a run, a cleared task is entered as `airflow`, whose own
event log knows the person. The table takes no UPDATE and no DELETE (triggers); a TRUNCATE is a matter of grants.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from everest.store.database import Connection, load_queries

_QUERIES = load_queries("audit_log")
_JOB = re.compile(r"#([1-9][0-9]{0,17})")

PAGE = 200


@dataclass(frozen=True)
class Entry:
    """One action. created_at: naive UTC. before, after: what it changed, as far as the action says."""

    id: int
    created_at: datetime
    actor: str
    action: str
    transaksi_id: int | None
    nomer_nota: str | None
    shadow_id: int | None
    workflow_id: int | None
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "created_at": f"{self.created_at.isoformat()}+00:00"}


def entries(
    conn: Connection,
    target: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    size: int = PAGE,
) -> list[Entry]:
    """The newest `size` entries, oldest of them first. target: a nota, or `#JOB`. since, until: naive UTC, the second
    not included. before: page back, only entries with a smaller id."""
    job = _JOB.fullmatch(target) if target else None
    rows = _QUERIES.entries(
        conn,
        nomer_nota=None if job else target,
        shadow_id=int(job[1]) if job else None,
        actor=actor,
        action=action,
        since=since,
        until=until,
        before=before,
        size=size,
    )
    return [_entry(row) for row in rows][::-1]


def _entry(row: dict[str, Any]) -> Entry:
    before, after = _parsed(row.pop("before_value")), _parsed(row.pop("after_value"))
    return Entry(**row, before=before, after=after)


def _parsed(text: str | None) -> dict[str, Any] | None:
    value = json.loads(text) if text else None
    return value if isinstance(value, dict) or value is None else {"value": value}
