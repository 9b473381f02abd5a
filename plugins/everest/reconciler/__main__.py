"""The process: `python -m everest.reconciler [--once]`.

It ends when a signal stops it, and at start when the settings are wrong (exit codes: ingest_consumer/exits.py). A
server that is away is no reason to end: the next round looks again.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import click

from everest import bootstrap
from everest.errors import SettingsError
from everest.reconciler.gauges import Gauges
from everest.reconciler.management import Management
from everest.reconciler.rounds import Reconciler
from everest.reconciler.settings import ReconcilerSettings
from everest.store.unit_of_work import Database
from ingest_consumer import endpoints, exits, logs, metrics
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.errors import SettingsError as LogSettingsError
from ingest_consumer.plurals import count
from ingest_consumer.stopping import stop_event
from ingest_consumer.vitals import Pulse, Vitals

log = logging.getLogger(__name__)

ANSWER_WITHIN = timedelta(seconds=60)
"""Three times what a statement waits for a lock; none of the bounded ones here takes longer. Without it a connection
that the network forgot would hold up every repair until somebody restarts the process."""
PULSE_JOIN_S = 2.0
"""What the last heartbeat gets when the process ends."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("--once", is_flag=True, help="One round, then end.")
def main(once: bool) -> None:
    """Find what crashes left behind (dead DAG runs, missing dead letters, lost messages, missed timers) and repair it.

    Settings come from the environment; `source .local/stack.env` sets them for the local stack. A second one stands
    by.
    """
    # At once, also in the middle of a call: what is open rolls back, and every repair is one transaction. The event is
    # for the case that the exception lands where Python swallows it.
    stop = stop_event(leaves=True)
    try:
        logs.set_up(metrics.RECONCILER, os.environ)
        settings = ReconcilerSettings.from_environment()
        changed = run(settings, stop, once)
        if once and changed is None:
            words = "nothing was looked at: the database is away, or another reconciler is at work (see above)"
            click.echo(f"reconciler: {words}", err=True)
            sys.exit(exits.NOT_READY)
        if once:
            click.echo(f"reconciler: one round, {count(changed or 0, 'row')} repaired")
    except (SettingsError, LogSettingsError) as problem:
        click.echo(f"reconciler: {problem.message}", err=True)
        sys.exit(exits.NOT_READY)


def run(settings: ReconcilerSettings, stop: threading.Event, once: bool = False) -> int | None:
    """Rounds until `stop`. Returns how many rows the last one changed, None when it was not ours to do or could not be.
    Raises SettingsError when the database session is not safe for books."""
    login, timeout = settings.airflow, settings.http_timeout
    management = None if settings.management is None else Management(settings.management, settings.vhost, timeout)
    with (
        closing(_database(settings)) as database,
        closing(AirflowApi(login.url, login.user, login.password, timeout)) as airflow,
        _beating(settings) as vitals,
    ):
        known = (bootstrap.deployed, bootstrap.definitions())
        reconciler = Reconciler(settings, database, airflow, management, *known, stop.is_set, vitals)
        if not once:
            log.info("reconciler: a round every %g s", settings.limits.period.total_seconds())
        changed = 0
        period, wake_period = settings.limits.period.total_seconds(), settings.limits.wake_period.total_seconds()
        while not stop.is_set():
            changed = reconciler.round()
            if once:
                break
            next_round = time.monotonic() + period
            while not stop.wait(min(wake_period, max(0, next_round - time.monotonic()))):
                if time.monotonic() >= next_round:
                    break
                reconciler.wake_waiters()
        return changed if vitals.is_active else None


@contextmanager
def _beating(settings: ReconcilerSettings) -> Iterator[Vitals]:
    """The heartbeat, on a thread and a connection of its own: a round may take long, and that is no death."""
    vitals = Vitals(metrics.RECONCILER, settings.limits.period.total_seconds())
    port = endpoints.serve(settings.endpoint, vitals)
    vitals.know(metrics_port=port)
    database = _database(settings)

    @contextmanager
    def transaction() -> Iterator[Any]:
        with database.transaction() as tx:
            yield tx.conn

    over = threading.Event()
    pulse = threading.Thread(target=Pulse(vitals, transaction).run, args=(over,), name="heartbeat", daemon=True)
    pulse.start()
    if port:
        gauges = Gauges(_database(settings), settings.site, vitals)
        threading.Thread(target=gauges.run, args=(over,), name="gauges", daemon=True).start()
    try:
        yield vitals
    finally:
        over.set()
        pulse.join(PULSE_JOIN_S)


def _database(settings: ReconcilerSettings) -> Database:
    return bootstrap.database(settings.mysql, settings.site, ANSWER_WITHIN)


if __name__ == "__main__":
    exits.run(main, "python -m everest.reconciler")
