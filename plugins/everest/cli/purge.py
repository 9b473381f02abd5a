"""`everest purge`: what nobody needs any more goes by age, in small batches, audited."""

from __future__ import annotations

from datetime import timedelta

import click

from everest.cli import output
from everest.cli.workflow_parts import Age, open_database
from everest.store.lines_purge import LINES_MIN_AGE, purge_lines
from everest.store.outbox_purge import purge_outbox
from everest.store.steps_purge import STEPS_MIN_AGE, purge_steps
from everest.store.workflow_purge import MIN_AGE
from everest.store.workflow_purge import purge as purge_workflows
from ingest_consumer.plurals import count


@click.command()
@click.option("--older-than", type=Age(), default="90d", show_default=True, help="Sent or ended that long ago.")
@click.option("--lines-older-than", type=Age(), help="The lines of documents posted that long ago, too (from 31d).")
@click.option("--steps-older-than", type=Age(), help="Steps and history of documents ended that long ago (from 31d).")
@click.option("--cancelled", is_flag=True, help="Cancelled workflows, too.")
@click.option("--dry-run", is_flag=True, help="Only count.")
@output.json_option
def purge(
    older_than: timedelta,
    lines_older_than: timedelta | None,
    steps_older_than: timedelta | None,
    cancelled: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete sent messages of jobs that are done, and completed workflows of other modules.

    With --lines-older-than also the lines of posted documents as they were sent: unit and reason of a line are in no
    report afterwards, quantities and values are. With --steps-older-than also which try of which step of a document
    began and ended when. Never the books, a document's header, its job and its attempts, nor the audit log.
    """
    if older_than < MIN_AGE:
        raise click.UsageError("--older-than must be at least 1d")
    if lines_older_than is not None and lines_older_than < LINES_MIN_AGE:
        raise click.UsageError(f"--lines-older-than must be at least {LINES_MIN_AGE.days}d")
    if steps_older_than is not None and steps_older_than < STEPS_MIN_AGE:
        raise click.UsageError(f"--steps-older-than must be at least {STEPS_MIN_AGE.days}d")
    documents, lines, runs = 0, 0, 0
    with open_database() as opened:
        messages = purge_outbox(opened.transaction, older_than, output.operator(), dry_run)
        workflows = purge_workflows(opened.transaction, older_than, cancelled, output.operator(), dry_run)
        if lines_older_than is not None:
            documents, lines = purge_lines(opened.transaction, lines_older_than, output.operator(), dry_run)
        if steps_older_than is not None:
            runs = purge_steps(opened.transaction, steps_older_than, output.operator(), dry_run)
    parts = [count(messages, "message"), count(workflows, "workflow")]
    if lines_older_than is not None:
        parts.append(f"{count(lines, 'line')} of {count(documents, 'document')}")
    if steps_older_than is not None:
        parts.append(f"the steps of {count(runs, 'document')}")
    words = f"{', '.join(parts[:-1])} and {parts[-1]} {'would be purged' if dry_run else 'purged'}"
    if as_json:
        facts = {
            "messages": messages,
            "workflows": workflows,
            "documents": documents,
            "lines": lines,
            "steps_of_documents": runs,
            "dry_run": dry_run,
        }
        output.print_json({"status": "success", "code": 200, "message": words, **facts})
    else:
        click.echo(words)
