"""A chaos run from beginning to end: play the schedule, heal everything, wait until nothing moves, judge."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import MySQLdb
import pika.exceptions

from everest.errors import TransientDatabaseError
from stack.shape import Shape
from tests.chaos import errands, judge
from tests.chaos.deeds import decide, rerun
from tests.chaos.faults import FAULTS
from tests.chaos.rig import OURS
from tests.chaos.schedule import Entry, Schedule
from tests.chaos.world import NotNow, World

STILL_SECONDS = 180
"""Nothing has moved for this long, and something is not done: it is stuck. The slowest repair, Airflow's belief in the
death of a task, takes about a minute; each step of one is a movement."""
LOOK_SECONDS = 1.0
THREADS = 40
FEW_KINDS = 3
"""A run in which fewer kinds of faults happened proves nothing."""
AWAY = (OSError, httpx.TransportError, MySQLdb.OperationalError, TransientDatabaseError, pika.exceptions.AMQPError)
"""Who was to be hurt, or asked, is away by another fault."""
OFTEN = 3
"""A fault that finds nobody so often, and never anything else, is broken itself."""


@dataclass
class Report:
    """wrong: what did not hold; none = the run is good. happened: how often each happening found something to do; of
    those without, nothing: there was nothing to do it to, broken: it raised."""

    schedule: Schedule
    shape: Shape = field(default_factory=Shape)
    is_ours: bool = False
    """Only the links that need no restart of Airflow stood behind a proxy."""
    wrong: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    nothing: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    met_nobody: Counter[str] = field(default_factory=Counter)
    """Of the broken ones: a server was away."""
    links: Counter[str] = field(default_factory=Counter)
    """How often something happened to a link or a clock."""
    deadlocks: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    first_outcomes: Counter[str] = field(default_factory=Counter)
    errands: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def again(self) -> str:
        """The command that plays the same schedule on a stack of the same shape."""
        words = ["make chaos"]
        if self.shape.is_celery:
            words.append(f"EXECUTOR={self.shape.executor} WORKERS={self.shape.workers}")
        if self.shape.consumers > 1:
            words.append(f"CONSUMERS={self.shape.consumers}")
        if self.shape.standby:
            words.append("STANDBY=1")
        arguments = f"--seed {self.schedule.seed} --seconds {self.schedule.seconds:g}"
        if self.schedule.only:
            arguments += f" --only {','.join(self.schedule.only)}"
        if self.is_ours:
            arguments += " --ours"
        return f"{' '.join(words)} ARGS='{arguments}'"

    def of_itself(self) -> list[str]:
        """Why the run proves nothing, whatever the books say."""
        faults = {fault.name for fault in FAULTS}
        kinds = sorted(faults & set(self.happened))
        wrong = []
        if len(kinds) < min(FEW_KINDS, len(self.schedule.only) or FEW_KINDS):
            wrong.append(f"a quiet run proves nothing: of the faults only {', '.join(kinds) or 'none'} happened")
        for name in sorted(set(self.broken) - set(self.happened) - set(self.nothing)):
            times, away = self.broken[name], self.met_nobody[name]
            if away < times or times >= OFTEN:
                wrong.append(f"{name} raised each of the {times} times that it was to happen")
        return wrong

    def __str__(self) -> str:
        verdict = f"{len(self.wrong)} WRONG" if self.wrong else "as it must be"
        lines = [
            f"seed {self.schedule.seed}: {verdict} after {self.seconds:.0f} s",
            f"  happened: {counted(self.happened)}",
            f"  on: {counted(self.links)}",
            f"  nothing to do it to: {counted(self.nothing)}; raised: {counted(self.broken)}",
            f"  deadlocks: {self.deadlocks.total()}{''.join(f', {n} {who}' for who, n in self.deadlocks.items())}",
            f"  documents: {counted(self.outcomes)}; before the second runs: {counted(self.first_outcomes)}",
            f"  errands: {counted(self.errands)}",
            *(f"  WRONG: {one}" for one in self.wrong),
        ]
        if self.wrong:
            lines.append(f"  again: {self.again}")
        return "\n".join(lines)


def counted(what: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in sorted(what.items())) or "-"


def run(schedule: Schedule, world: World) -> Report:
    """Raises nothing that the product did: whatever is wrong stands in the report."""
    began = time.monotonic()
    shape = Shape.load(world.layout.shape_file) or Shape()
    report = Report(schedule, shape, is_ours=set(world.rig.links) <= set(OURS))
    say = world.say

    def tell(text: str) -> None:
        line = f"{time.monotonic() - began:6.1f} s  {text}"
        report.log.append(line)
        say(line)

    world.say = tell
    world.prepare()
    before = judge.audit(world)
    known = {letter["letter"] for letter in world.live.dead_letters()}
    began = time.monotonic()
    try:
        _play(schedule, world, report)
        tell("everything is healed; waiting for rest")
        _rest(world, "rest")
        report.first_outcomes = _outcomes(world)
        report.wrong += judge.problems(world, trouble_is_over=False)
        again = judge.to_run_again(world)
        for sent in again:
            rerun(world, sent)
        if again:
            tell(f"{len(again)} documents that failed by the chaos are run again")
            _rest(world, "rest after the second run")
        report.wrong += [one for one in judge.problems(world, trouble_is_over=True) if one not in report.wrong]
        report.wrong += judge.audit_problems(world, before)
    except Stuck as stuck:
        report.wrong += stuck.rows
    finally:
        report.wrong += report.of_itself()
        report.deadlocks = world.deadlocks
        world.is_over.set()
        report.outcomes, report.errands = _outcomes(world), errands.outcomes(world)
        report.seconds = time.monotonic() - began
        world.live.give_up_letters(known)
    return report


def save(report: Report, folder: Path) -> Path:
    """The schedule as drawn, the log as it went, and the verdict."""
    folder.mkdir(exist_ok=True)
    file = folder / f"seed-{report.schedule.seed}.log"
    drawn = "\n".join(map(str, report.schedule.entries))
    file.write_text(f"{report}\n\nDrawn:\n{drawn}\n\nWent:\n" + "\n".join(report.log) + "\n", encoding="utf-8")
    return file


class Stuck(Exception):
    """Nothing moves any more, and something is not done."""

    def __init__(self, rows: list[str]) -> None:
        super().__init__("; ".join(rows))
        self.rows = rows


# ------------------------------------------------------------------------------------------------------ playing


def _play(schedule: Schedule, world: World, report: Report) -> None:
    """Everything at its time, each in a thread: what waits for a server holds up nothing else."""
    order = itertools.count()
    line: list[tuple[float, int, Callable[[], Any]]] = []
    begun = time.monotonic()
    pool = ThreadPoolExecutor(THREADS, thread_name_prefix="chaos")
    last: list[Future[Any]] = []
    unfinished: dict[int, Entry] = {}

    def begin(entry: Entry) -> None:
        happening = entry.happening
        try:
            done = happening.begin(world)
            report.happened[happening.name] += 1
            report.links.update(happening.needs)
            world.say(f"{happening}{f': {done}' if done else ''}")
        except NotNow as reason:
            report.nothing[happening.name] += 1
            world.say(f"({happening}: {reason})")
        except AssertionError as wrong:
            report.wrong.append(f"{happening}: {wrong}")
        except Exception as error:
            report.broken[happening.name] += 1
            if isinstance(error, AWAY) or _is_out_of_order(error):
                report.met_nobody[happening.name] += 1
            world.say(f"({happening}: {type(error).__name__}: {error})")

    def finish(entry: Entry, start: Future[Any]) -> None:
        start.result()
        try:
            entry.happening.end(world)
            world.say(f"over: {entry.happening}")
        except Exception as error:
            world.say(f"(end of {entry.happening}: {type(error).__name__}: {error})")

    def put(at: float, act: Callable[[], Any]) -> None:
        heapq.heappush(line, (at, next(order), act))

    def start(entry: Entry) -> None:
        future = pool.submit(begin, entry)
        last.append(future)
        if entry.happening.seconds:
            number = next(order)
            unfinished[number] = entry

            def stop() -> None:
                if unfinished.pop(number, None) is not None:
                    last.append(pool.submit(finish, entry, future))

            put(entry.over_at, stop)

    for entry in schedule.entries:
        put(entry.at, partial(start, entry))
    while line and line[0][0] < schedule.seconds:
        at, _, act = heapq.heappop(line)
        time.sleep(max(0.0, begun + at - time.monotonic()))
        act()
    time.sleep(max(0.0, begun + schedule.seconds - time.monotonic()))
    for _, _, act in sorted(line):  # what would last longer ends now
        act()
    _heal(world)
    patience = threading.Timer(STILL_SECONDS, world.is_over.set)
    patience.start()
    for future in last:
        with suppress(Exception):
            future.result()
    patience.cancel()
    world.is_over.clear()
    pool.shutdown()
    _heal(world)  # what ended late may have left something behind


def _is_out_of_order(error: Exception) -> bool:
    """Airflow, or the broker's management, without its database."""
    return isinstance(error, httpx.HTTPStatusError) and error.response.status_code >= 500


