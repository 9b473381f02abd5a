"""Consumer, relay, reconciler and a command as processes, where every server speaks TLS alone and wants to see who
calls: certificates of a generated authority, in the settings as docs/operations.md gives them."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from ingest_consumer.tls import Tls
from tests import builders, fake_airflow, fake_management, private_servers
from tests.conftest import administer
from tests.fake_airflow import FakeAirflow
from tests.fake_management import FakeManagement
from tests.queue_rig import ROOT, until
from tests.security.certificates import Authority, Files

ACCOUNT, PASSWORD = "everest_program", "a password of this test"
NOT_READY = 5
PATIENCE_S = 120
pytestmark = pytest.mark.long


class Site:
    """Where everything is, and what a program needs to get in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ours, self.stranger = Authority(folder, "ours"), Authority(folder, "stranger")
        self.servers: Files = self.ours.certificate("127.0.0.1")
        self.program: Files = self.ours.certificate("program.example")
        self.books = MysqlUrl("127.0.0.1", 0, "", "", "everest_books")
        self.amqp_port = 0
        self.airflow = FakeAirflow(self._context())
        self.management = FakeManagement(self._context())

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.servers.cert, self.servers.key)
        context.load_verify_locations(self.servers.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def tls(self, ca: Path | None = None, with_ours: bool = True) -> str:
        ours = f"&ssl_cert={self.program.cert}&ssl_key={self.program.key}" if with_ours else ""
        return f"?ssl_ca={ca or self.ours.file}{ours}"

    def mysql_url(self, tls: str, host: str = "127.0.0.1") -> str:
        return f"mysql://{ACCOUNT}:{quote(PASSWORD)}@{host}:{self.books.port}/{self.books.schema}{tls}"

    def amqp_url(self, tls: str, host: str = "127.0.0.1", scheme: str = "amqps") -> str:
        return f"{scheme}://guest:guest@{host}:{self.amqp_port}/%2F{tls}"

    def environment(self, **changes: str) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("EVEREST_")},
            "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
            "EVEREST_MYSQL_URL": self.mysql_url(self.tls()),
            "EVEREST_AMQP_URL": self.amqp_url(self.tls()),
            "EVEREST_AIRFLOW_URL": self.airflow.url + self.tls(),
            "EVEREST_AIRFLOW_USER": fake_airflow.USER,
            "EVEREST_AIRFLOW_PASSWORD": fake_airflow.PASSWORD,
            "EVEREST_RABBIT_MANAGEMENT_URL": self.management.url + self.tls(),
            "EVEREST_RABBIT_MANAGEMENT_USER": fake_management.USER,
            "EVEREST_RABBIT_MANAGEMENT_PASSWORD": fake_management.PASSWORD,
            "EVEREST_POLL_MS": "20",
            "EVEREST_RELAY_POLL_MS": "20",
            "EVEREST_RECONCILER_PERIOD_S": "0.2",
            **changes,
        }


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with private_servers.folder_for("mysql") as folder:
        folder.chmod(0o755)
        site = Site(folder)
        files = site.servers
        options = (f"--ssl-ca={files.ca}", f"--ssl-cert={files.cert}", f"--ssl-key={files.key}")
        asks = ("ssl_options.verify = verify_peer", "ssl_options.fail_if_no_peer_cert = true")
        with (
            private_servers.mariadb(*options) as url,
            private_servers.rabbitmq(files.ca, files.cert, files.key, *asks) as amqp_port,
            closing(site.airflow),
            closing(site.management),
        ):
            administer(url, f"CREATE DATABASE {site.books.schema} CHARACTER SET utf8mb4")
            administer(url, f"CREATE USER '{ACCOUNT}'@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE X509")
            administer(url, f"GRANT ALL ON {site.books.schema}.* TO '{ACCOUNT}'@'%'")
            administer(url, "SET GLOBAL require_secure_transport = ON")
            site.books = replace(url, schema=site.books.schema, tls=Tls(ca=str(files.ca)))
            site.amqp_port = amqp_port
            migrate(site.books, lambda line: None)
            with closing(store.connect(site.books)) as conn, store.transaction(conn):
                builders.warehouse(conn, "GD-A")
            yield site


