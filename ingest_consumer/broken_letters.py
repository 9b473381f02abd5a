"""Broken messages of the dead-letter queue as rows for the pages, which speak no AMQP: what each says, who drops it.

The queue stays the truth: a letter leaves it only when a person's drop is committed, and the rows follow each whole
reading of it. So a death between any two steps loses nothing and repeats nothing but a reading. A letter that gets a
row of its own meanwhile is broken no more: its drop is void, and the reconciler sends its job on its way.
"""

from __future__ import annotations

import codecs
import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pika
from pika.spec import Basic

from ingest_consumer import broker
from ingest_consumer.database import Database
from ingest_consumer.errors import Reason
from ingest_consumer.rejection import CAME_TO, CAME_UNDER, DEATHS
from ingest_consumer.shadow import JOBS_QUEUE, queries

TEXT_BYTES = 1000
"""Of a body; enough to know its sender by."""
WORDS_MAX = 500
KEPT_MAX = 1000
"""Different messages with a row. Whoever sends more than that sends nothing that is read one by one."""
ROWS_MAX = 10 * KEPT_MAX
FORGOTTEN_AFTER_DAYS = 90


@dataclass(frozen=True)
class Seen:
    """A letter as it looks from outside. text: the beginning of its body, undecodable bytes as \\xNN. died_at: when it
    was put there, aware UTC, None = nobody told."""

    digest: str
    text: str
    size_bytes: int
    origin: str
    died_at: datetime | None


def seen(method: Basic.GetOk, properties: pika.BasicProperties, body: bytes) -> Seen:
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    text = decoder.decode(body[:TEXT_BYTES], final=len(body) <= TEXT_BYTES)  # a character that is cut in two goes
    return Seen(sha256(body).hexdigest(), text, len(body), _origin(method, properties), _died_at(properties))


class BrokenLetters:
    """One reading of the queue: `is_unwanted` for each broken letter, `keep` at the end of a whole one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        with database.transaction() as conn:
            rows = list(queries.lying_broken_letters(conn, size=ROWS_MAX))
        self._lying = {digest: letter_id for letter_id, digest, _ in rows}
        self._unwanted = {digest for _, digest, is_dropped in rows if is_dropped}
        self._kept: dict[str, tuple[Seen, str]] = {}
        self._copies: Counter[str] = Counter()

    def is_unwanted(self, letter: Seen, reason: str) -> bool:
        """Whether a person has dropped it: then it may be taken out."""
        if letter.digest in self._unwanted:
            return True
        self._copies[letter.digest] += 1
        if letter.digest in self._lying or len(self._kept) < KEPT_MAX:
            self._kept.setdefault(letter.digest, (letter, reason))
        return False

    def keep(self) -> None:
        gone = tuple(number for digest, number in self._lying.items() if digest not in self._copies)
        rows = [self._row(letter, reason) for letter, reason in self._kept.values()]
        with self._database.transaction() as conn:
            if rows:
                queries.keep_broken_letter(conn, rows)
            if gone:
                queries.broken_letters_gone(conn, ids=gone)
            queries.forget_broken_letters(conn, days=FORGOTTEN_AFTER_DAYS)

    def _row(self, letter: Seen, reason: str) -> dict[str, Any]:
        return {
            "digest": letter.digest,
            "reason": _kept(reason),
            "body": letter.text,
            "body_bytes": letter.size_bytes,
            "origin": letter.origin,
            "copies": self._copies[letter.digest],
            "died_at": letter.died_at and letter.died_at.replace(tzinfo=None),
        }


def _origin(method: Basic.GetOk, properties: pika.BasicProperties) -> str:
    """Exchange, routing key, and what the broker, or the consumer, tells of its death. Any program may write these
    headers."""
    headers = broker.headers_of(properties)
    told = f"{method.exchange or '(default)'} / {method.routing_key}"
    try:
        if CAME_UNDER in headers:
            told = f"{headers[CAME_TO] or '(default)'} / {headers[CAME_UNDER]}; {JOBS_QUEUE}: rejected"
        death = headers[DEATHS][0]
        keys = ", ".join(str(key) for key in death["routing-keys"])
        told = f"{death['exchange'] or '(default)'} / {keys}; {death['queue']}: {death['reason']} x {death['count']}"
    except (KeyError, IndexError, TypeError):
        pass
    return _plain(told)


def _died_at(properties: pika.BasicProperties) -> datetime | None:
    """When the broker (x-death), the reconciler or the consumer (their publishing time) put it there; aware UTC."""
    try:
        at = broker.headers_of(properties)[DEATHS][0]["time"]
    except (KeyError, IndexError, TypeError):
        at = properties.timestamp
    if isinstance(at, datetime):
        return at.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(at, UTC) if isinstance(at, int) and at >= 0 else None
    except (ValueError, OverflowError, OSError):
        return None  # its sender counts in milliseconds


def _kept(reason: str) -> str:
    """As JSON, with the key and holes by which a page tells it in its reader's language; plain words where that is too
    long, or nobody gave them a key."""
    whole = json.dumps(reason.kept(), ensure_ascii=False) if isinstance(reason, Reason) else ""
    return whole if whole and len(whole) <= WORDS_MAX and _plain(whole) == whole else _plain(reason)


def _plain(words: str) -> str:
    """What the database takes: lone surrogates as escapes, cut."""
    return words.encode("utf-8", "backslashreplace").decode()[:WORDS_MAX]
