"""Reversals on a real database: what they write, what refuses them, and what two at once or a death leave behind."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from everest import reversal
from everest.errors import Conflict, DocumentMissing, DocumentRefused, EverestError, Forbidden, TransientDatabaseError
from everest.intake import replace as correction
from everest.intake.submission import Authority, Submission
from everest.intake.submission import Line as Counted
from everest.opname.workflow import REVERSE_OPNAME
from everest.reversal import Requested
from everest.settings import MysqlUrl, Settings
from everest.store.books import MysqlBooks
from everest.store.reversals import MysqlReversals
from everest.workflow import control
from everest.workflow.engine import Leave
from ingest_consumer import by_hand
from tests import builders
from tests.builders import PERSEDIAAN, WIB, Document, Line
from tests.integration.opname.walk import Walker

Backwards = Callable[..., Walker]


@pytest.fixture
def backwards(database: MysqlUrl) -> Iterator[Backwards]:
    """Walkers of the reversal's workflow, each with connections of its own."""
    made: list[Walker] = []

    def another(**settings: Any) -> Walker:
        made.append(Walker(database, Settings(**settings), REVERSE_OPNAME))
        return made[-1]

    yield another
    for walker in made:
        walker.close()


# Downwards: a number above the table's counter moves it, and the next document would meet the number of a reversal.
_transaksi_ids = itertools.count(900_000, -1)


def counted(connection: Any, lines: Sequence[Line] = builders.EXAMPLE, **header: Any) -> Document:
    return builders.document(connection, lines, **{"transaksi_id": next(_transaksi_ids), **header})


def posted(walker: Walker, connection: Any, *lines: Line, **header: Any) -> Document:
    document = counted(connection, lines or builders.EXAMPLE, **header)
    assert walker.post(document.shadow_id) == "COMPLETED"
    return document


def ask(walker: Walker, nota: str, who: str = "dewi", reason: str = "salah rak") -> Requested:
    with walker.database.transaction() as tx:
        return reversal.request(tx, nota, who, reason)


def reverse(walker: Walker, nota: str, who: str = "dewi", reason: str = "salah rak") -> Requested:
    requested = ask(walker, nota, who, reason)
    assert walker.post(requested.shadow_id) == "COMPLETED"
    return requested


def whole_books(connection: Any, posting_id: int | None = None) -> list[dict[str, Any]]:
    """Every column of every row that belongs to a posting (all postings when none is named)."""
    where = "posting_id IS NOT NULL" if posting_id is None else f"posting_id = {posting_id}"
    found = builders.rows(connection, f"SELECT * FROM jurnal WHERE {where} ORDER BY id")
    found += builders.rows(connection, f"SELECT * FROM kartu_stok WHERE {where} ORDER BY id")
    sets = "TRUE" if posting_id is None else f"id = {posting_id}"
    return found + builders.rows(connection, f"SELECT * FROM posting_sets WHERE {sets} ORDER BY id")


def per_account(connection: Any) -> dict[str, D]:
    found = builders.rows(connection, "SELECT kode_akun, SUM(debet - kredit) AS sisa FROM jurnal GROUP BY kode_akun")
    return {row["kode_akun"]: row["sisa"] for row in found}


# ------------------------------------------------------------------------------------------------------ the mirror


