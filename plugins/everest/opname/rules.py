"""The rules that a counted document must meet, one small function each; `document.validate` runs them all.

A rule takes the header, the lines and the master data and yields a problem for each thing that is wrong, in words that
the person who corrects it understands. Adding a rule is one function and one line in RULES.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from everest.errors import Problem
from everest.opname.amounts import format_number
from everest.opname.decimals import Decimals, Numbers
from everest.opname.header import Header, References
from everest.opname.lines import DECIMAL_COLUMNS, are_plain, code_flaw
from everest.words import Said, say

MIN_AUTHORISATION_LEVEL = 2
MAX_NAMED_LINES = 5
"""Other lines named in one sentence about a duplicate; the rest are counted."""


class CountedLines(NamedTuple):
    """The lines column by column, with effective warehouse and lot."""

    baris: list[int]
    kode_barang: list[str | None]
    lot: list[str]
    gudang_kode: list[str]
    qty_sistem: Numbers
    qty_fisik: Numbers
    harga_pokok: Numbers


NO_LINES = CountedLines([], [], [], [], Decimals(), Decimals(), Decimals())


def _authorisation(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    level = header.otorisasi_level
    if level < MIN_AUTHORISATION_LEVEL:
        yield Problem(None, "otorisasi_level", say("id", "rule.level", level=level, needed=MIN_AUTHORISATION_LEVEL))
    if not (header.diotorisasi_oleh or "").strip():
        yield Problem(None, "diotorisasi_oleh", say("id", "rule.no_authoriser"))
    if header.diotorisasi_at is None:
        yield Problem(None, "diotorisasi_at", say("id", "rule.no_authorisation_time"))


def _unreadable(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    yield from header.flaws


def _header_codes(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    flaw = code_flaw(header.nomer_nota)
    if flaw:
        yield Problem(None, "nomer_nota", say("id", "rule.nomer_nota", flaw=flaw))
    flaw = _warehouse_flaw(header.gudang_kode, references)
    if flaw:
        yield Problem(None, "gudang_kode", say("id", "rule.document_warehouse", flaw=flaw))


def _accounts(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    accounts = references.document_accounts
    roles = {
        "account.inventory": accounts.persediaan,
        "account.surplus": accounts.laba_selisih,
        "account.shortage": accounts.rugi_selisih,
    }
    for role, account in roles.items():
        if not references.accounts.get(account):
            which = say("id", role, code=repr(account))
            flaw = "rule.account_inactive" if account in references.accounts else "rule.account_unknown"
            yield Problem(None, "kode_akun", say("id", flaw, account=which))
    if accounts.persediaan in (accounts.laba_selisih, accounts.rugi_selisih):
        yield Problem(None, "kode_akun", say("id", "rule.account_twice", code=repr(accounts.persediaan)))


def _has_lines(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    if not lines.baris:
        yield Problem(None, "baris", say("id", "rule.no_lines"))


def _line_codes(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    # Judged once per distinct code: a document has few lots.
    columns = (("kode_barang", "rule.kode_barang", lines.kode_barang), ("lot", "rule.lot", lines.lot))
    for name, key, values in columns:
        if not are_plain(values, may_be_empty=name == "lot"):
            flaws = {value: code_flaw(value) for value in set(values) if value or name == "kode_barang"}
            yield from _flawed(lines.baris, values, name, key, flaws)


def _line_warehouses(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    warehouses = {value: _warehouse_flaw(value, references) for value in set(lines.gudang_kode)}
    if header.gudang_kode:
        # Said once for the whole document by _header_codes, not again on each line that takes it from there.
        warehouses.pop(header.gudang_kode, None)
    yield from _flawed(lines.baris, lines.gudang_kode, "gudang_kode", "rule.gudang_kode", warehouses)


def _flawed(
    baris: list[int], values: list[Any], name: str, key: str, flaws: Mapping[Any, Said | None]
) -> Iterator[Problem]:
    said = {value: say("id", key, flaw=flaw) for value, flaw in flaws.items() if flaw}
    if said:
        for number, value in zip(baris, values, strict=True):
            if value in said:
                yield Problem(number, name, said[value])


def _warehouse_flaw(code: str, references: References) -> Said | None:
    flaw = code_flaw(code)
    if flaw:
        return flaw
    if code not in references.warehouses:
        return say("id", "flaw.unknown", code=repr(code))
    return None if references.warehouses[code] else say("id", "flaw.inactive", code=repr(code))


def _duplicates(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    if len(set(lines.kode_barang)) == len(lines.kode_barang):
        return
    keys = list(zip(lines.kode_barang, lines.lot, lines.gudang_kode, strict=True))
    if len(set(keys)) == len(keys):
        return
    where: dict[tuple[str | None, str, str], list[int]] = defaultdict(list)
    for key, number in zip(keys, lines.baris, strict=True):
        where[key].append(number)
    for (kode, lot, gudang), numbers in where.items():
        if not kode or len(numbers) == 1:
            continue
        sentence, item = "rule.twice", {"code": repr(kode), "warehouse": repr(gudang)}
        if lot:
            sentence, item = "rule.twice_in_lot", {**item, "lot": repr(lot)}
        for number in numbers:
            others = [other for other in numbers[: MAX_NAMED_LINES + 1] if other != number][:MAX_NAMED_LINES]
            more = len(numbers) - 1 - len(others)
            named: str = ", ".join(map(str, others))
            if more:
                named = say("id", "several.more_lines", names=named, n=more)
            yield Problem(number, "kode_barang", say("id", sentence, **item, line=number, others=named))


def _quantities(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    if not lines.qty_sistem.has_null and not lines.qty_fisik.has_null:
        return
    for number, sistem, fisik in zip(lines.baris, lines.qty_sistem, lines.qty_fisik, strict=True):
        if sistem is None:
            yield Problem(number, "qty_sistem", say("id", "rule.no_book_quantity"))
        if fisik is None:
            yield Problem(number, "qty_fisik", say("id", "rule.not_counted"))


def _costs(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    if not lines.harga_pokok.has_null and not lines.harga_pokok.has_zero:
        return
    rows = zip(lines.baris, lines.qty_sistem, lines.qty_fisik, lines.harga_pokok, strict=True)
    for number, sistem, fisik, harga in rows:
        if harga or not _is_number(sistem) or not _is_number(fisik) or fisik == sistem:
            continue
        if harga is None:
            yield Problem(number, "harga_pokok", say("id", "rule.no_cost"))
        elif not references.allow_zero_cost:
            yield Problem(number, "harga_pokok", say("id", "rule.zero_cost"))


def _is_number(value: Decimal | None) -> bool:
    return value is not None and value.is_finite()


def _numbers(header: Header, lines: CountedLines, references: References) -> Iterator[Problem]:
    for name, (precision, scale) in DECIMAL_COLUMNS.items():
        values: Numbers = getattr(lines, name)
        unfit = set(values.misfits(precision, scale))
        for index in unfit:
            room = {"whole": precision - scale, "decimals": scale}
            yield Problem(lines.baris[index], name, say("id", "rule.no_room", value=str(values.at(index)), **room))
        if name == "qty_sistem":
            continue  # negative book stock happens; counting it away is how it ends
        key = "rule.negative_count" if name == "qty_fisik" else "rule.negative_cost"
        for index in values.negatives():
            value = values.at(index)
            if value is not None and index not in unfit:
                yield Problem(lines.baris[index], name, say("id", key, value=format_number(value)))


Rule = Callable[["Header", CountedLines, "References"], Iterator[Problem]]

RULES: tuple[Rule, ...] = (
    _authorisation,
    _unreadable,
    _header_codes,
    _accounts,
    _has_lines,
    _line_codes,
    _line_warehouses,
    _duplicates,
    _quantities,
    _costs,
    _numbers,
)

BEYOND_THE_HASH: tuple[Rule, ...] = (
    _authorisation,
    _unreadable,
    _header_codes,
    _accounts,
    _line_warehouses,
    _costs,
)
"""The rules that may answer differently although the document's `input_hash` is the same: they look at who authorised
it, at master data or at a setting. The others looked at nothing but what the hash covers. Of one that looks at lines,
`document.still_valid` has to tell the answer without them."""
