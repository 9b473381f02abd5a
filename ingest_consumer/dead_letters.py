"""The dead-letter queue, read with the rows beside it: what lies there and why, and the three ways out of it.

A letter says only which job it was; why it lies there is derived from the row, or from the decoder for a body that
never was a message. The queue is read by taking every letter unacked; whatever is not acked goes back when the
channel closes, also when this process dies. A named MySQL lock keeps two readers from hiding letters from each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from ingest_consumer import broker, by_hand, shadow
from ingest_consumer.broken_letters import BrokenLetters, Seen, seen
from ingest_consumer.database import Database
from ingest_consumer.errors import DecodeError, LetterMissing, RerunRefused
from ingest_consumer.message import Message, decode, mismatch
from ingest_consumer.shadow import DEAD_LETTER_QUEUE, Shadow

LETTERS_AT_ONCE = 500
"""Are read, and then their rows."""
KEY_SHOWN = 12
LOOK_MAX = 100_000
"""A bound on one reading, far above what a queue that is looked after holds."""


class Standing(Enum):
    """What has become of a letter's job."""

    BROKEN = "broken"
    """No message of ours, or one that names no row of its own."""
    FAILED = "failed"
    AT_WORK = "at work"
    """Being run again; the letter stays until the outcome is known."""
    SETTLED = "settled"
    """COMPLETED or CANCELLED: the letter has no meaning any more."""


@dataclass(frozen=True)
class Letter:
    """A letter and its job. `reason` is why it lies there."""

    tag: int
    standing: Standing
    reason: str
    message: Message | None
    row: Shadow | None
    seen: Seen

    @property
    def key(self) -> str:
        """Names the letter by its content."""
        return self.seen.digest[:KEY_SHOWN]

    @property
    def died_at(self) -> datetime | None:
        return self.seen.died_at

    def as_json(self) -> dict[str, Any]:
        row, now = self.row, datetime.now(UTC)
        return {
            "letter": self.key,
            "standing": self.standing.value,
            "nota": row.nomer_nota if row else (self.message.nota if self.message else None),
            "transaksi_id": row.transaksi_id if row else None,
            "shadow_id": self.message.shadow_id if self.message else None,
            "workflow_id": row.workflow_id if row else None,
            "worker_status": row.worker_status if row else None,
            "code": row.error_code if row else None,
            "reason": self.reason,
            "attempts": row.attempts if row else None,
            "died_at": self.died_at.isoformat() if self.died_at else None,
            "age_seconds": int((now - self.died_at).total_seconds()) if self.died_at else None,
        }


@dataclass(frozen=True)
class Done:
    """What was done with one letter, in words; `ok` = as asked."""

    letter: Letter
    ok: bool
    words: str


class Box:
    """The letters of the queue while they are ours. `take` removes one for good; the rest goes back."""

    def __init__(self, channel: BlockingChannel, letters: list[Letter]) -> None:
        self._channel = channel
        self.letters = letters

    def take(self, letter: Letter) -> None:
        self._channel.basic_ack(letter.tag)


@contextmanager
def opened(connection: pika.BlockingConnection, database: Database, wait_s: int) -> Iterator[Box | None]:
    """Every letter of the queue, None when another reader has them for longer than `wait_s`."""
    with _held(connection, database, wait_s) as channel:
        yield None if channel is None else Box(channel, list(_letters(channel, database)))


@contextmanager
def _held(connection: pika.BlockingConnection, database: Database, wait_s: int) -> Iterator[BlockingChannel | None]:
    """A channel for reading the queue while nobody else reads it; None when somebody does."""
    name = database.lock_name("letters")
    if not _lock(database, name, wait_s):
        yield None
        return
    channel = None
    try:
        channel = connection.channel()
        yield channel
    finally:
        broker.close_quietly(channel)
        if database.is_open:  # a lost connection has freed the lock already
            with database.transaction() as conn:
                shadow.queries.release_lock(conn, name=name)


