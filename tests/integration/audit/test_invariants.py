"""A clean world has no findings; each violation is found by its own invariant, with the row named, and by no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest import periods
from everest.audit.acknowledge import acknowledge, withdraw
from everest.audit.finding import ITEMS, JOBS, JOURNAL, POSTINGS, STOCK_CARD, Finding, Window, walked
from everest.errors import Conflict, DocumentMissing, DocumentRefused
from tests import builders
from tests.builders import Line
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


# Each plants one violation into a clean world and returns a text that its finding must contain.


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


def month_of(nota: str, books: Books) -> str:
    (row,) = builders.rows(books.conn, "SELECT MIN(tanggal_wib) AS dated FROM jurnal WHERE nomer_nota = %s", nota)
    return f"{row['dated']:%Y-%m}"


def close_month(books: Books, month: str) -> None:
    with books.walker.database.transaction() as tx:
        assert periods.close(tx, month, "dewi", "tutup buku").is_changed


def open_month(books: Books, month: str) -> None:
    with books.walker.database.transaction() as tx:
        assert periods.open(tx, month, "dewi", "koreksi").is_changed


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


def movement_entered_late(books: Books) -> str:
    """H13: a receipt of this morning, entered after the count of it was posted."""
    snapshot = datetime.now(UTC) - timedelta(hours=1)
    document = books.post(Line("TELAT"), snapshot_at=snapshot)
    dated = (snapshot - timedelta(hours=2)).astimezone(builders.WIB).replace(tzinfo=None)
    later = datetime.now(UTC) + timedelta(seconds=1)
    builders.movement(books.conn, "TELAT", masuk="4", tanggal_wib=dated, created_at=later)
    return f"nota {document.nomer_nota}: barang TELAT"


def movement_that_committed_while_the_count_was_posted(books: Books) -> str:
    """Entered between snapshot and posting, and yet the posting did not see it: nobody approved it."""
    snapshot = datetime.now(UTC) - timedelta(hours=1)
    document = books.post(Line("SELIP"), snapshot_at=snapshot)
    dated = (snapshot - timedelta(hours=2)).astimezone(builders.WIB).replace(tzinfo=None)
    builders.movement(books.conn, "SELIP", masuk="4", tanggal_wib=dated, created_at=snapshot + timedelta(minutes=1))
    return f"nota {document.nomer_nota}: barang SELIP"


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


# ------------------------------------------------------------------------------------------------ what is no finding


def test_what_is_quick_enough_is_no_finding(books: Books) -> None:
    document = books.document()
    books.walker.claim(document.shadow_id)
    books.airflow.runs[builders.shadow(books.conn, document.shadow_id)["dag_run_id"]] = None
    books.document()

    assert books.audit_all() == {}


def test_a_message_that_is_to_go_out_next_week_is_not_overdue(books: Books) -> None:
    document = books.document()
    books.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
    books.run(
        "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at)"
        " VALUES (%s, 'everest.jobs.x', 'job.process', '{}', UTC_TIMESTAMP(6) + INTERVAL 7 DAY)",
        document.shadow_id,
    )

    assert books.audit_all() == {}


def test_a_late_movement_that_a_person_approved_and_one_against_a_reversed_posting_are_no_findings(
    books: Books,
) -> None:
    movement_that_committed_while_the_count_was_posted(books)
    (posting,) = builders.rows(books.conn, "SELECT * FROM posting_sets")
    columns = {"actor": "dewi", "action": "approve", "transaksi_id": posting["transaksi_id"]}
    builders.insert(books.conn, "audit_log", **columns)
    movement_entered_late(books)
    (newest,) = builders.rows(books.conn, "SELECT nomer_nota FROM posting_sets ORDER BY id DESC LIMIT 1")
    books.reverse(newest["nomer_nota"])

    assert books.audit_all() == {}


def test_a_refusal_by_a_person_needs_no_dead_letter(books: Books) -> None:
    document = books.fail(with_letter=False)
    books.run("UPDATE rabbit_publish_shadow SET error_code = 403 WHERE id = %s", document.shadow_id)

    assert books.audit_all() == {}


def test_a_letter_on_its_way_counts(books: Books) -> None:
    books.fail()
    books.letters = 0
    books.run(
        "INSERT INTO outbox (exchange, routing_key, body, available_at)"
        " VALUES ('everest.jobs.dlx', 'job.process', '{}', UTC_TIMESTAMP(6))"
    )

    assert books.audit_all() == {}


def test_a_job_that_ends_while_airflow_is_asked_is_no_finding(books: Books) -> None:
    document = books.at_work()
    run_id = builders.shadow(books.conn, document.shadow_id)["dag_run_id"]
    books.airflow.runs[run_id] = "success"
    books.airflow.on_call = lambda run_id: books.run(
        "UPDATE rabbit_publish_shadow SET worker_status = 'CANCELLED', worker_at = UTC_TIMESTAMP(6) WHERE id = %s",
        document.shadow_id,
    )

    assert books.audit_all() == {}


def test_postings_before_a_closing_and_after_an_opening_are_no_findings(books: Books) -> None:
    month = month_of(books.post().nomer_nota, books)
    close_month(books, month)
    open_month(books, month)
    books.post()
    close_month(books, month)

    assert books.audit_all() == {}


# ------------------------------------------------------------------------------------------------ what is not known


def test_a_month_that_another_program_closed_is_named_because_nobody_knows_since_when(books: Books) -> None:
    builders.period(books.conn, "2026-01")

    report = books.audit("closed_month_stays_closed")

    assert (report.outcome, report.notes) == (
        "CLEAN",
        ("closed by another program, since when is not known: 2026-01",),
    )


def test_an_airflow_that_cannot_be_asked_is_said_and_never_passes(books: Books) -> None:
    books.at_work()
    books.airflow.is_away = True

    broken = books.audit_all()

    assert list(broken) == ["processing_has_live_run"]
    assert broken["processing_has_live_run"].outcome == "NOT_CHECKED"
    assert "503" in (broken["processing_has_live_run"].not_checked or "")
    (row,) = builders.rows(books.conn, "SELECT * FROM audit_runs WHERE outcome <> 'CLEAN'")
    assert (row["outcome"], row["found"]) == ("NOT_CHECKED", 0)


def test_a_site_that_names_no_airflow_is_told_so(books: Books) -> None:
    books.auditor = replace(books.auditor, airflow=None)

    assert books.audit("processing_has_live_run").outcome == "NOT_CHECKED"


def test_letters_that_cannot_be_counted_are_a_note_and_the_marks_are_looked_at(books: Books) -> None:
    document = books.fail(with_letter=False)
    books.auditor = replace(books.auditor, count_letters=None)

    report = books.audit("failure_has_dead_letter")

    assert document.nomer_nota in report.findings[0].pesan
    assert "EVEREST_RABBIT_MANAGEMENT_URL" in report.notes[0]


# ------------------------------------------------------------------------------------------- windows and what is kept


@pytest.mark.parametrize(
    ("query", "window", "name"),
    [
        ("journal_without_posting", JOURNAL, "jurnal_id"),
        ("stock_card_without_posting", STOCK_CARD, "kartu_stok_id"),
        ("completed_without_posting", JOBS, "transaksi_id"),
        ("posting_without_completed", POSTINGS, "posting_id"),
        ("empty_stock_with_value", ITEMS, "kode_barang"),
    ],
)
def test_windows_leave_nothing_out_and_take_nothing_twice(books: Books, query: str, window: Window, name: str) -> None:
    for number in range(5):
        document = books.post(Line(f"I-{number}", "10", "11"), Line(f"J-{number}", "10", "9"))
        now = datetime.now(UTC)
        builders.movement(
            books.conn, f"I-{number}", keluar="1", nilai="-1", tanggal_wib=datetime(2026, 1, 5), created_at=now
        )
        books.run("UPDATE jurnal SET nomer_nota = 'LAIN' WHERE nomer_nota = %s AND urutan = 1", document.nomer_nota)
        books.run("UPDATE kartu_stok SET posting_id = 987654 WHERE kode_barang = %s", f"J-{number}")
        books.run(
            "UPDATE posting_sets SET transaksi_id = %s WHERE transaksi_id = %s", 100 + number, document.transaksi_id
        )
    books.run("UPDATE jurnal SET posting_id = NULL, urutan = NULL WHERE urutan = 2")

    def found(size: int) -> list[str | None]:
        check = walked(query, replace(window, size=size), (name,), "")
        return sorted(str(finding.detail[name]) for finding in check(books.auditor))

    whole = found(10_000)
    assert len(set(whole)) == len(whole) >= 5
    assert found(1) == found(2) == found(3) == whole


def test_only_postings_since_a_day_are_looked_at_when_asked(books: Books) -> None:
    old, new = books.posting(books.post().nomer_nota), books.posting(books.post().nomer_nota)
    books.run("UPDATE posting_sets SET created_at = created_at - INTERVAL 30 DAY WHERE id = %s", old)
    books.run("UPDATE jurnal SET kredit = kredit - 1 WHERE urutan = 2")
    books.auditor = replace(books.auditor, since=datetime.now(UTC) - timedelta(days=2))

    report = books.audit("posting_is_balanced")

    assert [finding.detail["posting_id"] for finding in report.findings] == [str(new)]


def test_what_was_posted_lately_is_looked_at_whenever_it_is_dated(books: Books) -> None:
    """A count of last month, posted today: what comes in late against it is no less late."""
    snapshot = datetime.now(UTC) - timedelta(days=41)
    dated = (snapshot + timedelta(days=1)).astimezone(builders.WIB).date()
    document = books.post(Line("TELAT"), snapshot_at=snapshot, tanggal_posting=dated)
    earlier = (snapshot - timedelta(hours=2)).astimezone(builders.WIB).replace(tzinfo=None)
    later = datetime.now(UTC) + timedelta(seconds=1)
    builders.movement(books.conn, "TELAT", masuk="4", tanggal_wib=earlier, created_at=later)

    (found,) = books.audit("no_movement_entered_late").findings
    assert found.detail["nomer_nota"] == document.nomer_nota

    books.run("UPDATE posting_sets SET created_at = created_at - INTERVAL 36 DAY")
    assert books.audit("no_movement_entered_late").findings == ()


def stored(books: Books) -> list[dict[str, Any]]:
    return builders.rows(books.conn, "SELECT * FROM audit_findings ORDER BY id")


def test_a_finding_is_known_again_then_gone_then_back(books: Books) -> None:
    row = books.journal_row(nomer_nota="SISA-1")

    first = books.audit("rows_belong_to_their_posting")
    again = books.audit("rows_belong_to_their_posting")
    assert (first.new, again.new, len(stored(books))) == (1, 0, 1)
    (kept,) = stored(books)
    assert kept["first_seen_at"] < kept["last_seen_at"] and kept["resolved_at"] is None
    assert (kept["first_run_id"], kept["last_run_id"]) == (1, 2)

    books.run("UPDATE jurnal SET sumber = 'LAIN' WHERE id = %s", row)
    assert books.audit("rows_belong_to_their_posting").resolved == 1
    assert stored(books)[0]["resolved_at"] is not None

    books.run("UPDATE jurnal SET sumber = 'OPNAME' WHERE id = %s", row)
    back = books.audit("rows_belong_to_their_posting")
    (kept,) = stored(books)
    assert (back.new, kept["reopened"], kept["resolved_at"]) == (0, 1, None)


def test_what_a_person_acknowledged_is_named_and_counted_and_no_longer_makes_the_night_red(books: Books) -> None:
    books.journal_row(nomer_nota="SISA-1")
    first = books.audit("rows_belong_to_their_posting")
    (kept,) = stored(books)
    assert (first.found, first.unknown) == (1, 1)

    with books.walker.database.transaction() as tx:
        acknowledge(tx, kept["id"], "dewi", "dihapus oleh akuntansi bulan depan")
    known = books.audit("rows_belong_to_their_posting")

    assert (known.outcome, known.found, known.acknowledged, known.unknown) == ("FINDINGS", 1, 1, 0)
    sentence = known.sentence(20)
    assert f"[#{kept['id']}; diakui oleh dewi: dihapus oleh akuntansi bulan depan]" in sentence
    assert "1 findings, 0 of them new, 1 acknowledged" in sentence
    (told,) = builders.rows(books.conn, "SELECT * FROM audit_log WHERE action = 'acknowledge'")
    assert (told["actor"], told["reason"]) == ("dewi", "dihapus oleh akuntansi bulan depan")
    assert "SISA-1" in told["before_value"]


def test_an_acknowledgement_holds_for_what_it_was_about(books: Books) -> None:
    """Another amount is another finding, and so is a fault that comes back; further rows were never known."""
    row = books.journal_row(nomer_nota="SISA-1")

    def known_after(change: str, *values: Any) -> tuple[int, int]:
        with books.walker.database.transaction() as tx:
            (standing,) = stored(books)
            if standing["diakui_oleh"] is None:
                acknowledge(tx, standing["id"], "dewi", "diketahui")
        assert books.audit("rows_belong_to_their_posting").unknown == 0
        books.run(change, *values)
        report = books.audit("rows_belong_to_their_posting")
        return report.found, report.unknown

    books.audit("rows_belong_to_their_posting")
    assert known_after("UPDATE jurnal SET debet = debet + 1 WHERE id = %s", row) == (1, 1)
    assert known_after("UPDATE jurnal SET sumber = 'LAIN' WHERE id = %s", row) == (0, 0)
    books.run("UPDATE jurnal SET sumber = 'OPNAME' WHERE id = %s", row)
    assert books.audit("rows_belong_to_their_posting").unknown == 1
    with books.walker.database.transaction() as tx:
        acknowledge(tx, stored(books)[0]["id"], "dewi", "diketahui")
    books.journal_row(nomer_nota="SISA-2")
    report = books.audit("rows_belong_to_their_posting")
    assert (report.found, report.unknown) == (2, 1)
    assert report.sentence(1).splitlines()[1].strip().startswith("jurnal"), "what nobody knows comes first"
    assert "SISA-2" in report.sentence(1)


def test_what_cannot_be_acknowledged_says_why(books: Books) -> None:
    row = books.journal_row(nomer_nota="SISA-1")
    books.audit("rows_belong_to_their_posting")
    number = stored(books)[0]["id"]

    def refusal(error: type[Exception], change: Any, *arguments: Any) -> str:
        with pytest.raises(error) as caught, books.walker.database.transaction() as tx:
            change(tx, *arguments)
        return str(caught.value)

    assert "no finding #999" in refusal(DocumentMissing, acknowledge, 999, "dewi", "x")
    assert "alasan kosong" in refusal(DocumentRefused, acknowledge, number, "dewi", "  ")
    assert "lebih dari 500" in refusal(DocumentRefused, acknowledge, number, "dewi", "x" * 501)
    assert "nobody has acknowledged" in refusal(Conflict, withdraw, number, "dewi", "x")
    with books.walker.database.transaction() as tx:
        acknowledge(tx, number, "dewi", "diketahui")
    assert "was acknowledged by dewi: diketahui" in refusal(Conflict, acknowledge, number, "eko", "juga")
    with books.walker.database.transaction() as tx:
        withdraw(tx, number, "eko", "ternyata salah")
    assert books.audit("rows_belong_to_their_posting").unknown == 1
    books.run("DELETE FROM jurnal WHERE id = %s", row)
    books.audit("rows_belong_to_their_posting")
    assert f"finding #{number} is gone" in refusal(Conflict, acknowledge, number, "dewi", "x")
    actions = [one["action"] for one in builders.rows(books.conn, "SELECT action FROM audit_log ORDER BY id")]
    assert actions == ["acknowledge", "withdraw"]


def test_what_was_not_looked_at_is_not_resolved(books: Books) -> None:
    books.fail(with_letter=False)
    books.audit("failure_has_dead_letter")
    posting = books.posting(books.post().nomer_nota)
    books.run("UPDATE jurnal SET kredit = kredit - 1 WHERE posting_id = %s AND urutan = 2", posting)
    books.audit("posting_is_balanced")
    books.run("UPDATE posting_sets SET created_at = created_at - INTERVAL 30 DAY")
    books.auditor = replace(books.auditor, since=datetime.now(UTC))

    assert books.audit("posting_is_balanced").found == 0
    assert [row["resolved_at"] for row in stored(books)] == [None, None]


def test_more_findings_than_are_kept_are_counted_and_resolve_nothing(books: Books) -> None:
    rows = [books.journal_row(nomer_nota=f"SISA-{number}") for number in range(5)]
    books.audit("rows_belong_to_their_posting")
    books.auditor = replace(books.auditor, settings=replace(books.auditor.settings, stored=2))
    books.run("UPDATE jurnal SET sumber = 'LAIN' WHERE id = %s", rows[-1])

    report = books.audit("rows_belong_to_their_posting")

    assert (report.found, len(report.findings), report.resolved) == (4, 2, 0)
    assert "and 3 more" in report.sentence(1)


def test_an_audit_takes_no_lock_and_changes_nothing_but_its_own_tables(books: Books) -> None:
    books.some_weeks()
    with books.walker.database.transaction() as tx, tx.conn.cursor() as cursor:
        cursor.execute("SELECT id FROM posting_sets FOR UPDATE")
        cursor.execute("UPDATE jurnal SET keterangan = 'sedang diubah'")
        cursor.execute("SELECT id FROM rabbit_publish_shadow FOR UPDATE")
        cursor.execute("SELECT id FROM kartu_stok FOR UPDATE")
        other = books.another()
        try:
            assert other.audit_all() == {}
        finally:
            other.close()
