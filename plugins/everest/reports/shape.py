"""The shape of a report: typed columns, filters, one pass over the rows, totals of exactly what passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from everest import words
from everest.errors import EverestError
from everest.opname.amounts import MONEY_CONTEXT
from everest.opname.document import wib
from everest.settings import Settings
from everest.store.database import Connection
from everest.words import Language, say

Row = Sequence[Any]
"""One value per column, of the column's kind, or None: str, Decimal, int, date, or naive WIB datetime."""


class Kind(StrEnum):
    """What a column holds, and with it how every format writes it."""

    TEXT = "text"
    CODE = "code"
    """Text that looks like a number often enough: never anything else than text."""
    QUANTITY = "quantity"
    MONEY = "money"
    """Rupiah, 2 decimals."""
    COST = "cost"
    """Rupiah for one unit, 6 decimals."""
    DATE = "date"
    INSTANT = "instant"
    """Date and time, WIB."""
    INTEGER = "integer"
    PERCENT = "percent"
    """Of a hundred, 2 decimals."""


EVERY_ROW = 2**63 - 1
NO_DOCUMENT = 0
"""Is no transaksi_id; a list in a query may not be empty."""
NO_REASON, NO_GROUP = "(tanpa alasan)", "(tanpa kelompok)"
"""What the queries call lines without a reason, and items without a group."""
ZEROS: Mapping[Kind, Any] = {Kind.MONEY: Decimal("0.00"), Kind.QUANTITY: Decimal("0.0000"), Kind.INTEGER: 0}
LABELS: Mapping[tuple[str, str], str] = {
    ("alasan", NO_REASON): "report.no_reason",
    ("kelompok", NO_GROUP): "report.no_group",
    ("jenis", "POSTING"): "kind.POSTING",
    ("jenis", "PEMBALIKAN"): "kind.PEMBALIKAN",
}
"""Values of ours, which programs and Indonesian files read as they are, and what people are told instead: by column."""
NUMBERS = frozenset({Kind.QUANTITY, Kind.MONEY, Kind.COST, Kind.INTEGER, Kind.PERCENT})


@dataclass(frozen=True)
class Column:
    """name: in JSON and for programs. heading, heading_en: for people. is_summed: the totals row has its sum."""

    name: str
    heading: str
    heading_en: str
    kind: Kind
    is_summed: bool = False

    @classmethod
    def named(cls, name: str, kind: Kind, is_summed: bool = False, text: str | None = None) -> Column:
        """A column with the headings that the catalogue has for its name, or for `text`."""
        found = words.catalogue()[f"column.{text or name}"]
        return cls(name, found["id"], found["en"], kind, is_summed)

    def headed(self, language: Language) -> str:
        return self.heading if language == "id" else self.heading_en


class ReportRefused(EverestError):
    """The report cannot be made as it was asked for."""

    code = 422


@dataclass(frozen=True)
class Filters:
    """What to look at; None = everything. since, until: WIB days, both included. nomer_nota: the document of that
    number and what reverses it; transaksi_id: exactly this document. alasan, kelompok: '' = without one; alasan: of
    lines that differ, as the report `reason` has them."""

    since: date | None = None
    until: date | None = None
    gudang_kode: str | None = None
    kode_barang: str | None = None
    lot: str | None = None
    nomer_nota: str | None = None
    kode_akun: str | None = None
    alasan: str | None = None
    kelompok: str | None = None
    jurnal_id: int | None = None
    kartu_stok_id: int | None = None
    posting_id: int | None = None
    transaksi_id: int | None = None

    @property
    def given(self) -> Mapping[str, Any]:
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) is not None}

    @property
    def until_before(self) -> date | None:
        """The first day that is not included any more; None where there is no later one."""
        return None if self.until in (None, date.max) else self.until + timedelta(days=1)

    def as_parameters(self, *names: str) -> dict[str, Any]:
        """The bound parameters of a query, by name; `until` is the exclusive end."""
        found = {name: getattr(self, name) for name in names}
        if "until" in found:
            found["until"] = self.until_before
        for name, nameless in (("alasan", NO_REASON), ("kelompok", NO_GROUP)):
            if found.get(name) == "":
                found[name] = nameless
        return found


@dataclass(frozen=True)
class Source:
    """Where a report reads: a connection inside a snapshot, the settings (zone of foreign rows), and the moment.
    at_most: rows that are wanted; a report may give more, and nobody goes through them. postings: the accounting
    documents that the filter `nomer_nota` stands for; None = every one."""

    conn: Connection
    settings: Settings
    now: datetime
    at_most: int = EVERY_ROW
    postings: Sequence[int] | None = None

    @property
    def of_nota(self) -> dict[str, Any]:
        """The bound parameters of a query that can be asked about one nota: an index leads to it."""
        return {"every_nota": self.postings is None, "transaksi_ids": [NO_DOCUMENT, *(self.postings or ())]}


