"""Two people at once, each in a session of their own: whatever they do, one of them has it and the other gets a
sentence, and what they leave behind is what one of the two alone would have left.

Beside these: two approvers, an approval and a cancel (`test_approvals`), two who ask for a reversal
(`test_reversal`), a closing and a posting (`test_periods`), two senders (`intake/test_submit`), an answer and a
timeout, two copies of a task (`workflow/test_two_at_once`), two purges (`workflow/test_purge`), two migrations
(`migrations/test_runner`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from everest import approvals, bootstrap, periods, reversal
from everest.errors import EverestError, TransientDatabaseError
from everest.intake.replace import replace
from everest.intake.submission import Authority, Line, Submission
from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from everest.settings import MysqlUrl, Settings
from everest.store.lines_purge import purge_lines
from everest.store.migrations import MIGRATIONS_DIR, migrate
from everest.store.outbox_purge import purge_outbox
from everest.store.steps_purge import purge_steps
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import control, engine
from ingest_consumer import by_hand
from ingest_consumer.errors import IngestError
from tests import builders
from tests.builders import Document
from tests.integration.opname.holding import hold_in
from tests.integration.opname.walk import Walker

COUNTED = Line("BRG-A", qty_sistem=Decimal(10), qty_fisik=Decimal(12), harga_pokok=Decimal(1500))
GOOD = Submission("SO-TWO", None, None, (COUNTED,))
TONO = Authority(submitted_by="rina", authorised_by="tono", level=3)
Deed = Callable[[UnitOfWork, Document], Any]


def drop(tx: UnitOfWork, document: Document) -> None:
    if not by_hand.cancel_dropped(tx.conn, document.shadow_id, "dewi", "dobel"):
        raise IngestError("only a FAILED one can be dropped")  # what the command says then


def correct(tx: UnitOfWork, document: Document) -> None:
    """With its rerun, as the page does it."""
    replace(tx, GOOD, TONO)
    tx.runs.rerun(document.shadow_id, "rina", None)


def workflow_of(tx: UnitOfWork, document: Document) -> int:
    row = tx.runs.shadow(document.shadow_id)
    assert row is not None
    assert row.workflow_id is not None
    return row.workflow_id


ON_A_FAILED_ONE: dict[str, Deed] = {
    "rerun": lambda tx, document: tx.runs.rerun(document.shadow_id, "budi", None),
    "drop": drop,
    "correct": correct,
    "cancel": lambda tx, document: control.cancel(tx, POST_OPNAME, workflow_of(tx, document), "eko", "batal"),
    "post": lambda tx, document: engine.take_over(tx, POST_OPNAME, document.shadow_id),
}
LEAVES = {"rerun": "PENDING", "drop": "CANCELLED", "correct": "PENDING", "cancel": "CANCELLED", "post": "PROCESSING"}
AFTER = {
    ("rerun", "cancel"): "CANCELLED",
    ("correct", "cancel"): "CANCELLED",
    ("cancel", "post"): "CANCELLED",
    ("rerun", "post"): "PROCESSING",
    ("correct", "post"): "PROCESSING",
}
"""What is on its way may be cancelled, or posted by hand: one of these may come after the other, no conflict."""


QUICK = {("rerun", "rerun"), ("rerun", "drop"), ("drop", "correct")}
PAIRS = [
    pytest.param(pair, id="+".join(pair), marks=[] if pair in QUICK else pytest.mark.long)
    for pair in combinations_with_replacement(ON_A_FAILED_ONE, 2)
]


@pytest.fixture
def sessions(database: MysqlUrl) -> Iterator[tuple[Database, Database]]:
    with closing(bootstrap.database(database, Settings())) as one, closing(bootstrap.database(database)) as other:
        yield one, other


def at_once(sessions: tuple[Database, Database], document: Document, first: Deed, second: Deed) -> list[str | None]:
    """What each came to: None, or the sentence it got. Both are in a transaction before either begins. A deadlock or a
    lock that is not freed is no answer to a person, and fails the test."""
    start = threading.Barrier(2)

    def does(number: int, deed: Deed) -> str | None:
        try:
            with sessions[number].transaction() as tx:
                start.wait(30)
                deed(tx, document)
        except (EverestError, IngestError) as refused:
            if isinstance(refused, TransientDatabaseError):
                raise
            return refused.message
        return None

    with ThreadPoolExecutor(2) as pool:
        return [one.result(60) for one in [pool.submit(does, 0, first), pool.submit(does, 1, second)]]


@pytest.mark.parametrize("pair", PAIRS)
def test_of_two_deeds_on_a_failed_document_one_happens_and_the_other_is_told(
    walker: Walker, sessions: tuple[Database, Database], connection: Any, pair: tuple[str, str]
) -> None:
    document = builders.document(connection, [builders.Line(qty_fisik=None)], nomer_nota="SO-TWO", dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "FAILED"

    told = at_once(sessions, document, ON_A_FAILED_ONE[pair[0]], ON_A_FAILED_ONE[pair[1]])

    status = builders.shadow(connection, document.shadow_id)["worker_status"]
    if told == [None, None]:
        assert status == AFTER.get(pair), "not one after the other"
        return
    assert Counter(one is None for one in told) == {True: 1, False: 1}, told
    assert all(one is None or len(one.split()) > 3 for one in told), "a sentence"
    assert status == LEAVES[pair[told.index(None)]]
    announced = builders.rows(connection, "SELECT id FROM outbox WHERE published_at IS NULL")
    assert len(announced) == (status == "PENDING")
    (run,) = builders.rows(connection, "SELECT n, status FROM workflow_runs")
    assert run["n"] == (1 if status == "CANCELLED" else 2), "no number was taken twice"


def test_an_approval_and_a_rejection_at_once_are_one_answer(
    walker: Walker, sessions: tuple[Database, Database], connection: Any
) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection, dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "WAITING"

    told = at_once(
        sessions,
        document,
        lambda tx, document: approvals.approve(tx, document.nomer_nota, "tono", "benar"),
        lambda tx, document: approvals.reject(tx, document.nomer_nota, "rina", "salah rak"),
    )

    (sentence,) = [one for one in told if one is not None]
    end, words = (
        ("COMPLETED", "sudah disetujui oleh tono") if told[0] is None else ("FAILED", "sudah ditolak oleh rina")
    )
    assert words in sentence
    assert walker.post(document.shadow_id) == end
    assert len(builders.rows(connection, "SELECT id FROM audit_log WHERE action IN ('approve', 'reject')")) == 1


@pytest.mark.long
def test_a_failed_reversal_that_is_run_again_and_asked_for_again_at_once_is_one_reversal(
    walker: Walker, database: MysqlUrl, sessions: tuple[Database, Database], connection: Any
) -> None:
    document = builders.document(connection, dibuat_oleh="sari")
    assert walker.post(document.shadow_id) == "COMPLETED"
    with walker.database.transaction() as tx:
        asked = reversal.request(tx, document.nomer_nota, "dewi", "salah rak")
    month = f"{datetime.now(builders.WIB):%Y-%m}"
    with closing(Walker(database, definition=REVERSE_OPNAME)) as reverser:
        with walker.database.transaction() as tx:
            periods.close(tx, month, "dewi", "tutup buku", force=True)
        assert reverser.post(asked.shadow_id) == "FAILED"
        with walker.database.transaction() as tx:
            periods.open(tx, month, "dewi", "koreksi")

        told = at_once(
            sessions,
            document,
            lambda tx, document: tx.runs.rerun(asked.shadow_id, "budi", None),
            lambda tx, document: reversal.request(tx, document.nomer_nota, "eko", "salah hitung"),
        )

        assert told.count(None) == 1, told
        jobs = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow WHERE worker_status = 'PENDING'")
        ends = [reverser.post(job["id"]) for job in jobs]
    assert ends == ["COMPLETED"]
    assert len(builders.rows(connection, "SELECT id FROM posting_sets WHERE jenis = 'PEMBALIKAN'")) == 1


@pytest.mark.long
def test_what_is_purged_and_migrated_during_a_posting_neither_harms_it_nor_waits_for_ever(
    walker: Walker, database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A posting stands between its last statement and its commit. An older one is old enough to be purged."""
    old = builders.document(connection, [builders.Line("OLD")])
    assert walker.post(old.shadow_id) == "COMPLETED"
    with connection.cursor() as cursor:
        for table, column in (("workflow_runs", "finished_at"), ("posting_sets", "created_at")):
            cursor.execute(f"UPDATE {table} SET {column} = {column} - INTERVAL 400 DAY")
        cursor.execute("UPDATE outbox SET published_at = UTC_TIMESTAMP(6) - INTERVAL 400 DAY")
    connection.commit()
    known = list(MIGRATIONS_DIR.glob("*.sql"))
    for file in known:
        (tmp_path / file.name).write_text(file.read_text())
    another = f"{len(known) + 1:04d}_another"
    (tmp_path / f"{another}.sql").write_text("ALTER TABLE jurnal ADD COLUMN catatan VARCHAR(10) NULL;\n")
    document = builders.document(connection, [builders.Line("NEW")])
    ticket = walker.claim(document.shadow_id)
    gate = hold_in(walker, monkeypatch, "insert_posting")

    with ThreadPoolExecutor(2) as pool, closing(bootstrap.database(database, Settings())) as purger:
        posting = pool.submit(walker.dag_run, ticket)
        assert gate.reached.wait(30)
        year = timedelta(days=365)
        taken = [purge(purger.transaction, year, "dewi") for purge in (purge_steps, purge_lines, purge_outbox)]
        migrating = pool.submit(migrate, database, print, tmp_path)
        gate.open.set()
        posting.result(60)
        assert migrating.result(60) == [another]

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jurnal DROP COLUMN catatan")
        cursor.execute("DELETE FROM schema_migrations WHERE name = %s", (another,))
    connection.commit()
    assert taken[:2] == [1, (1, 1)], "of the old one alone"
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"
    assert [len(builders.journal_of(connection, one.nomer_nota)) for one in (old, document)] == [2, 2]
