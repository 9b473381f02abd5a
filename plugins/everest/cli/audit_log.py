"""`everest audit-log`: who did what, when, on which document."""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from typing import Any

import click

from everest import audit_log as log
from everest import bootstrap
from everest.audit_log import Entry
from everest.cli import output

DAY = output.Day()
MAX_TEXT = 400
"""Characters of what an action changed, on the screen; --json has all."""

SHORT_HASH = 8

_HASH = re.compile(r"[0-9a-f]{32,}")
_NAMES = {
    "worker_status": "status", "dag_run_id": "DAG run", "n": "DAG run number", "baris": "lines", "sequence": "question",
    "reasons": "to decide", "diotorisasi_oleh": "authorised by", "otorisasi_level": "level", "nomer_nota": "nota",
    "transaksi_id": "transaksi", "koreksi_oleh": "corrected by", "diakui_oleh": "acknowledged by",
    "dokumen": "documents on their way", "periode": "month", "$datetime": "", "$decimal": "", "$date": "",
}  # fmt: skip
"""What columns are called on a screen; the others by their own names."""


@click.command("audit-log")
@click.argument("nota", required=False)
@click.option("--actor", help="Only what this person did.")
@click.option(
    "--action", help="Only this action, such as submit, replace, rerun, post, approve, reverse, period_close."
)
@click.option("--from", "since", type=DAY, help="Since this day (WIB).")
@click.option("--to", "until", type=DAY, help="Until this day (WIB), included.")
@click.option("--before", type=int, help="Page back: only entries with a number below this one.")
@click.option("--size", type=click.IntRange(1, 10_000), default=log.PAGE, show_default=True, help="Entries.")
@output.json_option
def audit_log(
    nota: str | None,
    actor: str | None,
    action: str | None,
    since: date | None,
    until: date | None,
    before: int | None,
    size: int,
    as_json: bool,
) -> None:
    """Tell who did what, when, and why: all of it, or about the document NOTA (or #JOB). Oldest first, times WIB.

    Who somebody is comes from the account they were logged in with: the system's on the command line, Airflow's on
    the pages. What was done inside Airflow is told when it was noticed; a cleared task is told as `airflow`.
    """
    with closing(bootstrap.database()) as database, database.transaction() as tx:
        found = log.entries(tx.conn, nota, actor, action, _utc(since), _utc(until, timedelta(days=1)), before, size)
    following = found[0].id if len(found) == size else None
    if as_json:
        output.print_json({"entries": [entry.as_json() for entry in found], "before": following})
        return
    for entry in found:
        click.echo(output.plain(_line(entry)))
    if following is not None:
        click.echo(f"older ones: --before {following}", err=True)
    if not found:
        click.echo("The audit log has nothing of that kind.", err=True)


def _utc(day: date | None, later: timedelta = timedelta()) -> datetime | None:
    return None if day is None else (output.midnight(day) + later).astimezone(UTC).replace(tzinfo=None)


def _line(entry: Entry) -> str:
    workflow = f"workflow {entry.workflow_id}" if entry.workflow_id else ""
    about = entry.nomer_nota or workflow or (entry.after or {}).get("periode") or ""
    job = f" (job #{entry.shadow_id})" if entry.shadow_id else ""
    why = f": {entry.reason}" if entry.reason else ""
    changed = _changed(entry.before or {}, entry.after or {})
    head = f"{entry.id}  {output.wib(entry.created_at)}  {entry.actor}  {entry.action}"
    return f"{head}  {about}{job}{why}{changed}".rstrip()


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Only what differs: `status FAILED → PENDING`."""
    parts = [
        f"{_name(name)} {_value(before[name])} → {_value(value)}"
        if name in before
        else f"{_name(name)} {_value(value)}"
        for name, value in after.items()
        if before.get(name) != value and value is not None
    ]
    text = ", ".join(parts)
    return f"\n      {text[:MAX_TEXT]}{'…' if len(text) > MAX_TEXT else ''}" if text else ""


def _name(column: str) -> str:
    return _NAMES.get(column, column.replace("_", " "))


def _value(value: Any) -> str:
    """Of an entry's JSON, in words: problems as their sentences, of a hash the beginning."""
    if isinstance(value, dict):
        if "pesan" in value:
            return output.problem_line(value)
        return ", ".join(f"{_name(name)} {_value(one)}" for name, one in value.items() if one is not None)
    if isinstance(value, list):
        return "; ".join(map(_value, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return value[:SHORT_HASH] if isinstance(value, str) and _HASH.fullmatch(value) else str(value)
