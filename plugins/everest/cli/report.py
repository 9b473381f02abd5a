"""`everest report`: what finance and analysts read, on the screen or as CSV, XLSX or JSON."""

from __future__ import annotations

import re
import sys
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.markup import escape

from everest import bootstrap, reports
from everest.cli import output
from everest.opname.amounts import format_number
from everest.reports.csv_file import CsvLocale, write_csv
from everest.reports.files import new_file
from everest.reports.json_file import write_json
from everest.reports.shape import NUMBERS, Column, Filters, Kind, Report, ReportDefinition
from everest.reports.xlsx_file import write_xlsx
from ingest_consumer.plurals import count

FORMATS = ("table", "csv", "xlsx", "json")
DEFAULT_ROWS = 200

_MONTH = re.compile(r"([12][0-9]{3})-(0[1-9]|1[0-2])")


_OPTIONS: Mapping[str, click.Option] = {
    "since": click.Option(["--from", "since"], type=output.Day(), help="First day (WIB), like 2026-08-01."),
    "until": click.Option(["--to", "until"], type=output.Day(), help="Last day (WIB), included."),
    "gudang_kode": click.Option(["--gudang", "gudang_kode"], help="Only this warehouse."),
    "kode_barang": click.Option(["--barang", "kode_barang"], help="Only this item."),
    "lot": click.Option(["--lot", "lot"], help="Only this lot; '' = lines without one."),
    "nomer_nota": click.Option(["--nota", "nomer_nota"], help="Only this document, and what reverses it."),
    "kelompok": click.Option(["--kelompok", "kelompok"], help="Only this item group; '' = items without one."),
    "alasan": click.Option(
        ["--alasan", "alasan"], help="Only lines that differ for this reason; '' = without a reason."
    ),
    "kode_akun": click.Option(["--akun", "kode_akun"], help="Only this account."),
    "jurnal_id": click.Option(["--jurnal", "jurnal_id"], type=int, help="Begin at this row of jurnal."),
    "kartu_stok_id": click.Option(["--kartu", "kartu_stok_id"], type=int, help="Begin at this row of kartu_stok."),
    "posting_id": click.Option(["--posting", "posting_id"], type=int, help="Begin at this posting."),
}
_MONTH_OPTION = click.Option(["--month"], help="The days of one month, like 2026-08, in place of --from and --to.")


def _output_options() -> list[click.Parameter]:
    return [
        click.Option(
            ["--format", "file_format"],
            type=click.Choice(FORMATS),
            help="Default: by the name of --output, else a table.",
        ),
        click.Option(
            ["--output", "-o", "target"],
            type=click.Path(path_type=Path, allow_dash=True),
            help="The file to write; - is stdout. Default: stdout (not for xlsx).",
        ),
        click.Option(["--force"], is_flag=True, help="Replace the file if it is there."),
        click.Option(
            ["--locale"],
            type=click.Choice(["id", "en"]),
            default="id",
            show_default=True,
            help="Of a CSV: id = semicolons and decimal commas, as Indonesian Excel opens it; en = commas and points.",
        ),
        click.Option(
            ["--rows"],
            type=click.IntRange(1, 1_000_000),
            default=DEFAULT_ROWS,
            show_default=True,
            help="Of a table on the screen; files have all.",
        ),
    ]


@click.group()
def report() -> None:
    """What was posted, by line, document, warehouse, item group, item, month or reason; journal, stock card, late
    movements, trace.

    A posting and its reversal are both shown, each at its own date, the reversal with its sides exchanged: the
    totals are those of the journal. Days and times are WIB. docs/reports.md defines every report and column.

    \b
    Examples:
      python -m everest report variance --nota SO-2026-08-0012
      python -m everest report item --month 2026-08 --gudang GD-A --output barang.xlsx
      python -m everest report journal --from 2026-08-01 --to 2026-08-31 --output jurnal.csv
      python -m everest report stock-card --barang 00123 --format json
      python -m everest report trace --jurnal 4711
    """


def _command(definition: ReportDefinition) -> click.Command:
    has_range = "since" in definition.accepts
    headings = ", ".join(column.heading_en for column in definition.columns)
    return click.Command(
        definition.key,
        callback=_run(definition),
        params=[
            *(_OPTIONS[name] for name in definition.accepts),
            *([_MONTH_OPTION] if has_range else []),
            *_output_options(),
        ],
        help=f"{definition.description}\n\nColumns: {headings}.",
        short_help=definition.description.split(":")[0].split(". ")[0].rstrip("."),
    )


