"""The fingerprint of a document's lines: SHA-256 over one canonical text, which the database can make as well.

A later step asks the database for the digest instead of reading 20,000 lines again (`line_digests`, `value_digests` in
books.sql write the same text). That is safe because the same digest means the same lines, on either side:

- A block of lines is their number and then, ordered by `baris`, each line's fields with a tab between and a newline at
  its end. Decimals stand in column scale, computed ones in steps of it; a NULL is an empty field. A value that holds a
  tab or a newline makes more of them than that number of lines has, so it can't pass for a field or a line.
- A document with such a value, or with a code that is NULL, is hashed as JSON here, which begins otherwise; of the one
  the database makes nobody's digest, of the other none. No such document is ever posted.
- Whatever else the database might do differently (a text cut short, a wider column of an older table, another order)
  ends in another digest. Then the lines are read, and these decide: a digest can only say "the same".
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from everest.opname.amounts import MONEY, QTY
from everest.opname.decimals import Numbers
from everest.opname.lines import DECIMAL_COLUMNS, columns, numbers

if TYPE_CHECKING:
    from pandas import DataFrame

LINES_PER_BLOCK = 5_000
"""Lines whose `baris` falls into the same block are one text: below 4 MB with the longest codes, and a packet holds
16."""

COMPUTED_COLUMNS = {"selisih_qty": QTY, "nilai_debet": MONEY, "nilai_kredit": MONEY}


class CanonicalLines:
    """The text of a document's lines, made once for both digests. `gudang_kode` is the header's.

    The order of the rows and of the frame's columns does not matter, nor does the scale in which a decimal is written;
    NULL and '' differ, except where they mean the same (lot, a NULL warehouse). Raises ValueError for a decimal that
    its column can't hold.
    """

    def __init__(self, lines: DataFrame, gudang_kode: str) -> None:
        baris, kode, lot, gudang = columns(lines, "baris", "kode_barang", "lot", "gudang_kode")
        self._numbers: list[int] = list(map(int, baris))
        codes: list[list[Any]] = [
            kode,
            ["" if value is None else value for value in lot],
            [gudang_kode if value is None else value for value in gudang],
        ]
        fields = (*codes, *(_texts(lines, name) for name in DECIMAL_COLUMNS))
        self._is_plain = _are_apart(*codes)
        rows = zip(map(str, self._numbers), *fields, strict=True)
        self._lines: list[str] = list(map("\t".join, rows)) if self._is_plain else list(map(json.dumps, rows))

    def digest(self) -> str:
        """SHA-256 (hex) of the lines: baris, code, lot, warehouse, quantities and cost."""
        return self._digest(self._lines)

    def digest_with(self, values: DataFrame) -> str:
        """The same with variance and value. values: these lines, computed, in their order. Raises ValueError if one is
        not computed."""
        computed = {name: numbers(values, name) for name in COMPUTED_COLUMNS}
        if any(column.has_null for column in computed.values()):
            raise ValueError("a line without a computed value has no digest")
        texts = (_in_steps(column, *COMPUTED_COLUMNS[name]) for name, column in computed.items())
        return self._digest(list(map("\t".join, zip(self._lines, *texts, strict=True))))

    def _digest(self, written: list[str]) -> str:
        numbered = self._numbers
        if sorted(numbered) != numbered:
            numbered, written = map(list, zip(*sorted(zip(numbered, written, strict=True)), strict=True))
        if not self._is_plain:
            return _sha256(json.dumps(written))
        return digest_of_blocks(
            _sha256("\n".join([str(end - start), *written[start:end], ""])) for start, end in _blocks(numbered)
        )


def lines_digest(lines: DataFrame, gudang_kode: str) -> str:
    """SHA-256 (hex) of lines, see `CanonicalLines`."""
    return CanonicalLines(lines, gudang_kode).digest()


def values_digest(values: DataFrame) -> str:
    """That of computed lines."""
    return CanonicalLines(values, "").digest_with(values)


def digest_of_blocks(digests: Iterable[str]) -> str:
    """The digest of all lines from those of their blocks, in order."""
    return _sha256("".join(digests))


def _texts(lines: DataFrame, name: str) -> Sequence[str]:
    try:
        return numbers(lines, name).texts(*DECIMAL_COLUMNS[name])
    except ValueError as misfit:
        raise ValueError(f"{name}: {misfit}") from None


def _in_steps(column: Numbers, precision: int, scale: int) -> list[str]:
    """As the database writes a value times 10**scale: what is exact in steps here need not become a decimal first."""
    zeros = "." + "0" * scale
    return [steps + zeros for steps in column.step_texts(precision, scale)]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _are_apart(*codes: Sequence[str | None]) -> bool:
    """Whether no code is NULL or holds what parts fields and lines."""
    try:
        text = "".join("".join(column) for column in codes)  # type: ignore[arg-type]
    except TypeError:  # a NULL
        return False
    return "\t" not in text and "\n" not in text


def _blocks(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Where each block of sorted line numbers begins and ends."""
    start = 0
    while start < len(numbers):
        end = bisect_left(numbers, (numbers[start] // LINES_PER_BLOCK + 1) * LINES_PER_BLOCK, start)
        yield start, end
        start = end
