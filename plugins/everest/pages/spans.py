"""Which days the page of a report looks at: those that were asked for, or the last of them where all would be more than
it answers at once (decision 0063). Files and commands have every day that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from everest.reports import Filters
from everest.reports.shape import ReportDefinition


@dataclass(frozen=True)
class Part:
    """The last days, both included, of more that were asked for."""

    first: date
    last: date

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def before(self) -> date:
        """Where the next part back ends."""
        return self.first - timedelta(days=1)

    def of(self, asked: Filters) -> Filters:
        """What was asked, from the first of these days on: the few rows that are dated after today stay in sight."""
        return replace(asked, since=self.first)


def part_of(
    definition: ReportDefinition, asked: Filters, today: date, books_begin: Callable[[], date | None]
) -> Part | None:
    """None: the page shows all that was asked for. today: where a part ends if nobody ends it before. books_begin:
    asked only where it decides; days before it are no part of any period. A nota stands for itself, however old it is.
    """
    longest = definition.longest_days
    if longest is None or asked.nomer_nota is not None:
        return None
    last = min(asked.until or today, today)
    first = date.fromordinal(max(last.toordinal() - longest + 1, date.min.toordinal()))
    if asked.since is not None and asked.since >= first:
        return None
    begin = books_begin()
    return Part(first, last) if begin is not None and begin < first else None
