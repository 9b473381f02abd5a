"""What changed between the attempts at a document, told from the rows that the attempts and corrections left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.attempts import Act, History, history
from everest.errors import DocumentMissing
from everest.intake import replace as correction
from everest.intake.submission import Authority, Submission
from everest.intake.submission import Line as Counted
from everest.store import json_rows
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

ANI = Authority("ani", "budi", 3)
LINES = (Line("A", "10", "12", "5"), Line("B", "10", None, "5"), Line("C", "10", "9", None))


def told(walker: Walker, target: str) -> History:
    with walker.database.transaction() as tx:
        return history(tx, target)


def correct(walker: Walker, document: builders.Document, *lines: Line, rerun: bool = True, **header: Any) -> None:
    counted = tuple(
        Counted(
            kode_barang=str(line.kode_barang),
            satuan=line.satuan,
            qty_sistem=_decimal(line.qty_sistem),
            qty_fisik=_decimal(line.qty_fisik),
            harga_pokok=_decimal(line.harga_pokok),
        )
        for line in lines
    )
    given = {"gudang_kode": None, "tanggal_opname": None, "transaksi_id": document.transaksi_id} | header
    with walker.database.transaction() as tx:
        correction.replace(tx, Submission(document.nomer_nota, lines=counted, **given), ANI, "salah hitung", rerun)


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def places(problems: Any) -> list[tuple[int | None, str]]:
    return [(problem.baris, problem.kolom) for problem in problems]


def test_an_untried_document_has_no_attempts_and_an_unknown_one_is_missing(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)

    found = told(walker, document.nomer_nota)

    assert (found.attempts, found.posting_id, found.rows_changed) == ((), None, None)
    with pytest.raises(DocumentMissing):
        told(walker, "SO-UNKNOWN")


def test_a_correction_shows_which_lines_it_changed_and_which_problem_went_away(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, LINES)
    walker.post(document.shadow_id)
    correct(walker, document, LINES[0], Line("B", "10", "11", "5"), Line("C", "10", "-9", None), Line("D"))
    walker.post(document.shadow_id)
    correct(walker, document, LINES[0], Line("B", "10", "11", "5"), Line("C", "10", "9", "5"))
    walker.post(document.shadow_id)

    first, second, third = told(walker, document.nomer_nota).attempts

    assert (first.outcome, first.code, first.changes) == ("FAILED", 422, ())
    assert places(first.new) == places(first.problems) == [(2, "qty_fisik"), (3, "harga_pokok")]
    assert second.changes is not None and third.changes is not None
    lines = [(one.kind, one.baris, one.before, one.after) for one in second.changes if one.baris]
    assert lines[:2] == [
        ("changed", 2, {"qty_fisik": None}, {"qty_fisik": "11.0000"}),
        ("changed", 3, {"qty_fisik": "9.0000"}, {"qty_fisik": "-9.0000"}),
    ]
    assert [(kind, baris, after["kode_barang"]) for kind, baris, _, after in lines[2:]] == [("added", 4, "D")]
    assert places(second.gone) == [(2, "qty_fisik")]
    assert places(second.new) == [(3, "qty_fisik")]
    assert second.asked_by == (Act("ani", "replace", "salah hitung"), Act("ani", "rerun", "salah hitung"))
    assert [(one.kind, one.baris) for one in third.changes if one.baris] == [("changed", 3), ("removed", 4)]
    assert (third.outcome, third.problems) == ("COMPLETED", ())
    assert places(third.gone) == [(3, "qty_fisik"), (3, "harga_pokok")]


def test_a_correction_of_the_header_is_told_as_well_its_instants_in_wib(walker: Walker, connection: Any) -> None:
    frozen = datetime(2026, 3, 9, 17, 30, tzinfo=UTC)
    document = builders.document(connection, LINES, otorisasi_level=2, snapshot_at=frozen)
    walker.post(document.shadow_id)
    builders.warehouse(connection, "GD-B")
    correct(walker, document, Line("A"), gudang_kode="GD-B", snapshot_at=frozen + timedelta(hours=1))
    walker.post(document.shadow_id)

    (header,) = [change for change in told(walker, document.nomer_nota).attempts[1].changes or () if not change.baris]

    assert (header.before["gudang_kode"], header.after["gudang_kode"]) == ("GD-A", "GD-B")
    assert (header.before["otorisasi_level"], header.after["otorisasi_level"]) == ("2", "3")
    assert header.before["snapshot_at"] == "2026-03-10 00:30:00 WIB"
    assert header.after["snapshot_at"] == "2026-03-10 01:30:00 WIB"


def test_an_instant_of_another_program_that_jakarta_cannot_write_is_told_as_it_stands(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("A", qty_fisik=None)], otorisasi_level=2)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE so_headers_staging SET snapshot_at = '9999-12-31 23:00:00', zona_waktu = 'UTC' WHERE id = %s",
            (document.header_id,),
        )
    connection.commit()
    walker.post(document.shadow_id)

    correct(walker, document, Line("A"), snapshot_at=datetime(2026, 3, 9, 17, 30, tzinfo=UTC))
    walker.post(document.shadow_id)

    changes = told(walker, document.nomer_nota).attempts[1].changes or ()
    (header,) = [change for change in changes if not change.baris]
    assert (header.before["snapshot_at"], header.after["snapshot_at"]) == (
        "9999-12-31 23:00:00",
        "2026-03-10 00:30:00 WIB",
    )


def test_a_correction_that_nobody_has_tried_yet_stands_apart(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, LINES)
    walker.post(document.shadow_id)
    correct(walker, document, Line("A", "10", "12", "5"), rerun=False)

    found = told(walker, document.nomer_nota)

    assert [(one.kind, one.baris) for one in found.pending if one.baris] == [("removed", 2), ("removed", 3)]
    assert len(found.attempts) == 1


def test_two_corrections_before_one_attempt_are_told_as_one(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, LINES)
    walker.post(document.shadow_id)
    correct(walker, document, Line("X"), rerun=False)
    correct(walker, document, *LINES[:2], Line("C", "10", "9", "7"))
    walker.post(document.shadow_id)

    changes = told(walker, document.nomer_nota).attempts[1].changes or ()

    assert [(one.kind, one.baris, one.after) for one in changes if one.baris] == [
        ("changed", 3, {"harga_pokok": "7.000000"})
    ]


def test_a_large_correction_is_put_together_from_its_pieces(
    walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "MOST_ROWS", 2)
    bad = [Line(f"I-{number}", "10", None if number == 5 else "10", "5") for number in range(1, 6)]
    document = builders.document(connection, bad)
    walker.post(document.shadow_id)
    correct(walker, document, *bad[:4], Line("I-5", "10", "10", "5"))
    walker.post(document.shadow_id)

    found = told(walker, document.nomer_nota)

    assert len(builders.rows(connection, "SELECT * FROM posting_attempts WHERE outcome = 'REPLACED'")) == 3
    assert [(one.kind, one.baris) for one in found.attempts[1].changes or () if one.baris] == [("changed", 5)]


def test_the_same_content_again_says_so_and_a_foreign_change_keeps_no_old_lines(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("A", gudang_kode="GD-X")], with_warehouses=False)
    builders.warehouse(connection, "GD-A")
    walker.post(document.shadow_id)
    with walker.database.transaction() as tx:
        tx.runs.rerun(document.shadow_id, "ani", None)
    walker.post(document.shadow_id)
    builders.write_lines(connection, document.header_id, [Line("A")])
    with walker.database.transaction() as tx:
        tx.runs.rerun(document.shadow_id, "ani", None)
    walker.post(document.shadow_id)

    _, same, other = told(walker, document.nomer_nota).attempts

    assert (same.is_other_content, same.changes, same.new, same.gone) == (False, (), (), ())
    assert (other.is_other_content, other.changes) == (True, None)
    assert places(other.gone) == [(1, "gudang_kode")]


def test_h21_a_posted_document_says_that_another_run_changes_0_rows(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    walker.post(document.shadow_id)

    found = told(walker, document.nomer_nota)
    assert found.rows_changed == 0
    assert found.rerun == f"sudah diposting (posting {found.posting_id}); jalan ulang: 0 baris akan berubah"

    builders.write_lines(connection, document.header_id, [Line("BRG-A", "10", "12", "9999.00")])

    edited = told(walker, document.nomer_nota)
    assert edited.rows_changed == 0
    assert "ditolak (409)" in edited.rerun
