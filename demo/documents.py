"""The prepared set: eight documents that together show what happens to a stock count, and what must become of each.

What is expected is written down or summed here in plain arithmetic, not by the code that the demo is to prove. Notas
and item codes carry the moment of the run, so that it can be run again and again and old counts never look stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from everest.intake.submission import Line, Submission

LARGE_LINES = 5_000
LARGE_WAREHOUSES = ("GD-01", "GD-02", "GD-03", "GD-04")

Place = tuple[int | None, str]
"""(baris, kolom) of a problem."""


@dataclass(frozen=True)
class Sample:
    """A document and what must become of it. amount: rupiah on each side of the journal; None = nothing is posted."""

    title: str
    submission: Submission
    expected_status: str
    amount: Decimal | None
    expected_code: int | None = None
    expected_places: frozenset[Place] = frozenset()

    @property
    def nota(self) -> str:
        return self.submission.nomer_nota

    @property
    def lines(self) -> int:
        return len(self.submission.lines)


@dataclass(frozen=True)
class LateReceipt:
    """What the purchasing module enters. before: aware; it is dated a day earlier."""

    nota: str
    kode_barang: str
    gudang_kode: str
    masuk: Decimal
    before: datetime


class PreparedSet:
    """The documents of one run. stamp: unique per run; snapshot: aware, before anything of this run is posted."""

    def __init__(self, stamp: str, day: date, snapshot: datetime) -> None:
        self._stamp = stamp
        self._day = day
        self._snapshot = snapshot

    @property
    def submitted(self) -> list[Sample]:
        """Sent at once, through our own submit."""
        return [self.mixed, self._surplus(), self._shortage(), self._no_variance(), self._large()]

    @property
    def mixed(self) -> Sample:
        """Surplus 3,000.00 and shortage 5,001.00: both in full, never netted."""
        lines = (self._line("A", 10, 12, "1500.00"), self._line("B", 7, 5, "2500.50"), self._line("C", 3, 3, "100.00"))
        return self._posted("mixed", "CAMPUR", "GD-A", lines, "8001.00")

    @property
    def repeated(self) -> Sample:
        """The nota of `mixed` with another content, once that is posted: posted books do not change."""
        submission = self._submission("CAMPUR", "GD-A", (self._line("A", 10, 99, "1500.00"),))
        return Sample("posted nota again", submission, "FAILED", None, expected_code=409)

    @property
    def mistaken(self) -> Sample:
        """Five mistakes of five kinds, as a program sends it that checks nothing."""
        lines = (
            self._line("F", 10, 11, "1000"),
            self._line("G", 10, 9, "1000", gudang_kode="GD-XX"),
            self._line("H", 10, None, "1000"),
            self._line("I", 10, -4, "1000"),
            self._line("J", 10, 12, None),
            self._line("K", 10, 12, "1000"),
            self._line("K", 10, 8, "1000"),
        )
        places = {
            (2, "gudang_kode"),
            (3, "qty_fisik"),
            (4, "qty_fisik"),
            (5, "harga_pokok"),
            (6, "kode_barang"),
            (7, "kode_barang"),
        }
        submission = self._submission("SALAH", "GD-B", lines)
        return Sample("five mistakes", submission, "FAILED", None, 422, frozenset(places))

    @property
    def surprising(self) -> Sample:
        """A right count that a person has to decide about, once `late_receipt` is entered."""
        lines = (self._line("P", 10, 12, "1500.00"), self._line("Q", 5, 5, "1000"))
        return Sample("late receipt", self._submission("TELAT", "GD-B", lines), "WAITING", None)

    @property
    def late_receipt(self) -> LateReceipt:
        """Dated a day before the snapshot of `surprising`, entered behind it."""
        first = self.surprising.submission.lines[0]
        return LateReceipt(f"DEMO-{self._stamp}-BELI", str(first.kode_barang), "GD-B", Decimal(2), self._snapshot)

    @property
    def corrected(self) -> Submission:
        """What the mistaken one should have been."""
        good = [line._replace(gudang_kode=None) for line in self.mistaken.submission.lines[:6]]
        good[2] = good[2]._replace(qty_fisik=Decimal(10))
        good[3] = good[3]._replace(qty_fisik=Decimal(4))
        good[4] = good[4]._replace(harga_pokok=Decimal(1000))
        return self._submission("SALAH", "GD-B", tuple(good))

    def _surplus(self) -> Sample:
        # 5 x 1,250.00 and 0.5 x 99.99 = 49.995, which rounds half away from zero: 50.00
        lines = (self._line("D", 0, 5, "1250.00"), self._line("E", 2, "2.5", "99.99"))
        return self._posted("surplus only", "LEBIH", "GD-A", lines, "6300.00")

    def _shortage(self) -> Sample:
        # Counted as zero is a count: 300 x 1,250.00; and 40 x 0.049 = 1.96
        lines = (self._line("L", 300, 0, "1250.00"), self._line("M", 40, 0, "0.049"))
        return self._posted("shortage only", "KURANG", "GD-B", lines, "375001.96")

    def _no_variance(self) -> Sample:
        lines = (self._line("N", 12, 12, "5000"), self._line("O", 0, 0, None))
        return self._posted("no variance", "COCOK", "GD-A", lines, "0.00")

    def _large(self) -> Sample:
        lines: list[Line] = []
        amount = 0
        for number in range(1, LARGE_LINES + 1):
            difference = (2, -1, 0)[number % 3]
            amount += abs(difference) * (1000 + number)
            warehouse = LARGE_WAREHOUSES[number % len(LARGE_WAREHOUSES)]
            lines.append(self._line(f"{number:05d}", 10, 10 + difference, str(1000 + number), gudang_kode=warehouse))
        title = f"{LARGE_LINES:,} lines, {len(LARGE_WAREHOUSES)} warehouses"
        return self._posted(title, "BESAR", LARGE_WAREHOUSES[0], tuple(lines), f"{amount}.00")

    def _posted(self, title: str, name: str, warehouse: str, lines: tuple[Line, ...], amount: str) -> Sample:
        return Sample(title, self._submission(name, warehouse, lines), "COMPLETED", Decimal(amount))

    def _submission(self, name: str, warehouse: str, lines: tuple[Line, ...]) -> Submission:
        return Submission(f"DEMO-{self._stamp}-{name}", warehouse, self._day, lines, snapshot_at=self._snapshot)

    def _line(
        self, item: str, book: int, counted: int | str | None, cost: str | None, gudang_kode: str | None = None
    ) -> Line:
        return Line(
            kode_barang=f"{self._stamp}-{item}",
            gudang_kode=gudang_kode,
            satuan="PCS",
            qty_sistem=Decimal(book),
            qty_fisik=None if counted is None else Decimal(counted),
            harga_pokok=None if cost is None else Decimal(cost),
        )
