"""What people do in a chaos run: submit and submit again, decide, reverse, run again. Their messages: messages.py.

Each is tried until it is taken, or refused. What an answer means for the books is noted in the ledger at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any, ClassVar, Self

from everest import approvals, bootstrap, reversal
from everest.intake import submit
from everest.settings import Settings
from ingest_consumer import by_hand
from tests import builders
from tests.chaos import documents
from tests.chaos.documents import Draft
from tests.chaos.happening import Happening
from tests.chaos.messages import Disconnect, MoveBack, PublishAgain, PublishWrong
from tests.chaos.world import AUTHORITY, FINANCE, NotNow, Sent, World
from tests.integration.books.ledger import Movement, Paper


def _draft(rng: Random) -> Draft:
    return documents.draw(rng, rng.randrange(10**9))


def _late_movement(world: World, draft: Draft, paper: Paper) -> None:
    """Entered by another module now, dated before the count."""
    if draft.kind != "late":
        return
    key = documents.late_line(paper.lines).key
    entered, dated = world.began, (paper.snapshot + timedelta(hours=5)).replace(tzinfo=None)
    nota = f"BELI-{paper.nota}"

    def enter() -> None:
        with world.live.connection() as conn:
            if not builders.rows(conn, "SELECT id FROM kartu_stok WHERE nomer_nota = %s", nota):
                builders.movement(
                    conn, key[0], masuk="3", tanggal_wib=dated, created_at=entered, gudang_kode=key[1], nomer_nota=nota
                )

    world.insist(enter)
    with world.lock:
        moved = Movement(key, Decimal(3), Decimal(0), dated, entered, nota, is_opname=False)
        world.ledger.movements.append(moved)


@dataclass(frozen=True)
class Submit(Happening):
    """Through our own intake; two tabs at once, sometimes."""

    name: ClassVar[str] = "submit"
    weight: ClassVar[int] = 10
    draft: Draft
    senders: int

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(_draft(rng), rng.choices((1, 3), (5, 1))[0])

    def begin(self, world: World) -> str:
        paper = world.paper(self.draft)
        world.tried[paper.nota] = (self.draft, paper)
        _late_movement(world, self.draft, paper)
        submission = world.submission(paper)
        answers: list[submit.Submitted | submit.AlreadySubmitted] = []

        def send() -> None:
            answers.append(world.insist(lambda: _send(world, submission)))

        tabs = [threading.Thread(target=send, daemon=True) for _ in range(self.senders)]
        for tab in tabs:
            tab.start()
        for tab in tabs:
            tab.join()
        if not answers:
            raise RuntimeError(f"{paper.nota} could not be submitted at all")
        assert len({answer.transaksi_id for answer in answers}) == 1, f"{paper.nota} is two documents: {answers}"
        shadow_id = next(one.shadow_id for one in answers if one.shadow_id is not None)
        world.was_taken(Sent(self.draft, paper, shadow_id, answers[0].transaksi_id, submission=submission))
        return f"{paper.nota} ({self.draft.kind}, {len(paper.lines)} lines)"


def _send(world: World, submission: Any) -> submit.Submitted | submit.AlreadySubmitted:
    database = bootstrap.database(world.mysql_of_submits, Settings())
    try:
        return submit.submit_document(database.transaction, submission, AUTHORITY)
    finally:
        database.close()


@dataclass(frozen=True)
class SubmitAgain(Happening):
    """The same form a second time: the same document."""

    name: ClassVar[str] = "submit-again"
    weight: ClassVar[int] = 2
    place: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3))

    def begin(self, world: World) -> str:
        sent = world.some(self.place, suits=lambda one: one.submission is not None)
        answer = world.insist(lambda: _send(world, sent.submission))
        assert isinstance(answer, submit.AlreadySubmitted), f"{sent.paper.nota} was stored a second time: {answer}"
        assert answer.transaksi_id == sent.transaksi_id
        assert answer.same_content
        return sent.paper.nota


@dataclass(frozen=True)
class SubmitForeign(Happening):
    """As the existing web application does it: rows, then a message by hand; times=0: it dies in between."""

    name: ClassVar[str] = "submit-foreign"
    weight: ClassVar[int] = 6
    draft: Draft
    times: int

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(_draft(rng), rng.choices((0, 1, 2), (1, 6, 2))[0])

    def begin(self, world: World) -> str:
        paper = world.paper(self.draft)
        world.tried[paper.nota] = (self.draft, paper)
        _late_movement(world, self.draft, paper)

        def store() -> builders.Document:
            with world.lock, world.live.connection() as conn:
                document = builders.document(
                    _OneTransaction(conn),
                    world.staged_lines(paper),
                    nomer_nota=paper.nota,
                    transaksi_id=world.next_foreign_id(),
                    gudang_kode=paper.gudang,
                    snapshot_at=paper.snapshot,
                    diotorisasi_at=world.began,
                    with_warehouses=False,
                )
                conn.commit()
                return document

        # Its commit may be lost and have happened; then the nota exists twice, and one of the two is refused.
        document = world.insist(store)
        sent = Sent(self.draft, paper, document.shadow_id, document.transaksi_id, message=document.message)
        world.was_taken(sent)
        for _ in range(self.times):
            world.insist(lambda: world.live.publish(document.message))
        return f"{paper.nota} ({self.draft.kind}, {len(paper.lines)} lines)"


class _OneTransaction:
    """A connection whose commits are its owner's."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def cursor(self, *arguments: Any) -> Any:
        return self._conn.cursor(*arguments)

    def commit(self) -> None:
        pass


