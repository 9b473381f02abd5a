"""What a chaos run has in hand: the running stack, the documents it has sent, and the ways to reach both.

Deeds and faults act through it from many threads at once. People and other programs reach the servers directly, so a
cut connection of the product is never one of theirs; a server that is down is down for them too, and they try again.
Our own intake is product: what it submits goes through a proxy of its own.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from everest import bootstrap
from everest.errors import Conflict, DocumentMissing, DocumentRefused, Forbidden
from everest.intake.submission import Authority, Line, Submission
from everest.settings import MysqlUrl, Settings
from everest.store.unit_of_work import UnitOfWork
from ingest_consumer.errors import RerunRefused
from stack import manager
from stack.layout import Layout
from stack.programs import Stack
from tests import builders
from tests.acceptance.live import Live
from tests.chaos.documents import LIMIT, WAREHOUSES, Draft
from tests.chaos.rig import SUBMITS, Rig
from tests.integration.books.ledger import Count, Ledger, Paper

CLERK, MANAGER, FINANCE = "sari", "budi", "tini"
AUTHORITY = Authority(CLERK, MANAGER, 2)
REFUSALS = (Conflict, DocumentMissing, DocumentRefused, Forbidden, RerunRefused)
"""An answer, not a trouble: to do the same again would be answered the same."""
FOREIGN_IDS, APART = 7_000_000, 1_000
"""Another program's numbers begin there and stand far apart: those of our own submits go on from the highest."""
AGAIN_SECONDS = 0.4

T = TypeVar("T")


class NotNow(Exception):
    """There is nothing to do it to at this moment: no document waits, no task runs."""


@dataclass
class Sent:
    """A document that was taken, and what people did to it since.

    message: as its sender published it (None: the relay does). is_marked: somebody set one of its runs or tasks to an
    end by hand, in Airflow.
    """

    draft: Draft | None
    paper: Paper
    shadow_id: int
    transaksi_id: int
    message: dict[str, Any] | None = None
    submission: Submission | None = None
    is_approved: bool = False
    is_rejected: bool = False
    is_marked: bool = False


@dataclass
class Errand:
    """A run of the waiting workflow that was taken, and what people told it since.

    told: words whose signal may have been stored.
    """

    key: str
    run_id: int
    shadow_id: int
    told: set[str] = field(default_factory=set)
    is_called_off: bool = False


