"""Each program does its real work under its own account: enough rights, shown on rows, messages and books."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from everest import bootstrap
from everest.cli.main import main
from everest.settings import MysqlUrl
from everest.settings import Settings as Site
from everest.store import database as store
from everest.workflow import control
from everest.workflow.builder import workflow
from ingest_consumer import by_hand
from ingest_consumer.settings import Settings
from tests import builders
from tests.builders import Line
from tests.conftest import as_text
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import rows_end
from tests.integration.opname.walk import Walker
from tests.integration.reconciler.world import World, note
from tests.queue_rig import Rows, Running, Vhost, until
from tests.security.conftest import as_account

QUEUE, DLQ = "everest.jobs.q", "everest.jobs.failed.dlq"
ASKS = workflow("asks").then(note("a"), name="a").wait_for_approval(name="yes").idempotency_key("{key}").build()


def account_of(settings: Settings, program: str) -> Settings:
    return replace(settings, mysql=as_account(settings.mysql, program))


@pytest.fixture
def world(database: MysqlUrl) -> Iterator[World]:
    """Prepared by the administrator; what its reconcilers do, they do as the reconciler."""
    made = World(database)
    made.url = as_account(database, "everest_reconciler")
    yield made
    made.close()


@pytest.fixture
def tasks(database: MysqlUrl) -> Iterator[Walker]:
    """Claimed by the consumer, walked by the tasks."""
    walker = Walker(as_account(database, "everest_tasks"))
    walker._conn.close()
    walker._conn = store.connect(as_account(database, "everest_consumer"))
    yield walker
    walker.close()


def test_the_tasks_post_a_document_refuse_another_and_clear_what_an_older_attempt_left(
    tasks: Walker, connection: Any
) -> None:
    good = builders.document(connection)
    builders.insert(
        connection,
        "jurnal",
        transaksi_id=good.transaksi_id,
        nomer_nota=good.nomer_nota,
        sumber="OPNAME",
        tanggal_wib="2026-01-01",
        kode_akun=builders.PERSEDIAAN,
        debet="1.00",
    )
    bad = builders.document(connection, [Line(qty_fisik=None)])

    assert tasks.post(good.shadow_id) == "COMPLETED"
    assert tasks.post(bad.shadow_id) == "FAILED"

    assert builders.books(connection).agree
    assert len(builders.journal_of(connection, good.nomer_nota)) == 4
    assert len(builders.rows(connection, "SELECT * FROM jurnal_arsip")) == 1
    outcomes = builders.rows(connection, "SELECT outcome FROM posting_attempts ORDER BY id")
    assert [row["outcome"] for row in outcomes] == ["COMPLETED", "FAILED"]


def test_the_consumer_claims_acks_and_dead_letters(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, airflow: FakeAirflow
) -> None:
    good, bad = rows.foreign(1001, "A"), rows.foreign(1002, "B")
    airflow.on_trigger = lambda run_id, conf: rows_end(
        rows, conf["shadow_id"], "COMPLETED" if conf["shadow_id"] == good else "FAILED", None, None
    )
    vhost.declare()
    for shadow_id in (good, bad):
        vhost.publish(rows.body(shadow_id))

    running.consumer(account_of(settings, "everest_consumer"))

    letters = vhost.finished()
    assert [json.loads(letter)["shadow_id"] for letter in letters] == [bad]
    assert rows.get(bad)["dead_lettered_at"] is not None


def test_the_consumer_begins_a_failed_document_again_when_its_letter_is_moved_back(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows
) -> None:
    shadow_id = rows.ours(1003, run_status="failed", worker_status="FAILED", dead_lettered_at="2026-01-01")
    vhost.declare()
    vhost.publish(rows.body(shadow_id), headers={"x-everest-dead": True})

    running.consumer(account_of(settings, "everest_consumer"))

    until(lambda: rows.get(shadow_id)["n"] == 2, "begun again")


def test_the_relay_publishes_wakes_and_settles(vhost: Vhost, running: Running, settings: Settings, rows: Rows) -> None:
    shadow_id = rows.ours(1004, worker_status="WAITING")
    done = rows.ours(1005, worker_status="COMPLETED", run_status="completed")
    vhost.declare()
    vhost.publish(rows.body(done), exchange="everest.jobs.dlx", routing_key="job.process")
    rows.do(
        "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at)"
        " VALUES (%s, 'everest.jobs.x', 'job.process', %s, UTC_TIMESTAMP(6))",
        shadow_id,
        json.dumps(rows.body(shadow_id)),
    )

    running.relay(account_of(settings, "everest_relay"))

    until(lambda: vhost.depth(QUEUE) == 1, "published")
    until(lambda: rows.outbox()[0]["published_at"], "noted")
    assert rows.get(shadow_id)["worker_status"] == "PENDING"
    until(lambda: vhost.depth(DLQ) == 0, "the letter of a completed document is taken out")


def test_the_reconciler_begins_again_writes_dead_letters_and_wakes(world: World) -> None:
    lost = world.at_work("failed", "lost")
    failed = world.failed(ValueError("broken"), "failed")
    world.age(world.settings.limits.hold_limit)

    assert world.reconciler().round() == 2

    assert (world.status(lost.shadow_id), world.status(failed.shadow_id)) == ("PENDING", "FAILED")
    assert {row["exchange"] for row in world.unsent()} == {"everest.jobs.x", "everest.jobs.dlx"}


def test_an_operator_submits_looks_corrects_and_runs_again(
    database: MysqlUrl, connection: Any, tasks: Walker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.warehouse(connection, "GD-A")
    monkeypatch.setenv("EVEREST_MYSQL_URL", as_text(as_account(database, "everest_operator")))
    file = tmp_path / "count.csv"
    header = ("--nota", "SO-1", "--gudang", "GD-A", "--tanggal-opname", "2026-08-31")

    def everest(*arguments: str) -> None:
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == 0, result.output

    file.write_text("kode_barang,qty_sistem,qty_fisik,harga_pokok\nBRG-A,10,12,0\n")
    everest("submit", str(file), *header)
    (job,) = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow")
    assert tasks.post(job["id"]) == "FAILED"
    file.write_text("kode_barang,qty_sistem,qty_fisik,harga_pokok\nBRG-A,10,12,5\n")
    everest("submit", str(file), *header, "--replace")
    everest("rerun", "SO-1")
    everest("workflow", "list")
    everest("post", "SO-1")
    everest("status", "SO-1")
    assert builders.books(connection).agree
    assert builders.shadow(connection, job["id"])["worker_status"] == "COMPLETED"


def test_the_pages_answer_stop_resume_and_run_again_but_post_nothing(
    world: World, database: MysqlUrl, connection: Any
) -> None:
    asked = {key: world.sent_of(ASKS, key=key) for key in ("approved", "rejected", "cancelled")}
    for shadow_id in asked.values():
        ticket = world.claimed(shadow_id)
        for name in ("a", "yes"):
            world.step(ticket, name, ASKS)
    failed = world.failed(ValueError("broken"))
    document = builders.document(connection)
    with closing(bootstrap.database(as_account(database, "everest_pages"), Site())) as pages:

        def act(key: str, action: Any, *arguments: Any) -> None:
            run_id = world.run_of(asked[key])["id"]
            with pages.transaction() as tx:
                action(tx, ASKS, run_id, *arguments)

        act("approved", control.approve, "sari")
        act("rejected", control.reject, "sari", "no")
        act("cancelled", control.pause, "sari")
        act("cancelled", control.resume, "sari")
        act("cancelled", control.cancel, "sari")
        with pages.transaction() as tx:
            by_hand.rerun(tx.conn, failed.shadow_id, "sari", "again")
    assert [world.status(shadow_id) for shadow_id in asked.values()] == ["PENDING", "PENDING", "CANCELLED"]
    assert world.status(failed.shadow_id) == "PENDING"

    walker = Walker(as_account(database, "everest_pages"))
    with closing(walker):
        assert walker.post(document.shadow_id) == "FAILED"
    assert "denied" in builders.shadow(connection, document.shadow_id)["error"]
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_an_analyst_reads_the_books_and_cannot_write(database: MysqlUrl) -> None:
    with closing(store.connect(as_account(database, "everest_reader"))) as conn, conn.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM v_kartu_stok JOIN jurnal ON TRUE JOIN posting_sets ON TRUE")
        assert cursor.fetchone() == (0,)
        with pytest.raises(Exception, match="denied"), store.transaction(conn):
            cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('me', 'look')")
