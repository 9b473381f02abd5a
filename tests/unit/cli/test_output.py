"""Tables on terminals of any width."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape

from everest.cli import output

HEADINGS = ("Nomor nota", "Kode barang", "Selisih", "Nilai kurang")
NOTA, VALUE = "SO-2026-08-0012-PANJANG", "1.234.567.890,00"


def shown(width: int) -> str:
    table = output.Table(title="Selisih per baris", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    table.add_row(NOTA, "00123", "-5", VALUE)
    table.add_row(NOTA, "BRG-B", "", "")
    table.add_section()
    table.add_row("JUMLAH", "", "", VALUE, style="bold")
    stream = StringIO()
    Console(file=stream, width=width).print(table)
    return stream.getvalue()


def test_where_the_words_of_a_row_fit_side_by_side_it_is_a_table() -> None:
    lines = shown(80).splitlines()

    assert any(NOTA in line and VALUE in line for line in lines)


@pytest.mark.parametrize("width", [40, 50])
def test_on_a_narrow_terminal_each_row_is_a_block_and_no_word_is_broken(width: int) -> None:
    lines = shown(width).splitlines()

    assert lines[0].rstrip() == "Selisih per baris"
    # The totals come first: behind many blocks nobody would find them.
    assert [line.split() for line in lines[2:4]] == [["Nomor", "nota", "JUMLAH"], ["Nilai", "kurang", VALUE]]
    assert [line.split() for line in lines[5:9]] == [
        ["Nomor", "nota", NOTA],
        ["Kode", "barang", "00123"],
        ["Selisih", "-5"],
        ["Nilai", "kurang", VALUE],
    ]
    # What is empty is left out.
    assert [line.split()[-1] for line in lines[9:] if line.strip()] == [NOTA, "BRG-B"]
    assert max(map(len, lines)) <= width


def test_what_is_emphasised_is_so_in_a_block_too_and_foreign_text_stays_as_it_is() -> None:
    table = output.Table(title=escape("Nota [x]"), title_justify="left")
    table.add_column("Nama barang yang panjang sekali", overflow="fold")
    table.add_column("Nilai", overflow="fold")
    table.add_row(escape("[red]x[/red]"), "界" * 30)
    table.add_row("JUMLAH", VALUE, style="bold")
    stream = StringIO()
    Console(file=stream, width=20, force_terminal=True, color_system="standard").print(table)

    told = stream.getvalue()
    assert "[red]x[/" in told and told.count("界") == 30
    assert "\x1b[1mJUMLAH" in told.replace("\x1b[0m", "")
    assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in told.splitlines()) <= 20
