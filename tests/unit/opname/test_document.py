"""What a document must meet, when it posts, and what its hash says."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from everest.opname.document import (
    input_hash,
    period_of,
    period_problems,
    posting_instant,
    validate,
    with_header_warehouse,
)
from everest.opname.journal import Accounts
from tests.unit.opname.tables import ACCOUNTS, frame, header, lines, references, said

GOOD = lines(
    # kode | lot | gudang | sistem | fisik | harga
    "A     |     |        | 10     | 12    | 1500.00",
    "B     | ''  | GD-B   | 7      | 5     | 2500.50",
    "C     | L1  | GD-A   | 3      | 3     | 900",
)


def problems_of(*rows: str, **changes: Any) -> list[tuple[int | None, str]]:
    return said(validate(header(**changes), lines(*rows), references()))


def test_a_good_document_has_no_problem() -> None:
    assert validate(header(), GOOD, references()) == []


def test_all_problems_are_reported_at_once_header_first_then_by_line_and_column() -> None:
    found = validate(
        header(otorisasi_level=1, diotorisasi_oleh=" ", diotorisasi_at=None, nomer_nota="SO-1 "),
        lines(
            # kode | lot | gudang | sistem | fisik | harga
            "A     | ''  | GD-A   | 10     |       | 1500",
            "      | ''  | GD-X   | 10     | -1    | -5",
            "C     | ''  | GD-A   | 10     | 10    | 5",
            "A     | ''  | ''     |        | 10    | 5",
        ),
        references(),
    )

    assert said(found) == [
        (None, "otorisasi_level"),
        (None, "diotorisasi_oleh"),
        (None, "diotorisasi_at"),
        (None, "nomer_nota"),
        (1, "qty_fisik"),
        (2, "kode_barang"),
        (2, "gudang_kode"),
        (2, "qty_fisik"),
        (2, "harga_pokok"),
        (4, "gudang_kode"),
        (4, "qty_sistem"),
    ]


@pytest.mark.parametrize("level", [-1, 0, 1])
def test_an_authorisation_below_level_2_is_refused(level: int) -> None:
    found = validate(header(otorisasi_level=level), GOOD, references())

    assert said(found) == [(None, "otorisasi_level")]
    assert f"level {level}" in found[0].pesan


def test_an_authorisation_without_name_or_time_is_refused() -> None:
    assert said(validate(header(diotorisasi_oleh=None), GOOD, references())) == [(None, "diotorisasi_oleh")]
    assert said(validate(header(diotorisasi_at=None), GOOD, references())) == [(None, "diotorisasi_at")]


def test_a_document_without_lines_is_refused() -> None:
    assert problems_of() == [(None, "baris")]


@pytest.mark.parametrize(("code", "word"), [("", "kosong"), ("GD-X", "tidak dikenal"), ("GD-TUTUP", "tidak aktif")])
def test_the_warehouse_of_the_document_must_be_known_and_active(code: str, word: str) -> None:
    found = validate(header(gudang_kode=code), lines("A | '' | GD-A | 1 | 2 | 5"), references())

    assert said(found) == [(None, "gudang_kode")]
    assert word in found[0].pesan


@pytest.mark.parametrize(
    ("code", "word"),
    [("''", "kosong"), ("GD-X", "tidak dikenal"), ("GD-TUTUP", "tidak aktif"), ("gd-a", "tidak dikenal")],
)
def test_the_warehouse_of_a_line_must_be_known_and_active(code: str, word: str) -> None:
    found = validate(header(), lines("A | '' | GD-A | 1 | 2 | 5", f"B | '' | {code} | 1 | 2 | 5"), references())

    assert said(found) == [(2, "gudang_kode")]
    assert word in found[0].pesan


def test_a_wrong_warehouse_of_the_document_is_said_once_and_not_on_each_line_that_takes_it() -> None:
    assert problems_of("A | | | 1 | 2 | 5", "B | | | 1 | 2 | 5", gudang_kode="GD-X") == [(None, "gudang_kode")]


@pytest.mark.parametrize("code", ["A ", " A", "A\t", "A\u200b", "A\u202e1", "A\nB"])
def test_codes_that_look_like_others_are_refused_on_their_line(code: str) -> None:
    bad = frame(
        [
            (code, "", "GD-A", Decimal(1), Decimal(2), Decimal(5)),
            ("B", code, "GD-A", Decimal(1), Decimal(2), Decimal(5)),
            ("C", "", code, Decimal(1), Decimal(2), Decimal(5)),
        ]
    )

    assert said(validate(header(), bad, references())) == [(1, "kode_barang"), (2, "lot"), (3, "gudang_kode")]
    assert said(validate(header(nomer_nota=code), GOOD, references())) == [(None, "nomer_nota")]


def test_duplicates_are_judged_by_the_warehouse_a_line_really_has() -> None:
    rows = lines(
        # kode | lot | gudang | sistem | fisik | harga
        "A     |     |        | 12     | 5     | 100",
        "B     |     |        | 12     | 5     | 100",
        "A     | ''  | GD-A   | 12     | 7     | 100",
        "A     | ''  | GD-B   | 12     | 7     | 100",
        "a     | ''  | GD-A   | 12     | 7     | 100",
    )

    found = validate(header(), rows, references())

    assert said(found) == [(1, "kode_barang"), (3, "kode_barang")]
    assert "baris 1" in found[0].pesan
    assert "baris 3" in found[0].pesan
    assert "'A'" in found[0].pesan


def test_a_thousand_copies_of_one_line_are_each_refused_in_a_short_sentence() -> None:
    rows = frame([("A", "", "GD-A", Decimal(1), Decimal(2), Decimal(5))] * 1000)

    found = validate(header(), rows, references())

    assert [problem.baris for problem in found] == list(range(1, 1001))
    assert all(len(problem.pesan) < 200 for problem in found)
    assert "dan 994 baris lain" in found[0].pesan


def test_lines_without_a_code_are_not_each_others_duplicates() -> None:
    assert problems_of(" | | | 1 | 2 | 5", "'' | | | 1 | 2 | 5") == [(1, "kode_barang"), (2, "kode_barang")]


@pytest.mark.parametrize(
    ("row", "kolom", "word"),
    [
        ("A | | |   | 12 | 5", "qty_sistem", "kosong"),
        ("A | | | 10 |   | 5", "qty_fisik", "belum dihitung"),
        ("A | | | 10 | -1 | 5", "qty_fisik", "negatif"),
        ("A | | | 10 | 12 | -5", "harga_pokok", "negatif"),
        ("A | | | 10 | 10 | -5", "harga_pokok", "negatif"),
        ("A | | | 10 | 12 |   ", "harga_pokok", "harga kosong"),
        ("A | | | 10 | 12 | 0", "harga_pokok", "harga 0"),
        ("A | | | 10 | 12 | 0.000000", "harga_pokok", "harga 0"),
        ("A | | | NaN | 12 | 5", "qty_sistem", "NaN"),
        ("A | | | sNaN | 12 | 0", "qty_sistem", "NaN"),
        ("A | | | 10 | Infinity | 5", "qty_fisik", "Infinity"),
        ("A | | | 10 | 12 | -Infinity", "harga_pokok", "Infinity"),
        ("A | | | 10 | 12.00001 | 5", "qty_fisik", "4 desimal"),
        ("A | | | 10 | 100000000000000 | 5", "qty_fisik", "14 angka"),
        ("A | | | 10 | 12 | 0.0000001", "harga_pokok", "6 desimal"),
    ],
)
def test_a_number_that_cannot_be_posted_is_refused_in_its_column(row: str, kolom: str, word: str) -> None:
    found = validate(header(), lines("OK | | | 1 | 2 | 5", row), references())

    assert said(found) == [(2, kolom)]
    assert word in found[0].pesan


@pytest.mark.parametrize(
    "row", ["A | | | 10 | 10 |", "A | | | 10 | 10.0000 | 0", "A | | | -10 | 0 | 5", "A | | | 0 | 0 |"]
)
def test_what_needs_no_cost_or_counts_negative_stock_away_is_accepted(row: str) -> None:
    assert problems_of(row) == []


def test_a_cost_of_zero_is_accepted_where_the_site_says_so_but_a_missing_one_never() -> None:
    rows = lines("A | | | 10 | 12 | 0", "B | | | 10 | 12 | ")

    assert said(validate(header(), rows, references(allow_zero_cost=True))) == [(2, "harga_pokok")]


def test_accounts_must_exist_be_active_and_not_be_one() -> None:
    missing = references(accounts={ACCOUNTS.persediaan: True, ACCOUNTS.rugi_selisih: False})
    found = validate(header(), GOOD, missing)
    assert said(found) == [(None, "kode_akun"), (None, "kode_akun")]
    assert "'7010150' tidak ada" in found[0].pesan
    assert "'7020020' tidak aktif" in found[1].pesan

    one = Accounts(laba_selisih=ACCOUNTS.persediaan)
    assert said(validate(header(), GOOD, references(document_accounts=one))) == [(None, "kode_akun")]


def test_null_warehouse_and_null_lot_get_their_meaning_and_nothing_else_changes() -> None:
    effective = with_header_warehouse(header(), lines("A | | | 1 | 2 | 5", "NA | '' | '' | 1 | 2 |"))

    assert effective[["kode_barang", "lot", "gudang_kode"]].to_numpy().tolist() == [["A", "", "GD-A"], ["NA", "", ""]]
    assert effective["harga_pokok"].tolist() == [Decimal(5), None]


# --- the posting instant ---------------------------------------------------------------------------------------------


def test_a_document_posts_at_the_wib_time_of_its_authorisation() -> None:
    late_evening_utc = header(diotorisasi_at=datetime(2026, 1, 31, 17, 30, 0, 999_999, tzinfo=UTC))

    assert posting_instant(late_evening_utc) == datetime(2026, 2, 1, 0, 30, 0)
    assert period_of(posting_instant(late_evening_utc)) == "2026-02"


def test_the_zone_an_instant_is_written_in_does_not_matter() -> None:
    wita = timezone(timedelta(hours=8))

    assert posting_instant(header(diotorisasi_at=datetime(2026, 2, 1, 1, 30, tzinfo=wita))) == datetime(
        2026, 2, 1, 0, 30
    )


def test_an_instant_without_a_zone_is_a_fault() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        posting_instant(header(diotorisasi_at=datetime(2026, 2, 1, 1, 30)))


def test_a_posting_date_on_the_wib_day_of_the_snapshot_takes_the_snapshots_time() -> None:
    # 20:15 UTC on 13 August is 03:15 WIB on the 14th.
    given = header(tanggal_posting=date(2026, 8, 14), snapshot_at=datetime(2026, 8, 13, 20, 15, 7, 500_000, tzinfo=UTC))

    assert posting_instant(given) == datetime(2026, 8, 14, 3, 15, 7)


@pytest.mark.parametrize("day", [date(2026, 8, 13), date(2026, 8, 15), date(2026, 7, 31)])
def test_a_posting_date_on_another_day_posts_at_its_end(day: date) -> None:
    given = header(tanggal_posting=day, snapshot_at=datetime(2026, 8, 13, 20, 15, tzinfo=UTC))

    assert posting_instant(given) == datetime(day.year, day.month, day.day, 23, 59, 59)


def test_without_authorisation_and_posting_date_there_is_no_instant() -> None:
    with pytest.raises(ValueError, match="not authorised"):
        posting_instant(header(diotorisasi_at=None))


def test_the_period_is_judged_by_the_posting_instant_in_wib() -> None:
    given = header(diotorisasi_at=datetime(2026, 1, 31, 17, 30, tzinfo=UTC))

    assert period_problems(given, frozenset({"2026-01"})) == []
    (problem,) = period_problems(given, frozenset({"2026-02"}))
    assert problem.pesan.startswith("periode tutup: 2026-02")
    assert period_problems(header(diotorisasi_at=None), frozenset({"2026-02"})) == []


# --- the hash --------------------------------------------------------------------------------------------------------

HASHED = lines("A | | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | ")
HASH = input_hash(header(), HASHED, "OPNAME")


def test_the_hash_is_that_of_the_agreed_text() -> None:
    # Stored with every posting: a change here would make each posted document look like another one.
    block = "2\n1\tA\t\tGD-A\t10.0000\t12.0000\t1500.000000\n2\tB\tL1\tGD-B\t7.0000\t\t\n"
    lines_agreed = sha256(sha256(block))
    agreed = (
        '[940795,"SO-2026-08-0012","OPNAME","GD-A","2026-08-14T16:30:00","2026-08-14T01:00:00.000000+00:00",'
        f'"{lines_agreed}"]'
    )

    assert sha256(agreed) == HASH


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_hash_does_not_depend_on_how_the_same_document_is_held() -> None:
    assert input_hash(header(), HASHED[reversed(HASHED.columns)], "OPNAME") == HASH
    assert input_hash(header(), HASHED.iloc[::-1].reset_index(drop=True), "OPNAME") == HASH
    assert input_hash(header(), with_header_warehouse(header(), HASHED), "OPNAME") == HASH
    same = lines("A | '' | GD-A | 10.0000 | 12.0 | 1.5E+3", "B | L1 | GD-B | 7.00 | | ")
    assert input_hash(header(), same, "OPNAME") == HASH
    wib_zone = timezone(timedelta(hours=7))
    assert input_hash(header(snapshot_at=header().snapshot_at.astimezone(wib_zone)), HASHED, "OPNAME") == HASH
    assert input_hash(header(dibuat_oleh="orang lain", otorisasi_level=9), HASHED, "OPNAME") == HASH


@pytest.mark.parametrize(
    "change",
    [
        {"transaksi_id": 940796},
        {"nomer_nota": "SO-2026-08-0013"},
        {"gudang_kode": "GD-B"},
        {"tanggal_posting": date(2026, 8, 1)},
        {"diotorisasi_at": datetime(2026, 8, 14, 9, 30, 1, tzinfo=UTC)},
        {"snapshot_at": datetime(2026, 8, 14, 1, 0, 0, 1, tzinfo=UTC)},
        {"diotorisasi_at": None},
    ],
)
def test_the_hash_changes_with_the_header(change: dict[str, Any]) -> None:
    assert input_hash(header(**change), HASHED, "OPNAME") != HASH


@pytest.mark.parametrize(
    "rows",
    [
        ("A | | | 10 | 12 | 1500.00",),
        ("A | | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | ", "C | | | 1 | 1 | 1"),
        ("B | L1 | GD-B | 7 | | ", "A | | | 10 | 12 | 1500.00"),
        ("a | | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | L | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | | GD-B | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | | '' | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | | | 12 | 10 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | | | 10 | 12.0001 | 1500.00", "B | L1 | GD-B | 7 | | "),
        ("A | | | 10 | 12 | 1500.000001", "B | L1 | GD-B | 7 | | "),
        ("A | | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | 0 | "),
        ("A | | | 10 | 12 | 1500.00", "B | L1 | GD-B | 7 | | 0"),
        ("A | | | 10 | 12 | 1500.00", "B | L1 | GD-B | | 7 | "),
        ("A | | | 10 | 12 | 1500.00", "'' | L1 | GD-B | 7 | | "),
    ],
)
def test_the_hash_changes_with_each_field_of_a_line_and_null_is_not_zero(rows: tuple[str, ...]) -> None:
    assert input_hash(header(), lines(*rows), "OPNAME") != HASH


def test_the_hash_changes_with_the_kind_of_document() -> None:
    assert input_hash(header(), HASHED, "PEMBALIKAN") != HASH


def test_texts_that_run_into_each_other_have_different_hashes() -> None:
    def hashed(kode: str, lot: str) -> str:
        rows = frame([(kode, lot, "GD-A", Decimal(1), Decimal(2), Decimal(5))])
        return input_hash(header(), rows, "OPNAME")

    assert (
        len({hashed("A", "BC"), hashed("AB", "C"), hashed('A","B', "C"), hashed("A", 'B","C'), hashed("ABC", "")}) == 5
    )


def test_a_null_code_and_an_empty_one_have_different_hashes() -> None:
    null, empty = lines(" | | | 1 | 2 | 5"), lines("'' | | | 1 | 2 | 5")

    assert input_hash(header(), null, "OPNAME") != input_hash(header(), empty, "OPNAME")


def test_a_number_that_its_column_cannot_hold_has_no_hash() -> None:
    with pytest.raises(ValueError, match="qty_fisik"):
        input_hash(header(), lines("A | | | 1 | 2.00001 | 5"), "OPNAME")


# --- where it stands -------------------------------------------------------------------------------------------------


def test_parsing_a_dag_file_does_not_import_pandas() -> None:
    plugins = Path(__file__).parents[3] / "plugins"
    program = "import sys, everest.opname.steps, everest.opname.workflow; print('pandas' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(plugins)}, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False"


def test_a_float_in_a_quantity_column_stops_the_work() -> None:
    floats = GOOD.assign(qty_fisik=pd.Series([12.0, 5.0, 3.0]))

    for judge in (lambda: validate(header(), floats, references()), lambda: input_hash(header(), floats, "OPNAME")):
        with pytest.raises(TypeError, match="qty_fisik"):
            judge()
