"""`everest period`: close and open accounting months, and see how they stand."""

from __future__ import annotations

from typing import Any

import click

from everest import bootstrap, periods
from everest.cli import output
from everest.periods import Change, PeriodInUse, Unposted


@click.group()
def period() -> None:
    """Accounting months: nothing posts into a closed one, whatever is run again."""


@period.command()
@click.argument("month")
@click.option("--reason", required=True, help="Why, for the audit trail.")
@click.option(
    "--force", is_flag=True, help="Also while documents are on their way into it; they will be refused (423)."
)
@output.json_option
def close(month: str, reason: str, force: bool, as_json: bool) -> None:
    """Close MONTH, like 2026-08.

    Documents and reversals of that month which are PENDING, PROCESSING or WAITING are listed, and the month stays open
    (exit code 3), unless --force is given. FAILED ones are listed as a hint.
    """
    with bootstrap.unit_of_work() as tx:
        try:
            change = periods.close(tx, month, output.operator(), reason, force)
        except PeriodInUse as error:
            error.args = (f"{output.english(error.message)}; by force is --force",)
            raise
    _tell(change, as_json)


@period.command(name="open")
@click.argument("month")
@click.option("--reason", required=True, help="Why, for the audit trail.")
@output.json_option
def open_(month: str, reason: str, as_json: bool) -> None:
    """Open MONTH again, like 2026-08. Documents that failed because of it are run again by hand: `rerun`."""
    with bootstrap.unit_of_work() as tx:
        change = periods.open(tx, month, output.operator(), reason)
    _tell(change, as_json)


@period.command(name="list")
@output.json_option
def list_(as_json: bool) -> None:
    """Show the months, their postings, and documents that have not posted yet."""
    with bootstrap.unit_of_work() as tx:
        months = periods.list(tx)
    if as_json:
        output.print_json({"status": "success", "code": 200, "periods": [vars(month) for month in months]})
        return
    table = output.Table("month", "status", "postings", "on their way", "FAILED")
    for month in months:
        counts = (month.postings, month.open_documents, month.failed_documents)
        table.add_row(month.periode, month.status, *(str(count) for count in counts))
    output.console().print(table)
    for month in months:
        if not periods.is_month(month.periode):
            click.echo(
                output.plain(f"{month.periode!r} is no month and closes nothing; write it like 2026-08"), err=True
            )


def _tell(change: Change, as_json: bool) -> None:
    done = "is" if change.is_changed else "was already"
    message = f"{change.periode} {done} {change.status}"
    if as_json:
        lists = {name: [_facts(one) for one in getattr(change, name)] for name in ("documents", "failed")}
        facts = {"periode": change.periode, "period_status": change.status, "is_changed": change.is_changed}
        output.print_json({"status": "success", "code": 200, "message": message, **facts, **lists})
        return
    click.echo(message)
    for title, documents in (("on their way, will be refused (423)", change.documents), ("FAILED", change.failed)):
        if documents:
            click.echo(f"{len(documents)} {title}:", err=True)
            output.print_problems([output.problem_line(one.as_problem().as_json()) for one in documents])


def _facts(one: Unposted) -> dict[str, Any]:
    return {**vars(one), "tanggal_wib": one.tanggal_wib.isoformat(sep=" ")}
