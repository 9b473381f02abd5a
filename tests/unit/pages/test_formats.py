"""Numbers, instants and foreign text as the pages show them."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from everest.pages import charts, formats

UNITS = {"second": "dtk", "minute": "mnt", "hour": "jam", "day": "hr"}


def test_rupiah_is_written_as_indonesians_write_it_and_never_rounded() -> None:
    assert formats.rupiah(Decimal("1234567.89")) == "Rp 1.234.567,89"
    assert formats.rupiah(Decimal("-5")) == "-Rp 5,00"
    assert formats.rupiah(Decimal("9" * 22 + ".99")).endswith(".999,99")
    assert formats.rupiah(None) == "–"


def test_a_quantity_has_no_zeros_that_only_say_how_wide_its_column_is() -> None:
    assert formats.quantity(Decimal("12.0000")) == "12"
    assert formats.quantity(Decimal("1234.5000")) == "1.234,5"
    assert formats.quantity(Decimal("-0.0001")) == "-0,0001"
    assert formats.quantity(None) == "–"


def test_an_instant_of_a_row_is_utc_and_is_shown_in_jakarta() -> None:
    assert formats.wib(datetime(2026, 1, 31, 17, 30)) == "01-02-2026 00:30:00 WIB"
    assert formats.wib(datetime(2026, 1, 31, 17, 30, tzinfo=UTC)) == "01-02-2026 00:30:00 WIB"
    assert formats.iso(datetime(2026, 1, 31, 17, 30)) == "2026-01-31T17:30:00+00:00"
    assert formats.day(date(2026, 1, 2)) == "02-01-2026"


@pytest.mark.parametrize(
    ("span", "told"),
    [
        (timedelta(seconds=-3), "0 dtk"),
        (timedelta(seconds=59), "59 dtk"),
        (timedelta(minutes=59, seconds=59), "59 mnt"),
        (timedelta(hours=3, minutes=5), "3 jam 5 mnt"),
        (timedelta(days=2, hours=7), "2 hr 7 jam"),
        (None, "–"),
    ],
)
def test_an_age_is_told_in_its_two_largest_units(span: timedelta | None, told: str) -> None:
    assert formats.age(span, UNITS) == told


def test_marks_that_turn_or_hide_text_become_visible() -> None:
    assert formats.shown("a\u202eb") == "a\\u202eb"
    assert formats.shown("a\0b\x1b[31m") == "a\\x00b\\x1b[31m"
    assert formats.shown("Gudang É 木") == "Gudang É 木"
    assert formats.shown("\ud800") == "\\ud800"
    assert formats.shown("x" * 10_000) == "x" * 500 + "…"
    assert formats.shown("") == "–"


def test_a_chart_holds_no_script_no_style_and_only_escaped_names() -> None:
    bars = [
        ("<script>alert(1)</script>", Decimal("12.50"), charts.SURPLUS, '/x?a=1&b="'),
        ("B", Decimal("-7"), charts.SHORTAGE, "/y"),
    ]
    svg = charts.horizontal(bars, 'Judul "<b>"')
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == "pygal"]
    assert "<script" not in svg and "<style" not in svg and " style=" not in svg and "<b>" not in svg
    assert 'class="surplus"' in svg and 'class="shortage"' in svg
    assert "Rp 12,50</title>" in svg and 'target="_self"' in svg


@pytest.mark.parametrize(
    ("value", "told", "in_english"),
    [
        (2_500_000_000, "2,5 mlr", "2,5 bn"),
        (-3_000_000, "-3 jt", "-3 mn"),
        (7 * 10**12, "7 tln", "7 tn"),
        (50, "50", "50"),
    ],
)
def test_an_axis_names_its_sizes_so_that_no_reader_takes_one_for_another(
    value: int, told: str, in_english: str
) -> None:
    assert (charts.short("id", value), charts.short("en", value)) == (told, in_english)
