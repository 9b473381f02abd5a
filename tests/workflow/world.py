"""One small world over either store: the engine in memory, and the engine over real rows of a real schema.

A test of a behaviour asks for `world` and runs in both. The relay's and the consumer's part is played here with their
own statements: a message that is due is marked published, the job is claimed, the tasks of its DAG run go one after
another. Handlers write effects with `step.tx.write(...)`; those commit and roll back with the step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.store.unit_of_work import Database, UnitOfWork
from everest.workflow import again, codec, control, state
from everest.workflow.definition import Definition
from everest.workflow.inline import Inline
from everest.workflow.memory_tables import Message
from everest.workflow.runner import run_step
from everest.workflow.ticket import Result, Ticket
from ingest_consumer import relay
from ingest_consumer import shadow as jobs
from tests import builders

Handler = Callable[[dict[str, Any], Any], dict[str, Any] | None]


def gives(**output: Any) -> Handler:
    """A handler that leaves its step's name as an effect and returns these keys."""

    def handler(state: dict[str, Any], step: Any) -> dict[str, Any]:
        step.tx.write(step.branch or step.step)
        return output

    return handler


class World(Inline):
    """What both worlds can do. Nothing walks by itself: `walk` runs DAG runs until no message is due."""

    def know(self, *definitions: Definition) -> None:
        for one in definitions:
            self.definitions |= {known.name: known for known in (one, *one.children())}

    def start(self, definition: Definition, payload: Mapping[str, Any] | None = None, key: str | None = None) -> int:
        """Dispatched, and not one task of it run yet."""
        self.know(definition)
        return self.dispatch(definition, payload or {}, key)

    def begin(self, definition: Definition, payload: Mapping[str, Any] | None = None, key: str | None = None) -> int:
        """Dispatched, and walked to its end or its next wait."""
        run_id = self.start(definition, payload, key)
        self.walk()
        return run_id

    def do(self, run_id: int, action: Any, *arguments: Any, **named: Any) -> Any:
        """A function of `control` on a run; what it sets off has not happened yet."""
        with self.transaction() as tx:
            run = tx.runs.get(run_id)
            definition = next(iter(self.definitions.values())) if run is None else self.definitions[run.workflow]
            return action(tx, definition, run_id, *arguments, **named)

    def act(self, run_id: int, action: Any, *arguments: Any, **named: Any) -> Any:
        """The same, and everything that follows from it."""
        result = self.do(run_id, action, *arguments, **named)
        self.walk()
        return result

    def meanwhile(self, run_id: int, action: Any, *arguments: Any, **named: Any) -> Any:
        """What another process does to a run while a handler of this one is at work."""
        with self.elsewhere() as tx:
            return action(tx, self.definitions[tx.runs.get(run_id).workflow], run_id, *arguments, **named)

    def elsewhere(self) -> AbstractContextManager[Any]:
        """A transaction of another session. In memory there is one session; what it commits is committed."""
        return self.transaction()

    def signal(self, run_id: int, name: str, payload: Mapping[str, Any] | None = None, **named: Any) -> None:
        self.act(run_id, control.signal, name, dict(payload or {}), **named)

    def deliver(self) -> Ticket:
        """The next message that is due reaches its DAG run, whose tasks the test runs itself."""
        message = self._due()
        assert message is not None, "no message is due"
        assert self._claim(message)
        return Ticket(message.dag_run_id, message.shadow_id, message.n, message.run_id)

    def step(self, ticket: Ticket, name: str, branch: str = "", is_last_try: bool = True) -> Result:
        """One task of a DAG run."""
        definition = self.definitions[self.run(ticket.workflow_id or 0).workflow]
        return run_step(definition, ticket, name, self.transaction, is_last_try, branch=branch, rest=again.at_once)

    def pass_time(self, by: timedelta) -> None:
        self.database.move_clock(by)
        self.walk()

    @property
    def now(self) -> datetime:
        return self.database.now

    def transaction(self) -> AbstractContextManager[Any]:
        return self.database.transaction()

    # ------------------------------------------------------------------------------------------------- looks

    def status(self, run_id: int) -> str:
        return self.run(run_id).status

    def state(self, run_id: int) -> dict[str, Any]:
        """The public state."""
        return state.public_part(self.run(run_id).state)

    def waiting(self, run_id: int) -> dict[str, Any]:
        waiting = self.run(run_id).waiting
        assert waiting is not None
        return waiting

    def error(self, run_id: int) -> str:
        error = self.run(run_id).error
        assert error is not None
        return str(error["message"])

    def job(self, run_id: int) -> str:
        """The status of the run's shadow row."""
        with self.transaction() as tx:
            row = tx.runs.shadow(self.run(run_id).carrier_shadow_id)
        return str(row.worker_status)

    def names(self, run_id: int, *events: str) -> list[tuple[str, str | None]]:
        """The run's history: (event, step), of these events or of all."""
        return [(one["event"], one["step"]) for one in self.events(run_id) if not events or one["event"] in events]

    @property
    def effects(self) -> list[Any]:
        """What handlers wrote, in the order of their commits."""
        raise NotImplementedError

    def messages(self, run_id: int) -> list[Message]:
        """The run's messages that nobody sent yet."""
        raise NotImplementedError

    def events(self, run_id: int) -> list[dict[str, Any]]:
        """event, step, attempt, detail; oldest first."""
        raise NotImplementedError

    def signals(self, run_id: int) -> list[tuple[str, Any]]:
        """Every signal that came, oldest first."""
        raise NotImplementedError

    def chunks(self, run_id: int, step: str, visit: int = 1) -> list[Any]:
        with self.transaction() as tx:
            return list(tx.runs.chunks(run_id, step, visit))

    def records(self, run_id: int) -> dict[tuple[str, int, str], dict[str, Any]]:
        """Of every step by (step, visit, branch): status, attempt, output, state_after, error."""
        raise NotImplementedError

    def all_runs(self) -> list[int]:
        raise NotImplementedError

    def children(self, run_id: int) -> list[int]:
        return [one for one in self.all_runs() if self.run(one).parent_id == run_id]


