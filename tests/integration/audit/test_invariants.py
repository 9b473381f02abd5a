"""Each invariant finds the violation that is planted for it, names the row, and finds nothing in a clean world."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from everest.audit.finding import Finding
from tests import builders
from tests.builders import Line
from tests.integration.audit.planting import (
    close_month,
    month_of,
    movement_entered_late,
    movement_that_committed_while_the_count_was_posted,
    open_month,
)
from tests.integration.audit.world import LONG_AGO, Books

Plant = Callable[[Books], str]


def only(books: Books, key: str) -> Finding:
    """The one finding there is, of the one invariant that is broken."""
    broken = books.audit_all()
    assert list(broken) == [key], {name: [one.pesan for one in report.findings] for name, report in broken.items()}
    assert broken[key].found == len(broken[key].findings) == 1, [one.pesan for one in broken[key].findings]
    return broken[key].findings[0]


def test_a_clean_world_has_no_findings(books: Books) -> None:
    books.some_weeks()

    assert books.audit_all() == {}
    runs = builders.rows(books.conn, "SELECT outcome, found, finished_at FROM audit_runs")
    assert {(row["outcome"], row["found"]) for row in runs} == {("CLEAN", 0)}
    assert all(row["finished_at"] for row in runs)


def test_an_empty_database_has_no_findings(books: Books) -> None:
    assert books.audit_all() == {}


def changed_total(books: Books) -> str:
    posting = books.posting(books.post().nomer_nota)
    books.run("UPDATE posting_sets SET total_debet = 1, total_kredit = 1 WHERE id = %s", posting)
    return f"posting {posting} "


def changed_gain_account_amount(books: Books) -> str:
    posting = books.posting(books.post().nomer_nota)
    books.run("UPDATE jurnal SET kredit = kredit - 1 WHERE posting_id = %s AND urutan = 2", posting)
    return f"posting {posting} "


def changed_card_value(books: Books) -> str:
    posting = books.posting(books.post().nomer_nota)
    books.run("UPDATE kartu_stok SET nilai = nilai + 1 WHERE posting_id = %s AND kode_barang = 'BRG-A'", posting)
    return f"posting {posting} "


def changed_card_of_a_warehouse_with_its_own_accounts(books: Books) -> str:
    posting = books.posting(books.post_on_own_accounts().nomer_nota)
    books.run("UPDATE kartu_stok SET nilai = nilai + 1 WHERE posting_id = %s AND kode_barang = 'BRG-A'", posting)
    return "akun persediaan 1010030031"


def missing_card_row_without_value(books: Books) -> str:
    posting = books.posting(books.post(Line("BULAT", "10", "10.01", "0.10")).nomer_nota)
    assert books.run("DELETE FROM kartu_stok WHERE posting_id = %s", posting) == 1
    return "0 dari 1 baris"


def two_inventory_accounts(books: Books) -> str:
    posting = books.posting(books.post().nomer_nota)
    books.run("UPDATE jurnal SET kode_akun = '1010030099' WHERE posting_id = %s AND urutan = 4", posting)
    return f"posting {posting} "


def completed_without_books(books: Books) -> str:
    document = books.fail()
    books.run("UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED' WHERE id = %s", document.shadow_id)
    return f"transaksi {document.transaksi_id} nota {document.nomer_nota}"


def books_without_completed(books: Books) -> str:
    document = books.post()
    books.run(
        "UPDATE rabbit_publish_shadow SET worker_status = 'FAILED', error_code = 500, worker_at = UTC_TIMESTAMP(6)"
        " WHERE id = %s",
        document.shadow_id,
    )
    return "status pekerjaan FAILED"


def journal_leftover(books: Books) -> str:
    return f"jurnal {books.journal_row(nomer_nota='SISA-1')} nota SISA-1"


def journal_of_a_posting_that_is_not_there(books: Books) -> str:
    return f"jurnal {books.journal_row(nomer_nota='SISA-2', posting_id=987654, urutan=1)} nota SISA-2"


def journal_of_a_document_that_an_older_worker_posted_again(books: Books) -> str:
    document = books.post()
    row = books.journal_row(nomer_nota=document.nomer_nota, transaksi_id=document.transaksi_id, sumber="")
    return f"jurnal {row} nota {document.nomer_nota}"


def card_of_a_document_that_an_older_worker_posted_again(books: Books) -> str:
    document = books.post()
    again = {"nomer_nota": document.nomer_nota, "transaksi_id": document.transaksi_id}
    long_ago = datetime(2026, 1, 5, tzinfo=UTC)
    row = builders.movement(
        books.conn, "GANDA", masuk="1", tanggal_wib=datetime(2026, 1, 5), created_at=long_ago, **again
    )
    books.conn.commit()
    return f"kartu stok {row} nota {document.nomer_nota}"


def card_leftover(books: Books) -> str:
    now = datetime.now(UTC)
    row = builders.movement(
        books.conn, "SISA", masuk="1", sumber="OPNAME", tanggal_wib=datetime(2026, 1, 5), created_at=now
    )
    return f"kartu stok {row} "


def card_row_of_another_nota(books: Books) -> str:
    posting = books.posting(books.post(Line("A")).nomer_nota)
    books.run("UPDATE kartu_stok SET nomer_nota = 'LAIN' WHERE posting_id = %s", posting)
    return "nota LAIN"


def reversal_with_another_account(books: Books) -> str:
    mirror = books.reverse(books.post(Line("A")).nomer_nota)
    books.run("UPDATE jurnal SET kode_akun = '7010199' WHERE posting_id = %s AND urutan = 2", mirror)
    # The row that is missing and the row that is too much are two findings; take one for the other away.
    return f"pembalikan {mirror} "


def reversal_with_another_lot(books: Books) -> str:
    mirror = books.reverse(books.post(Line("A")).nomer_nota)
    books.run("UPDATE kartu_stok SET lot = 'L2' WHERE posting_id = %s", mirror)
    return f"pembalikan {mirror} "


def reversal_of_a_posting_that_is_gone(books: Books) -> str:
    mirror = books.reverse(books.post(Line("NOL", "3", "3")).nomer_nota)
    books.run("UPDATE posting_sets SET membalik_id = 987654 WHERE id = %s", mirror)
    return "membalik posting 987654"


def posting_in_a_closed_month(books: Books) -> str:
    """As if somebody had gone round the steps."""
    document = books.post()
    close_month(books, month_of(document.nomer_nota, books))
    books.run("UPDATE posting_sets SET created_at = created_at + INTERVAL 1 HOUR")
    return f"nota {document.nomer_nota}: posting bertanggal"


def journal_row_in_a_month_that_was_closed_for_a_while(books: Books) -> str:
    document = books.post()
    month = month_of(document.nomer_nota, books)
    close_month(books, month)
    books.run("UPDATE jurnal SET created_at = UTC_TIMESTAMP(6)")
    open_month(books, month)
    return f"nota {document.nomer_nota}: jurnal bertanggal"


def stock_of_nothing_with_a_value(books: Books) -> str:
    now = datetime.now(UTC)
    for masuk, keluar, nilai in (("10", "0", "5000"), ("0", "10", "-4500.50")):
        builders.movement(
            books.conn,
            "KOSONG",
            masuk=masuk,
            keluar=keluar,
            nilai=nilai,
            tanggal_wib=datetime(2026, 1, 5),
            created_at=now,
        )
    return "barang KOSONG lot  gudang GD-A: jumlah 0, nilai 499.50"


def at_work_without_a_run(books: Books) -> str:
    document = books.at_work()
    run_id = builders.shadow(books.conn, document.shadow_id)["dag_run_id"]
    books.airflow.runs[run_id] = None
    return f"DAG run {run_id} tidak dikenal Airflow"


def at_work_with_a_dead_run(books: Books) -> str:
    document = books.at_work()
    run_id = builders.shadow(books.conn, document.shadow_id)["dag_run_id"]
    books.airflow.runs[run_id] = "failed"
    return f"DAG run {run_id} sudah failed"


def at_work_for_an_older_system(books: Books) -> str:
    row = builders.shadow_row(books.conn, 77, "MACET", worker_status="PROCESSING")
    return f"nota MACET (pekerjaan #{row})"


def pending_since_yesterday(books: Books) -> str:
    document = books.document()
    books.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
    return f"nota {document.nomer_nota} "


def foreign_pending_since_yesterday(books: Books) -> str:
    document = books.document()
    books.run(f"UPDATE rabbit_publish_shadow SET created_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
    return f"nota {document.nomer_nota} "


def pending_of_a_paused_dag(books: Books) -> str:
    """Its message is put off by 30 seconds again and again."""
    document = books.document()
    books.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
    books.run(
        "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at)"
        " VALUES (%s, 'everest.jobs.x', 'job.process', '{}', UTC_TIMESTAMP(6) + INTERVAL 30 SECOND)",
        document.shadow_id,
    )
    return f"nota {document.nomer_nota} "


def failed_without_letter(books: Books) -> str:
    return f"nota {books.fail(with_letter=False).nomer_nota} "


def purged_letters(books: Books) -> str:
    books.fail()
    books.fail()
    books.letters = 1
    return "berisi 1 surat"


@pytest.mark.parametrize(
    ("key", "plant"),
    [
        ("posting_is_balanced", changed_total),
        ("posting_is_balanced", changed_gain_account_amount),
        ("inventory_equals_stock_card", changed_card_value),
        ("inventory_equals_stock_card", changed_card_of_a_warehouse_with_its_own_accounts),
        ("inventory_equals_stock_card", missing_card_row_without_value),
        ("inventory_equals_stock_card", two_inventory_accounts),
        ("completed_is_posted_once", completed_without_books),
        ("completed_is_posted_once", books_without_completed),
        ("rows_belong_to_their_posting", journal_leftover),
        ("rows_belong_to_their_posting", journal_of_a_posting_that_is_not_there),
        ("rows_belong_to_their_posting", journal_of_a_document_that_an_older_worker_posted_again),
        ("rows_belong_to_their_posting", card_of_a_document_that_an_older_worker_posted_again),
        ("rows_belong_to_their_posting", card_leftover),
        ("rows_belong_to_their_posting", card_row_of_another_nota),
        ("reversal_mirrors_original", reversal_of_a_posting_that_is_gone),
        pytest.param("closed_month_stays_closed", posting_in_a_closed_month, id="H22"),
        ("closed_month_stays_closed", journal_row_in_a_month_that_was_closed_for_a_while),
        pytest.param("empty_stock_has_no_value", stock_of_nothing_with_a_value, id="H10"),
        pytest.param("no_movement_entered_late", movement_entered_late, id="H13"),
        ("no_movement_entered_late", movement_that_committed_while_the_count_was_posted),
        ("processing_has_live_run", at_work_without_a_run),
        ("processing_has_live_run", at_work_with_a_dead_run),
        ("processing_has_live_run", at_work_for_an_older_system),
        ("pending_is_not_overdue", pending_since_yesterday),
        ("pending_is_not_overdue", foreign_pending_since_yesterday),
        ("pending_is_not_overdue", pending_of_a_paused_dag),
        ("failure_has_dead_letter", failed_without_letter),
        ("failure_has_dead_letter", purged_letters),
    ],
)
def test_each_violation_is_found_by_its_own_invariant_with_the_row_named(books: Books, key: str, plant: Plant) -> None:
    names = plant(books)

    assert names in only(books, key).pesan


@pytest.mark.parametrize("plant", [reversal_with_another_account, reversal_with_another_lot])
def test_a_mirror_that_differs_names_the_row_that_is_missing_and_the_one_that_is_too_much(
    books: Books, plant: Plant
) -> None:
    names = plant(books)

    broken = books.audit_all()

    assert list(broken) == ["reversal_mirrors_original"]
    texts = [finding.pesan for finding in broken["reversal_mirrors_original"].findings]
    assert len(texts) == 2 and all(names in text for text in texts)
    assert {"1 kali" in text and "0 kali" in text for text in texts} == {True}


def test_a_journal_row_of_two_sides_is_found_where_no_check_forbids_it(books: Books) -> None:
    posting = books.posting(books.post(Line("A", "5", "3", "1")).nomer_nota)
    with books.without_check("jurnal", "ck_jurnal_satu_sisi"):
        assert books.run("UPDATE jurnal SET debet = 2, kredit = 2 WHERE posting_id = %s AND urutan = 3", posting)

        (finding,) = books.audit("posting_is_balanced").findings

    assert "1 baris cacat" in finding.pesan