def _lock(database: Database, name: str, wait_s: int) -> bool:
    """Second by second: one long wait would outlast the timeout of the connection."""
    for wait_seconds in (0, *(1 for _ in range(wait_s))):
        with database.transaction() as conn:
            if shadow.queries.get_lock(conn, name=name, wait_seconds=wait_seconds) == 1:
                return True
    return False


def settle(
    connection: pika.BlockingConnection,
    database: Database,
    wait_s: int,
    is_stopping: Callable[[], bool] = lambda: False,
) -> tuple[int, dict[str, int] | None]:
    """Takes out the letters of documents that are COMPLETED or CANCELLED, and broken ones that a person has dropped on
    the pages; the rows of broken ones follow. Returns the number taken, and how many stay by standing; None of the
    latter when another reader has the letters, or it was stopped before the end."""
    left: Counter[Standing] = Counter()
    taken = 0
    with _held(connection, database, wait_s) as channel:
        if channel is None:
            return 0, None
        broken = BrokenLetters(database)
        for letter in _letters(channel, database):  # none is kept: there may be many
            is_over = letter.standing is Standing.SETTLED
            if letter.standing is Standing.BROKEN:
                is_over = broken.is_unwanted(letter.seen, letter.reason)
            if is_over:
                channel.basic_ack(letter.tag)
                taken += 1
            else:
                left[letter.standing] += 1
            if is_stopping():
                return taken, None
        if taken + left.total() < LOOK_MAX:  # else what was not read would seem to be gone
            broken.keep()
    stay = (Standing.BROKEN, Standing.FAILED, Standing.AT_WORK)
    return taken, {one.value.replace(" ", "_"): left[one] for one in stay}


def replay(box: Box, letters: list[Letter], database: Database, actor: str, reason: str | None) -> list[Done]:
    """Runs the job of each FAILED letter again; the letter goes when the rerun is committed. Further letters of
    the same job stay until it has ended."""
    again: set[int] = set()
    return [_replay(box, letter, database, actor, reason, again) for letter in letters]


def drop(box: Box, letters: list[Letter], database: Database, actor: str, reason: str) -> list[Done]:
    """Takes letters out for good: a FAILED document is cancelled by that (499), a broken message only audited."""
    return [_drop(box, letter, database, actor, reason) for letter in letters]


def _replay(box: Box, letter: Letter, database: Database, actor: str, reason: str | None, again: set[int]) -> Done:
    """again: the jobs that were run again by letters before this one."""
    if letter.standing is Standing.BROKEN:
        return Done(letter, False, f"cannot be replayed: {letter.reason}. Drop it, or have its sender send it anew")
    with database.transaction() as conn:
        row = shadow.get(conn, letter.row.id) if letter.row else None  # an earlier letter may have changed it
        assert row is not None
        if row.is_final:
            box.take(letter)
            return Done(letter, True, f"already {row.worker_status}: nothing to run, letter taken out")
        if row.id in again:
            return Done(letter, True, "runs again by another of its letters; this one stays until it has ended")
        if row.meant_status != "FAILED":
            return Done(letter, False, f"is being run ({row.worker_status}); the letter stays until it has ended")
        try:
            by_hand.rerun(conn, row.id, actor, reason)
        except RerunRefused as refusal:
            return Done(letter, False, refusal.message)
    again.add(row.id)
    box.take(letter)  # only now: the rerun is committed
    return Done(letter, True, f"runs again as job #{row.id}")


