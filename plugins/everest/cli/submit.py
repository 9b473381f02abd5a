"""`everest submit`: a file becomes a document on its way to the books, or a list of what is wrong with it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from everest import bootstrap
from everest.cli import output
from everest.errors import Conflict
from everest.intake.check import domain_problems
from everest.intake.csv_file import DELIMITERS
from everest.intake.files import FileDocument, FileRefused, FileUnreadable, Reading, file_size, read_file
from everest.intake.replace import Replaced, only_failed, replace
from everest.intake.submission import Authority, Submission, is_far_ahead
from everest.intake.submit import AlreadySubmitted, Submitted, submit_document
from everest.intake.template import template_csv, template_xlsx
from everest.opname.document import WIB
from everest.opname.rules import MIN_AUTHORISATION_LEVEL
from everest.store.unit_of_work import Database
from ingest_consumer.plurals import count

LARGE_FILE_BYTES = 512 * 1024
"""From here on reading takes long enough to be shown."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--template", is_flag=True, help="Write an empty FILE (.xlsx or .csv) to fill in, and store nothing.")
@click.option("--nota", "nomer_nota", help="Number of the document (nomer_nota).")
@click.option("--gudang", "gudang_kode", help="Its warehouse; lines may name another one.")
@click.option("--tanggal-opname", help="Day of the count, like 2026-08-31.")
@click.option("--tanggal-posting", help="Day to post on; without it, the moment of authorisation.")
@click.option("--snapshot-at", help="When the book quantities were frozen, like '2026-08-31 17:00 WIB'. Default: now.")
@click.option(
    "--transaksi-id", help="Number of the accounting document, if another program gave it one. Default: the next."
)
@click.option("--token", "submit_token", help="The same token is the same submission. Default: made from the content.")
@click.option(
    "--decimal", type=click.Choice(["id", "en"]), help="How the file writes numbers: id 1.234,5 / en 1,234.5."
)
@click.option("--delimiter", type=click.Choice(list(DELIMITERS)), help="Of a CSV, where its header does not tell.")
@click.option(
    "--format", "file_format", type=click.Choice(["csv", "json", "xlsx"]), help="Where the file's name does not tell."
)
@click.option("--sheet", help="Of a workbook. Default: the first one that is visible.")
@click.option("--check", is_flag=True, help="Only say what posting would refuse; store nothing.")
@click.option(
    "--replace", "is_correction", is_flag=True, help="Correct a FAILED document: replace its lines and header."
)
@click.option("--rerun", "and_rerun", is_flag=True, help="With --replace: run it again at once.")
@click.option("--reason", help="With --replace: why, for the audit trail.")
@click.option("--as", "authorised_by", help="Who authorised the document. Default: you.")
@click.option(
    "--level", type=click.IntRange(0, 99), default=MIN_AUTHORISATION_LEVEL, show_default=True, help="At what level."
)
@output.json_option
@click.pass_context
def submit(
    ctx: click.Context,
    /,
    file: Path,
    template: bool,
    decimal: Any,
    delimiter: str | None,
    file_format: Any,
    sheet: str | None,
    check: bool,
    is_correction: bool,
    and_rerun: bool,
    reason: str | None,
    authorised_by: str | None,
    level: int,
    as_json: bool,
    **header: str | None,
) -> None:
    """Store a count from FILE and send it to posting.

    \b
    CSV (UTF-8; comma, semicolon or tab), one row per item:
      kode_barang  qty_sistem  qty_fisik  harga_pokok       must be there
      lot  gudang_kode  satuan  alasan                      may be there
      nomer_nota  gudang_dokumen  tanggal_opname  tanggal_posting  snapshot_at
      transaksi_id  submit_token                            the same on every row, or given as options
    XLSX: the same columns in a sheet (--template writes one); codes in text cells, no
    formulas; a number in a code column is refused.
    JSON: {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31",
           "baris": [{"kode_barang": "00123", "qty_sistem": 10, "qty_fisik": 12, "harga_pokok": "1500.00"}]}

    Codes stay text, exactly as written. A blank qty_fisik means "not counted", never zero, and posting refuses it.
    Everything wrong with a file is said at once, by row and column, and then nothing is stored.

    \b
    Who authorised it is never read from the file. On the command line you vouch for it: --as and --level say who
    and at what level, you are recorded as the one who submitted, and the audit trail keeps both.

    The same document sent twice is stored once. --replace keeps the number, the nota and the old lines (in
    posting_attempts), is authorised anew, and does not run by itself without --rerun.
    """
    if template:
        _write_template(file, file_format, as_json)
        return
    if (and_rerun or reason) and not is_correction:
        raise click.UsageError("--rerun and --reason belong to --replace")
    authority = Authority(output.operator(), authorised_by or output.operator(), level)
    reading = Reading(header, file_format, decimal, DELIMITERS.get(delimiter or ""), sheet, is_correction)
    with _progress(file) as progress:
        found = read_file(file, reading, progress)
    if is_far_ahead(found.submission.tanggal_posting, datetime.now(WIB).date()):
        slip = "more than a month from now; posted books do not change, a slip can only be reversed"
        click.echo(f"Note: it posts on {found.submission.tanggal_posting}, {slip}", err=True)
    database = bootstrap.database()
    try:
        if check:
            _check(database, file, found, authority, is_correction)
        elif is_correction:
            with database.transaction() as tx:
                replaced = replace(tx, found.submission, authority, reason, and_rerun)
            _tell_replaced(replaced, as_json)
        else:
            result = submit_document(database.transaction, found.submission, authority)
            _tell_submitted(ctx, result, found.submission, as_json)
    finally:
        database.close()


