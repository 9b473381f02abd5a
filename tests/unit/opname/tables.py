"""Documents as an accountant would write them down: one text line per counted line, columns parted by bars.

    kode | lot | gudang | sistem | fisik | harga

An empty cell is NULL; '' (two quotes) is an empty text. The line number is the row's place, from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pandas as pd

from everest.errors import Problem
from everest.opname.document import Header, References
from everest.opname.journal import Accounts, JournalRow
from everest.opname.lines import LINE_COLUMNS

ACCOUNTS = Accounts()

HEADER = Header(
    header_id=1,
    transaksi_id=940795,
    nomer_nota="SO-2026-08-0012",
    gudang_kode="GD-A",
    tanggal_opname=date(2026, 8, 14),
    tanggal_posting=None,
    snapshot_at=datetime(2026, 8, 14, 1, 0, tzinfo=UTC),
    otorisasi_level=2,
    diotorisasi_oleh="sari",
    diotorisasi_at=datetime(2026, 8, 14, 9, 30, tzinfo=UTC),
    dibuat_oleh="budi",
)

REFERENCES = References(
    warehouses={"GD-A": True, "GD-B": True, "GD-TUTUP": False},
    accounts={ACCOUNTS.persediaan: True, ACCOUNTS.laba_selisih: True, ACCOUNTS.rugi_selisih: True},
    document_accounts=ACCOUNTS,
    allow_zero_cost=False,
)


def header(**changes: Any) -> Header:
    """A document of GD-A that may be posted, with what the test changes."""
    return replace(HEADER, **changes)


def references(**changes: Any) -> References:
    return replace(REFERENCES, **changes)


def lines(*rows: str) -> pd.DataFrame:
    """The frame of LINE_COLUMNS for the text rows."""
    return frame([_values(row) for row in rows])


def frame(rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """The frame for rows of (kode, lot, gudang, sistem, fisik, harga) given as values."""
    records = [
        (baris, kode, lot, gudang, "PCS", sistem, fisik, harga, None)
        for baris, (kode, lot, gudang, sistem, fisik, harga) in enumerate(rows, start=1)
    ]
    made = pd.DataFrame(records, columns=LINE_COLUMNS)
    return made.astype(dict.fromkeys(("qty_sistem", "qty_fisik", "harga_pokok"), object))


def _values(row: str) -> list[Any]:
    kode, lot, gudang, *numbers = (cell.strip() for cell in row.split("|"))
    texts = [None if cell == "" else "" if cell == "''" else cell for cell in (kode, lot, gudang)]
    return [*texts, *(Decimal(cell) if cell else None for cell in numbers)]


def said(problems: Sequence[Problem]) -> list[tuple[int | None, str]]:
    """Where the problems are: (baris, kolom)."""
    return [(problem.baris, problem.kolom) for problem in problems]


def written(rows: Sequence[JournalRow]) -> list[str]:
    """Journal rows as text: urutan, Dr or Cr, account, amount."""
    return [
        f"{row.urutan} {'Dr' if row.debet else 'Cr'} {row.kode_akun} {(row.debet or row.kredit):,.2f}" for row in rows
    ]
