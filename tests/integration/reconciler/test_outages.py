"""Servers that are away: what needs them waits, the rest goes on, and no document fails because of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from everest import bootstrap
from everest.errors import DatabaseError, DocumentRefused, TransientDatabaseError
from everest.reconciler import rows
from everest.settings import Settings
from everest.store import database as store
from everest.store.unit_of_work import Database, UnitOfWork
from ingest_consumer import metrics
from ingest_consumer.airflow_api import AirflowApi, DagRun
from ingest_consumer.vitals import Vitals
from tests import builders, fake_airflow
from tests.integration.reconciler.world import LONG_AGO, World


def test_without_airflow_nothing_is_decided_about_runs_and_dead_letters_go_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = world.at_work("failed")
    failed = world.failed(DocumentRefused("salah"), key="failed")
    lost = world.sent(key="lost")
    world.age(LONG_AGO)
    world.airflow.script("run", 500)
    world.airflow.script("dag", 503)
    reconciler = world.reconciler()

    assert reconciler.round() == 1, "the dead letter needs no Airflow"
    assert world.status(ticket.shadow_id) == "PROCESSING"
    assert world.row(failed.shadow_id)["dead_lettered_at"] is not None
    assert world.row(lost)["requeued"] == 0
    complaints = [record for record in caplog.records if record.levelno == logging.WARNING and "500" in record.message]
    assert len(complaints) == 1

    assert reconciler.round() == 2, "Airflow is back"
    assert world.status(ticket.shadow_id) == "PENDING"
    assert world.row(lost)["requeued"] == 1


def test_an_airflow_that_does_not_listen_is_said_once_and_survived(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = world.at_work("failed")
    nobody = fake_airflow.FakeAirflow()
    nobody.close()
    reconciler = world.reconciler(replace(world.settings, airflow=replace(world.settings.airflow, url=nobody.url)))

    assert [reconciler.round() for _ in range(3)] == [0, 0, 0]
    assert world.status(ticket.shadow_id) == "PROCESSING"
    assert sum("did not answer" in record.message for record in caplog.records) == 1


def test_an_airflow_that_answers_slowly_costs_the_reconciler_neither_its_turn_nor_its_other_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it asked about every run its session was silent for so long that the database took it for dead: each round
    ended there, and nothing behind it was ever looked at."""
    for number in range(6):
        world.at_work("running", key=f"k{number}")
    failed = world.failed(DocumentRefused("salah"), key="failed")
    world.age(LONG_AGO)
    asked: list[str] = []

    def slow(self: AirflowApi, dag_id: str, run_id: str) -> DagRun:
        asked.append(run_id)
        time.sleep(0.7)
        return DagRun("running")

    monkeypatch.setattr(AirflowApi, "dag_run", slow)
    limits = replace(world.settings.limits, standby_after=timedelta(seconds=2))
    reconciler = world.reconciler(replace(world.settings, limits=limits))

    assert reconciler.round() == 1
    assert world.row(failed.shadow_id)["dead_lettered_at"] is not None
    for _ in range(5):
        reconciler.round()
    assert len(set(asked)) == 6, "each run has its turn, in a later round"


def test_a_run_that_airflow_cannot_answer_for_does_not_hold_up_those_behind_it(world: World) -> None:
    for number in range(2):
        world.at_work("failed", key=f"job-{number}")
    settings = replace(world.settings, limits=replace(world.settings.limits, batch=1))
    reconciler = world.reconciler(settings)
    world.airflow.script("run", 500)

    assert [reconciler.round(), reconciler.round()] == [0, 1]
    assert [world.status(shadow_id) for shadow_id in (1, 2)] == ["PROCESSING", "PENDING"]


def test_a_run_that_airflow_can_never_answer_for_holds_up_no_other(world: World) -> None:
    ill, sound = (world.at_work("failed", key=key) for key in ("ill", "sound"))
    world.airflow.ill = ill.dag_run_id

    assert world.reconciler().round() == 1
    assert [world.status(ticket.shadow_id) for ticket in (ill, sound)] == ["PROCESSING", "PENDING"]


