"""`everest rerun` and `everest post`: run a document again through the queue, or here and now without it."""

from __future__ import annotations

from typing import Any

import click

from everest import bootstrap
from everest.cli import output
from everest.errors import Conflict, EverestError
from everest.intake import lookup
from everest.intake.lookup import Job
from everest.intake.submit import audit
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.preview import Outcome, preview
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import engine, runner
from everest.workflow.definition import Definition
from ingest_consumer.exits import FAILED, NOT_POSSIBLE

FINAL = frozenset({"COMPLETED", "CANCELLED"})
OF_DOCUMENTS = {definition.name: definition for definition in (POST_OPNAME, REVERSE_OPNAME)}


@click.command()
@click.argument("nota")
@click.option("--reason", help="Why, for the audit trail.")
@output.json_option
def rerun(nota: str, reason: str | None, as_json: bool) -> None:
    """Run the FAILED document NOTA (or #JOB) again, from the step that failed.

    It becomes PENDING and its message goes out with the relay's next round; its dead letter is settled when it
    is COMPLETED. Correct the document first if its data were wrong: see `submit --replace`. A COMPLETED one is left
    alone: it is told, and proven by going through its steps, that another run would change 0 rows (exit code 0), or
    that its staging rows say something else now and a run would be refused (exit code 3).
    """
    database = bootstrap.database()
    try:
        with database.transaction() as tx:
            job = lookup.find_job(tx.conn, nota, frozenset({"FAILED"}))
            dag_run_id = None if _is_posted(job) else tx.runs.rerun(job.shadow_id, output.operator(), reason)
        if dag_run_id is None:
            _tell_posted(database, job, as_json)
            return
    finally:
        database.close()
    message = f"{job.nomer_nota or 'workflow ' + str(job.workflow_id)} (job #{job.shadow_id}) runs again"
    if as_json:
        facts = {"shadow_id": job.shadow_id, "nomer_nota": job.nomer_nota, "dag_run_id": dag_run_id}
        output.print_json({"status": "success", "code": 200, "message": message, **facts})
    else:
        click.echo(f"{message}. Follow it: python -m everest status '#{job.shadow_id}' --watch")


def _is_posted(job: Job) -> bool:
    return job.worker_status == "COMPLETED" and job.transaksi_id is not None


def _tell_posted(database: Database, job: Job, as_json: bool) -> None:
    with database.snapshot() as tx:
        found = preview(tx, f"#{job.shadow_id}")
    if found.outcome is not Outcome.POSTED_ALREADY:
        raise Conflict(
            f"{job.nomer_nota} is COMPLETED and is not run again: {output.english(found.message)}; nothing was started"
        )
    message = f"{job.nomer_nota} is COMPLETED: {output.english(found.message)}"
    if as_json:
        facts = {"shadow_id": job.shadow_id, "nomer_nota": job.nomer_nota, "dag_run_id": None, "rows_changed": 0}
        output.print_json({"status": "success", "code": 200, "message": message, **facts})
    else:
        click.echo(output.plain(f"{message}. Nothing was started."))


@click.command()
@click.argument("nota")
@click.option("--take-over", is_flag=True, help="Also when a DAG run is at work on it: its commits become impossible.")
@click.option("--reason", help="Why, for the audit trail.")
@output.json_option
@click.pass_context
def post(ctx: click.Context, nota: str, take_over: bool, reason: str | None, as_json: bool) -> None:
    """Post the document NOTA (or #JOB) here and now, without Airflow and the broker.

    The same steps with the same locks, for a reversal as well: for the day those are down. A message of it that is
    still on its way does nothing when it arrives. A document that is posted already is a success again. One that a
    person has to decide about answers {"status": "waiting", "code": 202} with the reasons, and exit code 3.
    """
    database = bootstrap.database()
    try:
        with database.transaction() as tx:
            job = lookup.find_job(tx.conn, nota)
            ticket = None
            definition = _definition(job)
            if job.worker_status not in FINAL:
                ticket = _take_over(tx, definition, job, take_over)
            if ticket is not None:
                audit(
                    tx.conn,
                    actor=output.operator(),
                    action="post",
                    transaksi_id=job.transaksi_id,
                    nomer_nota=job.nomer_nota,
                    shadow_id=job.shadow_id,
                    workflow_id=ticket.workflow_id,
                    reason=reason,
                    before={"worker_status": job.worker_status, "dag_run_id": job.dag_run_id, "n": job.n},
                    after={"worker_status": "PROCESSING", "dag_run_id": ticket.dag_run_id, "n": ticket.n},
                )
        if ticket is not None:
            _walk(database, definition, ticket)
            with database.transaction() as tx:
                job = lookup.find_job(tx.conn, f"#{job.shadow_id}")
    finally:
        database.close()
    answer = _answer(job)
    if as_json:
        output.print_json(answer)
    else:
        _tell(job, answer)
    if job.worker_status != "COMPLETED":
        ctx.exit(FAILED if job.has_ended else NOT_POSSIBLE)


def _definition(job: Job) -> Definition:
    """The workflow of a document; a job that another program announced is a count."""
    name = job.workflow or POST_OPNAME.name
    if name not in OF_DOCUMENTS:
        raise Conflict(f"job #{job.shadow_id} is workflow {name}, no document; see `python -m everest workflow`")
    return OF_DOCUMENTS[name]


def _take_over(tx: UnitOfWork, definition: Definition, job: Job, take_running: bool) -> engine.Ticket | None:
    """None while it waits for a person: the row says for what."""
    try:
        return engine.take_over(tx, definition, job.shadow_id, take_running=take_running)
    except Conflict as conflict:
        if job.question is not None:
            return None
        if job.worker_status == "PROCESSING" and not take_running:
            raise Conflict(
                f"{output.english(conflict.message)}; if that will never end, --take-over posts it here"
            ) from conflict
        raise


def _walk(database: Database, definition: Definition, ticket: engine.Ticket) -> None:
    """To the end, or to a failure that the rows name. Raises what they do not name."""
    try:
        runner.run_to_end(definition, ticket, database.transaction)
    except Exception as error:
        if not runner.is_recorded(error):
            if isinstance(error, EverestError):
                raise
            raise EverestError(f"{type(error).__name__}: {error}; see `python -m everest status`") from error


def _answer(job: Job) -> dict[str, Any]:
    """What the row says: {"status", "code", "message", ...}."""
    if job.worker_status == "COMPLETED":
        return {"status": "success", "code": 200, "message": "sudah selesai", **(job.response or {})}
    status = "error" if job.has_ended else "waiting"
    code = job.error_code or (500 if job.has_ended else 202)
    return {"status": status, "code": code, "message": job.reason, "errors": [], **(job.response or {})}


def _tell(job: Job, answer: dict[str, Any]) -> None:
    line = f"{answer['status']} {answer['code']}: {job.nomer_nota}: {answer['message']}"
    if answer["status"] == "success":
        if answer.get("posting_id") is not None:
            sides = f"debit {output.rupiah(answer['total_debet'])}, credit {output.rupiah(answer['total_kredit'])}"
            line += f" (posting {answer['posting_id']}, {sides})"
        click.echo(output.plain(line))
        return
    click.echo(output.plain(line), err=True)
    output.print_problems([output.problem_line(problem) for problem in job.problems])
