"""The whole way of a document where no byte is in the clear: Airflow with its API, PostgreSQL, Celery's broker and the
tasks, and our programs and commands, all by the settings that docs/operations.md gives ("Secrets and TLS")."""

from __future__ import annotations

import json
import re
import secrets
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx
import psycopg2
import pytest

from everest.store import database as store
from stack import manager
from stack.credentials import Credentials
from tests import builders, private_servers
from tests.queue_rig import ROOT
from tests.security import tls_site
from tests.security.tls_site import ACCOUNT, PASSWORD, Site, Start, command, submit

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DAG = "opname_posting"
PATIENCE_S = 300
pytestmark = pytest.mark.long


def documented(pattern: str) -> str:
    """What the guide says of a setting, in the place of `(...)`."""
    found = re.search(pattern, OPERATIONS)
    assert found, f"docs/operations.md says nothing like {pattern}"
    return found[1]


@dataclass
class Airflow:
    """Its processes' settings beside those of the site, and its API as an admin sees it."""

    site: Site
    home: Path
    port: int
    database_port: int
    credentials: Credentials

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def configure(self) -> None:
        """airflow.cfg as on the local stack; what TLS changes comes by the environment."""
        (self.home / "dags").mkdir(parents=True)
        passwords = self.home / "login.json"
        passwords.write_text(json.dumps({"admin": self.credentials.airflow_admin}))
        text = manager.render(
            "airflow.cfg",
            root=ROOT,
            home=self.home,
            bench_dags=self.home / "dags",
            parallelism=4,
            celery_url=self.site.amqp_url("", scheme="amqp").replace("%", "%%"),
            passwords_file=passwords,
            users="admin:admin",
            api_port=self.port,
            database_port=self.database_port,
            database_password=quote(private_servers.PASSWORD).replace("%", "%%"),
            fernet_key=self.credentials.airflow_fernet,
            session_key=self.credentials.airflow_session,
            jwt_secret=self.credentials.airflow_jwt,
        )
        (self.home / "airflow.cfg").write_text(text)

    def settings(self) -> dict[str, str]:
        """By the guide: names of files are ours, words are its own."""
        ca, program = str(self.site.ours.file), self.site.program
        extra = json.loads(documented(r"has it in its extra: `(\{[^`]+\})`"))
        extra["ssl"] = {"ca": ca, "cert": str(program.cert), "key": str(program.key)}
        connection = {
            "conn_type": "mysql",
            "host": "127.0.0.1",
            "port": self.site.books.port,
            "login": ACCOUNT,
            "password": PASSWORD,
            "schema": self.site.books.schema,
            "extra": {"charset": "utf8mb4", **extra},
        }
        return {
            "AIRFLOW_HOME": str(self.home),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}:{ROOT / 'config'}",
            "AIRFLOW_CONN_EVEREST_MYSQL": json.dumps(connection),
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            # PostgreSQL, both drivers
            "PGSSLMODE": documented(r"`PGSSLMODE=([a-z-]+)`"),
            "PGSSLROOTCERT": ca,
            # its API: what it shows, whom tasks believe, and where they find it
            "AIRFLOW__API__SSL_CERT": str(self.site.servers.cert),
            "AIRFLOW__API__SSL_KEY": str(self.site.servers.key),
            "AIRFLOW__API__SSL_CA_FILE": ca,
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            # Celery's broker
            "AIRFLOW__CELERY__SSL_ACTIVE": "True",
            "AIRFLOW__CELERY__SSL_CACERT": ca,
            "AIRFLOW__CELERY__SSL_CERT": str(program.cert),
            "AIRFLOW__CELERY__SSL_KEY": str(program.key),
            # where our programs find it
            "EVEREST_AIRFLOW_URL": f"{self.url}?ssl_ca={ca}",
            "EVEREST_AIRFLOW_USER": "admin",
            "EVEREST_AIRFLOW_PASSWORD": self.credentials.airflow_admin,
        }

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        context = ssl.create_default_context(cafile=str(self.site.ours.file))
        with httpx.Client(base_url=self.url, verify=context, timeout=30, trust_env=False) as client:
            login = {"username": "admin", "password": self.credentials.airflow_admin}
            token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            client.headers["Authorization"] = f"Bearer {token}"
            yield client

    def answers(self) -> bool:
        with self.client() as client:
            return client.get("/api/v2/monitor/health").json()["metadatabase"]["status"] == "healthy"

    def knows_the_dag(self) -> bool:
        with self.client() as client:
            answer = client.get(f"/api/v2/dags/{DAG}")
            return answer.status_code == httpx.codes.OK and answer.json()["is_paused"] is False

    def in_the_clear(self) -> int:
        """Sessions at its database that are not encrypted."""
        login = {"user": "airflow", "password": private_servers.PASSWORD, "dbname": "airflow", "sslmode": "require"}
        with (
            closing(psycopg2.connect(host="127.0.0.1", port=self.database_port, **login)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(
                "SELECT COUNT(*) FILTER (WHERE NOT s.ssl), COUNT(*) FROM pg_stat_ssl s"
                " JOIN pg_stat_activity a USING (pid) WHERE a.usename = 'airflow'"
            )
            plain, every = cursor.fetchone() or (0, 0)
        assert every > 3, "the processes have sessions there"
        return int(plain)


@pytest.fixture
def site() -> Iterator[Site]:
    with tls_site.opened() as site:
        yield site


@pytest.fixture
def airflow(site: Site) -> Iterator[Airflow]:
    files = site.servers
    with private_servers.postgresql(files.ca, files.cert, files.key) as database_port:
        credentials = Credentials(airflow_admin=secrets.token_hex(16))
        one = Airflow(site, site.folder / "airflow", private_servers.free_port(), database_port, credentials)
        one.configure()
        yield one


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    with tls_site.starting(site) as start:
        yield start


def eventually(happened: Callable[[], object], what: str, *logs: Path) -> None:
    """A server that does not answer yet is no failure; its last words are those of one."""
    give_up_at, seen = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < give_up_at:
        try:
            if happened():
                return
        except Exception as error:
            seen = repr(error)
        time.sleep(0.3)
    said = "\n".join(log.read_text(errors="replace")[-1500:] for log in logs)
    pytest.fail(f"never happened: {what} {seen}\n{said}")


def test_a_document_is_posted_where_every_server_speaks_tls_alone(site: Site, airflow: Airflow, start: Start) -> None:
    env = airflow.settings()
    done = command(site, "airflow", "db", "migrate", **env)
    assert done.returncode == 0, done.stderr[-3000:]
    api = start("airflow", "api-server", **env)
    eventually(airflow.answers, "the API server answers over TLS", api.log)
    others = [
        start("airflow", "scheduler", "--skip-serve-logs", **env),
        start("airflow", "dag-processor", **env),
        start("airflow", "celery", "worker", "--skip-serve-logs", "--concurrency", "2", **env),
    ]
    eventually(airflow.knows_the_dag, "the DAG is there", *(one.log for one in others))
    programs = [
        start("ingest_consumer", "relay", **env),
        start("ingest_consumer", "consume", "--workers", "2", **env),
        start("everest.reconciler", **env),
    ]

    submit(site, "SO-TLS-ALL")

    with closing(store.connect(site.books)) as conn:

        def job() -> dict[str, object]:
            (row,) = builders.rows(conn, "SELECT * FROM rabbit_publish_shadow WHERE nomer_nota = 'SO-TLS-ALL'")
            conn.commit()
            return row

        logs = [one.log for one in (*others, *programs)]
        eventually(lambda: job()["worker_status"] in ("COMPLETED", "FAILED"), "the end of the document", *logs)
        assert job()["worker_status"] == "COMPLETED", job()
        assert (builders.books(conn).postings, builders.books(conn).agree) == (1, True)
        run = job()["dag_run_id"]
    assert all(one.runs() for one in (api, *others, *programs))
    with airflow.client() as client:
        tasks = client.get(f"/api/v2/dags/{DAG}/dagRuns/{run}/taskInstances").raise_for_status().json()
        assert {task["try_number"] for task in tasks["task_instances"]} == {1}
        # the API server's second driver (asyncpg)
        waited = client.get(f"/api/v2/dags/{DAG}/dagRuns/{run}/wait", params={"interval": 1})
        assert waited.raise_for_status().json() == {"state": "success"}
    assert airflow.in_the_clear() == 0
    with pytest.raises(httpx.HTTPError):
        httpx.get(airflow.url.replace("https", "http") + "/api/v2/monitor/health", trust_env=False, timeout=5)
