"""Does the count still hold? Movements entered after the snapshot of 14 August 2026, 08:00 WIB (01:00 UTC)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd

from everest.opname.freshness import are_daily_business, late_movement_problems, stale_problems
from tests.unit.opname.tables import header, lines, said

HEADER = header(nomer_nota="SO-1", snapshot_at=datetime(2026, 8, 14, 1, 0, tzinfo=UTC))
LINES = lines(
    # kode | lot | gudang | sistem | fisik | harga
    "A     | ''  | GD-A   | 10     | 12    | 1500",
    "A     | L1  | GD-A   | 7      | 5     | 1500",
    "A     | ''  | GD-B   | 7      | 5     | 1500",
    "B     | ''  | GD-A   | 3      | 3     | 900",
)


def movements(*rows: str) -> pd.DataFrame:
    """id | kode | lot | gudang | nota | opname or other source | dated (WIB)"""
    records: list[tuple[Any, ...]] = []
    for row in rows:
        number, kode, lot, gudang, nota, source, dated = (cell.strip() for cell in row.split("|"))
        when = datetime.strptime(dated, "%Y-%m-%d %H:%M:%S")
        entered = datetime(2026, 8, 14, 5, 0, tzinfo=UTC)
        lot = "" if lot == "''" else lot
        records.append((int(number), kode, lot, gudang, nota or None, source == "opname", when, entered))
    names = ["id", "kode_barang", "lot", "gudang_kode", "nomer_nota", "is_opname", "tanggal_wib", "created_at"]
    return pd.DataFrame(records, columns=names)


def test_another_opname_of_the_same_stock_makes_the_count_stale() -> None:
    found = stale_problems(
        HEADER,
        LINES,
        movements(
            "71 | A | '' | GD-A | SO-2 | opname | 2026-08-14 09:00:00",
            "72 | A | '' | GD-A | SO-2-BALIK | opname | 2026-08-14 10:00:00",
            "73 | B | '' | GD-B | SO-3 | opname | 2026-08-14 10:00:00",
        ),
    )

    assert said(found) == [(1, "qty_sistem")]
    assert "SO-2 (mutasi 71" in found[0].pesan
    assert "SO-2-BALIK (mutasi 72" in found[0].pesan


def test_the_key_is_item_and_lot_and_warehouse() -> None:
    found = stale_problems(HEADER, LINES, movements("71 | A | L1 | GD-A | SO-2 | opname | 2026-08-14 09:00:00"))

    assert said(found) == [(2, "qty_sistem")]


def test_rows_of_the_documents_own_nota_do_not_make_it_stale() -> None:
    assert stale_problems(HEADER, LINES, movements("71 | A | '' | GD-A | SO-1 | opname | 2026-08-14 09:00:00")) == []


def test_rows_of_its_own_nota_that_another_program_wrote_with_blanks_behind_it_do_not_either() -> None:
    own = movements("71 | A | '' | GD-A | SO-1 | opname | 2026-08-14 09:00:00")

    assert stale_problems(HEADER, LINES, own.assign(nomer_nota=["SO-1  "])) == []
    assert stale_problems(header(nomer_nota="SO-1 ", snapshot_at=HEADER.snapshot_at), LINES, own) == []
    assert said(stale_problems(HEADER, LINES, own.assign(nomer_nota=[" SO-1"]))) == [(1, "qty_sistem")]


def test_another_modules_movement_does_not_make_it_stale() -> None:
    assert stale_problems(HEADER, LINES, movements("71 | A | '' | GD-A | BELI-1 | other | 2026-08-14 09:00:00")) == []


def test_a_movement_dated_at_or_before_the_snapshot_is_late_and_one_dated_after_it_is_daily_business() -> None:
    found = late_movement_problems(
        HEADER,
        LINES,
        movements(
            "81 | A | '' | GD-A | BELI-1 | other | 2026-08-14 08:00:00",
            "82 | A | L1 | GD-A | BELI-2 | other | 2026-08-13 23:59:59",
            "83 | A | '' | GD-B | JUAL-1 | other | 2026-08-14 08:00:01",
            "84 | B | '' | GD-A |        | other | 2026-08-01 00:00:00",
        ),
    )

    assert said(found) == [(1, "qty_sistem"), (2, "qty_sistem"), (4, "qty_sistem")]
    assert "BELI-1 (mutasi 81, 2026-08-14 08:00:00 WIB)" in found[0].pesan
    assert "tanpa nota (mutasi 84" in found[2].pesan


def test_the_snapshot_is_compared_in_wib_and_not_in_utc() -> None:
    # 07:30 WIB is before the snapshot (08:00 WIB) although 07:30 is after the snapshot's UTC clock time 01:00.
    found = late_movement_problems(
        HEADER, LINES, movements("81 | A | '' | GD-A | BELI-1 | other | 2026-08-14 07:30:00")
    )

    assert said(found) == [(1, "qty_sistem")]


def test_an_opname_movement_is_never_late_it_is_stale_or_our_own() -> None:
    rows = movements("81 | A | '' | GD-A | SO-2 | opname | 2026-08-13 00:00:00")

    assert late_movement_problems(HEADER, LINES, rows) == []
    assert said(stale_problems(HEADER, LINES, rows)) == [(1, "qty_sistem")]


def test_many_movements_of_one_item_are_counted_instead_of_listed() -> None:
    rows = movements(*(f"{n} | A | '' | GD-A | SO-{n} | opname | 2026-08-14 09:00:00" for n in range(100, 300)))

    (problem,) = stale_problems(HEADER, LINES, rows)

    assert "SO-100" in problem.pesan
    assert "195 mutasi lain" in problem.pesan
    assert len(problem.pesan) < 500


def test_no_movements_at_all_leave_the_count_fresh() -> None:
    assert stale_problems(HEADER, LINES, movements()) == []
    assert late_movement_problems(HEADER, LINES, movements()) == []


def test_movements_that_concern_nobody_are_daily_business_whichever_items_were_counted() -> None:
    own = "71 | A | '' | GD-A | SO-1 | opname | 2026-08-14 07:00:00"
    later = "72 | A | '' | GD-A | BELI-1 | BELI | 2026-08-14 08:00:01"
    late = "73 | Z | '' | GD-A | BELI-2 | BELI | 2026-08-14 08:00:00"
    other = "74 | Z | '' | GD-A | SO-2 | opname | 2026-08-14 09:00:00"

    assert are_daily_business(HEADER, movements())
    assert are_daily_business(HEADER, movements(own, later))
    assert not are_daily_business(HEADER, movements(own, late))
    assert not are_daily_business(HEADER, movements(later, other))
