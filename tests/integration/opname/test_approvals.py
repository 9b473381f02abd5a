"""A document that surprises waits for a person, and goes on with what they said."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.errors import Conflict
from ingest_consumer import by_hand
from ingest_consumer import shadow as jobs
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.deciding import (
    AFTERWARDS,
    MORNING_WIB,
    NOON,
    approve,
    late,
    pending,
    reject,
    rerun,
    run_of,
)
from tests.integration.opname.walk import Walker


def test_h13_a_late_movement_makes_the_document_wait_with_the_movement_named(
    walker: Walker, connection: Any, waiting: Document
) -> None:
    row = builders.shadow(connection, waiting.shadow_id)
    assert (row["worker_status"], row["current_step"], row["error_code"]) == ("WAITING", "compute_variance", None)
    assert (row["response"]["status"], row["response"]["code"]) == ("waiting", 202)
    (reason,) = row["response"]["waiting"]["reasons"]
    assert (reason["baris"], "BELI-7" in reason["pesan"]) == (1, True)
    assert builders.books(connection) == builders.NOTHING_POSTED
    assert run_of(connection, waiting)["status"] == "waiting_for_signal"

    (one,) = pending(walker)
    assert (one.nomer_nota, one.sequence, one.not_by, one.nilai) == (
        waiting.nomer_nota,
        1,
        ("sari",),
        Decimal("8001.00"),
    )
    (movement,) = one.details["mutasi"]
    assert (movement["nomer_nota"], movement["baris"], movement["masuk"]) == ("BELI-7", 1, Decimal(1))
    assert one.until is not None and one.until - one.asked_at == timedelta(days=14)


@pytest.mark.parametrize("nota", ["SO-INI", "SO-LAIN"])
def test_h13_what_names_its_source_is_no_count_though_its_nota_is_one(
    walker: Walker, connection: Any, nota: str
) -> None:
    builders.warehouse(connection)
    builders.document(connection, nomer_nota="SO-LAIN")
    late(connection, nota)
    times = {"diotorisasi_at": NOON + timedelta(hours=3), "snapshot_at": NOON}
    document = builders.document(connection, nomer_nota="SO-INI", **times)

    assert walker.post(document.shadow_id) == "WAITING"


def test_an_approval_posts_and_stays_visible(walker: Walker, connection: Any, waiting: Document) -> None:
    approve(walker, waiting.nomer_nota, reason="barang datang tadi pagi")

    assert walker.post(waiting.shadow_id) == "COMPLETED"

    row = builders.shadow(connection, waiting.shadow_id)
    assert "disetujui oleh tono: barang datang tadi pagi" in row["response"]["message"]
    approval = row["response"]["persetujuan"]
    assert (approval["oleh"], approval["alasan"], len(approval["bukti"])) == ("tono", "barang datang tadi pagi", 64)
    assert builders.books(connection).agree and builders.books(connection).postings == 1
    (attempt,) = builders.rows(connection, "SELECT outcome, problems FROM posting_attempts")
    assert attempt["outcome"] == "COMPLETED"
    assert [one["kolom"] for one in json.loads(attempt["problems"])] == ["persetujuan", "qty_sistem"]
    (audited,) = builders.rows(connection, "SELECT * FROM audit_log WHERE action = 'approve'")
    assert (audited["actor"], audited["nomer_nota"], audited["reason"]) == (
        "tono", waiting.nomer_nota, "barang datang tadi pagi",
    )  # fmt: skip
    assert json.loads(audited["before_value"])["worker_status"] == "WAITING"
    after = json.loads(audited["after_value"])
    assert after["evidence"] == approval["bukti"]
    assert "BELI-7" in after["reasons"][0]["pesan"]
    assert pending(walker) == []


def test_a_rejection_fails_with_403_and_a_rerun_asks_again(walker: Walker, connection: Any, waiting: Document) -> None:
    reject(walker, waiting.nomer_nota, reason="rak B-2 belum dihitung")

    assert walker.post(waiting.shadow_id) == "FAILED"

    row = builders.shadow(connection, waiting.shadow_id)
    assert (row["error_code"], row["dead_lettered_at"]) == (403, None)
    assert "ditolak oleh tono" in row["error"] and "rak B-2 belum dihitung" in row["error"]
    assert "BELI-7" in row["response"]["errors"][0]["pesan"]
    shadow = jobs.get(connection, waiting.shadow_id)
    assert shadow is not None and not shadow.needs_dead_letter
    (attempt,) = builders.rows(connection, "SELECT outcome, code FROM posting_attempts")
    assert (attempt["outcome"], attempt["code"]) == ("FAILED", 403)
    with pytest.raises(Conflict, match="tidak menunggu keputusan"):
        approve(walker, waiting.nomer_nota)

    assert rerun(walker, waiting) == "WAITING"

    (one,) = pending(walker)
    assert one.sequence == 2
    approve(walker, waiting.nomer_nota)
    assert walker.post(waiting.shadow_id) == "COMPLETED"


def test_a_no_is_a_no_even_when_its_reason_went_away_meanwhile(walker: Walker, connection: Any) -> None:
    builders.limits(connection, "*", batas_dokumen="100.00")
    document = builders.document(connection)
    assert walker.post(document.shadow_id) == "WAITING"
    reject(walker, document.nomer_nota)
    builders.limits(connection, "*", batas_dokumen=None)

    assert walker.post(document.shadow_id) == "FAILED"
    assert builders.shadow(connection, document.shadow_id)["error_code"] == 403

    assert rerun(walker, document) == "COMPLETED"


def test_limits_make_a_document_wait_and_a_higher_one_lets_it_post(walker: Walker, connection: Any) -> None:
    builders.limits(connection, "*", batas_dokumen="8001.00")
    kept = builders.document(connection)
    assert walker.post(kept.shadow_id) == "COMPLETED"
    builders.limits(connection, "GD-A", batas_dokumen="8000.99", batas_baris="3000.00")
    lines = [Line("X0", "10", "12", "1500"), Line("X1", "7", "5", "2500.50")]
    document = builders.document(connection, lines)

    assert walker.post(document.shadow_id) == "WAITING"

    row = builders.shadow(connection, document.shadow_id)
    kinds = [reason["kolom"] for reason in row["response"]["waiting"]["reasons"]]
    assert kinds == ["batas_dokumen", "batas_baris"]
    assert "1 baris melebihi batas baris" in row["response"]["message"]
    builders.limits(connection, "GD-A", batas_dokumen="9000.00")
    approve(walker, document.nomer_nota)
    assert walker.post(document.shadow_id) == "COMPLETED"
    message = builders.shadow(connection, document.shadow_id)["response"]["message"]
    assert "disetujui" not in message, "it needed no approval any more"


def test_new_evidence_after_the_approval_asks_again(walker: Walker, connection: Any, waiting: Document) -> None:
    approve(walker, waiting.nomer_nota)
    late(connection, "BELI-8", masuk="5")

    assert walker.post(waiting.shadow_id) == "WAITING"

    (one,) = pending(walker)
    assert (one.sequence, [movement["nomer_nota"] for movement in one.details["mutasi"]]) == (2, ["BELI-7", "BELI-8"])
    approve(walker, waiting.nomer_nota)
    assert walker.post(waiting.shadow_id) == "COMPLETED"


def test_new_evidence_between_the_approved_step_and_the_posting_goes_back_and_asks(
    walker: Walker, connection: Any, waiting: Document
) -> None:
    approve(walker, waiting.nomer_nota)
    more = iter(["BELI-8"])

    def enter_one(step: str) -> None:
        if step == "post_jurnal":
            for nota in more:
                late(connection, nota, kode="BRG-B")

    assert walker.post(waiting.shadow_id, enter_one) == "WAITING"

    (one,) = pending(walker)
    assert {movement["baris"] for movement in one.details["mutasi"]} == {1, 2}
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_a_surprise_that_comes_only_at_the_posting_asks(walker: Walker, connection: Any) -> None:
    builders.warehouse(connection)
    document = builders.document(connection, diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)
    more = iter([1])

    def enter_one(step: str) -> None:
        if step == "post_jurnal":
            for _ in more:
                late(connection)

    assert walker.post(document.shadow_id, enter_one) == "WAITING"

    row = builders.shadow(connection, document.shadow_id)
    assert row["current_step"] == "compute_variance"


def test_lines_replaced_while_it_waits_void_the_approval(walker: Walker, connection: Any, waiting: Document) -> None:
    builders.write_lines(connection, waiting.header_id, [Line("BRG-A", "10", "11", "1500.00")])
    approve(walker, waiting.nomer_nota)

    assert walker.post(waiting.shadow_id) == "WAITING"

    (one,) = pending(walker)
    assert (one.sequence, one.nilai) == (2, Decimal("1500.00"))
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_an_approval_survives_a_failure_behind_it(walker: Walker, connection: Any, waiting: Document) -> None:
    """The month closed between: 423. Once it is open again, a rerun posts under the same approval."""
    approve(walker, waiting.nomer_nota)

    def close_month(step: str) -> None:
        if step == "post_jurnal":
            builders.period(connection, "2026-03")

    assert walker.post(waiting.shadow_id, close_month) == "FAILED"
    assert builders.shadow(connection, waiting.shadow_id)["error_code"] == 423
    builders.period(connection, "2026-03", "OPEN")

    assert rerun(walker, waiting) == "COMPLETED"
    assert "disetujui oleh tono" in builders.shadow(connection, waiting.shadow_id)["response"]["message"]


def test_a_stale_count_is_refused_before_anybody_is_asked(walker: Walker, connection: Any) -> None:
    builders.warehouse(connection)
    late(connection)
    builders.movement(
        connection, "BRG-B", masuk="1", nomer_nota="SO-OTHER", sumber="OPNAME", tanggal_wib=MORNING_WIB,
        created_at=AFTERWARDS,
    )  # fmt: skip
    document = builders.document(connection, diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert row["error_code"] == 409
    assert [(error["baris"], "SO-OTHER" in error["pesan"]) for error in row["response"]["errors"]] == [(2, True)]


def test_wrong_data_come_before_any_question(walker: Walker, connection: Any) -> None:
    builders.warehouse(connection)
    late(connection)
    lines = [Line("BRG-A"), Line("BRG-B", qty_fisik=None)]
    document = builders.document(connection, lines, diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)

    assert walker.post(document.shadow_id) == "FAILED"
    row = builders.shadow(connection, document.shadow_id)
    assert (row["error_code"], [error["baris"] for error in row["response"]["errors"]]) == (422, [2])


def test_a_no_voids_an_earlier_yes_also_when_the_evidence_is_that_of_the_yes_again(
    walker: Walker, connection: Any
) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection, diotorisasi_at=NOON + timedelta(hours=3), snapshot_at=NOON)
    assert walker.post(document.shadow_id) == "WAITING"
    approve(walker, document.nomer_nota)
    entered: list[int] = []

    def another_module_is_late(step: str) -> None:
        if step == "post_jurnal" and not entered:
            entered.append(late(connection))

    assert walker.post(document.shadow_id, another_module_is_late) == "WAITING"
    reject(walker, document.nomer_nota)
    assert walker.post(document.shadow_id) == "FAILED"
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM kartu_stok WHERE id = %s", (entered[0],))
    connection.commit()
    with walker.database.transaction() as tx:
        by_hand.rerun(tx.conn, document.shadow_id, "dewi")

    assert walker.post(document.shadow_id) == "WAITING"

    approve(walker, document.nomer_nota)
    assert walker.post(document.shadow_id) == "COMPLETED"
