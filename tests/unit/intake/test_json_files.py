"""JSON files as programs send them: read from their text, or refused with everything that is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

import pytest

from everest.intake.json_file import MAX_SIGNS
from everest.intake.submission import MAX_LINES, Line
from tests.unit.intake.reading import HEADER, Write, places, problems, read


def test_h42_a_json_number_is_taken_from_its_text(write: Write) -> None:
    text = json.dumps({**HEADER, "baris": [{"kode_barang": "A", "qty_sistem": 1, "qty_fisik": 2, "harga_pokok": 0}]})
    path = write(text.replace('"harga_pokok": 0', '"harga_pokok": 9007199254740993.1234'), "opname.json")

    (line,) = read(path, {}).submission.lines

    assert str(line.harga_pokok) == "9007199254740993.123400"


def test_a_json_number_is_never_a_thousand_and_one_in_quotes_may_be(write: Write) -> None:
    line = '{"kode_barang": "A", "qty_sistem": 1.000, "qty_fisik": 12.345, "harga_pokok": %s}'
    text = json.dumps({**HEADER, "baris": ["LINE"]})

    (read_line,) = read(write(text.replace('"LINE"', line % "100.000"), "opname.json"), {}).submission.lines
    refused = problems(write(text.replace('"LINE"', line % '"100.000"'), "quoted.json"), {})

    assert read_line[4:7] == (Decimal(1), Decimal("12.345"), Decimal(100))
    assert places(refused) == [(1, "harga_pokok", None)]


def test_json_names_every_flaw_by_line_and_field(write: Write) -> None:
    path = write(
        """{"nomer_nota": "SO-1", "nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31",
        "otorisasi_level": 9, "baris": [
          {"kode_barang": 123, "qty_sistem": true, "qty_fisik": [1], "harga_pokok": 1e99},
          {"kode_barang": "A", "kode_barang": "B", "qty_sistem": "1", "qty_fisik": null},
          7,
          {"kode_barang": "\\ud800", "gudang_kode": "", "qty_sistem": 1.00001, "qty_fisik": 1, "harga_pokok": 1, "x": 1}
        ]}""",
        "opname.json",
    )

    found = problems(path, {})

    assert [(problem.baris, problem.kolom) for problem in found] == [
        (None, "'nomer_nota'"),
        (None, "otorisasi_level"),
        (1, "kode_barang"),
        (1, "qty_sistem"),
        (1, "qty_fisik"),
        (1, "harga_pokok"),
        (2, "'kode_barang'"),
        (2, "harga_pokok"),
        (3, ""),
        (4, "'x'"),
        (4, "kode_barang"),
        (4, "gudang_kode"),
        (4, "qty_sistem"),
    ]
    assert '"123"' in found[2].pesan


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{", b"nul", b'{"baris": NaN}', b"[" * 100_000, b'{"baris": {}}', b'{"a": "\xff"}', b"9" * 10_000],
)
def test_json_that_is_no_document_is_refused_with_a_reason(write: Write, content: bytes) -> None:
    assert problems(write(content, "opname.json"))


@pytest.mark.parametrize(
    "many",
    [
        pytest.param(lambda n: '{"baris": [' + ",".join(["{}"] * n) + "]}", id="empty lines"),
        pytest.param(lambda n: '{"baris": ' + "[" * n + "]" * n + "}", id="lists in lists"),
        pytest.param(lambda n: "{" + ",".join(f'"{i}":1' for i in range(n)) + "}", id="names"),
        pytest.param(lambda n: '{"baris": [' + ",".join("1" * n) + "]}", id="numbers"),
    ],
)
def test_json_that_would_be_gigabytes_once_parsed_is_refused_before(
    write: Write, monkeypatch: pytest.MonkeyPatch, many: Callable[[int], str]
) -> None:
    monkeypatch.setattr("everest.intake.json_file.MAX_SIGNS", dict.fromkeys((b"{", b"[", b":", b","), 50))
    monkeypatch.setattr("json.loads", lambda *_, **__: pytest.fail("it was parsed"))

    (problem,) = problems(write(many(60), "opname.json"))

    assert "bagi menjadi beberapa dokumen" in problem.pesan


def test_the_largest_json_document_has_room_for_its_signs() -> None:
    """All fields in each line, and two texts that use every sign."""
    line = dict.fromkeys(Line._fields, "1") | {"satuan": "dus: 12, isi", "alasan": "{a} [b]: rusak, basah, bau"}
    text = json.dumps({**HEADER, "baris": [line] * 100})

    assert all(text.count(sign.decode()) * (MAX_LINES / 100) <= most for sign, most in MAX_SIGNS.items())


def test_json_keeps_whole_numbers_exponents_and_null_apart(write: Write) -> None:
    text = '{"baris": [{"kode_barang": "A", "qty_sistem": 1e2, "qty_fisik": -0.0, "harga_pokok": null, "lot": null}]}'

    (line,) = read(write(text, "opname.json")).submission.lines

    assert (str(line.qty_sistem), str(line.qty_fisik), line.harga_pokok, line.lot) == ("100.0000", "0.0000", None, "")