# -------------------------------------------------------------------------------------------------- finance


@dataclass(frozen=True)
class OnDocument(Happening):
    place: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3))


@dataclass(frozen=True)
class Decide(OnDocument):
    name: ClassVar[str] = "decide"
    weight: ClassVar[int] = 3
    says_yes: bool

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.random() < 0.7)

    def begin(self, world: World) -> str:
        sent = world.some(self.place, "WAITING")
        decide(world, sent, self.says_yes)
        return f"{sent.paper.nota} {'approved' if self.says_yes else 'rejected'}"


def decide(world: World, sent: Sent, says_yes: bool) -> None:
    answer: Callable[..., Any] = approvals.approve if says_yes else approvals.reject
    # Noted before: an answer whose commit got lost on the way back counts as given.
    sent.is_approved, sent.is_rejected = sent.is_approved or says_yes, sent.is_rejected or not says_yes
    world.insist(lambda: world.in_transaction(lambda tx: answer(tx, f"#{sent.shadow_id}", FINANCE, "sudah dilihat")))


@dataclass(frozen=True)
class Reverse(OnDocument):
    name: ClassVar[str] = "reverse"
    weight: ClassVar[int] = 2

    def begin(self, world: World) -> str:
        sent = world.some(self.place, "COMPLETED", suits=lambda one: one.paper.reverses is None)
        nota = sent.paper.nota
        asked = world.insist(
            lambda: world.in_transaction(lambda tx: reversal.request(tx, nota, FINANCE, "salah hitung"))
        )
        with world.lock:
            if asked.nomer_nota in world.ledger.papers:
                raise NotNow("it was asked for before")
            mirror = Paper(asked.nomer_nota, sent.paper.gudang, world.began, world.began, [], reverses=nota)
            world.was_taken(Sent(None, mirror, asked.shadow_id, asked.transaksi_id))
        return asked.nomer_nota


@dataclass(frozen=True)
class RunAgain(OnDocument):
    name: ClassVar[str] = "rerun"
    weight: ClassVar[int] = 3

    def begin(self, world: World) -> str:
        sent = world.some(self.place, "FAILED")
        rerun(world, sent)
        return sent.paper.nota


def rerun(world: World, sent: Sent) -> None:
    world.insist(lambda: world.in_transaction(lambda tx: by_hand.rerun(tx.conn, sent.shadow_id, FINANCE)))


FIRST: tuple[type[Happening], ...] = (Submit, SubmitForeign, Submit)
DEEDS: tuple[type[Happening], ...] = (
    Submit,
    SubmitAgain,
    SubmitForeign,
    PublishAgain,
    PublishWrong,
    Disconnect,
    Decide,
    Reverse,
    RunAgain,
    MoveBack,
)
