"""`everest preview`: the journal and the stock card that posting would write, before anybody posts."""

from __future__ import annotations

from contextlib import closing

import click
from rich.markup import escape

from everest import bootstrap
from everest.cli import output
from everest.opname.amounts import format_number
from everest.preview import Outcome, Preview
from everest.preview import preview as previewed
from ingest_consumer.exits import FAILED
from ingest_consumer.plurals import count

ROWS_SHOWN = 50

_WORDS = {
    Outcome.POSTS: "[green]would be posted[/]",
    Outcome.NEEDS_DECISION: "[yellow]a person has to decide first[/]",
    Outcome.REFUSED: "[bold red]would be refused[/]",
    Outcome.POSTED_ALREADY: "[green]is posted already[/]",
    Outcome.CANCELLED: "[red]is cancelled[/]",
}


@click.command()
@click.argument("nota")
@click.option("--all", "show_all", is_flag=True, help=f"Every stock-card row, not only the first {ROWS_SHOWN}.")
@output.json_option
@click.pass_context
def preview(ctx: click.Context, nota: str, show_all: bool, as_json: bool) -> None:
    """Show what posting the document NOTA (or #JOB) would do: journal, stock card, problems, warnings.

    The three steps of a posting run on it, and what they write stays in memory: nothing changes, whatever the
    document's status, and no posting waits meanwhile. A draft has no job; its page previews it. Exit code 1: it would
    be refused; the reasons are printed.
    """
    with closing(bootstrap.database()) as database, database.snapshot() as tx:
        found = previewed(tx, nota)
    if as_json:
        output.print_json(found.as_json())
    else:
        _print(found, show_all)
    if found.outcome is Outcome.REFUSED:
        ctx.exit(FAILED)


def _print(found: Preview, show_all: bool) -> None:
    console = output.console()
    console.print(
        f"{escape(output.plain(found.nomer_nota))} (job #{found.shadow_id}, {output.styled(found.worker_status)})"
        f" {_WORDS[found.outcome]}: {found.code} {escape(output.plain(found.message))}"
    )
    if found.is_authorised_first:
        console.print("as if another person authorised the corrected lines now")
    if found.tanggal_wib is not None:
        console.print(f"dated {found.tanggal_wib} WIB; {_changing(found.rows_changed)}")
    for warning in found.warnings:
        console.print(f"  warning: {escape(output.plain(warning))}")
    for reason in found.reasons:
        console.print(f"  to decide: {escape(output.plain(output.problem_line(reason.as_json())))}")
    output.print_problems([output.problem_line(problem.as_json()) for problem in found.problems])
    if found.journal:
        console.print(_journal(found))
    if found.stock_card:
        shown = len(found.stock_card) if show_all else ROWS_SHOWN
        console.print(_stock_card(found, shown))
        if shown < len(found.stock_card):
            console.print(f"and {len(found.stock_card) - shown} more stock-card rows; --all shows them")


def _journal(found: Preview) -> output.Table:
    table = output.Table(title="journal", title_justify="left")
    for title in ("no", "account", "name"):
        table.add_column(title)
    for title in ("debit", "credit"):
        table.add_column(title, justify="right")
    for row in found.journal:
        sides = (output.rupiah(side) if side else "" for side in (row.debet, row.kredit))
        table.add_row(str(row.urutan), row.kode_akun, escape(output.plain(row.nama_akun)), *sides)
    table.add_row("", "", "total", output.rupiah(found.total_debet), output.rupiah(found.total_kredit))
    return table


def _stock_card(found: Preview, shown: int) -> output.Table:
    table = output.Table(title=f"stock card: {count(len(found.stock_card), 'row')}", title_justify="left")
    for title in ("item", "lot", "warehouse"):
        table.add_column(title)
    for title in ("in", "out", "cost", "value"):
        table.add_column(title, justify="right")
    for row in found.stock_card[:shown]:
        keys = (escape(output.plain(text)) for text in (row.kode_barang, row.lot, row.gudang_kode))
        amounts = (format_number(value) if value else "" for value in (row.masuk, row.keluar))
        table.add_row(*keys, *amounts, format_number(row.harga_pokok, 2), output.rupiah(row.nilai))
    return table


def _changing(rows: int) -> str:
    return f"{count(rows, 'row')} of the books {'changes' if rows == 1 else 'change'}"
