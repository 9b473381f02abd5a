"""Reports from the command line: on the screen, into files, into pipes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from tests import builders
from tests.builders import Line
from tests.integration.cli.conftest import Everest
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB


@pytest.fixture
def posted(everest: Everest, connection: Any, walker: Walker) -> builders.Document:
    document = builders.document(connection, builders.EXAMPLE, nomer_nota="SO-1", diotorisasi_at=NOON)
    assert walker.post(document.shadow_id) == "COMPLETED"
    return document


def test_a_report_on_the_screen_has_indonesian_numbers_and_a_totals_row(
    everest: Everest, posted: builders.Document
) -> None:
    result = everest("report", "warehouse", "--month", "2026-03")

    assert result.exit_code == 0
    assert "Selisih stok opname per gudang" in result.stdout
    assert "3.000,00" in result.stdout and "JUMLAH" in result.stdout and "-2.001,00" in result.stdout


def test_a_long_table_is_cut_on_the_screen_and_its_totals_are_not(everest: Everest, posted: builders.Document) -> None:
    result = everest("report", "variance", "--rows", "2")

    assert "2.500,50" in result.stdout, "a price has its cents, as an amount has"
    assert "BRG-C" not in result.stdout
    assert "and 1 more row" in result.stderr
    assert "5.001,00" in result.stdout


def test_a_report_goes_to_a_file_by_its_name_and_never_over_another_one(
    everest: Everest, posted: builders.Document, tmp_path: Path
) -> None:
    target = tmp_path / "jurnal.csv"

    first = everest("report", "journal", "--output", str(target))
    second = everest("report", "journal", "--output", str(target), "--locale", "en")
    forced = everest("report", "journal", "--output", str(target), "--locale", "en", "--force")

    assert (first.exit_code, second.exit_code, forced.exit_code) == (0, 1, 0)
    assert "--force replaces it" in second.stderr
    assert target.read_text(encoding="utf-8-sig").splitlines()[-1] == "TOTAL,,,,,,,8001.00,8001.00,,,"
    assert [path.name for path in tmp_path.iterdir()] == ["jurnal.csv"]


def test_a_workbook_has_the_totals_of_the_journal(everest: Everest, posted: builders.Document, tmp_path: Path) -> None:
    target = tmp_path / "selisih.xlsx"

    assert everest("report", "variance", "--output", str(target)).exit_code == 0

    rows = list(openpyxl.load_workbook(target)["Laporan"].iter_rows(values_only=True))
    headings, totals = rows[0], rows[-1]
    assert dict(zip(headings, totals, strict=True))["Nilai kurang"] == 5001
    assert totals[0] == "JUMLAH"


def test_a_pipe_gets_the_report_alone(everest: Everest, posted: builders.Document) -> None:
    as_csv = everest("report", "documents", "--format", "csv")
    as_json = everest("report", "documents", "--format", "json", "--output", "-")

    assert as_csv.stdout.lstrip("\ufeff").startswith("Tanggal posting (WIB);Nomor nota;")
    assert json.loads(as_json.stdout)["totals"]["nilai_lebih"] == "3000.00"


def test_h45_codes_are_text_in_every_format(everest: Everest, connection: Any, walker: Walker, tmp_path: Path) -> None:
    codes = ["00123", "8991234567890123456", "NA", "1e5"]
    document = builders.document(connection, [Line(code, "1", "3", "10") for code in codes], nomer_nota="SO-1")
    assert walker.post(document.shadow_id) == "COMPLETED"
    target = tmp_path / "kartu.xlsx"

    for report, place in (("variance", 8), ("stock-card", 1)):
        as_csv = everest("report", report, "--nota", "SO-1", "--format", "csv")
        as_json = json.loads(everest("report", report, "--nota", "SO-1", "--format", "json").stdout)
        assert everest("report", report, "--nota", "SO-1", "--output", str(target), "--force").exit_code == 0
        sheet = openpyxl.load_workbook(target)["Laporan"]

        assert sorted(line.split(";")[place] for line in as_csv.stdout.splitlines()[1:-1]) == sorted(codes)
        assert sorted(row["kode_barang"] for row in as_json["rows"]) == sorted(codes)
        cells = [row[place] for row in sheet.iter_rows(min_row=2, max_row=5)]
        assert sorted(str(cell.value) for cell in cells) == sorted(codes)
        assert {cell.data_type for cell in cells} == {"s"}


def test_h14_the_stock_card_of_rows_of_one_instant_is_the_same_byte_for_byte(
    everest: Everest, connection: Any, walker: Walker
) -> None:
    """A receipt and a count at 2026-01-01 00:00:00 WIB, told twice: once in each warehouse."""
    authorised = datetime(2025, 12, 31, 17, 0, tzinfo=UTC)

    def told_in(gudang: str) -> list[list[str]]:
        builders.warehouse(connection, gudang)
        entered = {"tanggal_wib": datetime(2026, 1, 1), "created_at": authorised - timedelta(hours=1)}
        builders.movement(connection, "A", masuk="10", gudang_kode=gudang, **entered)
        counted = {"gudang_kode": gudang, "diotorisasi_at": authorised, "snapshot_at": authorised}
        document = builders.document(connection, [Line("A", "10", "7", "100")], **counted)
        assert walker.post(document.shadow_id) == "COMPLETED"
        command = ("report", "stock-card", "--gudang", gudang, "--format", "csv")
        first, again = everest(*command), everest(*command)
        assert (first.exit_code, first.stdout_bytes) == (0, again.stdout_bytes)
        return [line.split(";") for line in first.stdout.splitlines()[1:-1]]

    one, two = told_in("GD-A"), told_in("GD-B")

    # Day, in, out and balance; the rest names the warehouse, the nota and the row.
    places = (0, 6, 7, 8)
    assert [[line[place] for place in places] for line in one] == [
        ["2026-01-01 00:00:00", "10,0000", "0,0000", "10,0000"],
        ["2026-01-01 00:00:00", "0,0000", "3,0000", "7,0000"],
    ]
    assert [line[5:11] for line in one] == [line[5:11] for line in two]


def test_a_trace_begins_at_a_journal_row(everest: Everest, posted: builders.Document, connection: Any) -> None:
    (row, *_) = builders.rows(connection, "SELECT id FROM jurnal ORDER BY id")

    result = everest("report", "trace", "--jurnal", str(row["id"]))

    assert result.exit_code == 0
    assert all(word in result.stdout for word in ("dokumen", "pekerjaan", "posting", "jurnal", "kartu stok"))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("variance", "--nota", "SO-?"), 4, "no nota SO-?"),
        (("trace", "--jurnal", "99"), 4, "no journal row 99"),
        (("journal", "--output", "jurnal.xyz"), 2, "say which format"),
        (("journal", "--format", "xlsx"), 2, "a workbook goes to a file"),
        (("journal", "--from", "31/08/2026"), 2, "2026-08-31"),
        (("journal", "--month", "2026-13"), 2, "not a month"),
        (("journal", "--month", "2026-12", "--from", "2026-12-01"), 2, "in place of"),
        (("journal", "--from", "2026-12-02", "--to", "2026-12-01"), 1, "the range is empty"),
        (("stock-card",), 2, "--barang, --gudang, --nota"),
        (("journal", "--barang", "A"), 2, "No such option"),
    ],
)
def test_what_cannot_be_reported_is_a_sentence_and_an_exit_code(
    everest: Everest, arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = everest("report", *arguments)

    assert (result.exit_code, words in result.stderr) == (code, True), result.stderr