@dataclass
class World:
    """stamp: in every nota and item code, so that runs on the same stack never meet."""

    live: Live
    rig: Rig
    stamp: str
    say: Callable[[str], None] = print
    ledger: Ledger = field(default_factory=lambda: Ledger(limits=(LIMIT, None)))
    sent: list[Sent] = field(default_factory=list)
    errands: list[Errand] = field(default_factory=list)
    tried: dict[str, tuple[Draft | None, Paper]] = field(default_factory=dict)
    """Whatever somebody began to submit, by nota: it may be stored although its sender was never told."""
    deadlocks: Counter[str] = field(default_factory=Counter)
    """By who was the victim."""
    broken: list[bytes] = field(default_factory=list)
    """Messages without a document that were published; each is owed a dead letter."""
    began: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))
    is_over: threading.Event = field(default_factory=threading.Event)
    """Nobody tries anything again."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    kept: dict[str, Any] = field(default_factory=dict)
    """What a fault that lasts holds until its end, by its target."""

    @property
    def layout(self) -> Layout:
        return self.rig.layout

    @property
    def snapshot(self) -> datetime:
        """When everything was counted: long enough ago for a clock that jumps back."""
        return self.began - timedelta(hours=3)

    @property
    def mysql_of_submits(self) -> MysqlUrl:
        """The way of our own intake to the database, which a fault may cut."""
        return replace(self.live.mysql, port=self.rig.links[SUBMITS].port)

    # ------------------------------------------------------------------------------------------------- trying

    def insist(self, act: Callable[[], T]) -> T:
        """What `act` returns, however often it has to be tried while servers come and go. A refusal is an answer:
        raises NotNow."""
        while True:
            try:
                return act()
            except NotNow:
                raise
            except REFUSALS as answer:
                raise NotNow(f"{type(answer).__name__}: {answer}") from answer
            except Exception:
                if self.is_over.is_set():
                    raise
                time.sleep(AGAIN_SECONDS)

    def in_transaction(self, act: Callable[[UnitOfWork], T]) -> T:
        database = bootstrap.database(self.live.mysql, Settings())
        with closing(database), database.transaction() as tx:
            return act(tx)

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return self.live.rows(sql, *parameters)

    # ---------------------------------------------------------------------------------------------- documents

    def prepare(self) -> None:
        """Warehouses, with a limit above which a person decides."""
        with self.live.connection() as conn:
            for kode in WAREHOUSES:
                builders.warehouse(conn, kode)
                builders.limits(conn, kode, str(LIMIT))

    def paper(self, draft: Draft) -> Paper:
        lines = [
            Count(f"{self.stamp}-{one.kode_barang}", one.gudang_kode, one.sistem, one.fisik, one.cost)
            for one in draft.lines
        ]
        return Paper(f"{self.stamp}-{draft.number}", draft.gudang, self.snapshot, self.began, lines)

    def submission(self, paper: Paper) -> Submission:
        lines = tuple(
            Line(
                one.kode_barang,
                gudang_kode=one.gudang_kode,
                qty_sistem=one.sistem,
                qty_fisik=one.fisik,
                harga_pokok=one.cost,
            )
            for one in paper.lines
        )
        day = (self.snapshot + timedelta(hours=7)).date()
        return Submission(
            paper.nota, paper.gudang, day, lines, snapshot_at=paper.snapshot, submit_token=f"form-{paper.nota}"
        )

    def staged_lines(self, paper: Paper) -> list[builders.Line]:
        def text(value: Decimal | None) -> str | None:
            return None if value is None else f"{value:f}"

        return [
            builders.Line(
                one.kode_barang, text(one.sistem), text(one.fisik), text(one.cost), gudang_kode=one.gudang_kode
            )
            for one in paper.lines
        ]

    def was_taken(self, sent: Sent) -> None:
        with self.lock:
            self.sent.append(sent)
            self.ledger.papers[sent.paper.nota] = sent.paper

    def some(self, place: float, *statuses: str, suits: Callable[[Sent], bool] = lambda one: True) -> Sent:
        """One of the documents that are in such a status now (none named: any), by its place from 0 to 1."""
        with self.lock:
            known = [one for one in self.sent if suits(one)]
        if statuses and known:
            ids = tuple(one.shadow_id for one in known)
            sql = "SELECT id FROM rabbit_publish_shadow WHERE id IN %s AND worker_status IN %s"
            now = {row["id"] for row in self.rows(sql, ids, statuses)}
            known = [one for one in known if one.shadow_id in now]
        if not known:
            raise NotNow(f"no document is {' or '.join(statuses) or 'there'}")
        return known[int(place * len(known))]

    def next_foreign_id(self) -> int:
        (row,) = self.rows(
            "SELECT GREATEST(COALESCE((SELECT MAX(transaksi_id) FROM so_headers_staging), 0),"
            " COALESCE((SELECT MAX(id) FROM transaksi), 0), %s) AS id",
            FOREIGN_IDS,
        )
        return int(row["id"]) + APART

    # ---------------------------------------------------------------------------------------------- processes

    def pid(self, program: str) -> int:
        state = manager.states(self.layout)[program]
        if not state.is_running:
            raise NotNow(f"{program} is {state.state}")
        return state.pid

    def start(self, program: str) -> None:
        manager.start_program(self.layout, Stack.open(self.layout).program(program))

    def stop(self, program: str) -> None:
        manager.stop_program(self.layout, Stack.open(self.layout).program(program))

    def down(self) -> list[str]:
        """Programs that nobody will start again by himself."""
        return [name for name, state in manager.states(self.layout).items() if state.state in manager.STOPPED]

    def shadow_ids(self) -> Sequence[int]:
        with self.lock:
            return tuple(one.shadow_id for one in (*self.sent, *self.errands))