def _write_template(file: Path, file_format: str | None, as_json: bool) -> None:
    writers = {"csv": template_csv, "xlsx": template_xlsx}
    writer = writers.get(file_format or file.suffix.lower().removeprefix("."))
    if writer is None:
        raise click.UsageError("--template writes a .csv or .xlsx file")
    try:
        with file.open("xb") as target:
            target.write(writer())
    except FileExistsError:
        raise click.UsageError(f"{file} is there already; a template goes to a new file") from None
    except OSError as error:
        raise FileUnreadable(f"{file} cannot be written: {error.strerror}") from None
    message = f"{file} is empty but for its headings; fill it in and submit it"
    if as_json:
        output.print_json({"status": "success", "code": 200, "message": message})
    else:
        click.echo(message)


def _check(database: Database, file: Path, found: FileDocument, authority: Authority, is_correction: bool) -> None:
    submission = found.submission
    with database.transaction() as tx:
        corrects = None
        if is_correction:
            corrects = submission.transaksi_id or only_failed(tx, submission.nomer_nota)
        problems = domain_problems(tx, submission, authority, corrects)
    if problems:
        raise FileRefused(file, [found.placed(problem) for problem in problems])
    message = (
        f"{submission.nomer_nota}: {count(len(submission.lines), 'line')}, nothing to object to; nothing was stored"
    )
    if output.wants_json(click.get_current_context()):
        output.print_json({"status": "success", "code": 200, "message": message, "errors": []})
    else:
        click.echo(message)


def _tell_submitted(
    ctx: click.Context, result: Submitted | AlreadySubmitted, submission: Submission, as_json: bool
) -> None:
    nota = shlex.quote(result.nomer_nota)
    facts = {"shadow_id": result.shadow_id, "transaksi_id": result.transaksi_id, "nomer_nota": result.nomer_nota}
    if isinstance(result, Submitted):
        message = f"submitted {result.nomer_nota} as job #{result.shadow_id} (transaksi {result.transaksi_id})"
        facts |= {"baris": result.lines, "already_submitted": False}
        hint = f"{count(result.lines, 'line')} stored. Follow it: python -m everest status {nota} --watch"
    elif result.same_content:
        message = f"already submitted: {result.nomer_nota} is {_job(result)}"
        facts |= {"worker_status": result.worker_status, "already_submitted": True}
        hint = "Nothing was stored." + (
            " To submit it anew, give a --token." if result.worker_status == "CANCELLED" else ""
        )
    else:
        same = "token" if submission.transaksi_id is None else "transaksi_id"
        raise Conflict(
            f"already submitted with other content: this {same} is {result.nomer_nota}, {_job(result)};"
            f" nothing was stored. Correct a FAILED document with --replace"
        )
    if as_json:
        output.print_json({"status": "success", "code": 200, "message": message, **facts})
    else:
        click.echo(f"{message[0].upper()}{message[1:]}. {hint}")


def _job(result: AlreadySubmitted) -> str:
    if result.shadow_id is None:
        return f"transaksi {result.transaksi_id}, stored by another program that has not announced it"
    return f"job #{result.shadow_id} ({result.worker_status})"


def _tell_replaced(result: Replaced, as_json: bool) -> None:
    message = (
        f"replaced {count(result.replaced_lines, 'line')} of {result.nomer_nota} (transaksi {result.transaksi_id}) by"
        f" {result.lines}; the old ones are kept in posting_attempts. The book quantities are those of"
        f" {output.wib(result.snapshot_at)}"
        + (", the snapshot it had; read anew, they need --snapshot-at" if result.keeps_snapshot else "")
    )
    if as_json:
        facts = {**vars(result), "snapshot_at": result.snapshot_at.isoformat()}
        output.print_json({"status": "success", "code": 200, "message": message, **facts})
    elif result.rerun_as:
        click.echo(f"{message[0].upper()}{message[1:]}. It runs again as job #{result.shadow_id}.")
    else:
        click.echo(f"{message[0].upper()}{message[1:]}. Run it again: python -m everest rerun '#{result.shadow_id}'")


@contextmanager
def _progress(file: Path) -> Iterator[Callable[[int], None]]:
    """A bar on stderr for a large file; where nobody watches, one line."""
    size = file_size(file)
    if size < LARGE_FILE_BYTES:
        yield lambda done: None
        return
    console = output.console(stderr=True)
    if not console.is_terminal:
        click.echo(f"reading {file} ({size:,} bytes)", err=True)
        yield lambda done: None
        return
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=size)
        yield lambda done: bar.update(task, completed=done)
