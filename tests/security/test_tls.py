"""TLS to database, broker and HTTP services: verified where it is asked for, with certificates of this test run.

The servers are private ones with a certificate for 127.0.0.1. A client that trusts another authority, or calls the
server by a name that is not in its certificate, does not say who it is.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
import pytest

from everest.errors import EverestError
from everest.pages import broker as health
from everest.pages.settings import Broker
from everest.reconciler.management import Management, ManagementUnavailable
from everest.settings import MysqlUrl
from everest.store import database as store
from ingest_consumer import broker
from ingest_consumer.addresses import Login
from ingest_consumer.airflow_api import AirflowApi, DagState
from ingest_consumer.database import Database
from ingest_consumer.errors import AirflowUnavailable
from ingest_consumer.tls import Tls
from tests import private_servers
from tests.security.certificates import Authority, Files

SECONDS = timedelta(seconds=5)
Connect = Callable[[MysqlUrl], str]
REFUSED = (EverestError, pymysql.MySQLError)


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Authority, Authority]]:
    """Ours and a stranger's, in a folder that servers of another user can read."""
    with private_servers.folder_for("mysql") as folder:
        folder.chmod(0o755)
        yield Authority(folder, "ours"), Authority(folder, "stranger")


@pytest.fixture(scope="module")
def certificate(authorities: tuple[Authority, Authority]) -> Files:
    return authorities[0].certificate("127.0.0.1")


@pytest.fixture(scope="module")
def stranger(authorities: tuple[Authority, Authority]) -> Path:
    return authorities[1].file


@pytest.fixture(scope="module")
def mariadb(certificate: Files) -> Iterator[MysqlUrl]:
    options = (f"--ssl-ca={certificate.ca}", f"--ssl-cert={certificate.cert}", f"--ssl-key={certificate.key}")
    with private_servers.mariadb(*options) as url:
        yield replace(url, schema="information_schema")


def by_mysqlclient(url: MysqlUrl) -> str:
    """The cipher of a session, '' for none."""
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        return str(cursor.fetchone()[1])


def by_pymysql(url: MysqlUrl) -> str:
    with closing(Database(url, SECONDS)) as database, database.transaction() as conn, conn.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        return str(cursor.fetchone()[1])


@pytest.fixture(params=[by_mysqlclient, by_pymysql])
def cipher(request: pytest.FixtureRequest) -> Connect:
    connect: Connect = request.param
    return connect


def test_the_database_is_reached_through_verified_tls(mariadb: MysqlUrl, certificate: Files, cipher: Connect) -> None:
    assert cipher(replace(mariadb, tls=Tls(ca=str(certificate.ca)))).startswith("TLS")


def test_a_database_whose_certificate_a_stranger_signed_is_refused(
    mariadb: MysqlUrl, stranger: Path, cipher: Connect
) -> None:
    with pytest.raises(REFUSED, match=r"(?i)certificate"):
        cipher(replace(mariadb, tls=Tls(ca=str(stranger))))


def test_a_database_whose_certificate_is_for_another_name_is_refused(authorities: tuple[Authority, Authority]) -> None:
    files = authorities[0].certificate("elsewhere.example")
    with private_servers.mariadb(f"--ssl-cert={files.cert}", f"--ssl-key={files.key}") as url:
        for connect in (by_mysqlclient, by_pymysql):
            with pytest.raises(REFUSED, match=r"(?i)certificate"):
                connect(replace(url, schema="information_schema", tls=Tls(ca=str(files.ca))))


def test_without_an_authority_the_machines_own_are_asked(mariadb: MysqlUrl, cipher: Connect) -> None:
    with pytest.raises(REFUSED, match=r"(?i)certificate"):
        cipher(replace(mariadb, tls=Tls()))


def test_verification_goes_only_when_it_is_sent_away(mariadb: MysqlUrl, stranger: Path, cipher: Connect) -> None:
    assert cipher(replace(mariadb, tls=Tls(ca=str(stranger), verify=False))).startswith("TLS")


