"""`everest status`: where a document stands, why, and what to do next. Reads only."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from everest import bootstrap
from everest.cli import advice, output
from everest.intake import lookup
from everest.intake.lookup import Job
from everest.store.unit_of_work import Database
from ingest_consumer.exits import FAILED, INTERRUPTED
from ingest_consumer.plurals import count

WATCH_SECONDS = 1.0
MAX_PROBLEMS = 50


@click.command()
@click.argument("nota")
@click.option("--watch", is_flag=True, help="Stay until it has ended; exit code 0 if it is COMPLETED, else 1.")
@output.json_option
@click.pass_context
def status(ctx: click.Context, nota: str, watch: bool, as_json: bool) -> None:
    """Show where the document NOTA stands, and what to do about it.

    NOTA may also be the number of a job: #7. A bare 7 is the nota 7 if there is one, else job 7. Times are WIB.
    """
    database = bootstrap.database()
    try:
        rounds = _rounds(database, nota, watch)
        if as_json:
            for jobs in rounds:
                output.print_json(_as_json(jobs))
        elif watch and output.console().is_terminal:
            with Live(console=output.console(), auto_refresh=False) as live:
                for jobs in rounds:
                    live.update(_view(jobs, watch), refresh=True)
        else:
            for jobs in rounds:
                for job in jobs:
                    output.console().print(Group(*_about(job)))
                    # Not through the console: it would break a command that is to be copied into lines.
                    click.echo("".join(f"{line}\n" for line in advice.next_steps(job, watch)), nl=False)
    except KeyboardInterrupt:
        ctx.exit(INTERRUPTED)
    finally:
        database.close()
    if watch and any(job.worker_status != "COMPLETED" for job in jobs):
        ctx.exit(FAILED)


def _rounds(database: Database, nota: str, watch: bool) -> Iterator[list[Job]]:
    """The jobs now, and again at every change until all have ended."""
    before: list[Job] = []
    while True:
        with database.transaction() as tx:
            jobs = lookup.find_jobs(tx.conn, nota)
        if jobs != before:
            yield jobs
        if not watch or all(job.has_ended for job in jobs):
            return
        before = jobs
        time.sleep(WATCH_SECONDS)


def _as_json(jobs: list[Job]) -> dict[str, object]:
    """The newest document; those that carry the same nota stand beside it."""
    *others, newest = [job.as_json() for job in jobs]
    return {**newest, "other_documents": others}


def _view(jobs: list[Job], watched: bool) -> Group:
    parts: list[RenderableType] = []
    for job in jobs:
        parts += [*_about(job), *map(Text, advice.next_steps(job, watched))]
    return Group(*parts)


def _about(job: Job) -> list[RenderableType]:
    return [_table(job), *_problems(job)]


def _table(job: Job) -> output.Table:
    table = output.Table(
        show_header=False, title=f"{_safe(job.nomer_nota or 'job')} · job #{job.shadow_id}", title_justify="left"
    )
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    step = f" at {job.current_step}" if job.current_step and not job.has_ended else ""
    table.add_row("status", f"{output.styled(job.worker_status)}{step}, since {output.wib(job.worker_at)}")
    if job.reason:
        table.add_row("reason", _safe(f"{job.error_code}: {job.reason}" if job.error_code else job.reason))
    if job.question is not None:
        until = f", until {output.wib(job.asked_until)}" if job.asked_until else ""
        table.add_row("waits for", f"a person's decision (question {job.question}){until}")
    if job.transaksi_id is not None:
        lines = "" if job.membalik_nota else f", {count(job.jumlah_baris, 'line')}"
        if job.baris_dihapus_at is not None:
            lines = f", lines purged {output.wib(job.baris_dihapus_at)}"
        table.add_row("transaksi", f"{job.transaksi_id}, warehouse {_safe(str(job.gudang_kode))}{lines}")
        people = job.dibuat_oleh or "-"
        if job.membalik_nota is None:
            people += f", authorised by {job.diotorisasi_oleh or '-'}"
        table.add_row("submitted by", _safe(people))
    table.add_row("message", f"{job.publish_status} {output.wib(job.published_at)}".rstrip())
    if job.dag_run_id:
        table.add_row("DAG run", f"{_safe(job.dag_run_id)} ({job.attempts} started)")
    if job.posting_id is not None:
        sides = f"debit {output.rupiah(job.total_debet)}, credit {output.rupiah(job.total_kredit)}"
        lines = f"{count(job.baris_selisih or 0, 'line')} with variance"
        table.add_row("posting", f"{job.posting_id}: {sides}, {lines}, at {output.wib(job.posted_at)}")
    if job.membalik_nota is not None:
        table.add_row("reverses", _safe(job.membalik_nota))
    if job.dibalik_nota is not None:
        posted = f"posting {job.dibalik_posting_id}" if job.dibalik_posting_id is not None else "on its way"
        table.add_row("reversed by", _safe(f"{job.dibalik_nota} ({posted})"))
    if job.worker_status == "FAILED":
        letter = output.wib(job.dead_lettered_at) or "on its way"
        if not advice.has_letter(job):
            why = (
                "a person refused it, or nobody decided in time"
                if job.error_code == 403
                else "it is older than Everest"
            )
            letter = f"none: {why}"
        table.add_row("dead letter", letter)
    return table


def _safe(text: str) -> str:
    """Neither markup nor control characters of a row reach the terminal."""
    return escape(output.plain(text))


def _problems(job: Job) -> Iterator[Text]:
    for problem in job.problems[:MAX_PROBLEMS]:
        yield Text(output.plain(f"  {output.problem_line(problem)}"))
    if len(job.problems) > MAX_PROBLEMS:
        yield Text(f"  and {len(job.problems) - MAX_PROBLEMS} more; --json shows all")