@dataclass(frozen=True)
class ReportDefinition:
    """One kind of report. notes: the rules a reader has to know, as keys of the catalogue, where its title stands, too
    (titled: under another key than its own); description is English, for the command line. accepts: the filters that
    mean something to it; needs_one_of: at least one of these has to be given. totals: the number of rows, then the sum
    of each summed column, by the server; None where only going through the rows tells. longest_days: what a page looks
    at, at most (None: whatever is asked for); files and commands go through all of it."""

    key: str
    description: str
    columns: tuple[Column, ...]
    accepts: tuple[str, ...]
    rows: Callable[[Source, Filters], Iterator[Row]]
    notes: tuple[str, ...] = ()
    needs_one_of: tuple[str, ...] = ()
    totals: Callable[[Source, Filters], Sequence[Any] | None] = lambda source, filters: None
    titled: str | None = None
    longest_days: int | None = None

    def title(self, language: Language) -> str:
        return words.text(language, self.titled or "report." + self.key.replace("-", "_"))

    def notes_in(self, language: Language) -> list[str]:
        return [words.text(language, f"note.{note}") for note in self.notes]

    def check(self, filters: Filters) -> None:
        """Raises ReportRefused for a filter that would be ignored, or one that is missing."""
        strange = [name for name in filters.given if name not in self.accepts]
        if strange:
            raise ReportRefused(say("en", "refused.no_filter", report=self.key, names=", ".join(strange)))
        if self.needs_one_of and not any(name in filters.given for name in self.needs_one_of):
            raise ReportRefused(say("en", "refused.filter_needed", report=self.key, names=", ".join(self.needs_one_of)))
        if filters.since and filters.until and filters.since > filters.until:
            raise ReportRefused(say("en", "refused.empty_range", since=str(filters.since), until=str(filters.until)))


@dataclass
class Report:
    """A report on its way out. `rows` can be gone through once; `totals` and `row_count` then hold what passed."""

    definition: ReportDefinition
    filters: Filters
    source: Iterator[Row]
    row_count: int = 0
    totals: dict[str, Decimal | int] = field(default_factory=dict)
    whole: Callable[[], Sequence[Any] | None] = lambda: None

    @property
    def key(self) -> str:
        return self.definition.key

    @property
    def title(self) -> str:
        """In Indonesian."""
        return self.definition.title("id")

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.definition.columns

    def described_filters(self, language: Language = "id") -> list[tuple[str, str]]:
        """Label and value of each filter that was given."""
        return [(words.text(language, f"filter.{name}"), str(value)) for name, value in self.filters.given.items()]

    def rows(self, language: Language = "id") -> Iterator[Row]:
        """Every row, counted and summed as it passes: exact, and not one number is read a second time. language: of its
        sentences, which are Indonesian by themselves."""
        summed = [(place, column) for place, column in enumerate(self.columns) if column.is_summed]
        texts = [place for place, column in enumerate(self.columns) if column.kind is Kind.TEXT]
        named = {name for name, _ in LABELS}
        labelled = [(place, column.name) for place, column in enumerate(self.columns) if column.name in named]
        sums: list[Any] = [ZEROS[column.kind] for _, column in summed]
        add = MONEY_CONTEXT.add
        self.row_count = 0
        try:
            for row in self.source:
                self.row_count += 1
                for index, (place, column) in enumerate(summed):
                    value = row[place]
                    if value is not None:
                        is_whole = column.kind is Kind.INTEGER
                        sums[index] = sums[index] + value if is_whole else add(sums[index], value)
                if language != "id" and any(isinstance(row[place], words.Said) for place in texts):
                    row = [words.again(language, value) for value in row]
                if language != "id" and labelled:
                    row = list(row)
                    for place, name in labelled:
                        row[place] = labelled_as(name, row[place], language)
                yield row
        finally:
            self.totals = {column.name: value for (_, column), value in zip(summed, sums, strict=True)}

    def add_up(self) -> bool:
        """`row_count` and `totals` of all rows without reading them, for whoever shows the first ones; before the first
        row. False: not known, go through the rows."""
        found = self.whole()
        if found is None:
            return False
        summed = [column for column in self.columns if column.is_summed]
        self.row_count = int(found[0])
        self.totals = {
            column.name: ZEROS[column.kind] if value is None else int(value) if column.kind is Kind.INTEGER else value
            for column, value in zip(summed, found[1:], strict=True)
        }
        return True

    def totals_row(self) -> list[Decimal | int | None]:
        """The totals in the place of their columns. Call it after the rows."""
        return [self.totals.get(column.name) for column in self.columns]


def labelled_as(column: str, value: Any, language: Language) -> Any:
    """A value of this column as people read it."""
    key = LABELS.get((column, value))
    return words.text(language, key) if key else value


def kind_of(jenis: str) -> str:
    """What a sentence calls a posting or an accounting document: ours by their name, any other as it stands."""
    key = f"kind.{jenis}"
    return say("id", key) if words.has(key) else jenis


def wib_of_utc(instant: datetime | None) -> datetime | None:
    """A naive UTC instant of a row of ours as naive WIB, to the second."""
    return None if instant is None else wib(instant.replace(tzinfo=UTC)).replace(microsecond=0)
