"""A document on its way in: what its sender says, and who vouches for it. Values only; nothing is stored here.

First room of the story: files and forms become a `Submission`, `submit` and `replace` write it into the staging tables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, DecimalException
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

from everest.opname.amounts import as_column, column_context, unit
from everest.opname.document import DECIMAL_COLUMNS

MAX_LINES = 100_000
"""Lines of one document: five times the largest count we know of, and about 10 MB of JSON on its way to MySQL."""


class Line(NamedTuple):
    """A counted line; its `baris` is its place in the document, from 1. None = not given. Quantities in the unit of
    the item, cost in rupiah."""

    kode_barang: str
    lot: str = ""
    gudang_kode: str | None = None
    satuan: str | None = None
    qty_sistem: Decimal | None = None
    qty_fisik: Decimal | None = None
    harga_pokok: Decimal | None = None
    alasan: str | None = None


@dataclass(frozen=True)
class Authority:
    """Who stands behind a document: always from whoever is logged in, never from an uploaded file.

    submitted_by: who sends it (kept as dibuat_oleh, and the actor of the audit trail).
    authorised_by, level: who authorised the posting of it, and at what level (posting needs 2); None = nobody yet.
    """

    submitted_by: str
    authorised_by: str | None
    level: int


FAR_AHEAD = timedelta(days=31)
"""A posting date may be a month's last day, or the next month; one beyond that is more likely a slip of the finger."""


def is_far_ahead(tanggal_posting: date | None, today: date) -> bool:
    """Whether people are asked to look again. It posts all the same: a month without a row is open."""
    return tanggal_posting is not None and tanggal_posting - today > FAR_AHEAD


@dataclass(frozen=True)
class Submission:
    """A document as its sender gives it. Only a correction may leave gudang_kode and tanggal_opname out (= unchanged).

    transaksi_id: None = the next one. snapshot_at: aware; None = the moment of submission.
    submit_token: the same token is the same submission, however often it is sent; None = one made from the content.
    """

    nomer_nota: str
    gudang_kode: str | None
    tanggal_opname: date | None
    lines: tuple[Line, ...]
    tanggal_posting: date | None = None
    snapshot_at: datetime | None = None
    transaksi_id: int | None = None
    submit_token: str | None = None

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The lines as the table takes them, with baris first and exact decimals as text in column scale. Raises
        ValueError for a decimal that its column can't hold: MySQL would round it without a word."""
        columns: list[Iterable[Any]] = [range(1, len(self.lines) + 1)]
        by_column: Iterable[Any] = zip(*self.lines, strict=True) if self.lines else repeat((), len(Line._fields))
        for name, values in zip(Line._fields, by_column, strict=True):
            columns.append(_decimal_texts(name, values) if name in DECIMAL_COLUMNS else values)
        return list(zip(*columns, strict=True))

    @cached_property
    def token(self) -> str | None:
        """What makes a second sending recognisable: the sender's token, its transaksi_id (then None), else the content
        itself, so that a command typed twice is one submission."""
        if self.submit_token is not None or self.transaksi_id is not None:
            return self.submit_token
        return "isi-" + fingerprint(self.header_values(), self.rows)

    def header_values(self) -> tuple[Any, ...]:
        """What of the header is content: fingerprinted, and compared when the document comes a second time."""
        return (self.nomer_nota, self.gudang_kode, self.tanggal_opname, self.tanggal_posting, self.snapshot_at)


def fingerprint(header: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> str:
    """SHA-256 (hex) of what a document says. Instants are compared in UTC."""
    values = [value.astimezone(UTC) if isinstance(value, datetime) else value for value in header]
    text = json.dumps([values, rows], ensure_ascii=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _decimal_texts(name: str, values: tuple[Decimal | None, ...]) -> list[str | None]:
    precision, scale = DECIMAL_COLUMNS[name]
    quantize = column_context(precision).quantize
    step = unit(scale)
    try:
        return [None if value is None else str(quantize(value, step)) for value in values]
    except DecimalException:
        for value in values:
            if value is not None:
                as_column(value, precision, scale)  # raises for the one that does not fit, and says which
        raise