def _run(definition: ReportDefinition) -> Callable[..., None]:
    def run(
        file_format: str | None,
        target: Path | None,
        force: bool,
        locale: CsvLocale,
        rows: int,
        month: str | None = None,
        **filters: Any,
    ) -> None:
        if month is not None:
            if filters["since"] or filters["until"]:
                raise click.UsageError("--month stands in place of --from and --to")
            filters |= _days_of(month)
        wanted = Filters(**filters)
        if definition.needs_one_of and not any(name in wanted.given for name in definition.needs_one_of):
            needed = ", ".join(_OPTIONS[name].opts[0] for name in definition.needs_one_of)
            raise click.UsageError(f"give at least one of {needed}")
        chosen = _format(file_format, target)
        database = bootstrap.database()
        try:
            with database.transaction() as tx, reports.opened(tx, definition.key, wanted) as opened:
                _write(opened, chosen, target, force, locale, rows)
        finally:
            database.close()

    return run


def _format(given: str | None, target: Path | None) -> str:
    is_stdout = target is None or str(target) == "-"
    suffix = "" if target is None else target.suffix.lower().removeprefix(".")
    chosen = given or (suffix if suffix in FORMATS else None)
    if chosen is None and not is_stdout:
        raise click.UsageError(f"{target}: say which format with --format {'|'.join(FORMATS[1:])}")
    if chosen == "xlsx" and is_stdout:
        raise click.UsageError("a workbook goes to a file: --output laporan.xlsx")
    if chosen == "table" and not is_stdout:
        raise click.UsageError("a table is for the screen; give --format csv, xlsx or json for a file")
    return chosen or "table"


def _days_of(month: str) -> dict[str, date]:
    match = _MONTH.fullmatch(month)
    if match is None:
        raise click.UsageError(f"{month!r} is not a month; write it like 2026-08")
    year, number = int(match[1]), int(match[2])
    return {"since": date(year, number, 1), "until": date(year, number, monthrange(year, number)[1])}


def _write(opened: Report, chosen: str, target: Path | None, force: bool, locale: CsvLocale, rows: int) -> None:
    if chosen == "table":
        _table(opened, rows)
        return
    if target is None or str(target) == "-":
        _encode(opened, chosen, locale, sys.stdout.buffer)
        return
    with new_file(target, force) as stream:
        _encode(opened, chosen, locale, stream)
    click.echo(f"{target}: {opened.title}, {count(opened.row_count, 'row')}", err=True)


def _encode(opened: Report, chosen: str, locale: CsvLocale, stream: BinaryIO) -> None:
    if chosen == "csv":
        write_csv(opened, stream, locale)
    elif chosen == "xlsx":
        write_xlsx(opened, stream)
    else:
        write_json(opened, stream)


def _table(opened: Report, limit: int) -> None:
    """The first rows on the screen, and the totals of all. What is the same on every row stands once, above them."""
    source = opened.rows()
    cells = [
        [_shown(column, value) for column, value in zip(opened.columns, row, strict=True)]
        for row in islice(source, limit)
    ]
    hidden = sum(1 for _ in source)
    totals = [_shown(column, value) for column, value in zip(opened.columns, opened.totals_row(), strict=True)]
    common = _common(opened, cells)
    title = [escape(output.plain(" · ".join([opened.title, *map(" ".join, opened.described_filters())])))]
    title += [f"{opened.columns[place].heading}: {value}" for place, value in common.items() if value]
    table = output.Table(title="\n".join(title), title_justify="left")
    shown = [place for place in range(len(opened.columns)) if place not in common]
    for place in shown:
        is_number = opened.columns[place].kind in NUMBERS
        table.add_column(opened.columns[place].heading, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        table.add_row(*(row[place] for place in shown))
    if opened.totals:
        table.add_section()
        first, *others = (totals[place] for place in shown)
        table.add_row(first or "JUMLAH", *others, style="bold")
    console = output.console()
    if not console.is_terminal:
        console.width = output.ANY_WIDTH
    console.print(table)
    if not opened.row_count:
        click.echo("no rows", err=True)
    if hidden:
        click.echo(f"and {count(hidden, 'more row')}, counted in the totals; --output FILE writes all", err=True)
    for note in opened.definition.notes_in("id") if sys.stdout.isatty() else ():
        click.echo(note, err=True)


def _common(opened: Report, cells: list[list[str]]) -> dict[int, str]:
    """The texts that all of several rows share, by the place of their column."""
    if len(cells) < 2:
        return {}
    return {
        place: cells[0][place]
        for place, column in enumerate(opened.columns)
        if column.kind not in NUMBERS and len({row[place] for row in cells}) == 1
    }


def _shown(column: Column, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return format_number(value, 2 if column.kind in (Kind.MONEY, Kind.COST) else 0)
    return escape(output.plain(str(value)))


for _definition in reports.REPORTS.values():
    report.add_command(_command(_definition))
