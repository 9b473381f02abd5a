"""What a preview says is what a posting does, and looking changes nothing: checksums of every table say so."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest import approvals
from everest.errors import Conflict, DatabaseError, DocumentMissing
from everest.preview import Outcome, Preview, preview
from everest.settings import MysqlUrl
from everest.store import database as store
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)


def checksums(conn: Any) -> dict[str, Any]:
    """Of every table there is."""
    tables = builders.rows(
        conn,
        "SELECT table_name AS name FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
    )
    names = ", ".join(f"`{row['name']}`" for row in tables)
    return {row["Table"]: row["Checksum"] for row in builders.rows(conn, f"CHECKSUM TABLE {names} EXTENDED")}


def look(walker: Walker, conn: Any, target: str) -> Preview:
    """A preview that was seen to change nothing."""
    before = checksums(conn)
    with walker.database.snapshot() as tx:
        found = preview(tx, target)
    assert checksums(conn) == before
    return found


def books_of(conn: Any, nota: str) -> tuple[Any, Any]:
    return builders.journal_of(conn, nota), builders.card_of(conn, nota)


def shown(found: Preview) -> tuple[Any, Any]:
    return (
        [(row.urutan, row.kode_akun, row.debet, row.kredit) for row in found.journal],
        [(row.kode_barang, row.masuk, row.keluar, row.nilai) for row in found.stock_card],
    )


def test_a_preview_shows_the_journal_and_the_stock_card_that_posting_then_writes(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection)

    found = look(walker, connection, document.nomer_nota)
    assert (found.outcome, found.worker_status, found.code) == (Outcome.POSTS, "PENDING", 200)
    assert found.total_debet == found.total_kredit
    assert found.posting_id is None, "a number that nobody will find again"
    assert found.rows_changed == 1 + 4 + 2
    walker.post(document.shadow_id)

    assert shown(found) == books_of(connection, document.nomer_nota)
    assert builders.shadow(connection, document.shadow_id)["response"]["total_debet"] == str(found.total_debet)
    (dated,) = builders.rows(connection, "SELECT DISTINCT tanggal_wib FROM jurnal")
    assert dated["tanggal_wib"] == found.tanggal_wib


def test_every_problem_is_shown_and_no_attempt_is_counted(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", qty_fisik=None), Line("B", harga_pokok=None)])

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.code) == (Outcome.REFUSED, 422)
    assert [(problem.baris, problem.kolom) for problem in found.problems] == [(1, "qty_fisik"), (2, "harga_pokok")]
    assert found.rows_changed == 0 and not found.journal
    assert builders.rows(connection, "SELECT * FROM posting_attempts") == []


def test_a_closed_month_is_shown_as_such(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, diotorisasi_at=NOON)
    builders.period(connection, "2026-03")

    assert look(walker, connection, document.nomer_nota).code == 423


def test_a_posted_document_says_that_0_rows_would_change_and_shows_its_books(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    walker.post(document.shadow_id)

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.worker_status, found.rows_changed) == (Outcome.POSTED_ALREADY, "COMPLETED", 0)
    assert "0 baris akan berubah" in found.message
    assert shown(found) == books_of(connection, document.nomer_nota)


def test_h21_a_posted_document_whose_staging_was_edited_would_be_refused(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    walker.post(document.shadow_id)
    builders.write_lines(connection, document.header_id, [Line("BRG-A", "10", "12", "9999.00")])

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.code, found.rows_changed) == (Outcome.REFUSED, 409, 0)


def test_a_failed_document_is_previewed_as_it_stands_now(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line(qty_fisik=None)])
    assert walker.post(document.shadow_id) == "FAILED"
    assert look(walker, connection, document.nomer_nota).outcome is Outcome.REFUSED

    builders.write_lines(connection, document.header_id, [Line()])

    found = look(walker, connection, document.nomer_nota)
    assert (found.outcome, found.worker_status) == (Outcome.POSTS, "FAILED")
    assert found.total_debet == 3000


def test_leftovers_of_an_older_attempt_are_counted_as_rows_that_change(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    builders.insert(
        connection,
        "jurnal",
        nomer_nota=document.nomer_nota,
        transaksi_id=document.transaksi_id,
        sumber="OPNAME",
        tanggal_wib=datetime.now(),
        kode_akun=builders.PERSEDIAAN,
        debet="5",
    )

    assert look(walker, connection, document.nomer_nota).rows_changed == 1 + 4 + 2 + 1


def test_a_dropped_document_will_not_be_posted(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET worker_status = 'CANCELLED'")
    connection.commit()

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.code) == (Outcome.CANCELLED, 499)


def test_what_an_older_system_posted_is_left_alone(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED'")
    connection.commit()

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.rows_changed, found.journal) == (Outcome.POSTED_ALREADY, 0, ())
    assert "sistem lama" in found.message


def test_nobody_waits_for_a_preview_and_a_preview_waits_for_nobody(
    walker: Walker, connection: Any, database: MysqlUrl
) -> None:
    """A posting may hold every row that there is; and while a preview is open, nothing is locked for a posting."""
    document = builders.document(connection)
    builders.period(connection, datetime.now(builders.WIB).strftime("%Y-%m"), "OPEN")
    with closing(store.connect(database)) as posting, posting.cursor() as cursor:
        for table in ("so_headers_staging", "so_details_staging", "gudang", "periode_akuntansi", "akun", "transaksi"):
            cursor.execute(f"SELECT * FROM {table} FOR UPDATE")
        told = look(walker, connection, document.nomer_nota)
        posting.rollback()
        with walker.database.snapshot() as tx:
            assert preview(tx, document.nomer_nota) == told
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
            cursor.execute("SELECT id FROM so_headers_staging FOR UPDATE")
            cursor.execute("SELECT gudang_kode FROM gudang FOR UPDATE")
            cursor.execute("UPDATE so_details_staging SET qty_fisik = 99")
            posting.commit()
            assert preview(tx, document.nomer_nota) == told, "one snapshot"

    assert look(walker, connection, document.nomer_nota).total_debet > told.total_debet


def test_the_server_itself_refuses_whatever_a_preview_would_write(walker: Walker) -> None:
    with pytest.raises(DatabaseError) as refused, walker.database.snapshot() as tx, tx.conn.cursor() as cursor:
        cursor.execute("DELETE FROM jurnal")

    assert refused.value.number == 1792


def test_the_sums_of_a_preview_are_those_of_its_rows(walker: Walker, connection: Any) -> None:
    found = look(walker, connection, builders.document(connection).nomer_nota)

    assert [(row.kode_akun, row.nama_akun, str(row.debet), str(row.kredit)) for row in found.accounts] == [
        (builders.PERSEDIAAN, "Persediaan barang", "3000.00", "5001.00"),
        (builders.LABA_SELISIH, "Laba selisih persediaan", "0.00", "3000.00"),
        (builders.RUGI_SELISIH, "Rugi selisih persediaan", "5001.00", "0.00"),
    ]
    assert found.card_totals == (found.accounts[0].debet, found.accounts[0].kredit)
    assert found.total_debet == found.total_kredit == Decimal("8001.00")
    told = found.as_json()
    assert told["accounts"][0]["debet"] == "3000.00" and told["journal"][0]["nama_akun"] == "Persediaan barang"


def test_a_preview_is_of_one_document_that_is_counted(walker: Walker, connection: Any) -> None:
    builders.document(connection, nomer_nota="SO-1")
    builders.document(connection, nomer_nota="SO-1")
    job = builders.shadow_row(connection, None, None)
    connection.commit()

    for target, error in (("SO-1", Conflict), (f"#{job}", Conflict), ("SO-9", DocumentMissing)):
        with pytest.raises(error), walker.database.snapshot() as tx:
            preview(tx, target)


def test_a_late_movement_shows_what_a_person_has_to_decide(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, diotorisasi_at=NOON)
    late = NOON - timedelta(hours=3)
    builders.movement(
        connection, masuk="1", tanggal_wib=late.astimezone(builders.WIB).replace(tzinfo=None), created_at=NOON
    )

    found = look(walker, connection, document.nomer_nota)

    assert found.outcome is Outcome.NEEDS_DECISION
    assert any("BELI-1" in reason.pesan for reason in found.reasons)


@pytest.mark.parametrize(
    ("answer", "outcome", "code", "ends"),
    [
        (approvals.approve, Outcome.POSTS, 200, "COMPLETED"),
        (approvals.reject, Outcome.REFUSED, 403, "FAILED"),
    ],
)
def test_an_answer_that_no_task_has_read_yet_counts(
    walker: Walker, connection: Any, answer: Any, outcome: Outcome, code: int, ends: str
) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection)
    assert walker.post(document.shadow_id) == "WAITING"
    with walker.database.transaction() as tx:
        answer(tx, document.nomer_nota, "tono", "sudah dilihat")

    found = look(walker, connection, document.nomer_nota)

    assert (found.outcome, found.code) == (outcome, code)
    assert walker.post(document.shadow_id) == ends
    again = look(walker, connection, document.nomer_nota)
    assert again.outcome is (Outcome.POSTED_ALREADY if ends == "COMPLETED" else Outcome.NEEDS_DECISION)


def test_new_evidence_after_an_answer_is_shown_as_a_new_question(walker: Walker, connection: Any) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection, diotorisasi_at=NOON)
    assert walker.post(document.shadow_id) == "WAITING"
    with walker.database.transaction() as tx:
        approvals.approve(tx, document.nomer_nota, "tono", "sudah dilihat")
    late = NOON - timedelta(hours=3)
    builders.movement(
        connection, masuk="1", tanggal_wib=late.astimezone(builders.WIB).replace(tzinfo=None), created_at=NOON
    )

    assert look(walker, connection, document.nomer_nota).outcome is Outcome.NEEDS_DECISION
