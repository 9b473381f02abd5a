"""The counted document: its header and lines, the instant at which it posts, and the hash of what it says.

First stop of every posting. The rules a document must meet stand in the second half: `validate` names everything that
is wrong at once, by line and column, so that 20,000 lines are corrected in one go. A problem is a value, never an
exception. Limits and the freshness of the count are judged elsewhere: they change while the document stays the same.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from everest.errors import Problem
from everest.opname.amounts import COST, QTY, column_context, format_number, misfits, unit
from everest.opname.journal import Accounts

if TYPE_CHECKING:
    from pandas import DataFrame

WIB = ZoneInfo("Asia/Jakarta")
END_OF_DAY = time(23, 59, 59)
MIN_AUTHORISATION_LEVEL = 2
MAX_NAMED_LINES = 5
"""Other lines named in one sentence about a duplicate; the rest are counted."""

LINE_COLUMNS = (
    "baris",
    "kode_barang",
    "lot",
    "gudang_kode",
    "satuan",
    "qty_sistem",
    "qty_fisik",
    "harga_pokok",
    "alasan",
)
"""Columns of a frame of lines, as so_details_staging names them. Quantities and cost are objects: Decimal or None."""

DECIMAL_COLUMNS = {"qty_sistem": QTY, "qty_fisik": QTY, "harga_pokok": COST}
_COLUMN_ORDER = {name: index for index, name in enumerate(LINE_COLUMNS)}
_NULL_KINDS = frozenset({"NoneType", "NAType", "NaTType"})  # by name: pandas is not imported here


@dataclass(frozen=True)
class Header:
    """One row of so_headers_staging. Instants (`*_at`) are aware; snapshot_at is never empty (created_at stands in).

    otorisasi_level and diotorisasi_* come from whoever was logged in, never from an uploaded file.
    """

    header_id: int
    transaksi_id: int
    nomer_nota: str
    gudang_kode: str
    tanggal_opname: date
    tanggal_posting: date | None
    snapshot_at: datetime
    otorisasi_level: int
    diotorisasi_oleh: str | None
    diotorisasi_at: datetime | None
    dibuat_oleh: str | None


@dataclass(frozen=True)
class References:
    """What the master data say: warehouse and account codes with whether they are active, the accounts of the header's
    warehouse, the closed months 'YYYY-MM', and whether the site accepts a cost of 0."""

    warehouses: Mapping[str, bool]
    accounts: Mapping[str, bool]
    document_accounts: Accounts
    closed_periods: frozenset[str]
    allow_zero_cost: bool


def columns(frame: DataFrame, *names: str) -> list[list[Any]]:
    """Columns as plain lists, with None for every kind of NULL that pandas has. Raises TypeError for anything but
    Decimal in a column of quantities or costs: a float was exact in the database and is not any more."""
    return [_column(frame, name) for name in names]


def _column(frame: DataFrame, name: str) -> list[Any]:
    values: list[Any] = frame[name].tolist()
    kinds = set(map(type, values))
    if any(kind is float or kind.__name__ in _NULL_KINDS for kind in kinds):
        values = [None if _is_null(value) else value for value in values]
        kinds = set(map(type, values))
    if name in DECIMAL_COLUMNS and not kinds <= {Decimal, type(None)}:
        raise TypeError(f"{name} must hold Decimal or None, not {', '.join(sorted(kind.__name__ for kind in kinds))}")
    return values


def _is_null(value: Any) -> bool:
    return type(value).__name__ in _NULL_KINDS or (isinstance(value, float) and value != value)


def with_header_warehouse(header: Header, lines: DataFrame) -> DataFrame:
    """The lines with their effective warehouse (NULL is the header's; '' stays and is refused) and lot (NULL is '')."""
    return lines.assign(
        gudang_kode=lines["gudang_kode"].astype(object).fillna(header.gudang_kode),
        lot=lines["lot"].astype(object).fillna(""),
    )


def wib(instant: datetime) -> datetime:
    """An aware instant as naive WIB date-time, as the columns `*_wib` hold it. Raises ValueError for a naive one."""
    if instant.utcoffset() is None:
        raise ValueError(f"{instant} has no time zone")
    return instant.astimezone(WIB).replace(tzinfo=None)


def posting_instant(header: Header) -> datetime:
    """When the document posts: naive WIB, whole seconds (the columns hold no more, and MySQL would round up).

    The date-time of the authorisation, or the header's tanggal_posting: at the snapshot's time if that is the same
    WIB day, else at the end of the day. Raises ValueError if neither is given (`validate` says so to people).
    """
    snapshot = wib(header.snapshot_at)
    if header.tanggal_posting is None:
        if header.diotorisasi_at is None:
            raise ValueError("the document is not authorised and names no posting date")
        return wib(header.diotorisasi_at).replace(microsecond=0)
    if header.tanggal_posting == snapshot.date():
        return snapshot.replace(microsecond=0)
    return datetime.combine(header.tanggal_posting, END_OF_DAY)


def period_of(instant: datetime) -> str:
    """The accounting month 'YYYY-MM' of a WIB date-time."""
    return f"{instant.year:04d}-{instant.month:02d}"


def period_problems(header: Header, closed_periods: frozenset[str]) -> list[Problem]:
    """Whether the month of the posting instant is closed. Nothing to say about a document without an instant."""
    if header.tanggal_posting is None and header.diotorisasi_at is None:
        return []
    instant = posting_instant(header)
    period = period_of(instant)
    if period not in closed_periods:
        return []
    return [Problem(None, "tanggal_posting", f"periode tutup: {period} (posting {instant:%Y-%m-%d %H:%M:%S} WIB)")]


def input_hash(header: Header, lines: DataFrame, jenis: str) -> str:
    """SHA-256 (hex) over everything that decides what is posted; the same document always has the same hash.

    The text is JSON, one array per header and line, so no value can be read as two; decimals in column scale, so 10
    and 10.0000 are the same; NULL and '' differ, except where they mean the same (lot, a NULL warehouse). The order of
    the rows and of the frame's columns does not matter. Raises ValueError for a decimal that its column can't hold.
    """
    snapshot_utc = header.snapshot_at.astimezone(UTC).isoformat(timespec="microseconds")
    canonical: list[Any] = [
        header.transaksi_id,
        header.nomer_nota,
        jenis,
        header.gudang_kode,
        posting_instant(header).isoformat(),
        snapshot_utc,
    ]
    baris, kode, lot, gudang = columns(lines, "baris", "kode_barang", "lot", "gudang_kode")
    rows = zip(
        map(int, baris),
        kode,
        ["" if value is None else value for value in lot],
        [header.gudang_kode if value is None else value for value in gudang],
        *(_decimal_texts(lines, name) for name in DECIMAL_COLUMNS),
        strict=True,
    )
    canonical.append(sorted(rows, key=lambda row: row[0]))
    return hashlib.sha256(json.dumps(canonical, separators=(",", ":")).encode()).hexdigest()


def _decimal_texts(lines: DataFrame, name: str) -> list[str | None]:
    precision, scale = DECIMAL_COLUMNS[name]
    values = columns(lines, name)[0]
    unfit = misfits(values, precision, scale)
    if unfit:
        raise ValueError(f"{name}: {values[unfit[0]]} does not fit DECIMAL({precision},{scale})")
    within, step = column_context(precision).quantize, unit(scale)
    return [None if value is None else str(within(value, step)) for value in values]


# --- the rules -------------------------------------------------------------------------------------------------------


class _Lines(NamedTuple):
    """The lines as lists, with effective warehouse and lot."""

    baris: list[int]
    kode_barang: list[str | None]
    lot: list[str]
    gudang_kode: list[str]
    qty_sistem: list[Decimal | None]
    qty_fisik: list[Decimal | None]
    harga_pokok: list[Decimal | None]


def validate(header: Header, lines: DataFrame, references: References) -> list[Problem]:
    """Every reason why the document can't be posted as it stands: header first, then by line and column.

    `lines` has the LINE_COLUMNS; warehouses may be NULL still. Empty means valid. Values that a column can't hold once
    computed are named by `variance.compute_variance`, a closed month by `period_problems`.
    """
    baris, *others = columns(with_header_warehouse(header, lines), *_Lines._fields)
    given = _Lines([int(number) for number in baris], *others)
    problems = [problem for rule in _RULES for problem in rule(header, given, references)]
    return sorted(problems, key=lambda problem: (problem.baris or 0, _COLUMN_ORDER.get(problem.kolom, -1)))


def _authorisation(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    level = header.otorisasi_level
    if level < MIN_AUTHORISATION_LEVEL:
        needed = f"perlu otorisasi level {MIN_AUTHORISATION_LEVEL} atau lebih"
        yield Problem(None, "otorisasi_level", f"otorisasi level {level} belum cukup; {needed}")
    if not (header.diotorisasi_oleh or "").strip():
        yield Problem(None, "diotorisasi_oleh", "nama pemberi otorisasi kosong")
    if header.diotorisasi_at is None:
        yield Problem(None, "diotorisasi_at", "waktu otorisasi kosong")


def _header_codes(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    flaw = code_flaw(header.nomer_nota)
    if flaw:
        yield Problem(None, "nomer_nota", f"nomor nota {flaw}")
    flaw = _warehouse_flaw(header.gudang_kode, references)
    if flaw:
        yield Problem(None, "gudang_kode", f"gudang dokumen {flaw}")


def _accounts(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    accounts = references.document_accounts
    roles = {
        "persediaan": accounts.persediaan,
        "laba selisih": accounts.laba_selisih,
        "rugi selisih": accounts.rugi_selisih,
    }
    for role, account in roles.items():
        if account not in references.accounts:
            yield Problem(None, "kode_akun", f"akun {role} {account!r} tidak ada di daftar akun")
        elif not references.accounts[account]:
            yield Problem(None, "kode_akun", f"akun {role} {account!r} tidak aktif")
    if accounts.persediaan in (accounts.laba_selisih, accounts.rugi_selisih):
        yield Problem(None, "kode_akun", f"akun persediaan {accounts.persediaan!r} juga dipakai sebagai akun selisih")


def _has_lines(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    if not lines.baris:
        yield Problem(None, "baris", "dokumen tidak punya baris")


def _line_codes(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    # Judged once per distinct code: a document has few warehouses and lots.
    for name, what, values in (("kode_barang", "kode barang", lines.kode_barang), ("lot", "lot", lines.lot)):
        flaws = {value: code_flaw(value) for value in set(values) if value or name == "kode_barang"}
        yield from _flawed(lines.baris, values, name, what, flaws)
    warehouses = {value: _warehouse_flaw(value, references) for value in set(lines.gudang_kode)}
    if header.gudang_kode:
        # Said once for the whole document by _header_codes, not again on each line that takes it from there.
        warehouses.pop(header.gudang_kode, None)
    yield from _flawed(lines.baris, lines.gudang_kode, "gudang_kode", "gudang", warehouses)


def _flawed(
    baris: list[int], values: list[Any], name: str, what: str, flaws: Mapping[Any, str | None]
) -> Iterator[Problem]:
    if any(flaws.values()):
        for number, value in zip(baris, values, strict=True):
            flaw = flaws.get(value)
            if flaw:
                yield Problem(number, name, f"{what} {flaw}")


def code_flaw(code: str | None) -> str | None:
    """What is wrong with a code as a key, or None. Spaces inside are fine; white space of any kind at an edge is not
    (the database pads with spaces, so 'A1' and 'A1 ' would meet as one key), nor is a character nobody can see:
    control characters, zero-width and direction marks, line separators. 'A1' followed by U+200B looks like A1."""
    if code is None or code == "":
        return "kosong"
    if code[0].isspace() or code[-1].isspace():
        return f"{code!r} diawali atau diakhiri spasi"
    if not code.isprintable():
        for character in code:
            if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
                return f"{code!r} mengandung karakter yang tidak terlihat (U+{ord(character):04X})"
    return None


def _warehouse_flaw(code: str, references: References) -> str | None:
    flaw = code_flaw(code)
    if flaw:
        return flaw
    if code not in references.warehouses:
        return f"{code!r} tidak dikenal"
    return None if references.warehouses[code] else f"{code!r} tidak aktif"


def _duplicates(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    keys = list(zip(lines.kode_barang, lines.lot, lines.gudang_kode, strict=True))
    if len(set(keys)) == len(keys):
        return
    where: dict[tuple[str | None, str, str], list[int]] = defaultdict(list)
    for key, number in zip(keys, lines.baris, strict=True):
        where[key].append(number)
    for (kode, lot, gudang), numbers in where.items():
        if not kode or len(numbers) == 1:
            continue
        item = f"{kode!r}" + (f" lot {lot!r}" if lot else "") + f" di gudang {gudang!r}"
        for number in numbers:
            others = [other for other in numbers[: MAX_NAMED_LINES + 1] if other != number][:MAX_NAMED_LINES]
            more = len(numbers) - 1 - len(others)
            named = ", ".join(map(str, others)) + (f" dan {more} baris lain" if more else "")
            yield Problem(number, "kode_barang", f"{item} ada di baris {number} dan juga di baris {named}")


def _quantities(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    for number, sistem, fisik in zip(lines.baris, lines.qty_sistem, lines.qty_fisik, strict=True):
        if sistem is None:
            yield Problem(number, "qty_sistem", "jumlah sistem kosong; selisih tidak bisa dihitung")
        if fisik is None:
            yield Problem(number, "qty_fisik", "belum dihitung: jumlah fisik kosong (tulis 0 bila barangnya habis)")


def _costs(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    rows = zip(lines.baris, lines.qty_sistem, lines.qty_fisik, lines.harga_pokok, strict=True)
    for number, sistem, fisik, harga in rows:
        if harga or sistem is None or fisik is None or fisik == sistem:
            continue
        if harga is None:
            yield Problem(number, "harga_pokok", "harga kosong pada baris yang punya selisih")
        elif not references.allow_zero_cost:
            yield Problem(number, "harga_pokok", "harga 0 pada baris yang punya selisih")


def _numbers(header: Header, lines: _Lines, references: References) -> Iterator[Problem]:
    for name, (precision, scale) in DECIMAL_COLUMNS.items():
        values: list[Decimal | None] = getattr(lines, name)
        unfit = set(misfits(values, precision, scale))
        for index in unfit:
            text = (
                f"{values[index]} tidak muat: paling banyak {precision - scale} angka di depan koma dan {scale} desimal"
            )
            yield Problem(lines.baris[index], name, text)
        if name == "qty_sistem":
            continue  # negative book stock happens; counting it away is how it ends
        what = "jumlah fisik" if name == "qty_fisik" else "harga"
        for index, value in enumerate(values):
            if value and index not in unfit and value < 0:
                yield Problem(lines.baris[index], name, f"{what} negatif: {format_number(value)}")


_RULES: tuple[Callable[[Header, _Lines, References], Iterator[Problem]], ...] = (
    _authorisation,
    _header_codes,
    _accounts,
    _has_lines,
    _line_codes,
    _duplicates,
    _quantities,
    _costs,
    _numbers,
)
