"""A site where every server speaks TLS alone and wants to see who calls: certificates of a generated authority, in the
settings as docs/operations.md gives them, and our programs as processes in it."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from everest.settings import MysqlUrl
from everest.store import database as store
from everest.store.migrations import migrate
from ingest_consumer.tls import Tls
from tests import builders, fake_airflow, fake_management, private_servers
from tests.conftest import administer
from tests.fake_airflow import FakeAirflow
from tests.fake_management import FakeManagement
from tests.queue_rig import ROOT
from tests.security.certificates import Authority, Files

ACCOUNT, PASSWORD = "everest_program", "a password of this test"
PATIENCE_S = 300
STOP_S = 60


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


@contextmanager
def opened() -> Iterator[Site]:
    """The site with its database and broker at work, and a migrated schema with one warehouse."""
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
        """Asks it to end, then ends it and its children."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_S)

    def says(self, words: str) -> bool:
        assert self.runs(), f"it ended instead of saying {words!r}: {self.log.read_text()[-2000:]}"
        return words in self.log.read_text()


Start = Callable[..., Program]


@contextmanager
def starting(site: Site) -> Iterator[Start]:
    """`python -m MODULE ARGUMENTS` in the site, to the end of the block."""
    started: list[Program] = []

    def run(*arguments: str, **changes: str) -> Program:
        path = site.folder / f"{len(started)}.log"
        with path.open("wb") as log:
            env = site.environment(**changes)
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments], env=env, cwd=ROOT, stdout=log, stderr=log, start_new_session=True
            )
        started.append(Program(process, path))
        return started[-1]

    try:
        yield run
    finally:
        for one in reversed(started):
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
