"""A random story of a warehouse, told to the product and to a ledger in plain Python at once.

Everything random comes from one seed, the clock included, so a story that ends differently is told again by its
number. The product's part is its own functions over a real database; relay, consumer and Airflow are played by the
world of the workflow tests, one DAG run at a time, so that anything may happen between two of its tasks.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from everest import approvals, periods, reversal
from everest.errors import EverestError
from everest.intake import replace, submission, submit
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.settings import MysqlUrl
from everest.workflow.ticket import Leave, Ticket
from ingest_consumer import by_hand
from ingest_consumer import shadow as jobs
from tests import builders
from tests.integration.books.ledger import Count, Ledger, Movement, Paper, wib
from tests.workflow.world import MysqlWorld

WAREHOUSES = ("GD-A", "GD-B")
ITEMS = ("00123", "NA", "BRG-C")
COSTS = ("1500.00", "2500.50", "0.049", "100.00", "99.995")
CLERK, MANAGER, FINANCE = "sari", "budi", "tini"


class Story:
    def __init__(self, url: MysqlUrl, seed: int) -> None:
        self.random = random.Random(seed)
        self.world = MysqlWorld(url)
        self.world.know(POST_OPNAME, REVERSE_OPNAME)
        self.ledger = Ledger()
        self.told: list[str] = []
        self.happened: Counter[str] = Counter()
        self._shadows: dict[str, int] = {}
        self._moved = 0
        for kode in WAREHOUSES:
            self._insert("gudang", gudang_kode=kode, nama=kode, aktif=1)

    def close(self) -> None:
        self.world.close()

    # --------------------------------------------------------------------------------------------- the story

    def tell(self, happenings: int) -> None:
        """So many random things, then the rest of the queue."""
        for _ in range(happenings):
            self._one_thing()
        while self._deliver():
            pass

    def _one_thing(self, between_tasks: bool = False) -> None:
        things: list[tuple[Any, int]] = [
            (self._submit, 5),
            (self._movement, 4),
            (self._decide, 6),
            (self._reverse, 2),
            (self._period, 2),
            (self._limits, 2),
            (self._rerun, 2),
            (self._replace, 2),
            (self._time_passes, 2),
            (self._replay, 1),
        ]
        if not between_tasks:
            things.append((self._deliver, 12))
        (thing,) = self.random.choices([one for one, _ in things], [weight for _, weight in things])
        self._say(thing.__name__.strip("_"), bool(thing()))

    def _say(self, what: str, happened: bool) -> None:
        self.told.append(what if happened else f"({what})")
        self.happened[what] += happened

    # ------------------------------------------------------------------------------------------ what people do

    def _submit(self) -> bool:
        gudang = self.random.choice(WAREHOUSES)
        nota = f"SO-{len(self.ledger.papers) + 1}"
        lines = self._lines(gudang)
        snapshot = self.world.now - timedelta(minutes=self.random.choice((0, 0, 1, 30, 600)))
        with self.world.transaction() as tx:
            stored = submit.submit(tx, self._submission(nota, gudang, lines, snapshot), self._authority())
            authorised = tx.now
        assert isinstance(stored, submit.Submitted)
        self.ledger.papers[nota] = Paper(nota, gudang, snapshot, authorised, lines)
        self._shadows[nota] = stored.shadow_id
        return True

    def _replace(self) -> bool:
        paper = self._some(lambda one: one.status == "FAILED" and one.reverses is None)
        if paper is None:
            return False
        lines = self._lines(paper.gudang)
        snapshot = self.world.now
        with self.world.transaction() as tx:
            new = self._submission(paper.nota, paper.gudang, lines, snapshot)
            replace.replace(tx, new, self._authority(), reason="dihitung ulang", rerun=True)
            paper.authorised = tx.now
        paper.lines, paper.snapshot, paper.status, paper.code = lines, snapshot, "PENDING", None
        paper.approved = None
        return True

    def _rerun(self) -> bool:
        paper = self._some(lambda one: one.status == "FAILED")
        if paper is None:
            return False
        with self.world.transaction() as tx:
            by_hand.rerun(tx.conn, self._shadows[paper.nota], FINANCE)
        paper.status, paper.code = "PENDING", None
        return True

    def _decide(self) -> bool:
        """Finance answers; sometimes the person who counted tries to, and is refused."""
        paper = self._some(lambda one: one.status == "WAITING" and one.asked is not None)
        if paper is None:
            return False
        if paper.is_too_late(self.world.now):
            assert self._is_refused(approvals.approve, paper.nota, FINANCE, "terlambat")
            return False
        says_yes = self.random.random() < 0.5
        if self.random.random() < 0.2:
            assert self._is_refused(approvals.approve, paper.nota, CLERK, "punya saya sendiri")
        with self.world.transaction() as tx:
            (approvals.approve if says_yes else approvals.reject)(tx, paper.nota, FINANCE, "sudah dilihat")
        paper.status, paper.rejected = "PENDING", not says_yes
        paper.approved, paper.asked, paper.asked_at = (paper.asked if says_yes else None), None, None
        return True

    def _reverse(self) -> bool:
        paper = self._some(lambda one: one.status == "COMPLETED")
        if paper is None:
            return False
        on_its_way = any(one.reverses == paper.nota for one in self.ledger.papers.values())
        is_closed = f"{wib(self.world.now):%Y-%m}" in self.ledger.closed
        if paper.reverses is not None or on_its_way or is_closed:
            assert self._is_refused(reversal.request, paper.nota, FINANCE, "dicoba lagi")
            return False
        assert self._is_refused(reversal.request, paper.nota, CLERK, "dokumen saya sendiri")
        with self.world.transaction() as tx:
            asked = reversal.request(tx, paper.nota, FINANCE, "salah hitung")
        self._shadows[asked.nomer_nota] = asked.shadow_id
        mirror = Paper(asked.nomer_nota, paper.gudang, self.world.now, self.world.now, [], reverses=paper.nota)
        self.ledger.papers[asked.nomer_nota] = mirror
        return True

    def _period(self) -> bool:
        month = self.random.choice((f"{wib(self.world.now):%Y-%m}", "2026-01", "2026-02"))
        if month in self.ledger.closed:
            with self.world.transaction() as tx:
                periods.open(tx, month, FINANCE, "perbaikan")
            self.ledger.closed.discard(month)
        elif self.random.random() < 0.5:
            with self.world.transaction() as tx:
                periods.close(tx, month, FINANCE, "tutup buku", force=True)
            self.ledger.closed.add(month)
        return True

    def _limits(self) -> bool:
        of_document, of_line = self.random.choice(((None, None), ("10000", None), (None, "5000"), ("20000", "5000")))
        with self.world.transaction() as tx:
            builders.limits(tx.conn, "*", of_document, of_line)
        self.ledger.limits = tuple(None if one is None else Decimal(one) for one in (of_document, of_line))  # type: ignore[assignment]
        return True

    def _movement(self) -> bool:
        """Another module enters one, some of them late: dated before a snapshot that was taken already."""
        self._moved += 1
        key = (self.random.choice(ITEMS), self.random.choice(WAREHOUSES))
        quantity = Decimal(self.random.choice(("5", "-3", "0.5")))
        late = self.random.random() < 0.4
        dated = wib(self.world.now - timedelta(hours=12) if late else self.world.now + timedelta(minutes=5))
        nota = f"BELI-{self._moved}"
        self._insert(
            "kartu_stok",
            kode_barang=key[0],
            gudang_kode=key[1],
            tanggal_wib=dated,
            nomer_nota=nota,
            masuk=max(quantity, Decimal(0)),
            keluar=max(-quantity, Decimal(0)),
            sumber="BELI",
        )
        moved = Movement(key, quantity, Decimal(0), dated, self.world.now, nota, is_opname=False)
        self.ledger.movements.append(moved)
        return True

    def _time_passes(self) -> bool:
        self.world.database.move_clock(timedelta(hours=self.random.choice((1, 20, 24 * 9))))
        return True

    # ------------------------------------------------------------------------------------- what the machines do

    def _deliver(self) -> bool:
        """The next message reaches its DAG run; something else may happen between its tasks."""
        message = self.world._due()
        if message is None:
            return False
        if not self.world._claim(message):
            return True
        paper = self._paper(message.shadow_id)
        ticket = Ticket(message.dag_run_id, message.shadow_id, message.n, message.run_id)
        if paper.reverses is not None:
            for step in REVERSE_OPNAME.steps:
                self._task(ticket, step.name)
            if self.ledger.look(paper, self.world.now):
                self.ledger.post(paper, self.world.now)
            return True
        goes_on = self.ledger.look(paper, self.world.now)
        assert self._task(ticket, "compute_variance") == goes_on, f"{paper.nota}: {paper}"
        if goes_on:
            if self.random.random() < 0.3:
                self._one_thing(between_tasks=True)
            assert self._task(ticket, "clean_duplicate_notas")
            self._task(ticket, "post_jurnal")
            self.ledger.post(paper, self.world.now)
        return True

    def _task(self, ticket: Ticket, step: str) -> bool:
        """Whether the DAG run goes on behind it."""
        try:
            return not isinstance(self.world.step(ticket, step), Leave)
        except EverestError:
            return False

    def _replay(self) -> bool:
        """An old message comes again: nothing may happen."""
        paper = self._some(lambda one: one.status in ("COMPLETED", "WAITING"))
        if paper is None:
            return False
        with self.world.transaction() as tx:
            row = jobs.get(tx.conn, self._shadows[paper.nota])
            assert row is not None
            claimed = jobs.claim(tx.conn, row.id, row.dag_run_id, row.dag_id or "", row.dag_run_id or "", row.n or 1)
        assert not claimed
        return True

    # ------------------------------------------------------------------------------------------------- helpers

    def _lines(self, gudang: str) -> list[Count]:
        kinds = self.random.sample(ITEMS, self.random.randint(1, len(ITEMS)))
        lines = []
        for kode in kinds:
            where = gudang if self.random.random() < 0.8 else self.random.choice(WAREHOUSES)
            sistem = Decimal(self.random.choice(("0", "10", "7", "-4", "3.5")))
            fisik = None if self.random.random() < 0.04 else Decimal(self.random.choice(("0", "10", "12", "5", "3.5")))
            cost = Decimal(0) if self.random.random() < 0.04 else Decimal(self.random.choice(COSTS))
            lines.append(Count(kode, where, sistem, fisik, cost))
        return lines

    def _submission(self, nota: str, gudang: str, lines: list[Count], snapshot: Any) -> submission.Submission:
        rows = [
            submission.Line(
                kode_barang=line.kode_barang,
                gudang_kode=line.gudang_kode,
                qty_sistem=line.sistem,
                qty_fisik=line.fisik,
                harga_pokok=line.cost,
            )
            for line in lines
        ]
        return submission.Submission(nota, gudang, date(2026, 1, 1), tuple(rows), snapshot_at=snapshot)

    def _authority(self) -> submission.Authority:
        return submission.Authority(CLERK, MANAGER, 2)

    def _some(self, wanted: Any) -> Paper | None:
        found = [one for one in self.ledger.papers.values() if wanted(one)]
        return self.random.choice(found) if found else None

    def _paper(self, shadow_id: int) -> Paper:
        return next(self.ledger.papers[nota] for nota, one in self._shadows.items() if one == shadow_id)

    def _is_refused(self, action: Any, *arguments: Any) -> bool:
        try:
            with self.world.transaction() as tx:
                action(tx, *arguments)
        except EverestError:
            return True
        return False

    def _insert(self, table: str, **values: Any) -> None:
        with self.world.transaction() as tx:
            builders.insert(tx.conn, table, **values)

    # ---------------------------------------------------------------------------------------------- comparisons

    def expected(self) -> dict[str, Any]:
        """How the ledger says it ended."""
        papers = self.ledger.papers.values()
        return {
            "jobs": {
                one.nota: (one.status, one.code if one.status in ("COMPLETED", "FAILED") else None) for one in papers
            },
            "journal": {
                nota: _sorted((r.account, r.debet, r.kredit) for r in rows)
                for nota, rows in self.ledger.journal.items()
                if rows
            },
            "cards": _by_nota(
                (one.nota, *one.key, one.quantity, one.value) for one in self.ledger.movements if one.is_opname
            ),
            "accounts": self.ledger.accounts(),
            "stock": self.ledger.stock(),
        }

    def found(self) -> dict[str, Any]:
        """How the tables say it ended."""
        rows = self.world.rows
        job_rows = rows(
            "SELECT nomer_nota, worker_status, JSON_VALUE(response, '$.code') AS code FROM rabbit_publish_shadow"
        )
        journal: dict[str, list[Any]] = {}
        for row in rows("SELECT nomer_nota, kode_akun, debet, kredit FROM jurnal"):
            journal.setdefault(row["nomer_nota"], []).append((row["kode_akun"], row["debet"], row["kredit"]))
        cards = rows(
            "SELECT nomer_nota, kode_barang, gudang_kode, masuk - keluar AS n, nilai FROM kartu_stok"
            " WHERE sumber = 'OPNAME'"
        )
        accounts = rows("SELECT kode_akun, SUM(debet - kredit) AS n FROM jurnal GROUP BY kode_akun HAVING n <> 0")
        stock = rows(
            "SELECT kode_barang, gudang_kode, SUM(masuk - keluar) AS n FROM kartu_stok GROUP BY 1, 2 HAVING n <> 0"
        )
        return {
            "jobs": {
                row["nomer_nota"]: (
                    row["worker_status"],
                    int(row["code"]) if row["worker_status"] in ("COMPLETED", "FAILED") else None,
                )
                for row in job_rows
            },
            "journal": {nota: _sorted(some) for nota, some in journal.items()},
            "cards": _by_nota((r["nomer_nota"], r["kode_barang"], r["gudang_kode"], r["n"], r["nilai"]) for r in cards),
            "accounts": {row["kode_akun"]: row["n"] for row in accounts},
            "stock": {(row["kode_barang"], row["gudang_kode"]): row["n"] for row in stock},
        }


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows)


def _by_nota(rows: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for nota, *rest in rows:
        found.setdefault(nota, []).append(tuple(rest))
    return {nota: sorted(some) for nota, some in found.items()}
