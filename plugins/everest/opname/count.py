"""The count as a step finds it: read under lock, validated whole, computed, and what a person has to decide about it.

The first and the last step of a posting judge a document by this one function, `checked`, and so does whoever previews
it. `submit --check` knows the same rules (`check_document`), but not what has happened to the stock since the count.
pandas is imported inside (through `variance`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from everest.errors import DocumentRefused, Problem
from everest.opname import approval, document, freshness, limits
from everest.opname.approval import Surprise
from everest.opname.fingerprint import CanonicalLines
from everest.opname.header import Header
from everest.opname.journal import Accounts
from everest.opname.ports import Books
from everest.opname.summary import Summary
from everest.words import say

if TYPE_CHECKING:
    from pandas import DataFrame

    from everest.opname.variance import VarianceResult

OPNAME = "OPNAME"


@dataclass(frozen=True)
class Counted:
    """A document as read in this transaction: the header, and on first use its effective lines and the hash of both.
    A step that needs no line, as the last two normally do, reads none of the 20,000."""

    header: Header
    books: Books

    @cached_property
    def lines(self) -> DataFrame:
        return document.with_header_warehouse(self.header, self.books.lines(self.header))

    @cached_property
    def input_hash(self) -> str:
        return document.input_hash_of(self.header, self.canonical.digest(), OPNAME)

    @cached_property
    def canonical(self) -> CanonicalLines:
        return CanonicalLines(self.lines, self.header.gudang_kode)

    @cached_property
    def values(self) -> DataFrame:
        """The lines with what they are worth; None on a line that can't be computed."""
        return self.variance.frame

    @cached_property
    def variance(self) -> VarianceResult:
        from everest.opname import variance

        return variance.compute_variance(self.lines)

    def has(self, input_hash: str) -> bool:
        """Whether this is the content of that hash. The database says yes at once; before a no, the lines are read."""
        digest = self.books.lines_digest(self.header)
        if digest is not None and document.input_hash_of(self.header, digest, OPNAME) == input_hash:
            return True
        return hash_of(self) == input_hash


@dataclass(frozen=True)
class Computed:
    """What a valid document says. accounts: those that were found active. surprise: what a person has to decide
    first."""

    summary: Summary
    accounts: Accounts
    surprise: Surprise


def read(books: Books, transaksi_id: int) -> Counted:
    """The document, locked until the transaction ends. Raises DocumentRefused 404 where there is none."""
    header = books.lock_document(transaksi_id)
    if header is None:
        raise DocumentRefused(say("id", "count.no_document", number=transaksi_id), code=404)
    return Counted(header, books)


def number_problems(books: Books, transaksi_id: int | None) -> list[Problem]:
    """Whether a number that the document brings along would end all numbering."""
    if transaksi_id is None or books.number_is_safe(transaksi_id):
        return []
    return [Problem(None, "transaksi_id", say("id", "count.number_too_large", number=transaksi_id))]


def check_document(books: Books, header: Header, lines: DataFrame) -> list[Problem]:
    """Every problem that step 1 would find in what a document says that is not stored yet (`submit --check`)."""
    from everest.opname import variance

    effective = document.with_header_warehouse(header, lines)
    references = books.references(header, _warehouses(header, effective))
    problems = [*number_problems(books, header.transaksi_id), *document.validate(header, effective, references)]
    problems += variance.compute_variance(effective).problems
    return [*problems, *document.period_problems(header, books.closed_periods(_periods(header)))]


