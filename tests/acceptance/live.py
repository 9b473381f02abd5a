"""The running stack as a test sees it: its database, its broker, its Airflow, and its processes to kill."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pika

from everest.settings import MysqlUrl
from everest.store import database as store
from stack import machine, manager
from stack.layout import Layout
from stack.programs import Stack
from tests import builders
from tests.builders import Document, Line

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 240
"""How long anything may take on a busy machine before the test says it never will."""


def until(what: str, look: Callable[[], Any], every: float = 0.2, patience: float = PATIENCE_SECONDS) -> Any:
    """The first true answer of `look`; fails with what was last seen."""
    deadline = time.monotonic() + patience
    seen: Any = None
    while time.monotonic() < deadline:
        try:
            seen = look()
            if seen:
                return seen
        except Exception as error:
            seen = repr(error)  # a server that was killed is away for a while
        time.sleep(every)
    raise AssertionError(f"waited {patience:.0f} s for {what}; last seen: {seen!r}")


@dataclass
class Live:
    """env: the variables of .local/stack.env."""

    env: Mapping[str, str] = field(repr=False)

    # ------------------------------------------------------------------------------------------------ database

    @property
    def mysql(self) -> MysqlUrl:
        return MysqlUrl.parse(self.env["EVEREST_MYSQL_URL"])

    @contextmanager
    def connection(self) -> Iterator[Any]:
        with closing(store.connect(self.mysql)) as conn:
            yield conn

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        with self.connection() as conn:
            return builders.rows(conn, sql, *parameters)

    def shadow(self, shadow_id: int) -> dict[str, Any]:
        with self.connection() as conn:
            return builders.shadow(conn, shadow_id)

    def document(self, lines: Sequence[Line], **header: Any) -> Document:
        """Staging and shadow rows as the existing web application writes them; nothing is published yet."""
        with self.connection() as conn:
            (newest,) = builders.rows(
                conn,
                "SELECT GREATEST(COALESCE((SELECT MAX(transaksi_id) FROM so_headers_staging), 0),"
                " COALESCE((SELECT MAX(id) FROM transaksi), 0), 5000000) AS id",
            )
            return builders.document(conn, lines, transaksi_id=newest["id"] + 1, **header)

    def correct(self, document: Document, lines: Sequence[Line]) -> None:
        with self.connection() as conn:
            builders.write_lines(conn, document.header_id, lines)

    def wait_for(self, shadow_id: int, *statuses: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            row = self.shadow(shadow_id)
            return row if row["worker_status"] in statuses else None

        return until(f"shadow row {shadow_id} to be {' or '.join(statuses)}", look)

    def postings(self, nota: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM posting_sets WHERE nomer_nota = %s", nota)

    def books_agree(self, notas: Sequence[str]) -> bool:
        """For each nota: debits equal credits equal the posting set, and inventory moved as the stock card did."""
        wrong = self.rows(
            """
            SELECT p.nomer_nota FROM posting_sets p WHERE p.nomer_nota IN %s AND NOT (
                p.total_debet = COALESCE((SELECT SUM(debet) FROM jurnal j WHERE j.posting_id = p.id), 0)
                AND p.total_kredit = COALESCE((SELECT SUM(kredit) FROM jurnal j WHERE j.posting_id = p.id), 0)
                AND COALESCE((SELECT SUM(nilai) FROM kartu_stok k WHERE k.posting_id = p.id), 0)
                    = COALESCE((SELECT SUM(debet - kredit) FROM jurnal j
                                WHERE j.posting_id = p.id AND j.kode_akun = '1010030030'), 0))
            """,
            tuple(notas),
        )
        return not wrong

    # -------------------------------------------------------------------------------------------------- broker

    @contextmanager
    def memory_alarm(self) -> Iterator[None]:
        """The broker believes that it has no memory left: it blocks every connection that publishes."""
        before = self.rabbitmqctl("eval", "vm_memory_monitor:get_vm_memory_high_watermark().")
        self.rabbitmqctl("set_vm_memory_high_watermark", "0")
        try:
            until("the broker's memory alarm", self._has_alarm)
            yield
        finally:
            self.rabbitmqctl("set_vm_memory_high_watermark", before)
            until("the end of the broker's memory alarm", lambda: not self._has_alarm())

    def _has_alarm(self) -> bool:
        url = self.env["EVEREST_RABBIT_MANAGEMENT_URL"]
        login = (self.env["EVEREST_RABBIT_MANAGEMENT_USER"], self.env["EVEREST_RABBIT_MANAGEMENT_PASSWORD"])
        with httpx.Client(auth=login, timeout=30, trust_env=False) as client:
            return client.get(f"{url}/api/health/checks/local-alarms").status_code == 503

    def rabbitmqctl(self, *arguments: str) -> str:
        """As an administrator of the stack's broker runs it."""
        layout = Layout.here()
        script = machine.require(machine.rabbitmq_server(), "RabbitMQ").with_name("rabbitmqctl")
        done = subprocess.run(
            machine.ServiceUser.of(layout, "rabbitmq").command([script, "--quiet", *arguments]),
            env=Stack.open(layout).environment("rabbitmq"),
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"rabbitmqctl {arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    @contextmanager
    def channel(self) -> Iterator[Any]:
        with closing(pika.BlockingConnection(pika.URLParameters(self.env["EVEREST_AMQP_URL"]))) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            yield channel

    def publish(self, body: bytes | Mapping[str, Any], headers: Mapping[str, Any] | None = None) -> None:
        """As a foreign publisher does it."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        properties = pika.BasicProperties(delivery_mode=2, headers=dict(headers) if headers else None)
        with self.channel() as channel:
            channel.basic_publish("everest.jobs.x", "job.process", raw, properties, mandatory=True)

    def tried_again(self, notas: Sequence[str]) -> list[dict[str, Any]]:
        """Steps of these documents that needed more than one try."""
        return self.rows(
            "SELECT j.nomer_nota, s.step, s.attempt FROM workflow_steps s"
            " JOIN rabbit_publish_shadow j ON j.workflow_id = s.workflow_id"
            " WHERE s.attempt > 1 AND j.nomer_nota IN %s",
            tuple(notas),
        )

    def dead_letters(self, shadow_id: int | None = None) -> list[dict[str, Any]]:
        """What the operator's command shows, all or of one job."""
        listed = json.loads(self.run("ingest_consumer", "dead-letters", "list", "--json").stdout)
        letters: list[dict[str, Any]] = listed["letters"] if isinstance(listed, dict) else listed
        return [letter for letter in letters if shadow_id is None or letter["shadow_id"] == shadow_id]

    def give_up_letters(self, but: AbstractSet[str]) -> None:
        """All but these; one that is settled in the same moment needs nobody."""
        left = [letter["letter"] for letter in self.dead_letters() if letter["letter"] not in but]
        keys = [word for key in left for word in ("--letter", key)]
        if keys:
            self.run("ingest_consumer", "dead-letters", "drop", *keys, "--reason", "left by a test", check=False)

    # ------------------------------------------------------------------------------------------------- Airflow

    @contextmanager
    def airflow(self) -> Iterator[httpx.Client]:
        base = self.env["EVEREST_AIRFLOW_URL"]
        login = {"username": self.env["EVEREST_AIRFLOW_USER"], "password": self.env["EVEREST_AIRFLOW_PASSWORD"]}
        with httpx.Client(base_url=base, timeout=30, trust_env=False) as client:
            token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            client.headers["Authorization"] = f"Bearer {token}"
            client.base_url = httpx.URL(f"{base}/api/v2")
            yield client

    # ----------------------------------------------------------------------------------------------- processes

    def run(self, *module_and_arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """`python -m ...` as an operator with stack.env runs it."""
        done = subprocess.run(
            [sys.executable, "-m", *module_and_arguments],
            env={**os.environ, **self.env},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert not check or done.returncode == 0, f"{module_and_arguments}: {done.stdout}\n{done.stderr}"
        return done

    def pid(self, program: str) -> int:
        state = manager.states(Layout.here())[program]
        assert state.is_running, f"{program} is {state.state}"
        return state.pid

    def kill(self, program: str) -> int:
        """kill -9, as a crash does it; returns the pid that is gone."""
        pid = self.pid(program)
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_until_back(self, program: str, killed_pid: int) -> None:
        def look() -> bool:
            state = manager.states(Layout.here())[program]
            return state.is_running and state.pid != killed_pid

        until(f"{program} to come back", look)

    def task_process(self, statement_like: str) -> int:
        """The pid of the process whose database session is in a statement like this."""

        def look() -> int | None:
            found = self.rows(
                "SELECT HOST AS host FROM information_schema.PROCESSLIST WHERE INFO LIKE %s AND ID <> CONNECTION_ID()",
                statement_like,
            )
            return owner_of_port(int(found[0]["host"].rpartition(":")[2])) if found else None

        return until(f"a session that runs {statement_like}", look, every=0.02)


def owner_of_port(port: int) -> int | None:
    """Which process holds the client side of a local TCP connection."""
    wanted = None
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port:
            wanted = f"socket:[{fields[9]}]"
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if any(os.readlink(link) == wanted for link in (entry / "fd").iterdir()):
                return int(entry.name)
        except OSError:
            continue
    return None


def port_is_open(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
