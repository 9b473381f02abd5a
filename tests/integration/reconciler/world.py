"""Jobs in the states that crashes leave, a clock that tests turn by making rows older, and reconcilers to look."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from everest import bootstrap
from everest.opname.workflow import POST_OPNAME
from everest.reconciler.management import Management
from everest.reconciler.rounds import Reconciler
from everest.reconciler.settings import Limits, ReconcilerSettings
from everest.settings import MysqlUrl, Settings
from everest.store import database as store
from everest.workflow import deployment, engine, runner
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from everest.workflow.engine import Ticket
from ingest_consumer import shadow as jobs
from ingest_consumer.addresses import Login
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.vitals import Vitals
from tests import builders, fake_airflow, fake_management


def note(text: str) -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """A handler with a business effect that can be counted: one audit line."""

    def handler(state: dict[str, Any], step: Any) -> dict[str, Any]:
        with step.tx.conn.cursor() as cursor:
            cursor.execute("INSERT INTO audit_log (actor, action) VALUES ('test', %s)", (text,))
        return {}

    return handler


TWO = workflow("two").then(note("a"), name="a").then(note("b"), name="b").idempotency_key("{key}").build()
LONG_AGO = timedelta(hours=1)


class WatchedAirflow(fake_airflow.FakeAirflow):
    """`on_run_asked` is called while Airflow answers a question about a run: what happens in between. It breaks at each
    question about what is `ill`, a run or a DAG."""

    def __init__(self) -> None:
        super().__init__()
        self.on_run_asked: Callable[[], None] = lambda: None
        self.ill: str | None = None

    def answer(self, method: str, path: str, token: str, body: Any) -> tuple[int, Any]:
        if self.ill is not None and path.endswith(f"/{self.ill}"):
            return 500, {"detail": "Internal Server Error"}
        given = super().answer(method, path, token, body)
        if self.calls[-1][0] == "run" and given[0] != 401:
            self.on_run_asked()
        return given

    def has(self, run_id: str, state: str) -> None:
        self.runs[run_id] = {"dag_run_id": run_id, "state": state}

    def marked(self, run_id: str, state: str, who: str) -> None:
        """A person set this state, as the event log tells it (newest first)."""
        self.has(run_id, state)
        self.event_logs.insert(0, {"event": "patch_dag_run", "owner": who, "extra": f'{{"state": "{state}"}}'})


class World:
    def __init__(self, url: MysqlUrl) -> None:
        self.url = url
        self.conn = store.connect(url)
        self.database = bootstrap.database(url, Settings())
        self.airflow = WatchedAirflow()
        self.broker = fake_management.FakeManagement()
        self._numbers = itertools.count()
        self.definitions: dict[str, Definition] = {TWO.name: TWO, POST_OPNAME.name: POST_OPNAME}
        self.older: list[Definition] = []
        self._closing: list[Any] = [self.conn, self.database, self.airflow, self.broker]

    def close(self) -> None:
        for thing in reversed(self._closing):
            thing.close()

    # ---------------------------------------------------------------------------------------- reconcilers

    @property
    def settings(self) -> ReconcilerSettings:
        return ReconcilerSettings(
            mysql=self.url,
            airflow=Login(self.airflow.url, fake_airflow.USER, fake_airflow.PASSWORD),
            management=Login(self.broker.url, fake_management.USER, fake_management.PASSWORD),
            http_timeout=timedelta(seconds=5),
            limits=Limits(),
        )

    def reconciler(
        self, settings: ReconcilerSettings | None = None, database: Any = None, vitals: Vitals | None = None
    ) -> Reconciler:
        settings = settings or self.settings
        login = settings.airflow
        airflow = AirflowApi(login.url, login.user, login.password, settings.http_timeout)
        management = settings.management and Management(settings.management, settings.vhost, settings.http_timeout)
        database = database or bootstrap.database(self.url, settings.site)
        self._closing += [database, airflow] + ([management] if management else [])
        return Reconciler(
            settings, database, airflow, management or None, self.deployed, self.definitions, vitals=vitals
        )

    def deployed(self, *which: str) -> Definition | None:
        return deployment.among([*self.definitions.values(), *self.older], *which)

    def always_active(self) -> Reconciler:
        """One that takes a lock of its own, so that it works beside another."""
        self._other = getattr(self, "_other", 0) + 1
        return self.reconciler(
            replace(self.settings, mysql=replace(self.url, schema=f"{self.url.schema}{self._other}"))
        )

    # ----------------------------------------------------------------------------------------------- jobs

    def sent(self, key: str = "k") -> int:
        """A workflow of ours, its message published. Returns the shadow id."""
        with self.database.transaction() as tx:
            shadow_id = engine.dispatch(tx, TWO, {"key": key}).shadow_id
        self.publish()
        return shadow_id

    def claimed(self, shadow_id: int) -> Ticket:
        """A consumer has taken the message."""
        row = jobs.get(self.conn, shadow_id)
        assert row is not None
        n = row.n or 1
        run_id = row.dag_run_id or jobs.dag_run_id("opname_posting", row.transaksi_id, None, shadow_id, n)
        assert jobs.claim(self.conn, shadow_id, row.dag_run_id, row.dag_id or "opname_posting", run_id, n)
        self.conn.commit()
        return Ticket(run_id, shadow_id, n, row.workflow_id, row.transaksi_id)

    def at_work(self, state: str | None, key: str = "k") -> Ticket:
        """A job a consumer has taken some time ago; its DAG run is in this state (None: Airflow has none)."""
        ticket = self.claimed(self.sent(key))
        if state is not None:
            self.airflow.has(ticket.dag_run_id, state)
        self.age(timedelta(seconds=30))
        return ticket

    def failed(self, error: Exception, key: str = "k") -> Ticket:
        """A job whose failure its task has recorded."""
        ticket = self.claimed(self.sent(key))
        with self.database.transaction() as tx:
            start = engine.begin(tx, TWO, ticket, "a")
        assert isinstance(start, engine.Go)
        with self.database.transaction() as tx:
            engine.fail(tx, TWO, start.token, error)
        return ticket

    def step(self, ticket: Ticket, name: str, definition: Definition = TWO, **named: Any) -> Any:
        return runner.run_step(definition, ticket, name, self.database.transaction, is_last_try=True, **named)

    def sent_of(self, definition: Definition, **payload: Any) -> int:
        """A workflow of this kind, its message published. Returns the shadow id."""
        self.definitions |= {one.name: one for one in (definition, *definition.children())}
        with self.database.transaction() as tx:
            shadow_id = engine.dispatch(tx, definition, payload).shadow_id
        self.publish()
        return shadow_id

    def act(self, shadow_id: int, action: Any, *arguments: Any) -> Any:
        """A function of `control` on the job's workflow."""
        run = self.run_of(shadow_id)
        with self.database.transaction() as tx:
            return action(tx, self.definitions[run["workflow"]], run["id"], *arguments)

    # ----------------------------------------------------------------------------------------------- time

    def age(self, by: timedelta) -> None:
        """Everything that was done was done this much earlier."""
        columns = {
            "rabbit_publish_shadow": ("worker_at", "created_at", "published_at", "requeued_at", "dead_lettered_at"),
            "outbox": ("available_at", "published_at", "created_at"),
            "workflow_runs": ("wakes_at", "updated_at", "deadline_at"),
        }
        for table, names in columns.items():
            shifts = ", ".join(f"{name} = {name} - INTERVAL {by.total_seconds()} SECOND" for name in names)
            self.execute(f"UPDATE {table} SET {shifts}")

    def publish(self) -> None:
        """The relay has published whatever was due."""
        self.execute("UPDATE outbox SET published_at = UTC_TIMESTAMP(6) WHERE published_at IS NULL")
        self.execute("UPDATE rabbit_publish_shadow SET publish_status = 'PUBLISHED' WHERE workflow_id IS NOT NULL")

    def execute(self, sql: str, *parameters: Any) -> None:
        with self.conn.cursor() as cursor:
            cursor.execute(sql, parameters or None)
        self.conn.commit()

    # ---------------------------------------------------------------------------------------------- looks

    def row(self, shadow_id: int) -> dict[str, Any]:
        return builders.shadow(self.conn, shadow_id)

    def status(self, shadow_id: int) -> str:
        return str(self.row(shadow_id)["worker_status"])

    def run_of(self, shadow_id: int) -> dict[str, Any]:
        (found,) = builders.rows(
            self.conn,
            "SELECT r.* FROM workflow_runs r JOIN rabbit_publish_shadow s ON s.workflow_id = r.id WHERE s.id = %s",
            shadow_id,
        )
        return found

    def unsent(self) -> list[dict[str, Any]]:
        return builders.rows(self.conn, "SELECT * FROM outbox WHERE published_at IS NULL ORDER BY id")

    def effects(self) -> list[str]:
        found = builders.rows(self.conn, "SELECT action FROM audit_log WHERE actor = 'test' ORDER BY id")
        return [row["action"] for row in found]

    def picture(self) -> dict[str, Any]:
        """Every row that a reconciler may touch, to see that it touched none."""
        tables = ("rabbit_publish_shadow", "workflow_runs", "workflow_events", "outbox")
        return {table: builders.rows(self.conn, f"SELECT * FROM {table} ORDER BY id") for table in tables}


def run_threads(work: Any, count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