def _drop(box: Box, letter: Letter, database: Database, actor: str, reason: str) -> Done:
    with database.transaction() as conn:
        if letter.standing is Standing.BROKEN:
            after = {"letter": letter.key, "reason": letter.reason}
            shadow.audit(conn, actor, "drop_broken_letter", None, reason, after)
            words = "broken message dropped"
        else:
            row = shadow.get(conn, letter.row.id) if letter.row else None
            assert row is not None
            if row.is_final:
                words = f"already {row.worker_status}: letter taken out"
            else:
                try:
                    is_cancelled = by_hand.cancel_dropped(conn, row.id, actor, reason)
                except RerunRefused as refusal:
                    return Done(letter, False, refusal.message)
                if not is_cancelled:
                    return Done(letter, False, f"the document is {row.worker_status}: only a FAILED one can be dropped")
                words = "dropped; the document is CANCELLED (499)"
    box.take(letter)
    return Done(letter, True, words)


def _letters(channel: BlockingChannel, database: Database) -> Iterator[Letter]:
    """What the queue holds just now, with the rows of a few hundred at a time; no body is kept."""
    count = min(channel.queue_declare(DEAD_LETTER_QUEUE, passive=True).method.message_count, LOOK_MAX)
    while count > 0:  # exactly what was there: a letter that goes back would be met again
        raw = list(_raw(channel, min(count, LETTERS_AT_ONCE)))
        if not raw:
            return
        count -= len(raw)
        ids = {message.shadow_id for _, _, message, _ in raw if message}
        with database.transaction() as conn:
            rows = shadow.get_many(conn, ids)
        for tag, look, message, broken in raw:
            yield _letter(tag, look, message, broken, rows)


def _raw(channel: BlockingChannel, count: int) -> Iterator[tuple[int, Seen, Message | None, str]]:
    for _ in range(count):
        method, properties, body = channel.basic_get(DEAD_LETTER_QUEUE)
        if method is None:
            return
        message, broken = _decoded(body)
        yield method.delivery_tag, seen(method, properties, body), message, broken


def _letter(tag: int, look: Seen, message: Message | None, broken: str, rows: dict[int, Shadow]) -> Letter:
    if message is None:
        return Letter(tag, Standing.BROKEN, broken, None, None, look)
    row = rows.get(message.shadow_id)
    wrong = mismatch(message, row)
    if wrong or row is None:  # another document's row is no business of this letter
        return Letter(tag, Standing.BROKEN, wrong or "", message, None, look)
    if row.is_final:
        return Letter(tag, Standing.SETTLED, f"document is {row.worker_status}", message, row, look)
    if row.meant_status == "FAILED":
        return Letter(tag, Standing.FAILED, row.reason, message, row, look)
    return Letter(tag, Standing.AT_WORK, f"document is {row.worker_status} again", message, row, look)


def _decoded(body: bytes) -> tuple[Message | None, str]:
    """The message without its text."""
    try:
        message = decode(body)
        return replace(message, text=""), ""
    except DecodeError as error:
        return None, error.message


def chosen(
    letters: list[Letter], notas: tuple[str, ...], shadow_ids: tuple[int, ...], keys: tuple[str, ...], everything: bool
) -> list[Letter]:
    """The letters a person named. Raises LetterMissing when a name fits none, so that a typing error does not pass."""
    if everything:
        return letters
    picked = {id(letter): letter for letter in letters if _is_named(letter, notas, shadow_ids, keys)}
    found = list(picked.values())
    missing = [
        *(f"of nota {nota}" for nota in notas if not any(_is_named(letter, (nota,), (), ()) for letter in found)),
        *(f"of job #{one}" for one in shadow_ids if not any(_is_named(letter, (), (one,), ()) for letter in found)),
        *(key for key in keys if not any(_is_named(letter, (), (), (key,)) for letter in found)),
    ]
    if missing:
        raise LetterMissing(f"no dead letter {', '.join(missing)}; `dead-letters list` shows what there is")
    return found


def _is_named(letter: Letter, notas: tuple[str, ...], shadow_ids: tuple[int, ...], keys: tuple[str, ...]) -> bool:
    nota = letter.row.nomer_nota if letter.row else None
    return nota in notas or (letter.row is not None and letter.row.id in shadow_ids) or letter.key in keys
