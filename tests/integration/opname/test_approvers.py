"""Who may decide about a document, and when two of them do, or nobody."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest import approvals, bootstrap
from everest.errors import Conflict, DocumentMissing, DocumentRefused, EverestError, Forbidden
from everest.intake import replace as correction
from everest.intake.submission import Authority, Submission
from everest.intake.submission import Line as Counted
from everest.opname.workflow import POST_OPNAME
from everest.settings import MysqlUrl, Settings
from everest.workflow import control, engine
from ingest_consumer import shadow as jobs
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.deciding import approve, pending, reject, rerun, run_of, surprising
from tests.integration.opname.walk import Walker


@pytest.mark.parametrize("who", ["sari", " SARI "])
def test_nobody_decides_about_their_own_document(walker: Walker, connection: Any, waiting: Document, who: str) -> None:
    for answer in (approve, reject):
        with pytest.raises(Forbidden, match="orang lain"):
            answer(walker, waiting.nomer_nota, who=who)
    with pytest.raises(Forbidden), walker.database.transaction() as tx:
        control.approve(tx, POST_OPNAME, run_of(connection, waiting)["id"], who)

    assert builders.rows(connection, "SELECT * FROM audit_log WHERE action IN ('approve', 'reject')") == []
    approve(walker, waiting.nomer_nota, who="budi")  # who authorised the count is another person


def test_two_people_whose_names_a_collation_takes_for_one_are_two_of_whom_neither_decides(
    walker: Walker, connection: Any, waiting: Document
) -> None:
    for actor in ("jose", "josé", "JOSE"):
        columns = {"transaksi_id": waiting.transaksi_id, "nomer_nota": waiting.nomer_nota, "action": "replace"}
        builders.insert(connection, "audit_log", actor=actor, **columns)
    builders.write_lines(connection, waiting.header_id, [Line("BRG-A", "10", "11", "1500.00")])
    reject(walker, waiting.nomer_nota)
    assert walker.post(waiting.shadow_id) == "FAILED"
    assert rerun(walker, waiting) == "WAITING"

    for who in ("jose", "josé", "JOSÉ"):
        with pytest.raises(Forbidden, match="orang lain"):
            approve(walker, waiting.nomer_nota, who=who)
    approve(walker, waiting.nomer_nota, who="josë")


def test_where_nobody_says_who_submitted_the_one_who_authorised_may_not_decide(walker: Walker, connection: Any) -> None:
    document = surprising(connection, dibuat_oleh=None)
    assert walker.post(document.shadow_id) == "WAITING"

    with pytest.raises(Forbidden):
        approve(walker, document.nomer_nota, who="Budi")


def test_a_site_can_allow_self_approval(database: MysqlUrl, connection: Any) -> None:
    with closing(Walker(database, Settings(allow_self_approval=True))) as walker:
        document = surprising(connection)
        assert walker.post(document.shadow_id) == "WAITING"
        approve(walker, document.nomer_nota, who="sari")
        assert walker.post(document.shadow_id) == "COMPLETED"


def test_without_an_answer_in_time_it_fails_with_403_and_a_rerun_asks_again(
    database: MysqlUrl, connection: Any
) -> None:
    with closing(Walker(database, Settings(approval_timeout=timedelta(hours=2)))) as walker:
        document = surprising(connection)
        assert walker.post(document.shadow_id) == "WAITING"
        _let_the_time_pass(connection, document)
        with pytest.raises(Conflict, match="sudah lewat"):
            approve(walker, document.nomer_nota)
        assert pending(walker) == []

        assert walker.post(document.shadow_id) == "FAILED"

        row = builders.shadow(connection, document.shadow_id)
        assert row["error_code"] == 403
        assert "tidak ada keputusan dalam 2 jam" in row["error"]
        assert rerun(walker, document) == "WAITING"


def test_of_two_approvers_at_once_one_is_told(database: MysqlUrl, walker: Walker, waiting: Document) -> None:
    results = list(_at_once(database, waiting, ["tono", "rina"]))

    assert sorted(map(str, results)).count("None") == 1
    (told,) = [one for one in results if one is not None]
    assert isinstance(told, Conflict) and "sudah disetujui oleh" in told.message
    assert walker.post(waiting.shadow_id) == "COMPLETED"


def test_an_approval_and_a_cancel_at_once_end_in_one_of_the_two(
    database: MysqlUrl, walker: Walker, connection: Any, waiting: Document
) -> None:
    run_id = run_of(connection, waiting)["id"]
    barrier = threading.Barrier(2)

    def cancel() -> None:
        with bootstrap.database(database, Settings()).transaction() as tx:
            barrier.wait()
            control.cancel(tx, POST_OPNAME, run_id, "rina", "tidak jadi")

    thread = threading.Thread(target=cancel)
    thread.start()
    with bootstrap.database(database, Settings()).transaction() as tx:
        barrier.wait()
        answer: EverestError | None = None
        try:
            approvals.approve(tx, waiting.nomer_nota, "tono", "ya")
        except EverestError as error:
            answer = error
    thread.join()

    row = builders.shadow(connection, waiting.shadow_id)
    assert row["worker_status"] == "CANCELLED"
    assert answer is None or isinstance(answer, Conflict)
    assert builders.rows(connection, "SELECT id FROM outbox WHERE published_at IS NULL") == []
    with walker.database.transaction() as tx:
        assert engine.find_run(tx, POST_OPNAME, engine.Ticket(row["dag_run_id"], row["id"], 1))[0].status == "cancelled"


def test_who_answers_twice_answers_what_they_did_not_see_or_asks_the_wrong_document(
    walker: Walker, connection: Any, waiting: Document
) -> None:
    with pytest.raises(Conflict, match="sudah berganti"):
        approve(walker, waiting.nomer_nota, sequence=7)
    with pytest.raises(DocumentMissing):
        approve(walker, "SO-NOWHERE")
    for reason in ("", "   ", "x" * 501):
        with pytest.raises(DocumentRefused, match="alasan"):
            approve(walker, waiting.nomer_nota, reason=reason)
    other = builders.document(connection, [Line("Z")], nomer_nota=waiting.nomer_nota)
    approve(walker, waiting.nomer_nota, sequence=1)  # the only one of its nota that waits
    with pytest.raises(Conflict, match="sudah disetujui oleh tono"):
        approve(walker, f"#{waiting.shadow_id}")
    with pytest.raises(Conflict, match="tidak menunggu keputusan"):
        approve(walker, f"#{other.shadow_id}")


def test_a_second_job_of_a_waiting_document_waits_with_it(walker: Walker, connection: Any, waiting: Document) -> None:
    second = builders.shadow_row(connection, waiting.transaksi_id, waiting.nomer_nota)
    connection.commit()
    assert walker.post(second) == "WAITING"

    approve(walker, waiting.nomer_nota)

    assert walker.post(waiting.shadow_id) == "COMPLETED"
    assert builders.shadow(connection, second)["worker_status"] == "COMPLETED"


def _let_the_time_pass(connection: Any, document: Document) -> None:
    """Three hours later, as the rows see it; then the relay finds the timer due."""
    run = run_of(connection, document)
    waiting = json.loads(run["waiting"])
    earlier = datetime.fromisoformat(waiting["until"]["$datetime"]) - timedelta(hours=3)
    waiting["until"]["$datetime"] = earlier.isoformat()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflow_runs SET waiting = %s WHERE id = %s", (json.dumps(waiting), run["id"]))
    connection.commit()
    row = builders.shadow(connection, document.shadow_id)
    jobs.queries.wake(connection, shadow_id=document.shadow_id, dag_run_id=row["dag_run_id"])
    connection.commit()


def _at_once(database: MysqlUrl, document: Document, people: list[str]) -> Iterator[EverestError | None]:
    barrier = threading.Barrier(len(people))
    results: list[EverestError | None] = []

    def answer(who: str) -> None:
        try:
            with bootstrap.database(database, Settings()).transaction() as tx:
                barrier.wait()
                approvals.approve(tx, document.nomer_nota, who, "ya")
        except EverestError as error:
            results.append(error)
        else:
            results.append(None)

    threads = [threading.Thread(target=answer, args=(who,)) for who in people]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    yield from results


def test_whoever_corrected_a_document_does_not_decide_about_it_either(walker: Walker, connection: Any) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection, [Line(qty_fisik=None)], dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "FAILED"
    line = Counted(kode_barang="BRG-A", qty_sistem=Decimal(1), qty_fisik=Decimal(500), harga_pokok=Decimal(10))
    corrected = Submission(document.nomer_nota, None, None, (line,))
    with walker.database.transaction() as tx:
        correction.replace(tx, corrected, Authority("Ani", "budi", 2), "salah hitung", rerun=True)
    assert walker.post(document.shadow_id) == "WAITING"

    for own in ("ani ", "sari"):
        with pytest.raises(Forbidden):
            approve(walker, document.nomer_nota, own)

    approve(walker, document.nomer_nota, "tono")
    assert walker.post(document.shadow_id) == "COMPLETED"
