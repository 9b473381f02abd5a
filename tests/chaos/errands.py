"""Errands of a chaos run: begun, told something, called off, announced again; and how each of them may have ended.

What a run must have done follows from the word that it heard, by a model in plain Python: its rows are compared with
the ends that are possible, and the order of its history decides whether a word came in time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Self

from everest.workflow import control
from tests.chaos import errand_workflow as w
from tests.chaos.errand_workflow import ERRAND
from tests.chaos.happening import Happening
from tests.chaos.world import FINANCE, Errand, NotNow, World

OVER = ("completed", "failed", "cancelled")
REFUSED, CALLED_OFF = 422, 499
OWED_TO_CHAOS = (503, 504)
UNDOES = {w.BEGUN: w.TAKEN_BACK} | {w.went_on(word): w.TURNED_BACK for word in (w.YES, w.NO_NEWS)}


@dataclass(frozen=True)
class SendErrand(Happening):
    """Several senders at once are one run."""

    name: ClassVar[str] = "errand"
    weight: ClassVar[int] = 4
    number: int
    senders: int

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.randrange(10**9), rng.choices((1, 3), (3, 1))[0])

    def begin(self, world: World) -> str:
        payload = {"errand": f"{world.stamp}-{self.number}"}
        answers: list[control.Dispatched] = []

        def send() -> None:
            dispatch = world.insist(
                lambda: world.in_transaction(lambda tx: control.dispatch(tx, ERRAND, payload, actor=FINANCE))
            )
            answers.append(dispatch)

        senders = [threading.Thread(target=send, daemon=True) for _ in range(self.senders)]
        for one in senders:
            one.start()
        for one in senders:
            one.join()
        if not answers:
            raise RuntimeError(f"errand {payload['errand']} could not be sent at all")
        assert len({answer.workflow_id for answer in answers}) == 1, f"one errand is several runs: {answers}"
        with world.lock:
            world.errands.append(Errand(payload["errand"], answers[0].workflow_id, answers[0].shadow_id))
        return payload["errand"]


@dataclass(frozen=True)
class OnErrand(Happening):
    place: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3))

    def chosen(self, world: World, is_open: bool = True) -> Errand:
        with world.lock:
            known = list(world.errands)
        if is_open and known:
            sql = "SELECT id FROM workflow_runs WHERE id IN %s AND status NOT IN %s"
            left = {row["id"] for row in world.rows(sql, tuple(one.run_id for one in known), OVER)}
            known = [one for one in known if one.run_id in left]
        if not known:
            raise NotNow("no errand is on its way")
        return known[int(self.place * len(known))]


@dataclass(frozen=True)
class Tell(OnErrand):
    """Early, in time, too late, twice."""

    name: ClassVar[str] = "tell"
    weight: ClassVar[int] = 4
    word: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.choices((w.YES, w.NO), (2, 1))[0])

    def begin(self, world: World) -> str:
        errand = self.chosen(world)
        errand.told.add(self.word)  # before: an answer whose commit got lost on the way back counts as given
        world.insist(
            lambda: world.in_transaction(
                lambda tx: control.signal(tx, ERRAND, errand.run_id, w.SIGNAL, {"word": self.word}, actor=FINANCE)
            )
        )
        return errand.key


@dataclass(frozen=True)
class CallOff(OnErrand):
    name: ClassVar[str] = "call-off"
    weight: ClassVar[int] = 1

    def begin(self, world: World) -> str:
        errand = self.chosen(world)
        errand.is_called_off = True
        world.insist(
            lambda: world.in_transaction(lambda tx: control.cancel(tx, ERRAND, errand.run_id, FINANCE, "tidak jadi"))
        )
        return errand.key


@dataclass(frozen=True)
class AnnounceAgain(OnErrand):
    """One of its messages a second time, whatever became of it."""

    name: ClassVar[str] = "announce-again"
    weight: ClassVar[int] = 2

    def begin(self, world: World) -> str:
        errand = self.chosen(world, is_open=False)
        sql = "SELECT body FROM outbox WHERE shadow_id = %s AND exchange = 'everest.jobs.x' ORDER BY id"
        stored = world.insist(lambda: world.rows(sql, errand.shadow_id))
        if not stored:
            raise NotNow("it has no message yet")
        body = str(stored[int(self.place * len(stored))]["body"]).encode()
        world.insist(lambda: world.live.publish(body))
        return errand.key


ERRANDS: tuple[type[Happening], ...] = (SendErrand, Tell, CallOff, AnnounceAgain)


# ---------------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True)
class End:
    """How a run ended: its status, its code, what its handlers did in order, and whether all that is due was undone."""

    status: str
    code: int | None
    did: tuple[str, ...]
    is_undone: bool = True


def ends(word: str, is_called_off: bool) -> Iterator[End]:
    """All that are possible for a run that heard this (NO_NEWS: nothing in time)."""
    goes_on = word != w.NO
    path = (w.BEGUN, w.went_on(word), w.FINISHED) if goes_on else (w.BEGUN,)
    yield End("completed", None, path) if goes_on else End("failed", REFUSED, (*path, *_undone(path)))
    for length in range(len(path) + (not goes_on)):
        did = path[:length]
        if is_called_off:
            yield End("cancelled", CALLED_OFF, (*did, *_undone(did), w.TOLD_OFF))
        for code in OWED_TO_CHAOS:
            yield End("failed", code, (*did, *_undone(did)))


def _undone(did: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(UNDOES[one] for one in reversed(did))


def problems(world: World) -> list[str]:
    """What does not hold of the errands, in sentences."""
    if not world.errands:
        return []
    ids = tuple(one.run_id for one in world.errands)
    runs = {row["id"]: row for row in world.rows("SELECT * FROM workflow_runs WHERE id IN %s", ids)}
    did: dict[int, list[str]] = {run: [] for run in ids}
    sql = "SELECT workflow_id, reason FROM audit_log WHERE actor = %s AND action = %s AND workflow_id IN %s ORDER BY id"
    for row in world.rows(sql, w.ACTOR, w.ACTION, ids):
        did[row["workflow_id"]].append(row["reason"])
    heard = _heard(world, ids)
    wrong = [f"errand {run} was told in time, and did not hear it" for run in _deaf(world, ids, heard)]
    for one in world.errands:
        word = heard.get(one.run_id, w.NO_NEWS)
        run = runs[one.run_id]
        end = End(run["status"], run["error_code"], tuple(did[one.run_id]), run["compensation"] in (None, "done"))
        if word not in (*one.told, w.NO_NEWS):
            wrong.append(f"errand {one.key} (workflow {one.run_id}) heard {word!r}, which nobody said")
        if end not in set(ends(word, one.is_called_off)):
            said = f"heard {word!r}, called off: {one.is_called_off}, told {sorted(one.told)}"
            wrong.append(f"errand {one.key} (workflow {one.run_id}) ended as {end}; {said}")
    return wrong


def _heard(world: World, ids: tuple[int, ...]) -> dict[int, str]:
    """By run the word that its wait took."""
    sql = "SELECT workflow_id, payload FROM workflow_signals WHERE workflow_id IN %s AND consumed_at IS NOT NULL"
    found: dict[int, str] = {}
    for row in world.rows(sql, ids):
        assert row["workflow_id"] not in found, f"workflow {row['workflow_id']} took two signals in one wait"
        found[row["workflow_id"]] = json.loads(row["payload"])["word"]
    return found


def _deaf(world: World, ids: tuple[int, ...], heard: dict[int, str]) -> list[int]:
    """Runs that went on without news although somebody had told them before: both stand in their history, in the order
    of the run's lock."""
    sql = "SELECT workflow_id, event, step FROM workflow_events WHERE workflow_id IN %s ORDER BY id"
    told: set[int] = set()
    deaf = []
    for row in world.rows(sql, ids):
        run = row["workflow_id"]
        if row["event"] == "signal":
            told.add(run)
        if (row["event"], row["step"]) == ("completed", w.HEAR) and run in told and run not in heard:
            deaf.append(run)
    return deaf


def outcomes(world: World) -> dict[str, Any]:
    """How many ended how, for the report."""
    ids = tuple(one.run_id for one in world.errands)
    sql = "SELECT status, error_code, COUNT(*) AS n FROM workflow_runs WHERE id IN %s GROUP BY 1, 2"
    rows = world.rows(sql, ids) if ids else []
    return {f"{row['status']} {row['error_code'] or ''}".strip(): row["n"] for row in rows}