def checked(
    books: Books, counted: Counted, now: datetime, again: bool = False, further_periods: Iterable[str] = ()
) -> Computed:
    """The computed document, or DocumentRefused with every problem at once. `again`: an earlier step found this very
    content valid; looks at what may have changed around it, under locks, so that it cannot before the commit.
    further_periods: months to lock beside that of the document."""
    header, lines = counted.header, counted.lines
    warehouses = _warehouses(header, lines)
    periods = _periods(header)
    if again:
        _lock(books, (*periods, *further_periods), warehouses)
    references = books.references(header, warehouses)
    data_problems = [
        *freshness.future_problems(header, now, books.known(header)),
        *([] if again else number_problems(books, header.transaksi_id)),
        *document.validate(header, lines, references, is_known_valid=again),
        *counted.variance.problems,
    ]
    period_problems = document.period_problems(header, books.closed_periods(periods))
    movements = books.movements_since(header, warehouses)
    stale = freshness.stale_problems(header, lines, movements)
    problems = [*data_problems, *period_problems, *stale]
    if data_problems:
        raise DocumentRefused(say("id", "count.refused", n=len(problems)), problems, 422)
    if period_problems:
        raise DocumentRefused(say("id", "count.months_closed", months=periods), problems, 423)
    if stale:
        raise DocumentRefused(say("id", "count.stale"), problems, 409)
    digest = counted.canonical.digest_with(counted.values)
    summary, policy = Summary.of(counted.values, digest), books.limits(header.gudang_kode)
    surprise = approval.surprise(
        header, counted.input_hash, counted.values, movements, policy, (summary.surplus, summary.shortage)
    )
    return Computed(summary, references.document_accounts, surprise)


def checked_again(
    books: Books,
    counted: Counted,
    input_hash: str,
    summary: Summary | None,
    now: datetime,
    further_periods: Iterable[str] = (),
) -> Computed | None:
    """`checked` again, under locks, for the content that step 1 found valid; None if it is another by now.

    further_periods: months that the posting touches beside its own; locked with it, in one order for all.
    summary: what step 1 found out about it. Where nothing around the document speaks against it, that is all there is
    to know and no line is read; otherwise the lines are, to say which of them it is about.
    """
    if not counted.has(input_hash):
        return None
    months = tuple(further_periods)
    computed = None if summary is None else _undisturbed(books, counted.header, input_hash, summary, now, months)
    if computed is not None:
        return computed
    return checked(books, counted, now, True, months) if hash_of(counted) == input_hash else None


def values_stand(books: Books, counted: Counted, input_hash: str, summary: Summary) -> bool:
    """Whether the accounting document and its lines stand as step 1 wrote them, every row; then they stay so until the
    commit. As with `Counted.has`, the database may say yes, and before a no the rows are compared here."""
    header, instant = counted.header, document.posting_instant(counted.header)
    if not books.hold_document(header, OPNAME, instant):
        return False
    if books.hold_values(header) == summary.values_digest:
        return True
    return hash_of(counted) == input_hash and books.values_match(header, counted.values)


def _undisturbed(
    books: Books, header: Header, input_hash: str, summary: Summary, now: datetime, further_periods: Sequence[str]
) -> Computed | None:
    """The document of this summary if every check of `checked` is quiet, None if one has something to say."""
    warehouses = sorted({*summary.warehouses, header.gudang_kode})
    periods = _periods(header)
    _lock(books, (*periods, *further_periods), warehouses)
    references = books.references(header, warehouses)
    policy = books.limits(header.gudang_kode)
    is_quiet = (
        not freshness.future_problems(header, now, books.known(header))
        and document.still_valid(header, references, summary.warehouses, summary.has_free_variance)
        and not document.period_problems(header, books.closed_periods(periods))
        and freshness.are_daily_business(header, books.movements_since(header, warehouses))
        and limits.are_kept(summary.total, summary.largest, *policy)
    )
    nothing = Surprise(input_hash, tuple, (), None, None, summary.surplus, summary.shortage)
    return Computed(summary, references.document_accounts, nothing) if is_quiet else None


def _lock(books: Books, periods: Sequence[str], warehouses: Sequence[str]) -> None:
    for period in sorted(set(periods)):
        books.lock_period(period)
    books.lock_warehouses(warehouses)


def _periods(header: Header) -> list[str]:
    """The month the document posts in; none where neither an authorisation nor a posting date says so."""
    if not document.has_instant(header):
        return []
    return [document.period_of(document.posting_instant(header))]


def _warehouses(header: Header, lines: DataFrame) -> list[str]:
    codes = {code for code in set(lines["gudang_kode"].tolist()) if code is not None and code == code}
    return sorted(codes | {header.gudang_kode})


def hash_of(counted: Counted) -> str | None:
    """Its input_hash, None where it has none."""
    try:
        return counted.input_hash
    except ValueError:
        return None  # a number that no column of ours holds: what was refused has no canonical text