@dataclass
class Program:
    process: subprocess.Popen[bytes]
    log: Path

    def runs(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def says(self, words: str) -> bool:
        assert self.runs(), f"it ended instead of saying {words!r}: {self.log.read_text()[-2000:]}"
        return words in self.log.read_text()


Start = Callable[..., Program]


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    """`python -m MODULE ARGUMENTS` in the site, to the end of the test."""
    started: list[Program] = []

    def run(*arguments: str, **changes: str) -> Program:
        path = site.folder / f"{len(started)}.log"
        with path.open("wb") as log:
            env = site.environment(**changes)
            process = subprocess.Popen([sys.executable, "-m", *arguments], env=env, cwd=ROOT, stdout=log, stderr=log)
        started.append(Program(process, path))
        return started[-1]

    yield run
    for one in started:
        one.stop()


def command(site: Site, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        env=site.environment(**changes),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def submit(site: Site, nota: str) -> None:
    sheet = site.folder / f"{nota}.csv"
    sheet.write_text("kode_barang,qty_sistem,qty_fisik,harga_pokok\nBRG-A,4,5,1000\n", encoding="utf-8")
    details = ("--gudang", "GD-A", "--tanggal-opname", "2026-08-31", "--as", "budi")
    stored = command(site, "everest", "submit", str(sheet), "--nota", nota, *details)
    assert stored.returncode == 0, stored.stdout + stored.stderr


def test_a_document_goes_through_all_programs_with_certificates_on_both_sides(site: Site, start: Start) -> None:
    with closing(store.connect(site.books)) as conn:

        def end(_run_id: str, conf: dict[str, Any]) -> None:
            with closing(store.connect(site.books)) as own, store.transaction(own), own.cursor() as cursor:
                cursor.execute(
                    "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED', worker_at = UTC_TIMESTAMP(6)"
                    " WHERE id = %s",
                    (conf["shadow_id"],),
                )

        site.airflow.on_trigger = end
        submit(site, "SO-TLS")
        programs = [
            start("ingest_consumer", "relay"),
            start("ingest_consumer", "consume", "--workers", "1"),
            start("everest.reconciler"),
        ]
        until(
            lambda: builders.rows(conn, "SELECT 1 FROM rabbit_publish_shadow WHERE worker_status = 'COMPLETED'"),
            "posted through all of them",
        )
        told = command(site, "everest", "status", "SO-TLS")
        assert told.returncode == 0, told.stderr
        assert "COMPLETED" in told.stdout
        once = command(site, "everest.reconciler", "--once")
        assert once.returncode == 0, once.stdout + once.stderr
        assert all(one.runs() for one in programs)


def test_a_broker_that_cannot_be_trusted_or_does_not_trust_us_is_named_and_waited_for(site: Site, start: Start) -> None:
    stranger, nobody = site.tls(site.stranger.file), site.tls(with_ours=False)
    wrong = {
        "ssl_ca of EVEREST_AMQP_URL is not who signed": site.amqp_url(stranger),
        "EVEREST_AMQP_URL must name the server as its certificate does": site.amqp_url(site.tls(), "localhost"),
        "or a certificate of ours (ssl_cert and ssl_key)": site.amqp_url(nobody),
        "EVEREST_AMQP_URL: it may want TLS (amqps://)": site.amqp_url("", scheme="amqp"),
    }
    for words, url in wrong.items():
        for program in (("ingest_consumer", "consume", "--workers", "1"), ("ingest_consumer", "relay")):
            one = start(*program, EVEREST_AMQP_URL=url)
            until(lambda one=one, words=words: one.says(words), f"{program} says {words!r}")
            one.stop()


def test_an_airflow_that_cannot_be_trusted_is_named_and_waited_for(site: Site, start: Start) -> None:
    submit(site, "SO-TLS-2")
    start("ingest_consumer", "relay")
    url = site.airflow.url + site.tls(site.stranger.file)
    one = start("ingest_consumer", "consume", "--workers", "1", EVEREST_AIRFLOW_URL=url)
    until(lambda: one.says("ssl_ca of EVEREST_AIRFLOW_URL is not who signed"), "the consumer names the setting")


def test_a_database_that_cannot_be_trusted_or_does_not_trust_us_is_named(site: Site, start: Start) -> None:
    wrong = {
        "ssl_ca": site.mysql_url(site.tls(site.stranger.file)),
        "the account may be for TLS only": site.mysql_url(""),
        "or ssl_cert and ssl_key, of EVEREST_MYSQL_URL": site.mysql_url(site.tls(with_ours=False)),
    }
    for words, url in wrong.items():
        told = command(site, "everest", "status", "SO-TLS", EVEREST_MYSQL_URL=url)
        assert told.returncode == NOT_READY, told.stdout + told.stderr
        assert words in told.stderr
        assert "EVEREST_MYSQL_URL" in told.stderr
        assert "Traceback" not in told.stderr
        assert PASSWORD not in told.stderr
        for program in (("ingest_consumer", "relay"), ("everest.reconciler",)):
            one = start(*program, EVEREST_MYSQL_URL=url)
            until(lambda one=one: one.says("EVEREST_MYSQL_URL"), f"{program} names the setting")
            one.stop()


CELERY = """
from airflow.providers.celery.executors.celery_executor import app
with app.connection_for_write() as connection:
    connection.connect()
    print("connected", connection.connected)
"""


def test_celerys_broker_is_reached_with_airflows_own_settings(site: Site) -> None:
    settings = {
        "AIRFLOW__CELERY__BROKER_URL": site.amqp_url("", scheme="amqp"),
        "AIRFLOW__CELERY__SSL_ACTIVE": "True",
        "AIRFLOW__CELERY__SSL_CACERT": str(site.ours.file),
        "AIRFLOW__CELERY__SSL_CERT": str(site.program.cert),
        "AIRFLOW__CELERY__SSL_KEY": str(site.program.key),
        "AIRFLOW_HOME": str(site.folder / "airflow"),
    }

    def connects(**changes: str) -> bool:
        env = site.environment(**settings | changes)
        done = subprocess.run([sys.executable, "-c", CELERY], env=env, capture_output=True, text=True, check=False)
        assert "connected" in done.stdout or "CERTIFICATE_VERIFY_FAILED" in done.stderr, done.stderr[-2000:]
        return "connected True" in done.stdout

    assert connects()
    assert not connects(AIRFLOW__CELERY__SSL_CACERT=str(site.stranger.file))
    elsewhere = site.amqp_url("", "localhost", "amqp")
    assert connects(AIRFLOW__CELERY__BROKER_URL=elsewhere), "Celery looks at no host name; docs/operations.md says so"
