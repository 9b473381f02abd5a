"""The dead-letter queue: what `list` says of each letter, and what replay, drop and settle do with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from everest.settings import MysqlUrl
from ingest_consumer.settings import Settings
from tests import builders
from tests.broken_messages import broken_bodies
from tests.builders import Line
from tests.fake_airflow import FakeAirflow
from tests.integration.ingest_consumer.handling import DLQ
from tests.integration.opname.walk import Walker
from tests.queue_rig import Rows, Running, Vhost, until

Process = Callable[..., subprocess.Popen[str]]
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(process: Process) -> Command:
    """Runs `dead-letters ...` to its end: exit code and output."""

    def run(*arguments: str) -> tuple[int, str]:
        one = process("dead-letters", *arguments, EVEREST_LOG_LEVEL="ERROR")
        output, _ = one.communicate(timeout=60)
        return one.returncode, output

    return run


@pytest.fixture
def letter(vhost: Vhost, rows: Rows) -> Callable[..., int]:
    """A FAILED document with its letter in the queue; its shadow id."""
    vhost.declare()

    def make(transaksi_id: int, **columns: Any) -> int:
        wanted = {"run_status": "failed", "worker_status": "FAILED", "error": "stok kurang", "error_code": 409}
        shadow_id = rows.ours(transaksi_id, f"SO-{transaksi_id}", **(wanted | columns))
        vhost.publish(rows.body(shadow_id), exchange="everest.jobs.dlx")
        return shadow_id

    return make


def test_thirty_broken_messages_leave_a_letter_with_its_reason_each_and_a_consumer_that_goes_on(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, command: Command, airflow: Any
) -> None:
    vhost.declare()
    others = rows.foreign(1, "SO-OTHER", worker_status="WAITING")
    before = rows.get(others)
    bodies = broken_bodies(others)
    assert len(bodies) >= 30
    for body, _ in bodies:
        vhost.publish(body)
    good = rows.ours(8001)
    vhost.publish(rows.body(good))

    running.consumer(settings)

    until(lambda: rows.get(good)["worker_status"] == "PROCESSING", "the good message after them")
    rows.end(good, "COMPLETED")
    until(lambda: vhost.depth(DLQ) == len(bodies), "a letter each")
    running.stop()
    code, output = command("list", "--json")
    assert code == 0
    listed = json.loads(output)
    assert [one["standing"] for one in listed] == ["broken"] * len(bodies)
    for one, (_, reason) in zip(listed, bodies, strict=True):
        assert reason in one["reason"]
    assert rows.get(others) == before
    assert vhost.depth(DLQ) == len(bodies)


def test_list_tells_nota_reason_age_and_attempts_and_changes_nothing(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int], running: Running, settings: Settings
) -> None:
    failed = rows.ours(
        8010, "SO-8010", worker_status="FAILED", error="baris 3: harga kosong", error_code=422, attempts=2
    )
    vhost.publish(rows.body(failed))
    running.consumer(settings)
    until(lambda: vhost.depth(DLQ) == 1, "rejected by the consumer")
    running.stop()
    at_work = letter(8011, worker_status="PENDING", run_status="running")
    done = letter(8012, worker_status="COMPLETED", run_status="completed")

    code, output = command("list", "--json")

    assert code == 0
    first, second, third = json.loads(output)
    assert (first["nota"], first["shadow_id"], first["code"], first["attempts"]) == ("SO-8010", failed, 422, 2)
    assert first["reason"] == "baris 3: harga kosong"
    assert first["age_seconds"] >= 0
    assert [(one["shadow_id"], one["standing"]) for one in (second, third)] == [(at_work, "at work"), (done, "settled")]
    code, text = command("list")
    assert "nota SO-8010" in text
    assert "baris 3: harga kosong" in text
    assert "3 dead letters" in text
    assert vhost.depth(DLQ) == 3


def test_replay_runs_the_document_again_and_takes_its_letter(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    again, other = letter(8020), letter(8021)

    code, output = command("replay", "SO-8020", "--actor", "budi", "--reason", "sudah diperbaiki")

    assert code == 0
    assert f"runs again as job #{again}" in output
    assert [rows.get(one)["worker_status"] for one in (again, other)] == ["PENDING", "FAILED"]
    assert rows.do("SELECT actor, reason FROM audit_log") == (("budi", "sudah diperbaiki"),)
    assert [json.loads(body)["shadow_id"] for _, body in vhost.read(DLQ)] == [other]


def test_a_document_with_two_letters_is_run_again_once_and_that_is_all_it_takes(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    failed = letter(8025)
    vhost.publish(rows.body(failed), exchange="everest.jobs.dlx")

    code, output = command("replay", "SO-8025")

    assert code == 0 and output.count("runs again") == 2
    assert (rows.get(failed)["n"], len(rows.outbox()), vhost.depth(DLQ)) == (2, 1, 1)
    code, output = command("replay", "SO-8025")
    assert code != 0 and "is being run (PENDING)" in output, "nobody ran it again in this call"


def test_h32_replay_of_everything_says_what_it_could_not_do(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    """H32: a letter of a posted document is no reason to run it again."""
    failed = letter(8030)
    vhost.publish(rows.body(failed), exchange="everest.jobs.dlx")  # a second letter of the same document
    done = letter(8031, worker_status="COMPLETED", run_status="completed")
    vhost.publish(b"broken", exchange="everest.jobs.dlx")

    code, output = command("replay", "--all")

    assert code == 1
    assert "already COMPLETED" in output
    assert "cannot be replayed: not JSON" in output
    assert "runs again by another of its letters; this one stays" in output
    assert rows.get(failed)["n"] == 2
    assert rows.get(done)["n"] == 1
    assert len(rows.outbox()) == 1
    assert vhost.depth(DLQ) == 2


def test_h32_a_corrected_and_posted_document_is_posted_once_however_its_old_letter_is_replayed(
    vhost: Vhost,
    running: Running,
    settings: Settings,
    airflow: FakeAirflow,
    command: Command,
    database: MysqlUrl,
    connection: Any,
) -> None:
    vhost.declare()
    document = builders.document(connection, [Line("A", harga_pokok=None)])
    with closing(Walker(database)) as walker:
        assert walker.post(document.shadow_id) == "FAILED"
        for _ in range(2):
            vhost.publish(document.message, exchange="everest.jobs.dlx")
        builders.write_lines(connection, document.header_id, [Line("A")])
        with walker.database.transaction() as tx:
            tx.runs.rerun(document.shadow_id, "budi", None)
        assert walker.post(document.shadow_id) == "COMPLETED"
    before = builders.books(connection), builders.shadow(connection, document.shadow_id)

    code, output = command("replay", document.nomer_nota)
    assert (code, "already COMPLETED" in output) == (0, True)
    assert vhost.depth(DLQ) == 0
    for headers in ({"x-death": [{"queue": "everest.jobs.q", "count": 1}]}, {"x-everest-dead": "1"}, None):
        vhost.publish(document.message, headers=headers)
    running.consumer(settings)

    assert vhost.finished() == [], "acked, none of them dead again"
    assert (builders.books(connection), builders.shadow(connection, document.shadow_id)) == before
    assert before[0].postings == 1
    assert airflow.runs == {}


def test_replay_of_a_compensated_workflow_is_refused_and_keeps_the_letter(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    shadow_id = letter(8040)
    rows.do("UPDATE workflow_runs SET compensation = 'done'")

    code, output = command("replay", "--shadow", str(shadow_id))

    assert code == 3
    assert "compensated" in output
    assert vhost.depth(DLQ) == 1
    assert rows.get(shadow_id)["worker_status"] == "FAILED"


def test_drop_cancels_the_failed_document_with_its_reason(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    shadow_id = letter(8050)
    assert command("drop", "SO-8050")[0] == 2  # a reason is not optional

    code, _ = command("drop", "SO-8050", "--reason", "salah gudang", "--actor", "budi")

    assert code == 0
    row = rows.get(shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("CANCELLED", 499)
    assert vhost.depth(DLQ) == 0


def test_drop_takes_a_broken_letter_out_and_keeps_a_trace(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    vhost.publish(b"broken", exchange="everest.jobs.dlx")
    key = json.loads(command("list", "--json")[1])[0]["letter"]

    code, output = command("drop", "--letter", key, "--reason", "uji coba")

    assert code == 0, output
    assert vhost.depth(DLQ) == 0
    ((action, after),) = rows.do("SELECT action, after_value FROM audit_log")
    assert action == "drop_broken_letter"
    assert json.loads(after)["letter"] == key


def test_drop_of_a_document_at_work_is_refused(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    letter(8060, worker_status="PROCESSING", run_status="running")

    code, output = command("drop", "--all", "--reason", "x")

    assert code == 3
    assert "only a FAILED one can be dropped" in output
    assert vhost.depth(DLQ) == 1


def test_settle_takes_out_what_is_done_and_keeps_the_rest_in_order(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    first = letter(8070)
    letter(8071, worker_status="COMPLETED", run_status="completed")
    vhost.publish(b"broken", exchange="everest.jobs.dlx")
    letter(8072, worker_status="CANCELLED", run_status="cancelled")

    code, output = command("settle")

    assert code == 0
    assert "2 settled" in output
    kept = [body for _, body in vhost.read(DLQ)]
    assert kept == [json.dumps(rows.body(first)).encode(), b"broken"]


def test_a_name_that_fits_no_letter_is_an_error_and_nothing_is_done(
    vhost: Vhost, rows: Rows, command: Command, letter: Callable[..., int]
) -> None:
    shadow_id = letter(8080)

    code, output = command("replay", "SO-8080", "SO-TYPO")

    assert code == 4
    assert "no dead letter of nota SO-TYPO" in output
    assert rows.get(shadow_id)["worker_status"] == "FAILED"
    assert vhost.depth(DLQ) == 1
    assert command("replay")[0] == 2


def test_h36_every_failure_of_a_document_is_accounted_for(
    vhost: Vhost, running: Running, settings: Settings, rows: Rows, command: Command, airflow: Any
) -> None:
    """H36: it fails three times, is replayed each time, completes at last; no letter is left, none got lost."""
    vhost.declare()
    shadow_id = rows.ours(8090, "SO-8090")
    vhost.publish(rows.body(shadow_id))
    running.consumer(settings)
    running.relay(settings, check_every=timedelta(seconds=1))
    for n in (1, 2, 3):
        until(lambda: rows.get(shadow_id)["dag_run_id"] in airflow.runs, "the run")
        rows.do("UPDATE workflow_runs SET status = 'failed'")
        rows.end(shadow_id, "FAILED", f"gagal {n}", 500)
        until(lambda: vhost.depth(DLQ) == 1, "its letter")
        assert command("replay", "SO-8090")[0] == 0
    until(lambda: rows.get(shadow_id)["dag_run_id"] in airflow.runs, "the last run")
    rows.end(shadow_id, "COMPLETED")

    vhost.publish({"transaksi_id": 8090, "shadow_id": shadow_id}, exchange="everest.jobs.dlx")  # a late copy

    until(lambda: vhost.depth(DLQ) == 0, "settled by the relay")
    assert list(airflow.runs) == [f"opname_posting__8090__{shadow_id}__{n}" for n in (1, 2, 3, 4)]
