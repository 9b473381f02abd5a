"""`everest audit`: the invariants of the books, looked at by hand."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from typing import Any

import click

from everest import bootstrap
from everest.audit.acknowledge import acknowledge, withdraw
from everest.audit.finding import Auditor, text
from everest.audit.invariants import BY_KEY, INVARIANTS, Invariant
from everest.audit.run import Report, auditor_of
from everest.audit.run import audit as audited
from everest.audit.settings import AuditSettings
from everest.cli import output
from ingest_consumer.exits import FAILED, NOT_READY

_WORDS = {"CLEAN": "[green]holds[/]", "FINDINGS": "[bold red]broken[/]", "NOT_CHECKED": "[yellow]not checked[/]"}


@click.group(invoke_without_command=True)
@click.option(
    "--only", type=click.Choice(list(BY_KEY)), multiple=True, metavar="KEY", help="Only this one; repeatable."
)
@click.option("--since", type=output.Day(), help="Only postings made since this day (WIB).")
@click.option("--list", "list_only", is_flag=True, help="Say what is looked at, and look at nothing.")
@output.json_option
@click.pass_context
def audit(ctx: click.Context, only: tuple[str, ...], since: date | None, list_only: bool, as_json: bool) -> None:
    """Look whether the books are in order: what the DAG ledger_audit does every night.

    Reads only, in small pieces, and takes no lock on the books; findings are stored in `audit_findings`, with the day
    each was first seen.

    \b
    Exit codes: 0 everything holds (or is acknowledged), 1 findings that nobody has acknowledged, 5 something could not
    be looked at (and nothing was found).
    """
    if ctx.invoked_subcommand is not None:
        return
    chosen = [BY_KEY[key] for key in dict.fromkeys(only)] or list(INVARIANTS)
    if list_only:
        _print_list(chosen, as_json)
        return
    settings = AuditSettings.from_environment()
    instant = None if since is None else output.midnight(since)
    reports: list[Report] = []
    with closing(bootstrap.database()) as database, auditor_of(database, settings, instant) as auditor:
        for invariant in chosen:
            reports.append(_looked_at(auditor, invariant))
            if not as_json:
                _print(reports[-1], settings.named)
    if as_json:
        output.print_json(_as_json(reports))
    if any(report.unknown for report in reports):
        ctx.exit(FAILED)
    if any(report.not_checked for report in reports):
        ctx.exit(NOT_READY)


@audit.command("acknowledge")
@click.argument("number", type=click.IntRange(1))
@click.option("--reason", required=True, help="Why it stands, for the report and the audit trail.")
@click.option("--withdraw", "is_withdrawn", is_flag=True, help="Take it back.")
def acknowledge_finding(number: int, reason: str, is_withdrawn: bool) -> None:
    """Say about the finding NUMBER that it is known, and why it stands.

    It goes on being found, counted and named, with your name and reason; it no longer makes the night red. For exactly
    what it says now: should the rows change, or the fault come back after it was gone, it counts anew.
    """
    change = withdraw if is_withdrawn else acknowledge
    with bootstrap.unit_of_work() as tx:
        sentence = change(tx, number, output.operator(), reason)
    click.echo(output.plain(f"#{number} {'counts again' if is_withdrawn else 'acknowledged'}: {sentence}"))


def _looked_at(auditor: Auditor, invariant: Invariant) -> Report:
    return audited(auditor, invariant, output.operator())


def _print(report: Report, named: int) -> None:
    console = output.console()
    gone = f", {report.resolved} gone since the last audit" if report.resolved else ""
    console.print(f"{report.invariant.key}: {_WORDS[report.outcome]}{gone}")
    if report.found:
        click.echo(output.plain(f"  {report.invariant.sentence}"))
        click.echo(output.plain(report.sentence(named)))
        click.echo(output.plain(f"  What to do: {report.invariant.remedy}"))
    elif report.not_checked:
        click.echo(output.plain(f"  {report.not_checked}"), err=True)
    for note in report.notes:
        click.echo(output.plain(f"  note: {note}"), err=True)


def _print_list(chosen: list[Invariant], as_json: bool) -> None:
    if as_json:
        rows = [{name: getattr(one, name) for name in ("key", "sentence", "means", "remedy")} for one in chosen]
        output.print_json({"invariants": rows})
        return
    for invariant in chosen:
        click.echo(f"{invariant.key}\n  {invariant.sentence}")


def _as_json(reports: list[Report]) -> dict[str, Any]:
    found = sum(report.found for report in reports)
    unsure = any(report.not_checked for report in reports)
    return {
        "status": "findings" if found else "not_checked" if unsure else "clean",
        "found": found,
        "invariants": [
            {
                "key": report.invariant.key,
                "sentence": report.invariant.sentence,
                "outcome": report.outcome,
                "found": report.found,
                "new": report.new,
                "acknowledged": report.acknowledged,
                "resolved": report.resolved,
                "not_checked": report.not_checked,
                "notes": list(report.notes),
                "started_at": text(report.started_at),
                "findings": [
                    {
                        "key": one.key,
                        "pesan": one.pesan,
                        "detail": dict(one.detail),
                        **(report.standing[one.key].as_json() if one.key in report.standing else {}),
                    }
                    for one in report.findings
                ],
            }
            for report in reports
        ],
    }