def _heal(world: World) -> None:
    world.rig.heal()
    for program in world.down():
        world.start(program)


# --------------------------------------------------------------------------------------------------------- rest


def _rest(world: World, what: str) -> None:
    """Returns when every document has ended and nothing is on its way. Raises Stuck when nothing moves any more."""
    seen, moved_at = "", time.monotonic()
    while True:
        try:
            left, now = _open(world)
        except Exception as trouble:  # a server is still coming up
            left, now = [f"{what}: {trouble!r}"], ""
        if not left:
            return
        if now != seen:
            seen, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > STILL_SECONDS:
            raise Stuck([f"STUCK for {STILL_SECONDS} s: {one}" for one in left])
        for program in world.down():
            world.start(program)
        _answer_what_waits(world)
        time.sleep(LOOK_SECONDS)


def open_ones(world: World) -> list[str]:
    """What is not done, in sentences."""
    return _open(world)[0]


def _open(world: World) -> tuple[list[str], str]:
    """What is not done, in sentences, and everything that moves, as one text."""
    judge.take_in(world)
    found = judge.jobs(world)
    rows = [
        f"{judge.name(row)} is {row['worker_status']} at {row['current_step']}, run {row['dag_run_id']}"
        for row in found.values()
        if row["worker_status"] not in judge.FINAL
        or (row["worker_status"] == "FAILED" and row["error_code"] != 403 and row["dead_lettered_at"] is None)
    ]
    unsent = world.rows(
        "SELECT id, shadow_id, attempts, available_at FROM outbox WHERE published_at IS NULL AND shadow_id IN %s",
        tuple(found),
    )
    rows += [f"outbox row {row['id']} of job #{row['shadow_id']} is not published" for row in unsent]
    undoing = world.rows(
        "SELECT r.id, c.step, c.attempts FROM workflow_runs r JOIN workflow_compensations c ON c.workflow_id = r.id"
        " WHERE r.compensation = 'pending' AND c.status <> 'done' AND r.carrier_shadow_id IN %s",
        tuple(found),
    )
    rows += [f"step {row['step']} of workflow {row['id']} is not undone" for row in undoing]
    with world.live.channel() as channel:
        ready = channel.queue_declare("everest.jobs.q", passive=True).method.message_count
        letters = channel.queue_declare("everest.jobs.failed.dlq", passive=True).method.message_count
    held = _held(world)
    if ready or held:
        rows.append(f"{ready} messages wait in the queue, {held} are held by a consumer")
    steps = world.rows("SELECT COUNT(*) AS n, SUM(attempt) AS tries FROM workflow_steps")
    return rows, repr((sorted(map(repr, found.values())), unsent, undoing, ready, held, letters, steps))


def _held(world: World) -> int:
    words = world.live.rabbitmqctl("list_queues", "-p", "everest", "name", "messages_unacknowledged")
    return sum(int(line.split()[-1]) for line in words.splitlines() if line.startswith("everest.jobs.q"))


def _answer_what_waits(world: World) -> None:
    waiting = [row["id"] for row in judge.jobs(world).values() if row["worker_status"] == "WAITING"]
    for sent in [one for one in world.sent if one.shadow_id in waiting]:
        with suppress(Exception):  # asked again in the next round
            decide(world, sent, says_yes=True)


def _outcomes(world: World) -> Counter[str]:
    """Of the documents."""
    found = judge.jobs(world) if world.sent else {}
    rows = [found[one.shadow_id] for one in world.sent]
    return Counter(
        row["worker_status"] if row["worker_status"] != "FAILED" else f"FAILED {row['error_code']}" for row in rows
    )