def test_a_reversal_mirrors_the_example_of_the_posting_rules(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    before = whole_books(connection)
    values = builders.rows(connection, "SELECT * FROM transaksi_values ORDER BY baris")

    requested = reverse(backwards(), document.nomer_nota)

    assert requested.nomer_nota == f"{document.nomer_nota}-BALIK"
    assert builders.journal_of(connection, requested.nomer_nota) == [
        (1, PERSEDIAAN, D("0.00"), D("3000.00")),
        (2, "7010150", D("3000.00"), D("0.00")),
        (3, "7020020", D("0.00"), D("5001.00")),
        (4, PERSEDIAAN, D("5001.00"), D("0.00")),
    ]
    assert builders.card_of(connection, requested.nomer_nota) == [
        ("BRG-A", D("0"), D("2"), D("-3000.00")),
        ("BRG-B", D("2"), D("0"), D("5001.00")),
    ]
    assert builders.books(connection).agree
    assert set(per_account(connection).values()) == {D("0.00")}
    original, mirror = builders.rows(connection, "SELECT * FROM posting_sets ORDER BY id")
    assert (mirror["jenis"], mirror["membalik_id"]) == ("PEMBALIKAN", original["id"])
    assert (mirror["transaksi_id"], mirror["nomer_nota"]) == (requested.transaksi_id, requested.nomer_nota)
    assert (mirror["total_debet"], mirror["baris_selisih"]) == (D("8001.00"), 2)
    assert whole_books(connection, original["id"]) == before, "the original stays as it was"
    kept = "SELECT * FROM transaksi_values WHERE transaksi_id = %s ORDER BY baris"
    assert builders.rows(connection, kept, document.transaksi_id) == values
    mirrored = builders.rows(connection, kept, requested.transaksi_id)
    assert [(row["baris"], row["selisih_qty"], row["qty_fisik"]) for row in mirrored] == [
        (1, D(-2), None),
        (2, D(2), None),
    ]
    assert [(row["nilai_debet"], row["nilai_kredit"]) for row in mirrored] == [(D(0), D(3000)), (D(5001), D(0))]
    row = builders.shadow(connection, requested.shadow_id)
    assert row["response"]["membalik_nota"] == document.nomer_nota
    assert (row["response"]["total_debet"], row["response"]["baris_selisih"]) == ("8001.00", 2)
    (attempt,) = builders.rows(
        connection, "SELECT * FROM posting_attempts WHERE transaksi_id = %s", requested.transaksi_id
    )
    assert (attempt["outcome"], attempt["input_hash"]) == ("COMPLETED", mirror["input_hash"])


def test_it_is_dated_when_it_posts_and_says_why(walker: Walker, backwards: Backwards, connection: Any) -> None:
    long_ago = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)
    document = posted(walker, connection, diotorisasi_at=long_ago)
    before = datetime.now(WIB).replace(tzinfo=None, microsecond=0)

    requested = reverse(backwards(), document.nomer_nota, reason="  gudang tertukar ")

    found = builders.rows(
        connection,
        "SELECT DISTINCT tanggal_wib FROM jurnal WHERE nomer_nota = %s"
        " UNION SELECT tanggal_wib FROM kartu_stok WHERE nomer_nota = %s"
        " UNION SELECT tanggal_wib FROM transaksi WHERE nomer_nota = %s",
        *[requested.nomer_nota] * 3,
    )
    (instant,) = [row["tanggal_wib"] for row in found]
    assert before - timedelta(seconds=2) <= instant <= datetime.now(WIB).replace(tzinfo=None)
    (text,) = builders.rows(
        connection, "SELECT DISTINCT keterangan FROM jurnal WHERE nomer_nota = %s", requested.nomer_nota
    )
    assert text["keterangan"] == f"Pembalikan {document.nomer_nota}: gudang tertukar"
    (entry,) = builders.rows(connection, "SELECT * FROM audit_log WHERE action = 'reverse'")
    assert (entry["actor"], entry["reason"]) == ("dewi", "gudang tertukar")
    assert (entry["nomer_nota"], entry["shadow_id"]) == (document.nomer_nota, requested.shadow_id)


def test_the_accounts_are_those_that_were_posted_to_whatever_the_warehouse_has_now(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    for code in ("111", "222", "333", "999"):
        builders.account(connection, code)
    own = {"akun_laba_selisih": "222", "akun_rugi_selisih": "333"}
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_persediaan="111", **own)
    document = posted(walker, connection)
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_persediaan="999", **own)
    builders.account(connection, "222", aktif=False)
    builders.warehouse(connection, "GD-A", aktif=False)

    requested = reverse(backwards(), document.nomer_nota)

    assert [code for _, code, *_ in builders.journal_of(connection, requested.nomer_nota)] == [
        "111",
        "222",
        "333",
        "111",
    ]
    assert set(per_account(connection).values()) == {D("0.00")}


