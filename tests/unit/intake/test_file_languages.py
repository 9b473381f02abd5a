"""What is wrong with a file is said in the language of whoever reads it; the Indonesian sentence stays as it was."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from everest.intake import csv_file, json_file, xlsx_archive
from everest.intake.cells import FileProblem
from everest.intake.csv_file import MAX_COLUMNS, MAX_LINE_CHARS
from everest.intake.files import FileRefused, Reading, read_file
from everest.intake.xlsx_book import BookFlaw
from everest.pages import telling
from everest.words import Said, catalogue, say
from tests.unit.words import foreign

HEADER = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
TITLES = "kode_barang,qty_sistem,qty_fisik,harga_pokok"
LINE = {"kode_barang": "A", "qty_sistem": 1, "qty_fisik": 1, "harga_pokok": 1}


def book(*rows: tuple[Any, ...], titles: str = TITLES, **parts: bytes) -> bytes:
    """A workbook; parts: content of further parts of it, by their name without folder and ending."""
    made, stream = openpyxl.Workbook(), io.BytesIO()
    sheet: Any = made.active
    for row in (titles.split(","), *rows):
        sheet.append(row)
    made.save(stream)
    if parts:
        with zipfile.ZipFile(stream, "a") as archive:
            for name, content in parts.items():
                archive.writestr(f"xl/{name}.xml", content)
    return stream.getvalue()


def sheet_of(*rows: str) -> bytes:
    """A workbook whose first sheet has exactly these rows of XML."""
    stream, given = io.BytesIO(), zipfile.ZipFile(io.BytesIO(book()))
    opening = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    titles = "".join(
        f'<c r="{letter}1" t="inlineStr"><is><t>{title}</t></is></c>'
        for letter, title in zip("ABCD", TITLES.split(","), strict=True)
    )
    content = f'{opening}<sheetData><row r="1">{titles}</row>{"".join(rows)}</sheetData></worksheet>'
    with zipfile.ZipFile(stream, "w") as archive:
        for name in given.namelist():
            archive.writestr(name, content if name == "xl/worksheets/sheet1.xml" else given.read(name))
    return stream.getvalue()


def document(**other: Any) -> str:
    return json.dumps({**HEADER, "baris": [LINE], **other})


def csv(*rows: str, titles: str = TITLES) -> str:
    return "\n".join((titles, *rows, ""))


DAYS = "tanggal_opname,tanggal_posting,snapshot_at,transaksi_id,otorisasi_level"
FILES: tuple[tuple[str, str | bytes, dict[str, Any]], ...] = (
    (
        "cells.csv",
        csv(
            'A,x,1,1,"a\x07b",ok',  # no number, a control character
            f"{'K' * 65},1,1,1,,",
            ",1,1,1,,",
            "A,1,1",
            "A,1,1,1,,,,,,,,,",
            f"A,{'1' * 30},1.00001,1,,{'s' * 21}",
            titles=f"{TITLES},alasan,satuan",
        ),
        {},
    ),
    ("bytes.csv", csv("A,1,1,1").encode() + b"\xff,1,1,1\n", {}),
    ("either.csv", csv("A,1.000,1,1", " ,1,1,1", "A ,1,1,1", "\u200bA,1,1,1"), {}),
    ("id.csv", csv("A,1.5.5,1,' '").replace("'", ""), {"decimal": "id"}),
    ("en.csv", csv("A,1.5.5,1,1"), {"decimal": "en"}),
    ("two.csv", csv("A,1,1,1,GD-A", "A,1,1,1,GD-B", titles=f"{TITLES},gudang_dokumen"), {}),
    ("quotes.csv", csv('A,1,1,"1" x', '"A,1,1,1', "B,1,1,1"), {}),
    ("long.csv", csv("A" * (MAX_LINE_CHARS + 1)), {}),
    (
        "header.csv",
        csv(
            "A,1,1,1,31-8-2026,2026-02-30,2026-08-31 17:00,0,2",
            "A,1,1,1,1899-08-31,2026-08-31,x,7,2",
            "A,1,1,1,2026-08-30,,,,",
            titles=f"{TITLES},{DAYS},{'kode_barang'},apa",
        ),
        {},
    ),
    ("titles.csv", csv(titles="lot,lot"), {}),
    ("empty.csv", "", {}),
    ("rows.csv", csv(), {}),
    ("wide.csv", csv(titles=",".join(f"k{n}" for n in range(MAX_COLUMNS + 1))), {}),
    ("unclear.csv", "a;b,c\td\n", {}),
    ("nothing.csv", csv("A,1,1,1"), {"header": {"gudang_kode": "GD-B"}}),
    ("many.csv", csv(*["A,1,1,1"] * 4), {"lines": 3}),
    ("book.csv", b"PK\x03\x04", {}),
    ("old.csv", b"\xd0\xcf\x11\xe0", {}),
    ("wide_letters.csv", b"\xff\xfea", {}),
    ("packed.csv", b"\x1f\x8b", {}),
    ("paper.csv", b"%PDF", {}),
    (
        "lines.json",
        document(
            baris=[
                {**LINE, "kode_barang": 12, "qty_sistem": True, "x": 1},
                7,
                {"kode_barang": "A", "satuan": 7.5},
                {**LINE, "qty_fisik": [1]},
            ],
            otorisasi_level=1,
            apa=1,
            tanggal_opname=5,
        ).replace('"qty_fisik": [1]', f'"qty_fisik": 1e99, "qty_fisik": {"1" * 70}'),
        {},
    ),
    ("large.json", document().replace('"qty_fisik": 1', '"qty_fisik": 1e99'), {}),
    ("text.json", document(baris="A"), {}),
    ("list.json", "[]", {}),
    ("broken.json", "{", {}),
    ("nan.json", '{"baris": NaN}', {}),
    ("deep.json", "[" * 100_000, {}),
    ("bytes.json", b'{"a": "\xff"}\n"\xff"', {"broken": 1}),
    ("many.json", document(baris=[LINE] * 4), {"lines": 3}),
    ("signs.json", document(), {"signs": {b"{": 1}}),
    (
        "cells.xlsx",
        book(
            ("A", "=1+1", True, 1),
            (12, "#N/A", date(2026, 8, 31), 0.1234567890123456),
            ("A", 1, 1, 1, 5),
            ("A", "x", 1, 1),
        ),
        {},
    ),
    ("empty.xlsx", sheet_of(), {}),
    ("no_book.xlsx", b"kode_barang", {}),
    ("zip.xlsx", b"PK\x03\x04", {}),
    ("no_sheet.xlsx", book(("A", 1, 1, 1)), {"sheet": "Lain"}),
    ("rows.xlsx", book(*[("A", 1, 1, 1)] * 4, ("A", "x", 1, 1)), {"lines": 3}),
    ("parts.xlsx", book(**{f"a{n}": b"<a/>" for n in range(3)}), {"parts": 5}),
    ("size.xlsx", book(), {"unpacked": 10}),
    ("doctype.xlsx", book(own=b"<!DOCTYPE a><a/>"), {}),
    ("order.xlsx", sheet_of('<row r="3"/>', '<row r="2"/>'), {}),
    ("cell_order.xlsx", sheet_of('<row r="2"><c r="B2"><v>1</v></c><c r="A2"><v>1</v></c></row>'), {}),
    ("text.xlsx", sheet_of('<row r="2"><c r="A2" t="s"><v>99</v></c></row>'), {}),
    ("type.xlsx", sheet_of('<row r="2"><c r="A2" t="zz"><v>99</v></c></row>'), {}),
    ("beyond.xlsx", sheet_of('<row r="9999999"><c r="A9999999"><v>1</v></c></row>'), {}),
    ("unreadable.xlsx", sheet_of('<row r="x"/>'), {}),
)
SEEN_ELSEWHERE = {
    *("part_twice", "book_locked", "book_ratio", "zip_no_book", "no_visible_sheet"),
    *("texts", "part_size", "element_size", "no_container", "more_problems", "not_text"),
}
"""Workbooks that mean harm (test_xlsx_hostile.py), and what `FILES` has inside of other sentences."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[FileProblem]]:
    """What is said of each file."""
    told: dict[str, list[FileProblem]] = {}
    for name, content, limits in FILES:
        path = tmp_path_factory.mktemp("files") / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        told[name] = problems_of(path, limits)
    return told


