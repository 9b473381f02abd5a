"""The command line: `python -m ingest_consumer consume | relay | dead-letters ...`.

How they end, and with which exit code: exits.py. A SIGTERM is an ordinary end.
"""

from __future__ import annotations

import getpass
import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click
from pika.exceptions import AMQPError

from ingest_consumer import broker, dead_letters, exits, logs, metrics, topology
from ingest_consumer.consumer import consume as run_consumer
from ingest_consumer.database import Database, passes, said
from ingest_consumer.dead_letters import Box, Done, Letter, Standing
from ingest_consumer.errors import ServerDown
from ingest_consumer.plurals import count
from ingest_consumer.relay import relay as run_relay
from ingest_consumer.settings import Settings
from ingest_consumer.stopping import stop_event

PROGRAMS = {"consume": metrics.CONSUMER, "relay": metrics.RELAY}
READ_WAIT_S = 20
"""How long a dead-letters command waits for another reader of the queue."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, epilog=exits.TABLE)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Between the queue and Airflow: publishes jobs, starts their DAG runs, looks after dead letters.

    Settings come from the environment; `source .local/stack.env` sets them for the local stack.
    """
    logs.set_up(PROGRAMS.get(ctx.invoked_subcommand or "", "dead-letters"), os.environ)
    logging.getLogger("pika").setLevel(logging.CRITICAL)  # we say the same, once a minute


@cli.command()
@click.option("--workers", type=click.IntRange(1, 64), help="Deliveries at once. Default: EVEREST_WORKERS or 4.")
def consume(workers: int | None) -> None:
    """Take jobs from the queue, start their DAG runs and wait for the outcome, until SIGTERM.

    What it holds when it is stopped goes back to the queue; the next consumer finds the run.
    """
    settings = Settings.from_environment(airflow=True)
    if workers is not None:
        settings = replace(settings, workers=workers)
    run_consumer(settings, stop_event())


@cli.command()
def relay() -> None:
    """Publish outbox rows that are due, until SIGTERM. A second relay stands by."""
    run_relay(Settings.from_environment(), stop_event())


@cli.group("dead-letters")
def dead_letters_group() -> None:
    """What lies in the dead-letter queue, why, and the ways out.

    \b
    list     show every letter with its nota, reason, age and attempts
    replay   run the document again (correct it first: python -m everest submit --replace)
    drop     give up: the document becomes CANCELLED (499), with your reason in the audit log
    settle   take out letters of documents that are done (the relay does it once a minute)
    """


@dead_letters_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON array, for programs.")
def list_letters(as_json: bool) -> None:
    """Show every letter: nota, status, age, attempts and reason. Changes nothing."""
    with _box() as (box, _database):
        letters = box.letters
    if as_json:
        click.echo(json.dumps([letter.as_json() for letter in letters], ensure_ascii=False, indent=2))
        return
    for letter in letters:
        click.echo(_line(letter))
    click.echo(count(len(letters), "dead letter") if letters else "no dead letters")


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, ImportError, OSError):  # a container whose user has no name
        return "unknown"


def _selection(command: Callable[..., None]) -> Callable[..., None]:
    """The ways to say which letters; the same for replay and drop."""
    for option in (
        click.argument("notas", nargs=-1, metavar="[NOTA]..."),
        click.option(
            "--job", "--shadow", "shadow_ids", type=int, multiple=True, help="By the number of the job; repeatable."
        ),
        click.option("--letter", "keys", multiple=True, help="By the letter's own key from `list`; repeatable."),
        click.option("--all", "everything", is_flag=True, help="Every letter."),
        click.option("--actor", default=_login, show_default="your login", help="For the audit log."),
    ):
        command = option(command)
    return command


@dead_letters_group.command()
@_selection
@click.option("--reason", help="Why, for the audit log.")
def replay(**given: Any) -> None:
    """Run the documents of these letters again; each letter goes once its rerun is recorded."""
    actor, reason = given.pop("actor"), given.pop("reason")
    _work(given, lambda box, letters, database: dead_letters.replay(box, letters, database, actor, reason))


@dead_letters_group.command()
@_selection
@click.option("--reason", required=True, help="Why, for the audit log.")
def drop(**given: Any) -> None:
    """Give these letters up. A FAILED document becomes CANCELLED (499); a broken message is just taken out."""
    actor, reason = given.pop("actor"), given.pop("reason")
    _work(given, lambda box, letters, database: dead_letters.drop(box, letters, database, actor, reason))


@dead_letters_group.command()
def settle() -> None:
    """Take out the letters of documents that are COMPLETED or CANCELLED."""
    with _box() as (box, _database):
        settled = [letter for letter in box.letters if letter.standing is Standing.SETTLED]
        for letter in settled:
            box.take(letter)
    click.echo(f"{count(len(settled), 'settled letter')} taken out")


def _work(given: dict[str, Any], do: Callable[[Box, list[Letter], Database], list[Done]]) -> None:
    if not any(given.values()):
        raise click.UsageError("say which letters: a NOTA, --job, --letter or --all")
    with _box() as (box, database):
        done = do(box, dead_letters.chosen(box.letters, **given), database)
    for one in done:
        click.echo(f"{_name(one.letter)}: {one.words}")
    if not all(one.ok for one in done):
        click.get_current_context().exit(exits.FAILED if any(one.ok for one in done) else exits.NOT_POSSIBLE)


@contextmanager
def _box() -> Iterator[tuple[Box, Database]]:
    settings = Settings.from_environment()
    database = Database(settings.mysql, settings.mysql_timeout)
    connection = None
    try:
        connection = broker.connect(settings.amqp_url, "everest dead-letters", settings.heartbeat)
        topology.ensure_dead_letters(connection)
        with dead_letters.opened(connection, database, READ_WAIT_S) as box:
            if box is None:
                raise ServerDown("another reader has the dead letters at the moment; try again")
            yield box, database
    except Exception as error:
        if isinstance(error, AMQPError) or (isinstance(error, OSError) and connection is None):
            raise ServerDown(exits.server_down("broker", settings.amqp_url, error, broker.said(error))) from error
        if passes(error):
            where = f"mysql://{settings.mysql.host}:{settings.mysql.port}"
            raise ServerDown(exits.server_down("database", where, error, said(error))) from error
        raise
    finally:
        database.close()
        broker.close_quietly(connection)


def _name(letter: Letter) -> str:
    return f"nota {letter.row.nomer_nota} (job #{letter.row.id})" if letter.row else f"letter {letter.key}"


def _line(letter: Letter) -> str:
    row, facts = letter.row, letter.as_json()
    age = facts["age_seconds"]
    words = [
        letter.standing.value.upper(),
        f"code {row.error_code}" if row and row.error_code else "",
        f"age {_age(age)}" if age is not None else "age unknown",
        count(row.attempts, "attempt") if row else "",
        f"letter {letter.key}" if row else "",
    ]
    return f"{_name(letter)}  {' · '.join(word for word in words if word)}\n    {letter.reason}"


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def main() -> None:
    exits.run(cli, "python -m ingest_consumer")


if __name__ == "__main__":
    main()