def test_a_dag_that_airflow_can_never_answer_for_holds_up_no_other(world: World) -> None:
    ill, sound = world.sent(key="ill"), world.sent(key="sound")
    world.execute("UPDATE rabbit_publish_shadow SET dag_id = 'ill' WHERE id = %s", ill)
    world.age(LONG_AGO)
    world.airflow.ill = "ill"

    assert world.reconciler().round() == 1
    assert [world.row(shadow_id)["requeued"] for shadow_id in (ill, sound)] == [0, 1]


def test_rows_that_stay_as_they_are_hide_none_behind_them(world: World) -> None:
    """As many as a round looks at: lost messages whose runs are at work, and deadlines of runs that cannot be read."""
    settings = replace(world.settings, limits=replace(world.settings.limits, batch=2))
    waiting = [world.sent(key=str(number)) for number in range(3)]
    for shadow_id in waiting[:2]:
        world.airflow.has(world.row(shadow_id)["dag_run_id"], "running")
        broken = '{"$decimal": "not a number"}'
        world.execute("UPDATE workflow_runs SET state = %s WHERE carrier_shadow_id = %s", broken, shadow_id)
    world.execute("UPDATE workflow_runs SET deadline_at = UTC_TIMESTAMP(6) + INTERVAL 1 SECOND")
    world.age(LONG_AGO)
    reconciler = world.reconciler(settings)

    assert reconciler.round() == 0
    assert reconciler.round() == 1
    assert [world.status(shadow_id) for shadow_id in waiting] == ["PENDING", "PENDING", "FAILED"]

    world.airflow.runs.clear()
    world.execute("UPDATE workflow_runs SET state = '{}', deadline_at = NULL")
    assert sum(reconciler.round() for _ in range(3)) == 2, "the two lost messages are seen again"


def test_a_row_that_somebody_holds_holds_up_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    held, free = (world.at_work("failed", key=key) for key in ("held", "free"))
    database = bootstrap.database(world.url, Settings())
    reconciler = world.reconciler(database=database)
    with database.transaction() as tx:
        tx.conn.query("SET SESSION innodb_lock_wait_timeout = 1")
    with closing(store.connect(world.url)) as somebody:
        somebody.query(f"SELECT id FROM rabbit_publish_shadow WHERE id = {held.shadow_id} FOR UPDATE")
        somebody.store_result()

        assert reconciler.round() == 1

    assert [world.status(ticket.shadow_id) for ticket in (held, free)] == ["PROCESSING", "PENDING"]
    assert "somebody holds" in caplog.text


def test_without_the_management_api_the_other_repairs_go_on(world: World, caplog: pytest.LogCaptureFixture) -> None:
    lost = world.sent(key="lost")
    ticket = world.at_work("failed")
    world.age(LONG_AGO)
    world.broker.status = 500
    reconciler = world.reconciler()

    assert [reconciler.round(), reconciler.round()] == [1, 0]
    assert world.status(ticket.shadow_id) == "PENDING"
    assert world.row(lost)["requeued"] == 0
    assert sum("management API" in record.message for record in caplog.records) == 1


