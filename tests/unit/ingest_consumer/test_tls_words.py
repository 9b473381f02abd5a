"""What a log says when a connection fails: which setting to look at, by the kind of failure."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pymysql
import pytest
from pika.exceptions import AMQPConnectionError, ConnectionWrongStateError

from everest.reconciler.management import Management, ManagementUnavailable
from everest.store.database import MySQLdb, typed
from ingest_consumer import broker, database, tls
from ingest_consumer.addresses import Login, MysqlUrl
from ingest_consumer.airflow_api import AirflowApi
from ingest_consumer.errors import AirflowDown
from tests.security.certificates import Authority, Files

Serve = Callable[[ssl.SSLContext | None], int]
PATIENCE_S = 5


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    folder = tmp_path_factory.mktemp("certificates")
    return Authority(folder, "ours"), Authority(folder, "stranger")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Listeners that shake hands with everybody, and hang up; without a context they answer in plain words."""
    listeners = []

    def start(context: ssl.SSLContext | None) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def answer() -> None:
            with suppress(OSError):
                while True:
                    plain, _ = listener.accept()
                    with plain, suppress(OSError):
                        if context is None:
                            plain.sendall(b"we speak no such thing here\r\n" * 10)
                            continue
                        with context.wrap_socket(plain, server_side=True) as secure:
                            secure.recv(1)

        threading.Thread(target=answer, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        listener.close()


def context(files: Files, asks_for_ours: bool = False) -> ssl.SSLContext:
    one = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    one.load_cert_chain(files.cert, files.key)
    if asks_for_ours:
        one.load_verify_locations(files.ca)
        one.verify_mode = ssl.CERT_REQUIRED
    return one


def of_the_broker(port: int, ca: Path | None, host: str = "127.0.0.1") -> str:
    url = f"amqp://x:x@{host}:{port}/%2F" if ca is None else f"amqps://x:x@{host}:{port}/%2F?ssl_ca={ca}"
    with pytest.raises(broker.BROKER_ERRORS) as caught:
        broker.connect(url, "test", 60)
    return broker.said(caught.value)


def of_airflow(port: int, ca: Path | None, host: str = "127.0.0.1") -> str:
    url = f"http://{host}:{port}" if ca is None else f"https://{host}:{port}?ssl_ca={ca}"
    with (
        closing(AirflowApi(url, "u", "p", PATIENCE_S)) as api,
        pytest.raises(AirflowDown) as caught,
    ):
        api.dag_state("d")
    assert caught.value.retryable, "a certificate may be renewed meanwhile"
    return caught.value.message


WAYS = [pytest.param(of_the_broker, "EVEREST_AMQP_URL"), pytest.param(of_airflow, "EVEREST_AIRFLOW_URL")]


@pytest.mark.parametrize(("said", "setting"), WAYS)
def test_each_flaw_of_a_certificate_names_its_setting(
    authorities: tuple[Authority, Authority], serve: Serve, said: Callable[..., str], setting: str
) -> None:
    ours, stranger = authorities
    good = ours.certificate("127.0.0.1")
    port = serve(context(good))

    assert f"ssl_ca of {setting} is not who signed" in said(port, stranger.file)
    assert f"{setting} must name the server as its certificate does" in said(port, good.ca, "localhost")
    expired = serve(context(ours.certificate("127.0.0.1", has_expired=True)))
    assert f"the certificate of the server of {setting} is not valid at this time" in said(expired, good.ca)
    assert f"the server of {setting} speaks no TLS at this port" in said(serve(None), good.ca)


def test_a_server_that_wants_a_certificate_of_ours_is_told_from_one_that_is_away(
    authorities: tuple[Authority, Authority], serve: Serve
) -> None:
    files = authorities[0].certificate("127.0.0.1")
    port = serve(context(files, asks_for_ours=True))

    for words, setting in ((of_the_broker(port, files.ca), "AMQP"), (of_airflow(port, files.ca), "AIRFLOW")):
        assert f"EVEREST_{setting}_URL" in words
        assert "a certificate of ours" in words
    assert "it may want TLS (amqps://)" in of_the_broker(port, None), "plain AMQP to a port that speaks TLS"

    for words in (of_the_broker(socket_that_is_closed(), files.ca), of_airflow(socket_that_is_closed(), files.ca)):
        assert "certificate" not in words, "nobody listens"
        assert "ssl_" not in words


def of_the_database(port: int, host: str = "127.0.0.1") -> str:
    one = database.Database(MysqlUrl(host, port, "x", "x", "x"), timedelta(seconds=PATIENCE_S))
    with pytest.raises(pymysql.OperationalError) as caught, one.transaction():
        pass
    return database.said(caught.value)


@pytest.mark.parametrize(
    ("said", "setting"),
    [
        (lambda port: of_the_broker(port, None), "EVEREST_AMQP_URL"),
        (lambda port: of_airflow(port, None), "EVEREST_AIRFLOW_URL"),
        (of_the_database, "EVEREST_MYSQL_URL"),
    ],
)
def test_where_nobody_listens_it_is_said_so_and_what_to_look_at(said: Callable[[int], str], setting: str) -> None:
    words = said(socket_that_is_closed())

    assert "Connection refused" in words
    assert words.endswith(f"nobody listens there: is the server of {setting} started, and is that its port?")


def test_an_error_without_words_says_what_its_kind_means() -> None:
    assert broker.said(ConnectionWrongStateError()) == (
        "ConnectionWrongStateError: Connection is in wrong state for the requested operation."
    )
    assert broker.said(AMQPConnectionError()) == "AMQPConnectionError"


def test_a_host_that_nobody_knows_is_a_matter_of_the_setting() -> None:
    with pytest.raises(broker.BROKER_ERRORS) as caught:
        broker.connect("amqp://x:x@no-such-host.invalid:5672/%2F", "test", 60)

    assert broker.said(caught.value).endswith("no way leads there: is the host in EVEREST_AMQP_URL right?")


def socket_that_is_closed() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_management_api_says_its_own_setting(authorities: tuple[Authority, Authority], serve: Serve) -> None:
    ours, stranger = authorities
    url = f"https://127.0.0.1:{serve(context(ours.certificate('127.0.0.1')))}?ssl_ca={stranger.file}"
    with (
        closing(Management(Login(url, "u", "p"), "/", timedelta(seconds=PATIENCE_S))) as management,
        pytest.raises(ManagementUnavailable, match="ssl_ca of EVEREST_RABBIT_MANAGEMENT_URL"),
    ):
        management.queue_is_empty()


def test_a_database_that_denies_access_may_want_tls_and_one_without_tls_is_asked_again() -> None:
    denied = "Access denied for user 'x'@'127.0.0.1'"
    assert "ssl_key, of EVEREST_MYSQL_URL" in database.said(pymysql.OperationalError(1045, denied))
    assert "ssl_key, of EVEREST_MYSQL_URL" in str(typed(MySQLdb.OperationalError(1045, denied)))
    assert not typed(MySQLdb.OperationalError(1045, denied)).retryable

    handshake = typed(MySQLdb.OperationalError(2026, "TLS/SSL error: certificate has expired"))
    assert handshake.retryable
    assert "ssl_ca" in str(handshake)
    assert "EVEREST" not in database.said(pymysql.OperationalError(2013, "Lost connection"))


def test_an_address_without_tls_trusts_nobody_and_one_with_tls_whom_it_should(
    authorities: tuple[Authority, Authority],
) -> None:
    _, nobody = tls.http("http://airflow:8080")
    _, machine = tls.http("https://airflow")
    address, ours = tls.http(f"https://airflow?ssl_ca={authorities[0].file}")

    assert isinstance(nobody, ssl.SSLContext)
    assert nobody.get_ca_certs() == []
    assert (nobody.verify_mode, nobody.check_hostname) == (ssl.CERT_REQUIRED, True), "it refuses, not accepts"
    assert machine is True, "httpx asks the authorities that it brings"
    assert isinstance(ours, ssl.SSLContext)
    assert (address, len(ours.get_ca_certs())) == ("https://airflow", 1)
