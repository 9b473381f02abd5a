"""The books in plain Python: what posting-rules.md says, with lists and dictionaries and nothing of the product.

A second opinion: it computes values, judges freshness, limits and periods, and remembers what people decided, from the
text of the rules alone. The model test plays the same story to it and to the product and compares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

INVENTORY, GAIN, LOSS = "1010030030", "7010150", "7020020"
CENT = Decimal("0.01")
PATIENCE = timedelta(days=14)
"""How long a question waits for a person (the default of the setting)."""

Key = tuple[str, str]
"""(kode_barang, gudang_kode); the story has no lots."""


@dataclass(frozen=True)
class Count:
    """A counted line. fisik None = not counted."""

    kode_barang: str
    gudang_kode: str
    sistem: Decimal
    fisik: Decimal | None
    cost: Decimal

    @property
    def key(self) -> Key:
        return self.kode_barang, self.gudang_kode

    @property
    def selisih(self) -> Decimal:
        return (self.fisik or Decimal(0)) - self.sistem

    @property
    def value(self) -> Decimal:
        return (self.selisih * self.cost).quantize(CENT, ROUND_HALF_UP)


@dataclass(frozen=True)
class Movement:
    """A row of the stock card. dated: naive WIB. entered: aware."""

    key: Key
    quantity: Decimal
    value: Decimal
    dated: datetime
    entered: datetime
    nota: str
    is_opname: bool


@dataclass(frozen=True)
class Row:
    """A journal row."""

    account: str
    debet: Decimal
    kredit: Decimal


@dataclass(frozen=True)
class Reasons:
    """Why a person has to look: the late movements, and the limits exceeded with the amounts that exceed them."""

    late: frozenset[tuple[Key, str]]
    over: tuple[tuple[str, Decimal], ...]

    def __bool__(self) -> bool:
        return bool(self.late or self.over)


@dataclass
class Paper:
    """A document. status and code as the shadow row has them.

    asked, asked_at: the open question. approved, rejected: what a person said. seen: the content with which the first
    step is done; it is not done again for that content, whatever runs the document again.
    """

    nota: str
    gudang: str
    snapshot: datetime
    authorised: datetime
    lines: list[Count]
    reverses: str | None = None
    status: str = "PENDING"
    code: int | None = None
    asked: Reasons | None = None
    asked_at: datetime | None = None
    approved: Reasons | None = None
    rejected: bool = False
    seen: tuple[object, ...] | None = None

    @property
    def content(self) -> tuple[object, ...]:
        return (*self.lines, self.snapshot, self.authorised)

    def is_too_late(self, now: datetime) -> bool:
        """Whether nobody answered the open question in time."""
        return self.asked_at is not None and now >= self.asked_at + PATIENCE

    @property
    def dated(self) -> datetime:
        """The posting instant, naive WIB."""
        return wib(self.authorised)


def wib(instant: datetime) -> datetime:
    return (instant.replace(tzinfo=None) + timedelta(hours=7)).replace(microsecond=0)


@dataclass
class Ledger:
    papers: dict[str, Paper] = field(default_factory=dict)
    movements: list[Movement] = field(default_factory=list)
    journal: dict[str, list[Row]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    limits: tuple[Decimal | None, Decimal | None] = (None, None)
    outcomes: Counter[str] = field(default_factory=Counter)
    """How often a document came to which end or question."""

    # ------------------------------------------------------------------------------------------------ judging

    def verdict(self, paper: Paper, now: datetime) -> int | Reasons:
        """The code of a refusal, or the reasons why a person has to look (none: it posts)."""
        if paper.reverses is not None:
            if any(one.reverses == paper.reverses and one.status == "COMPLETED" for one in self.papers.values()):
                return 409
            return 423 if _month(wib(now)) in self.closed else Reasons(frozenset(), ())
        if any(line.fisik is None or (line.cost == 0 and line.selisih) for line in paper.lines):
            return 422
        if _month(paper.dated) in self.closed:
            return 423
        keys = {line.key for line in paper.lines}
        since = [one for one in self.movements if one.key in keys and one.entered > paper.snapshot]
        if any(one.is_opname and one.nota != paper.nota for one in since):
            return 409
        late = {(one.key, one.nota) for one in since if not one.is_opname and one.dated <= wib_exact(paper.snapshot)}
        return Reasons(frozenset(late), tuple(self._over(paper)))

    def _over(self, paper: Paper) -> Iterable[tuple[str, Decimal]]:
        of_document, of_line = self.limits
        total = sum((abs(line.value) for line in paper.lines), Decimal(0))
        if of_document is not None and total > of_document:
            yield f"document {of_document}", total
        for line in paper.lines:
            if of_line is not None and abs(line.value) > of_line:
                yield f"line {line.key} {of_line}", abs(line.value)

    # ---------------------------------------------------------------------------------------------- happenings

    def look(self, paper: Paper, now: datetime) -> bool:
        """The first step looks. Whether the document may go on to be posted."""
        if paper.seen is not None:
            paper.status = "PROCESSING"
            return True
        verdict = self.verdict(paper, now)
        if isinstance(verdict, int):
            self._fail(paper, verdict)
        elif paper.rejected or (paper.is_too_late(now) and verdict == paper.asked):
            self._fail(paper, 403)
        elif verdict and verdict != paper.approved:
            paper.status, paper.asked, paper.asked_at, paper.approved = "WAITING", verdict, now, None
            self.outcomes["WAITING"] += 1
        else:
            paper.status, paper.asked, paper.asked_at, paper.seen = "PROCESSING", None, None, paper.content
            return True
        return False

    def post(self, paper: Paper, now: datetime) -> None:
        """The last step: looks again, and posts; or goes back when something came up that nobody has approved."""
        verdict = self.verdict(paper, now) if paper.seen == paper.content else None
        if isinstance(verdict, int):
            self._fail(paper, verdict)
        elif verdict is None or (verdict and verdict != paper.approved):
            paper.status, paper.seen = "PENDING", None
        elif paper.reverses is not None:
            self._mirror(paper, now)
        else:
            self._write(paper, now)

    def _fail(self, paper: Paper, code: int) -> None:
        paper.status, paper.code = "FAILED", code
        self.outcomes[f"FAILED {code}"] += 1
        paper.asked, paper.asked_at, paper.rejected = None, None, False

    def _write(self, paper: Paper, now: datetime) -> None:
        values = [line.value for line in paper.lines]
        up = sum((one for one in values if one > 0), Decimal(0))
        down = -sum((one for one in values if one < 0), Decimal(0))
        rows = []
        if up:
            rows += [Row(INVENTORY, up, Decimal(0)), Row(GAIN, Decimal(0), up)]
        if down:
            rows += [Row(LOSS, down, Decimal(0)), Row(INVENTORY, Decimal(0), down)]
        self.journal[paper.nota] = rows
        for line in paper.lines:
            if line.selisih:
                moved = (line.key, line.selisih, line.value, paper.dated, now, paper.nota, True)
                self.movements.append(Movement(*moved))
        self._complete(paper)

    def _mirror(self, paper: Paper, now: datetime) -> None:
        original = str(paper.reverses)
        self.journal[paper.nota] = [Row(row.account, row.kredit, row.debet) for row in self.journal[original]]
        for one in [one for one in self.movements if one.nota == original]:
            self.movements.append(Movement(one.key, -one.quantity, -one.value, wib(now), now, paper.nota, True))
        self._complete(paper)

    def _complete(self, paper: Paper) -> None:
        paper.status, paper.code = "COMPLETED", 200
        self.outcomes["reversed" if paper.reverses else "under an approval" if paper.approved else "posted"] += 1

    # ---------------------------------------------------------------------------------------------------- sums

    def accounts(self) -> dict[str, Decimal]:
        """Debet - kredit by account."""
        sums: dict[str, Decimal] = defaultdict(Decimal)
        for rows in self.journal.values():
            for row in rows:
                sums[row.account] += row.debet - row.kredit
        return {account: total for account, total in sums.items() if total}

    def stock(self) -> dict[Key, Decimal]:
        """Quantity by item and warehouse, everybody's movements."""
        sums: dict[Key, Decimal] = defaultdict(Decimal)
        for one in self.movements:
            sums[one.key] += one.quantity
        return {key: quantity for key, quantity in sums.items() if quantity}


def wib_exact(instant: datetime) -> datetime:
    return instant.replace(tzinfo=None) + timedelta(hours=7)


def _month(instant: datetime) -> str:
    return f"{instant:%Y-%m}"