def problems_of(path: Path, limits: dict[str, Any]) -> list[FileProblem]:
    patch = pytest.MonkeyPatch()
    for name, value in limits.items():
        for module, constant in {
            "lines": [(csv_file, "MAX_LINES"), (json_file, "MAX_LINES"), ("everest.intake.xlsx_file", "MAX_LINES")],
            "signs": [(json_file, "MAX_SIGNS")],
            "broken": [(json_file, "MAX_BROKEN_LINES")],
            "parts": [(xlsx_archive, "MAX_PARTS")],
            "unpacked": [(xlsx_archive, "MAX_UNPACKED_BYTES")],
        }.get(name, []):
            if isinstance(module, str):
                patch.setattr(f"{module}.{constant}", value)
            else:
                patch.setattr(module, constant, value)
    header: Any = limits.get("header", HEADER)
    try:
        with pytest.raises(FileRefused) as error:
            read_file(path, Reading(header, decimal=limits.get("decimal"), sheet=limits.get("sheet")))
    finally:
        patch.undo()
    return list(error.value.problems)


def keys_in(kept: Any) -> set[str]:
    """The keys of a sentence and of those inside of it."""
    if not isinstance(kept, dict):
        return set()
    inner = [one for value in kept.get("values", {}).values() for one in keys_in(value)]
    return {str(kept["key"]), *inner} if "key" in kept else set(inner)