class MemoryWorld(World):
    name = "memory"

    @property
    def effects(self) -> list[Any]:
        return [codec.loads(codec.dumps(one)) for one in self.database.tables.effects]

    def messages(self, run_id: int) -> list[Message]:
        return [one for one in self.database.tables.outbox if one.run_id == run_id and not one.sent]

    def events(self, run_id: int) -> list[dict[str, Any]]:
        return [one for one in self.database.tables.events if one["run"] == run_id]

    def signals(self, run_id: int) -> list[tuple[str, Any]]:
        return [(one["name"], one["payload"]) for one in self.database.tables.signals if one["run"] == run_id]

    def records(self, run_id: int) -> dict[tuple[str, int, str], dict[str, Any]]:
        tables = self.database.tables
        return {
            key[1:]: {"status": one.status, "attempt": one.attempt, "output": one.output}
            | tables.ends.get(key, {"error": None, "state_after": None})
            for key, one in tables.steps.items()
            if key[0] == run_id
        }

    def all_runs(self) -> list[int]:
        return list(self.database.tables.runs)


@dataclass(frozen=True)
class UnitOfWorkWithEffects(UnitOfWork):
    """A unit of work on which handlers of tests can write effects."""

    def write(self, effect: Any) -> None:
        with self.conn.cursor() as cursor:
            cursor.execute("INSERT INTO test_effects (effect) VALUES (%s)", (codec.dumps(effect),))