@pytest.mark.parametrize(
    ("lines", "journal_rows", "card_rows"),
    [
        pytest.param([Line("A", "3", "3")], 0, 0, id="no variance at all"),
        pytest.param([Line("A", "10", "10.01", "0.10")], 0, 1, id="H15 a value that rounds to nothing"),
        pytest.param([Line("A", lot="1"), Line("A", "9", "1", lot="2"), Line("A", gudang_kode="B")], 4, 3, id="lots"),
    ],
)  # fmt: skip
def test_every_kind_of_posting_has_its_mirror(
    walker: Walker, backwards: Backwards, connection: Any, lines: list[Line], journal_rows: int, card_rows: int
) -> None:
    document = posted(walker, connection, *lines)

    requested = reverse(backwards(), document.nomer_nota)

    assert len(builders.journal_of(connection, requested.nomer_nota)) == journal_rows
    assert len(builders.card_of(connection, requested.nomer_nota)) == card_rows
    left = builders.rows(
        connection,
        "SELECT kode_barang, lot, gudang_kode FROM kartu_stok GROUP BY kode_barang, lot, gudang_kode"
        " HAVING SUM(masuk - keluar) <> 0 OR SUM(nilai) <> 0",
    )
    assert left == []
    assert builders.books(connection).agree


def test_h03_a_posting_of_3200_lines_is_reversed_line_by_line(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    lines = [Line(f"I{i:04d}", "10", str(i % 21), f"{i % 997}.{i % 10000:04d}") for i in range(1, 3201)]
    document = posted(walker, connection, *lines)
    (original,) = builders.rows(connection, "SELECT * FROM posting_sets")
    before = whole_books(connection)

    requested = reverse(backwards(), document.nomer_nota)

    assert len(builders.card_of(connection, requested.nomer_nota)) == original["baris_selisih"] > 3000
    assert set(per_account(connection).values()) == {D("0.00")}
    assert whole_books(connection, original["id"]) == before
    unlike = builders.rows(
        connection,
        "SELECT o.id FROM kartu_stok o LEFT JOIN kartu_stok m ON m.posting_id = %s AND m.kode_barang = o.kode_barang"
        " AND m.masuk = o.keluar AND m.keluar = o.masuk AND m.nilai = -o.nilai AND m.harga_pokok = o.harga_pokok"
        " WHERE o.posting_id = %s AND m.id IS NULL",
        *(row["id"] for row in reversed(builders.rows(connection, "SELECT id FROM posting_sets ORDER BY id"))),
    )
    assert not unlike
    assert requested.transaksi_id != document.transaksi_id


# ------------------------------------------------------------------------------------------------ what refuses it


def test_only_a_posted_document_can_be_reversed(walker: Walker, backwards: Backwards, connection: Any) -> None:
    reverser = backwards()
    pending = counted(connection)
    with pytest.raises(Conflict, match="PENDING"):
        ask(reverser, pending.nomer_nota)
    with pytest.raises(DocumentMissing):
        ask(reverser, "SO-NOWHERE")
    builders.shadow_row(connection, 77, "SO-OLD", worker_status="COMPLETED")
    with pytest.raises(Conflict, match="tidak punya posting"):
        ask(reverser, "SO-OLD")
    done = posted(walker, connection, Line("Z"))
    requested = ask(reverser, f"#{done.shadow_id}")
    with pytest.raises(Conflict, match="pembalikan tidak bisa dibalik"):
        ask(reverser, requested.nomer_nota)
    assert reverser.post(requested.shadow_id) == "COMPLETED"
    with pytest.raises(Conflict, match="pembalikan tidak bisa dibalik"):
        ask(reverser, requested.nomer_nota)


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
def test_a_reason_is_needed_and_never_cut(walker: Walker, backwards: Backwards, connection: Any, reason: str) -> None:
    document = posted(walker, connection)
    with pytest.raises(DocumentRefused, match="alasan"):
        ask(backwards(), document.nomer_nota, reason=reason)


def test_nobody_reverses_their_own_document_unless_the_site_allows_it(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection, dibuat_oleh="Sari")
    nobody_knows = posted(walker, connection, Line("Z"), dibuat_oleh=None)

    with pytest.raises(Forbidden, match="Sari"):
        ask(backwards(), document.nomer_nota, who="sari ")
    with pytest.raises(Forbidden, match="budi"):
        ask(backwards(), nobody_knows.nomer_nota, who="budi")

    assert builders.rows(connection, "SELECT id FROM transaksi WHERE jenis = 'PEMBALIKAN'") == []
    assert ask(backwards(), nobody_knows.nomer_nota, who="sari").is_new
    assert ask(backwards(allow_self_approval=True), document.nomer_nota, who="sari").is_new


def test_whoever_corrected_a_document_does_not_reverse_it_alone(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = counted(connection, [Line(qty_fisik=None)], dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "FAILED"
    line = Counted(kode_barang="BRG-A", qty_sistem=D(1), qty_fisik=D(500), harga_pokok=D(10))
    with walker.database.transaction() as tx:
        corrected = Submission(document.nomer_nota, None, None, (line,))
        correction.replace(tx, corrected, Authority("Ani", "budi", 2), "salah hitung", rerun=True)
    assert walker.post(document.shadow_id) == "COMPLETED"

    for own in ("ani", "sari"):
        with pytest.raises(Forbidden, match=f"(?i)oleh {own};"):
            ask(backwards(), document.nomer_nota, who=own)

    assert ask(backwards(), document.nomer_nota, who="dewi").is_new


def test_two_clicks_make_one_reversal_and_somebody_else_is_told(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    reverser = backwards()

    first = ask(reverser, document.nomer_nota)
    second = ask(reverser, document.nomer_nota)
    with pytest.raises(Conflict, match=f"sedang dibalik.*{first.nomer_nota}.*PENDING"):
        ask(reverser, document.nomer_nota, who="eko")
    assert reverser.post(first.shadow_id) == "COMPLETED"
    for who in ("dewi", "eko"):
        with pytest.raises(Conflict, match=f"sudah dibalik oleh {first.nomer_nota}"):
            ask(reverser, document.nomer_nota, who=who)

    assert (first.is_new, second.is_new, second.shadow_id) == (True, False, first.shadow_id)
    assert len(builders.rows(connection, "SELECT id FROM transaksi WHERE jenis = 'PEMBALIKAN'")) == 1
    assert len(builders.rows(connection, "SELECT id FROM audit_log WHERE action = 'reverse'")) == 1


def test_two_people_who_ask_at_once_make_one_reversal(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection)
    start = threading.Barrier(4)

    def one(number: int) -> str:
        reverser = backwards()
        start.wait()
        try:
            return "new" if ask(reverser, document.nomer_nota, who=f"orang-{number}").is_new else "same"
        except EverestError as error:
            return type(error).__name__

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(one, range(4)))

    assert outcomes == ["Conflict", "Conflict", "Conflict", "new"]
    assert len(builders.rows(connection, "SELECT id FROM workflow_runs WHERE workflow = 'opname_reversal'")) == 1


def test_a_second_reversal_that_got_past_the_door_is_refused_by_the_books(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    """The key of the table is the last word: here two jobs stand for one posting, as nothing of ours makes them."""
    document = posted(walker, connection)
    reverser = backwards()
    first = ask(reverser, document.nomer_nota)
    builders.insert(connection, "transaksi", nomer_nota="X", jenis="PEMBALIKAN")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflow_runs SET workflow = 'hidden' WHERE id = %s", (first.workflow_id,))
    connection.commit()
    second = ask(reverser, document.nomer_nota)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE workflow_runs SET workflow = 'opname_reversal', idempotency_key = 'b' WHERE id = %s",
            (first.workflow_id,),
        )
    connection.commit()

    assert reverser.post(first.shadow_id) == "COMPLETED"
    before = whole_books(connection)
    assert reverser.post(second.shadow_id) == "FAILED"

    row = builders.shadow(connection, second.shadow_id)
    assert row["error_code"] == 409
    assert f"sudah dibalik oleh {first.nomer_nota}" in row["error"]
    assert whole_books(connection) == before


def test_the_nota_of_a_reversal_is_nobody_elses(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, nomer_nota="SO-1")
    counted(connection, [Line("Q")], nomer_nota="SO-1-BALIK")

    requested = reverse(backwards(), document.nomer_nota)
    late = counted(connection, [Line("R")], nomer_nota=requested.nomer_nota)

    assert requested.nomer_nota == "SO-1-BALIK2"
    assert walker.post(late.shadow_id) == "FAILED"
    row = builders.shadow(connection, late.shadow_id)
    assert (row["error_code"], "nota sebuah pembalikan" in row["error"]) == (409, True)


def test_a_count_that_took_the_nota_of_a_reversal_on_its_way_keeps_it(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    back = backwards()
    first = ask(back, document.nomer_nota)
    posted(walker, connection, Line("Z"), nomer_nota=first.nomer_nota)

    assert back.post(first.shadow_id) == "FAILED"
    job = builders.shadow(connection, first.shadow_id)
    assert (job["error_code"], "minta lagi" in job["error"]) == (409, True)

    with back.database.transaction() as tx:
        control.cancel(tx, REVERSE_OPNAME, first.workflow_id, "dewi", "nota terpakai")
    again = reverse(back, document.nomer_nota)
    assert again.nomer_nota == f"{document.nomer_nota}-BALIK2"


@pytest.mark.parametrize("first_is", ["the count", "the reversal"])
def test_a_count_and_a_reversal_of_one_nota_that_commit_at_the_same_moment_are_one_posting(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch, first_is: str
) -> None:
    """Other warehouses and other months: no lock in common, and each has looked before the other one committed."""
    document = posted(walker, connection)
    back = backwards()
    requested = ask(back, document.nomer_nota)
    august = datetime(2026, 8, 31, 5, tzinfo=UTC)
    count = counted(connection, [Line("Z")], nomer_nota=requested.nomer_nota, gudang_kode="GD-Z", diotorisasi_at=august)
    counting, reversing = walker.claim(count.shadow_id), back.claim(requested.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        walker.step(counting, name)
    inserted, rival_inserts = threading.Event(), threading.Event()

    def stopping(books: type, is_first: bool) -> None:
        original = books.insert_posting

        def insert(self: Any, *arguments: Any) -> Any:
            if not is_first:
                rival_inserts.set()
                return original(self, *arguments)
            posting_id = original(self, *arguments)
            inserted.set()
            assert rival_inserts.wait(30), "the rival has looked, and found the nota free"
            return posting_id

        monkeypatch.setattr(books, "insert_posting", insert)

    stopping(MysqlBooks, first_is == "the count")
    stopping(MysqlReversals, first_is == "the reversal")
    with ThreadPoolExecutor(2) as pool:
        first, rival = (walker.dag_run, counting), (back.dag_run, reversing)
        if first_is == "the reversal":
            first, rival = rival, first
        posting = pool.submit(*first)
        assert inserted.wait(30)
        other = pool.submit(*rival)
        posting.result()
        other.result()
    outcomes = {one.shadow_id: builders.shadow(connection, one.shadow_id) for one in (count, requested)}

    wins, loses = (count, requested) if first_is == "the count" else (requested, count)
    assert outcomes[wins.shadow_id]["worker_status"] == "COMPLETED"
    assert (outcomes[loses.shadow_id]["worker_status"], outcomes[loses.shadow_id]["error_code"]) == ("FAILED", 409)
    sentence = "minta lagi: ia mendapat nota lain" if first_is == "the count" else "nota sebuah pembalikan"
    assert sentence in outcomes[loses.shadow_id]["error"]
    assert builders.books(connection).postings == 2
    assert builders.books(connection).agree


def test_two_long_notas_reversed_at_once_get_names_of_their_own(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both give way at the end, so that both would be NNN...-BALIK."""
    notas = ["N" * 99 + end for end in "12"]
    for number, nota in enumerate(notas):
        posted(walker, connection, Line(f"L{number}"), nomer_nota=nota, gudang_kode=f"GD-{number}")
    start = threading.Barrier(2)
    looked = threading.Barrier(2)
    real = MysqlReversals.nota_is_taken

    def looking(self: MysqlReversals, nomer_nota: str) -> bool:
        taken = real(self, nomer_nota)
        with suppress(threading.BrokenBarrierError):
            looked.wait(1)  # both have looked before either has written, if they can
        return taken

    def one(nota: str) -> Requested:
        reverser = backwards()
        start.wait()
        return ask(reverser, nota)

    with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(MysqlReversals, "nota_is_taken", looking)
        requested = list(pool.map(one, notas))

    assert sorted(one.nomer_nota[-7:] for one in requested) == ["-BALIK2", "N-BALIK"]
    assert all(backwards().post(one.shadow_id) == "COMPLETED" for one in requested)


def test_a_nota_of_a_hundred_characters_can_be_reversed(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, nomer_nota="N" * 100)
    requested = reverse(backwards(), document.nomer_nota)
    assert len(requested.nomer_nota) == 100
    assert requested.nomer_nota.endswith("-BALIK")


# ------------------------------------------------------------------------------------- what the reversed one means


def test_a_reversed_nota_stays_used_and_its_document_stays_completed(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    requested = reverse(backwards(), document.nomer_nota)
    before = whole_books(connection)

    again = counted(connection, nomer_nota=document.nomer_nota, snapshot_at=datetime.now(UTC))
    assert walker.post(again.shadow_id) == "FAILED"
    second_message = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)
    assert walker.post(second_message) == "COMPLETED"

    row = builders.shadow(connection, again.shadow_id)
    assert row["error_code"] == 409
    assert f"dibalik oleh {requested.nomer_nota}; pakai nota baru" in row["error"]
    assert whole_books(connection) == before


def test_a_count_frozen_before_a_reversal_is_stale(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, Line("A"))
    frozen = datetime.now(UTC)
    reverser = backwards()
    requested = reverse(reverser, document.nomer_nota)
    stale = counted(connection, [Line("A")], snapshot_at=frozen)

    assert walker.post(stale.shadow_id) == "FAILED"

    row = builders.shadow(connection, stale.shadow_id)
    assert row["error_code"] == 409
    assert requested.nomer_nota in row["error"]
    fresh = counted(connection, [Line("A")], snapshot_at=datetime.now(UTC))
    assert walker.post(fresh.shadow_id) == "COMPLETED"
    assert reverse(reverser, fresh.nomer_nota).nomer_nota == f"{fresh.nomer_nota}-BALIK"


# ------------------------------------------------------------------------------------------------- closed months


def this_month() -> str:
    return f"{datetime.now(WIB):%Y-%m}"


def test_a_closed_month_refuses_the_request(walker: Walker, backwards: Backwards, connection: Any) -> None:
    document = posted(walker, connection, diotorisasi_at=datetime(2026, 3, 10, 5, 0, tzinfo=UTC))
    builders.period(connection, this_month())

    with pytest.raises(DocumentRefused, match="tutup") as refused:
        ask(backwards(), document.nomer_nota)

    assert refused.value.code == 423
    assert builders.rows(connection, "SELECT id FROM workflow_runs WHERE workflow = 'opname_reversal'") == []


def test_a_reversal_whose_month_closed_meanwhile_fails_and_posts_after_opening(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)
    builders.period(connection, this_month())
    before = whole_books(connection)

    assert reverser.post(requested.shadow_id) == "FAILED"
    row = builders.shadow(connection, requested.shadow_id)
    assert (row["error_code"], "tutup" in row["error"]) == (423, True)
    assert whole_books(connection) == before
    (attempt,) = builders.rows(
        connection, "SELECT * FROM posting_attempts WHERE transaksi_id = %s", requested.transaksi_id
    )
    assert (attempt["outcome"], attempt["code"]) == ("FAILED", 423)
    with pytest.raises(Conflict, match="jalankan ulang"):
        ask(reverser, document.nomer_nota)

    builders.period(connection, this_month(), "OPEN")
    by_hand.rerun(connection, requested.shadow_id, "budi")
    connection.commit()
    assert reverser.post(requested.shadow_id) == "COMPLETED"
    assert set(per_account(connection).values()) == {D("0.00")}


def test_a_failed_reversal_that_was_dropped_makes_room_for_another(
    walker: Walker, backwards: Backwards, connection: Any
) -> None:
    document = posted(walker, connection)
    reverser = backwards()
    first = ask(reverser, document.nomer_nota)
    builders.period(connection, this_month())
    reverser.post(first.shadow_id)
    assert by_hand.cancel_dropped(connection, first.shadow_id, "budi", "lain kali")
    connection.commit()
    builders.period(connection, this_month(), "OPEN")

    second = reverse(reverser, document.nomer_nota)

    assert (first.nomer_nota, second.nomer_nota) == (f"{document.nomer_nota}-BALIK", f"{document.nomer_nota}-BALIK2")
    assert [
        row["nomer_nota"] for row in builders.rows(connection, "SELECT nomer_nota FROM posting_sets ORDER BY id")
    ] == [
        document.nomer_nota,
        second.nomer_nota,
    ]


# ---------------------------------------------------------------------------------------------- deaths and doubles


def test_a_commit_whose_answer_was_lost_is_found_and_nothing_is_posted_twice(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = posted(walker, connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)
    ticket = reverser.claim(requested.shadow_id)
    lost: list[int] = []
    original = reverser.database.transaction

    @contextmanager
    def losing() -> Iterator[Any]:
        with original() as tx:
            yield tx
        if not lost and len(builders.rows(connection, "SELECT id FROM posting_sets")) == 2:
            lost.append(1)
            raise TransientDatabaseError("Lost connection during COMMIT", 2013)

    monkeypatch.setattr(reverser.database, "transaction", losing)
    result = reverser.step(ticket, "reverse_posting", is_last_try=False)

    assert lost
    assert isinstance(result, Leave)
    assert builders.shadow(connection, requested.shadow_id)["worker_status"] == "COMPLETED"
    assert len(builders.journal_of(connection, requested.nomer_nota)) == 4


@pytest.mark.parametrize(
    "method", ["insert_posting", "write_document", "insert_journal", "mirror_stock_card", "what_is_left"]
)
def test_a_connection_that_dies_after_any_statement_leaves_nothing_and_the_next_try_posts(
    walker: Walker, backwards: Backwards, connection: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    document = posted(walker, connection)
    before = whole_books(connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)
    ticket = reverser.claim(requested.shadow_id)
    original = getattr(MysqlReversals, method)
    seen: list[list[dict[str, Any]]] = []

    def dying(self: MysqlReversals, *arguments: Any) -> Any:
        result = original(self, *arguments)
        if not seen:
            with self._conn.cursor() as cursor:
                cursor.execute("SELECT CONNECTION_ID()")
                (victim,) = cursor.fetchone()
            seen.append(whole_books(connection))
            with connection.cursor() as cursor:
                cursor.execute(f"KILL {victim}")
        return result

    monkeypatch.setattr(MysqlReversals, method, dying)
    reverser.step(ticket, "reverse_posting", is_last_try=False)

    assert seen == [before], "nobody saw a half of it"
    assert builders.shadow(connection, requested.shadow_id)["worker_status"] == "COMPLETED"
    assert len(builders.rows(connection, "SELECT id FROM posting_sets")) == 2
    assert set(per_account(connection).values()) == {D("0.00")}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("UPDATE jurnal SET debet = debet + 1 WHERE urutan = 1", "debits"),
        ("DELETE FROM kartu_stok WHERE kode_barang = 'BRG-A'", "stock card"),
        ("UPDATE kartu_stok SET nilai = nilai + 1 WHERE kode_barang = 'BRG-A'", "stock card"),
        ("UPDATE posting_sets SET total_debet = 1, total_kredit = 1", "its journal holds"),
    ],
)
def test_an_original_that_somebody_changed_by_hand_is_not_mirrored(
    walker: Walker, backwards: Backwards, connection: Any, damage: str, words: str
) -> None:
    document = posted(walker, connection)
    with connection.cursor() as cursor:
        cursor.execute(damage)
    connection.commit()
    before = whole_books(connection)
    reverser = backwards()
    requested = ask(reverser, document.nomer_nota)

    assert reverser.post(requested.shadow_id) == "FAILED"

    row = builders.shadow(connection, requested.shadow_id)
    assert (row["error_code"], words in row["error"]) == (500, True), row["error"]
    assert whole_books(connection) == before
