"""Windows over large tables, and findings that are kept: known again, acknowledged, gone, back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest.audit.acknowledge import acknowledge, withdraw
from everest.audit.finding import ITEMS, JOBS, JOURNAL, POSTINGS, STOCK_CARD, Window, walked
from everest.errors import Conflict, DocumentMissing, DocumentRefused
from tests import builders
from tests.builders import Line
from tests.integration.audit.world import Books


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
        check = walked(query, replace(window, size=size), (name,))
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
    assert "1 finding, 0 of them new, 1 acknowledged" in sentence
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