def test_without_a_management_url_it_says_that_lost_messages_stay_lost(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.sent()
    world.age(LONG_AGO)

    assert world.reconciler(replace(world.settings, management=None)).round() == 0
    assert "EVEREST_RABBIT_MANAGEMENT_URL is not set" in caplog.text


def test_a_lost_database_connection_ends_the_round_and_the_next_one_works(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    ticket = world.at_work("failed")
    database = bootstrap.database(world.url, Settings())
    reconciler = world.reconciler(database=database)
    with database.transaction() as tx:
        number = builders.rows(tx.conn, "SELECT CONNECTION_ID() AS id")[0]["id"]
    world.execute(f"KILL {number}")

    assert reconciler.round() == 0
    assert reconciler.round() == 1
    assert world.status(ticket.shadow_id) == "PENDING"
    assert "no database" in caplog.text


def test_a_database_that_is_not_there_is_said_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def refused() -> store.Connection:
        asked.append(1)
        raise TransientDatabaseError("Can't connect to server", 2002)

    reconciler = world.reconciler(database=Database(refused, Settings()))

    assert [reconciler.round() for _ in range(3)] == [0, 0, 0]
    assert len(asked) == 3
    assert sum("no database" in record.message for record in caplog.records) == 1


def test_rows_that_cannot_be_looked_for_at_all_end_neither_the_round_nor_the_process(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A column that somebody took away, a right that nobody granted."""
    ticket = world.at_work("failed")
    failed = world.failed(DocumentRefused("salah"), key="failed")
    world.age(LONG_AGO)

    def refused(*_: object) -> list[rows.Workflow]:
        raise DatabaseError("Unknown column 'deadline_at' in 'where clause'", 1054)

    monkeypatch.setattr(rows, "decided_waits", refused)
    monkeypatch.setattr(rows, "passed_deadlines", refused)
    reconciler = world.reconciler()

    assert (reconciler.wake_waiters(), reconciler.round()) == (0, 2)
    assert world.status(ticket.shadow_id) == "PENDING"
    assert world.row(failed.shadow_id)["dead_lettered_at"] is not None
    assert "OUR BUG in passed deadlines" in caplog.text


def test_a_row_that_cannot_be_repaired_holds_up_no_other(world: World, caplog: pytest.LogCaptureFixture) -> None:
    broken = world.at_work("failed", key="broken")
    world.execute('UPDATE workflow_runs SET state = \'{"$decimal": "not a number"}\'')
    sound = world.at_work("failed", key="sound")

    vitals = Vitals(metrics.RECONCILER)
    vitals.meter.switch_on(metrics.RECONCILER)

    assert world.reconciler(vitals=vitals).round() == 1
    assert [world.status(ticket.shadow_id) for ticket in (broken, sound)] == ["PROCESSING", "PENDING"]
    assert "\neverest_reconciler_cannot_repair_total 1.0\n" in vitals.meter.render().decode()
    assert "cannot repair" in caplog.text
    assert f"shadow_id={broken.shadow_id}" in caplog.text


def test_a_repair_that_loses_its_connection_leaves_nothing_behind(world: World) -> None:
    ticket = world.at_work("failed")
    before = world.picture()
    database = CutAtTheEnd(lambda: store.connect(world.url), Settings())
    reconciler = world.reconciler(database=database)
    world.airflow.on_run_asked = database.cut_the_next

    assert reconciler.round() == 0
    assert world.picture() == before
    world.airflow.on_run_asked = lambda: None
    assert reconciler.round() == 1
    assert world.status(ticket.shadow_id) == "PENDING"


class CutAtTheEnd(Database):
    """The server is gone when the transaction wants to commit."""

    is_cut = False

    def cut_the_next(self) -> None:
        self.is_cut = True

    @contextmanager
    def transaction(self) -> Iterator[UnitOfWork]:
        with super().transaction() as tx:
            yield tx
            if self.is_cut:
                self.is_cut = False
                raise TransientDatabaseError("Lost connection to server during query", 2013)


def test_healthy_rows_of_every_status_are_left_as_they_are(world: World) -> None:
    world.at_work("running", key="at work")
    done = world.at_work("success", key="done")
    for name in ("a", "b"):
        world.step(done, name)
    builders.shadow_row(world.conn, 1, "SO-1", worker_status="COMPLETED")
    builders.shadow_row(world.conn, 2, "SO-2", worker_status="CANCELLED", error_code=499)
    builders.shadow_row(world.conn, 3, "SO-3", worker_status="WAITING")
    builders.shadow_row(world.conn, None, None)
    world.conn.commit()
    world.age(LONG_AGO)
    world.sent(key="just sent")
    world.claimed(world.sent(key="just taken"))
    before = world.picture()
    reconciler = world.reconciler()

    assert [reconciler.round(), reconciler.round()] == [0, 0]
    assert world.picture() == before


def test_a_paused_workflow_is_not_begun_again(world: World) -> None:
    ticket = world.at_work("success")
    world.execute("UPDATE workflow_runs SET status = 'paused'")
    world.age(timedelta(days=1))
    reconciler = world.reconciler()

    assert [reconciler.round() for _ in range(2)] == [1, 0]
    assert (world.status(ticket.shadow_id), world.unsent()) == ("WAITING", [])