def of(pesan: str) -> dict[str, Any]:
    assert isinstance(pesan, Said), pesan
    return {"key": pesan.key, "values": pesan.values}


def test_each_problem_is_a_sentence_of_the_catalogue_and_stays_as_it_was_in_indonesian(
    found: dict[str, list[FileProblem]],
) -> None:
    for name, problems in found.items():
        assert problems, name
        for one in problems:
            assert isinstance(one.pesan, Said), (name, one)
            if name != "long.csv":  # its reason was English, inside of an Indonesian sentence
                assert str(telling.said("id", one.pesan, 1000).striptags()).split() == str(one.pesan).split(), name


@pytest.mark.parametrize("language", ["id", "en"])
def test_no_problem_has_words_of_the_other_language(found: dict[str, list[FileProblem]], language: Any) -> None:
    told = "\n".join(str(telling.said(language, one.pesan, 1000)) for problems in found.values() for one in problems)
    assert len(told) > 2_000
    assert foreign(language, told) == []
    assert 'lang="id"' not in told


def test_every_kind_of_mistake_is_among_them(found: dict[str, list[FileProblem]]) -> None:
    """So that a new one is read in both languages here, too."""
    made = {key for problems in found.values() for one in problems for key in keys_in(of(one.pesan))}
    assert {key for key in catalogue() if key.startswith("file.")} - made == {f"file.{key}" for key in SEEN_ELSEWHERE}


def test_so_many_problems_cost_little_more_than_their_sentences(tmp_path: Path) -> None:
    """H02a: 20,000 lines, each with a mistake; each has a key, and none copies what it is told from."""
    path = tmp_path / "opname.csv"
    path.write_text(csv(*(f"A-{n},x,1,1" for n in range(20_000))), encoding="utf-8")
    problems = problems_of(path, {})
    assert len(problems) == 20_000
    assert all(isinstance(one.pesan, Said) for one in problems)
    assert problems[0].pesan.key is problems[-1].pesan.key  # type: ignore[attr-defined]


@pytest.mark.parametrize("make", [lambda: BookFlaw("texts", most=3), lambda: ValueError(say("id", "file.empty"))])
def test_an_error_keeps_its_sentence(make: Callable[[], ValueError]) -> None:
    assert isinstance(make().args[0], Said)