class ClockedDatabase:
    """Units of work whose server clock stands where the test puts it, a moment later each time: MySQL and MariaDB take
    the time of a session's statements from its variable `timestamp`."""

    def __init__(self, url: MysqlUrl, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self._conn: Any = None
        self._database = Database(self._connect, Settings())

    def _connect(self) -> Any:
        self._conn = store.connect(self._url)
        self._set_clock()
        return self._conn

    def _set_clock(self) -> None:
        with self._conn.cursor() as cursor:
            cursor.execute(f"SET SESSION timestamp = {self._clock.tick().timestamp():.6f}")

    @contextmanager
    def transaction(self) -> Iterator[UnitOfWorkWithEffects]:
        if self._conn is not None and self._database._conn is self._conn:
            self._set_clock()
        with self._database.transaction() as tx:
            yield UnitOfWorkWithEffects(**{one.name: getattr(tx, one.name) for one in fields(tx)})

    @property
    def now(self) -> datetime:
        return self._clock.now

    def move_clock(self, by: timedelta) -> None:
        self._clock.now += by

    def close(self) -> None:
        self._database.close()


class Clock:
    """Shared by all connections of a world."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def tick(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


class MysqlWorld(World):
    name = "mysql"

    def __init__(self, url: MysqlUrl) -> None:
        self.url = url
        self._clock = Clock()
        self._others: list[ClockedDatabase] = []
        super().__init__(database=ClockedDatabase(url, self._clock))  # type: ignore[arg-type]
        with closing(store.connect(url)) as conn:
            conn.query("CREATE TABLE test_effects (id BIGINT AUTO_INCREMENT PRIMARY KEY, effect LONGTEXT NOT NULL)")

    def close(self) -> None:
        for one in (self.database, *self._others):
            one.close()  # type: ignore[attr-defined]
        with closing(store.connect(self.url)) as conn:
            conn.query("DROP TABLE test_effects")

    def elsewhere(self) -> AbstractContextManager[Any]:
        if not self._others:
            self.another()
        return self._others[0].transaction()

    def another(self) -> ClockedDatabase:
        """Another process's way into the same rows."""
        self._others.append(ClockedDatabase(self.url, self._clock))
        return self._others[-1]

    def _due(self) -> Message | None:
        """The relay: wakes the jobs whose timers came due, then takes the oldest message that is due."""
        with self.database.transaction() as tx:
            for body, shadow_id, dag_run_id in list(
                jobs.queries.due_of_waiting(tx.conn, exchange=jobs.JOBS_EXCHANGE, batch=100)
            ):
                if relay._announces(body, dag_run_id):
                    jobs.queries.wake(tx.conn, shadow_id=shadow_id, dag_run_id=dag_run_id)
        with self.database.transaction() as tx:
            rows = relay._awake(tx.conn, list(jobs.queries.take_due(tx.conn, batch=1)))
            if not rows:
                return None
            ((outbox_id, shadow_id, _, _, body, *_),) = rows
            jobs.queries.mark_published(tx.conn, ids=(outbox_id,))
            jobs.queries.mark_shadows_published(tx.conn, shadow_ids=(shadow_id,))
            return _message(json.loads(body), tx.now)

    def _claim(self, message: Message) -> bool:
        """The consumer: what the state protocol says of a delivery."""
        with self.database.transaction() as tx:
            row = jobs.get(tx.conn, message.shadow_id)
            if row is None or row.dag_run_id != message.dag_run_id:
                return False
            if row.worker_status == "PROCESSING":
                return True
            claimed = (row.id, message.dag_run_id, row.dag_id or "", message.dag_run_id, message.n)
            return row.worker_status == "PENDING" and jobs.claim(tx.conn, *claimed)

    def _owing(self) -> list[int]:
        return [
            row["id"]
            for row in self.rows("SELECT id FROM workflow_runs WHERE compensation = 'pending' ORDER BY id DESC")
        ]

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        with self.database.transaction() as tx:
            return builders.rows(tx.conn, sql, *parameters)

    @property
    def effects(self) -> list[Any]:
        return [codec.loads(row["effect"]) for row in self.rows("SELECT effect FROM test_effects ORDER BY id")]

    def messages(self, run_id: int) -> list[Message]:
        found = self.rows(
            "SELECT body, available_at FROM outbox WHERE workflow_id = %s AND published_at IS NULL ORDER BY id", run_id
        )
        return [_message(_plain(row["body"]), row["available_at"].replace(tzinfo=UTC)) for row in found]

    def events(self, run_id: int) -> list[dict[str, Any]]:
        found = self.rows(
            "SELECT event, step, attempt, detail FROM workflow_events WHERE workflow_id = %s ORDER BY id", run_id
        )
        return [row | {"detail": _plain(row["detail"])} for row in found]

    def signals(self, run_id: int) -> list[tuple[str, Any]]:
        found = self.rows("SELECT name, payload FROM workflow_signals WHERE workflow_id = %s ORDER BY id", run_id)
        return [(row["name"], _plain(row["payload"])) for row in found]

    def records(self, run_id: int) -> dict[tuple[str, int, str], dict[str, Any]]:
        found = self.rows(
            "SELECT step, visit, branch, status, attempt, output, state_after, error FROM workflow_steps"
            " WHERE workflow_id = %s ORDER BY id",
            run_id,
        )
        return {
            (row["step"], row["visit"], row["branch"]): {"status": row["status"], "attempt": row["attempt"]}
            | {name: _plain(row[name]) for name in ("output", "state_after", "error")}
            for row in found
        }

    def all_runs(self) -> list[int]:
        return [row["id"] for row in self.rows("SELECT id FROM workflow_runs ORDER BY id")]


def _message(body: dict[str, Any], due_at: datetime) -> Message:
    return Message(body["workflow_id"], body["shadow_id"], body["dag_run_id"], body["n"], due_at)


def _plain(value: Any) -> Any:
    """A JSON column, whether the helper that read it has decoded it or not."""
    return codec.loads(value) if isinstance(value, str | bytes) else value