def test_a_database_without_tls_is_refused_where_tls_is_asked_for(certificate: Files, cipher: Connect) -> None:
    """Whoever stands in between could else take the offer of TLS away, and read everything."""
    with private_servers.mariadb("--skip-ssl") as url:
        plain = replace(url, schema="information_schema")
        assert cipher(plain) == ""
        with pytest.raises(REFUSED, match=r"does not (support|offer) it"):
            cipher(replace(plain, tls=Tls(ca=str(certificate.ca))))


def test_the_url_says_it_and_the_tasks_connection_says_it_in_airflows_words(
    mariadb: MysqlUrl, certificate: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = f"{mariadb.user}:{quote(mariadb.password)}@{mariadb.host}:{mariadb.port}"
    url = f"mysql://{account}/information_schema?ssl_ca={certificate.ca}"
    assert by_mysqlclient(MysqlUrl.parse(url)).startswith("TLS")

    from airflow.providers.mysql.hooks.mysql import MySqlHook

    connection = {
        "conn_type": "mysql",
        "host": mariadb.host,
        "port": mariadb.port,
        "login": mariadb.user,
        "password": mariadb.password,
        "schema": mariadb.schema,
        "extra": {"charset": "utf8mb4", "ssl": {"ca": str(certificate.ca)}, "ssl_mode": "VERIFY_IDENTITY"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_EVEREST_TLS", json.dumps(connection))
    with closing(store.prepare(MySqlHook(mysql_conn_id="everest_tls").get_conn())) as conn, conn.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        assert cursor.fetchone()[1].startswith("TLS")


# ------------------------------------------------------------------------------------------------------- broker


def test_the_broker_is_reached_through_verified_tls_only(certificate: Files, stranger: Path) -> None:
    with private_servers.rabbitmq(certificate.ca, certificate.cert, certificate.key) as port:
        url = f"amqps://guest:guest@127.0.0.1:{port}/%2F"  # the broker's own first account, on the loopback only
        with closing(broker.connect(f"{url}?ssl_ca={certificate.ca}", "test", 60)) as connection:
            assert connection.is_open
        for wrong in (
            f"{url}?ssl_ca={stranger}",
            url,
            f"{url}?ssl_ca={certificate.ca}".replace("127.0.0.1", "localhost"),
        ):
            with pytest.raises(broker.BROKER_ERRORS):
                broker.connect(wrong, "test", 60)
        with closing(broker.connect(f"{url}?ssl_verify=0", "test", 60)) as connection:
            assert connection.is_open


# --------------------------------------------------------------------------------------------------------- HTTP


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self._answer({"access_token": "t"}, 201)

    def do_GET(self) -> None:
        self._answer({"is_paused": False, "messages_ready": 0, "messages_unacknowledged": 0})

    def _answer(self, body: dict[str, Any], status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def https(certificate: Files) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_airflow_and_the_management_api_are_verified(https: str, certificate: Files, stranger: Path) -> None:
    trusted = f"{https}?ssl_ca={certificate.ca}"
    with closing(AirflowApi(trusted, "u", "p", SECONDS)) as api:
        assert api.dag_state("d") is DagState.READY
    with closing(Management(Login(trusted, "u", "p"), "/", SECONDS)) as management:
        assert management.queue_is_empty()
    assert health.look(Broker(trusted, "u", "p")) == health.Queues(ready=0, held=0, consumers=None, letters=None)
    for url in (https, f"{https}?ssl_ca={stranger}"):
        with closing(AirflowApi(url, "u", "p", SECONDS)) as api, pytest.raises(AirflowUnavailable):
            api.dag_state("d")
        with (
            closing(Management(Login(url, "u", "p"), "/", SECONDS)) as management,
            pytest.raises(ManagementUnavailable),
        ):
            management.queue_is_empty()
        assert health.look(Broker(url, "u", "p")).trouble == "silent"
