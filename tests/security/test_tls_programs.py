"""Consumer, relay, reconciler and a command as processes, where every server speaks TLS alone and wants to see who
calls: certificates of a generated authority, in the settings as docs/operations.md gives them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from everest.store import database as store
from tests import builders
from tests.queue_rig import until
from tests.security import tls_site
from tests.security.tls_site import PASSWORD, Site, Start, command, submit

NOT_READY = 5
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tls_site.opened() as site:
        yield site


@pytest.fixture
def start(site: Site) -> Iterator[Start]:
    with tls_site.starting(site) as start:
        yield start


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
        assert all(one.runs() for one in programs)
        programs[-1].stop()  # one at a time
        once = command(site, "everest.reconciler", "--once")
        assert once.returncode == 0, once.stdout + once.stderr


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
