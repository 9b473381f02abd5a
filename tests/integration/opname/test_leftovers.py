"""What an unfinished attempt left in the books: archived and replaced with the posting, or refused by name."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests import builders
from tests.builders import Line
from tests.integration.opname.posting import MORNING_WIB, NOON
from tests.integration.opname.walk import Walker


def test_leftovers_of_an_unfinished_attempt_are_archived_and_replaced(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", "10", "12", "1500")], diotorisasi_at=NOON)
    keys = {"nomer_nota": document.nomer_nota, "transaksi_id": document.transaksi_id, "tanggal_wib": MORNING_WIB}
    ours = builders.insert(connection, "jurnal", kode_akun="1010030030", debet="5", sumber="OPNAME", **keys)
    unlabelled = builders.insert(connection, "jurnal", kode_akun="7010150", kredit="5", **keys)
    card = builders.movement(connection, "A", masuk="1", created_at=NOON - timedelta(days=1), sumber="OPNAME", **keys)
    kept = [
        builders.insert(connection, "jurnal", kode_akun="1010030030", debet="7", sumber="LAMA", **keys),
        builders.insert(connection, "jurnal", kode_akun="5000", debet="7", **keys),
        builders.insert(
            connection, "jurnal", kode_akun="1010030030", debet="7", sumber="OPNAME", **keys | {"nomer_nota": "OTHER"}
        ),
    ]

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert [
        row["id"] for row in builders.rows(connection, "SELECT id FROM jurnal WHERE posting_id IS NULL ORDER BY id")
    ] == kept
    archived = builders.rows(connection, "SELECT id, oleh_posting_id FROM jurnal_arsip ORDER BY id")
    assert [row["id"] for row in archived] == [ours, unlabelled]
    posting_id = builders.shadow(connection, document.shadow_id)["response"]["posting_id"]
    assert {row["oleh_posting_id"] for row in archived} == {posting_id}
    assert [row["id"] for row in builders.rows(connection, "SELECT id FROM kartu_stok_arsip")] == [card]


def test_unlabelled_leftovers_on_the_accounts_of_the_warehouse_are_replaced_and_those_of_another_stay(
    walker: Walker, connection: Any
) -> None:
    for kode in ("1010030031", "7010151", "7020021", "1010030032"):
        builders.account(connection, kode)
    own = {"akun_persediaan": "1010030031", "akun_laba_selisih": "7010151", "akun_rugi_selisih": "7020021"}
    builders.insert(connection, "akun_gudang", gudang_kode="GD-A", **own)
    builders.insert(connection, "akun_gudang", gudang_kode="GD-B", akun_persediaan="1010030032")
    document = builders.document(connection, [Line("A", "10", "12", "1500")], diotorisasi_at=NOON)
    keys = {"nomer_nota": document.nomer_nota, "transaksi_id": document.transaksi_id, "tanggal_wib": MORNING_WIB}
    left = [builders.insert(connection, "jurnal", kode_akun=kode, debet="5", **keys) for kode in own.values()]
    common = builders.insert(connection, "jurnal", kode_akun=builders.PERSEDIAAN, debet="5", **keys)
    kept = builders.insert(connection, "jurnal", kode_akun="1010030032", debet="5", **keys)

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert [row["id"] for row in builders.rows(connection, "SELECT id FROM jurnal_arsip ORDER BY id")] == [
        *left,
        common,
    ]
    assert [row["id"] for row in builders.rows(connection, "SELECT id FROM jurnal WHERE posting_id IS NULL")] == [kept]
    assert [row[1] for row in builders.journal_of(connection, document.nomer_nota)] == ["1010030031", "7010151"]


def test_a_leftover_in_a_closed_month_is_refused(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A")], diotorisasi_at=NOON)
    builders.period(connection, "2026-02", "CLOSED")
    builders.insert(
        connection, "jurnal", kode_akun="1010030030", debet="5", sumber="OPNAME", nomer_nota=document.nomer_nota,
        tanggal_wib=datetime(2026, 2, 27),
    )  # fmt: skip

    assert walker.post(document.shadow_id) == "FAILED"
    assert builders.shadow(connection, document.shadow_id)["error_code"] == 423
