"""Who may take what back, and when: one reversal per posting, closed months, names of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal as D
from typing import Any

import pytest

from everest.errors import Conflict, DocumentMissing, DocumentRefused, EverestError, Forbidden
from everest.intake import replace as correction
from everest.intake.submission import Authority, Submission
from everest.intake.submission import Line as Counted
from ingest_consumer import by_hand
from tests import builders
from tests.builders import WIB, Line
from tests.integration.opname.reversing import Backwards, ask, counted, per_account, posted, reverse, whole_books
from tests.integration.opname.walk import Walker


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
