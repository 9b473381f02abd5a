"""The demo's documents while they are on their way: a live table on a terminal, a line per change elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any

from rich.live import Live
from rich.table import Table

from demo.documents import Place, Sample
from everest.cli.output import console, styled
from everest.intake.lookup import ENDED
from everest.store.database import load_queries
from everest.store.unit_of_work import Database

_QUERIES = load_queries("demo")

POLL_SECONDS = 0.3


@dataclass(frozen=True)
class Seen:
    """A job as it stands. seconds: from submission to its newest change. Amounts in rupiah."""

    worker_status: str
    current_step: str | None
    error_code: int | None
    response: dict[str, Any]
    seconds: Decimal | None
    total_debet: Decimal | None
    total_kredit: Decimal | None
    baris_selisih: int | None

    @property
    def has_ended(self) -> bool:
        return self.worker_status in ENDED

    @property
    def reasons(self) -> list[dict[str, Any]]:
        """What is wrong with it, or what a person has to decide: baris, kolom, pesan."""
        found: list[dict[str, Any]] = self.response.get("errors") or self.response.get("waiting", {}).get("reasons", [])
        return found

    @property
    def places(self) -> frozenset[Place]:
        return frozenset((error.get("baris"), error.get("kolom")) for error in self.reasons)


@dataclass
class Followed:
    """A document on its way, or not sent yet (no shadow id)."""

    sample: Sample
    shadow_id: int | None = None
    seen: Seen | None = None

    @property
    def status(self) -> str:
        return self.seen.worker_status if self.seen else "not sent yet"

    @property
    def is_settled(self) -> bool:
        """Nothing more happens by itself: it has ended, or stands where it is to wait for a person."""
        return self.seen is not None and (self.seen.has_ended or self.status == self.sample.expected_status)

    @property
    def surprises(self) -> list[str]:
        """What is not as it must be."""
        sample, seen = self.sample, self.seen
        if seen is None or seen.worker_status != sample.expected_status:
            return [f"is {self.status}, must be {sample.expected_status}"]
        found = []
        if seen.error_code != sample.expected_code:
            found.append(f"code {seen.error_code}, must be {sample.expected_code}")
        if sample.amount is not None and not seen.total_debet == seen.total_kredit == sample.amount:
            found.append(f"posted {seen.total_debet} / {seen.total_kredit}, must be {sample.amount}")
        if sample.expected_places and seen.places != sample.expected_places:
            found.append(
                f"problems at {sorted(seen.places, key=str)}, must be {sorted(sample.expected_places, key=str)}"
            )
        return found


class View:
    """Shows every change of the documents."""

    def __init__(self, documents: list[Followed]) -> None:
        self._documents = documents
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False) if self._console.is_terminal else None
        self._shown: dict[str, str] = {}
        self._began = time.monotonic()

    def __enter__(self) -> View:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self) -> None:
        elapsed = time.monotonic() - self._began
        if self._live:
            self._live.update(self._table(elapsed), refresh=True)
            return
        for document in self._documents:
            now = f"{document.status}{_at(document.seen)}"
            if document.seen is not None and self._shown.get(document.sample.title) != now:
                self._shown[document.sample.title] = now
                self._console.print(f"{elapsed:6.1f} s  {document.sample.title}: {now}", markup=False)

    def _table(self, elapsed: float) -> Table:
        table = Table(title=f"{elapsed:.0f} s", title_justify="right", expand=False)
        for heading in ("document", "nota", "lines", "status", "step"):
            table.add_column(heading, justify="right" if heading == "lines" else "left")
        for document in self._documents:
            step = document.seen.current_step if document.seen and not document.seen.has_ended else ""
            sample = document.sample
            table.add_row(sample.title, sample.nota, f"{sample.lines:,}", styled(document.status), step or "")
        return table


def follow(database: Database, documents: list[Followed], patience_s: float, each_round: Callable[[], None]) -> None:
    """Until every document is settled, or patience ends. `each_round` may send what waits for another one's end."""
    deadline = time.monotonic() + patience_s
    with View(documents) as view:
        while True:
            look(database, documents)
            each_round()
            view.show()
            if all(document.is_settled for document in documents):
                return
            if time.monotonic() > deadline:
                return
            time.sleep(POLL_SECONDS)


def look(database: Database, documents: Iterable[Followed]) -> None:
    """Brings `seen` of each document up to date."""
    by_id = {document.shadow_id: document for document in documents if document.shadow_id is not None}
    if not by_id:
        return
    with database.transaction() as tx:
        for row in _QUERIES.jobs(tx.conn, shadow_ids=sorted(by_id)):
            by_id[row.pop("shadow_id")].seen = Seen(
                response=json.loads(row.pop("response") or "{}"), **{key: row[key] for key in row if key in _COLUMNS}
            )


_COLUMNS = frozenset(Seen.__dataclass_fields__)


def _at(seen: Seen | None) -> str:
    return f" at {seen.current_step}" if seen and seen.current_step and not seen.has_ended else ""
