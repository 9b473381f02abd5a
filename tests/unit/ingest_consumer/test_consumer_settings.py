"""The consumer's settings: everything that is wrong at once, and no secret shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ingest_consumer.addresses import LOCK_NAME_MAX, MysqlUrl
from ingest_consumer.errors import SettingsError
from ingest_consumer.settings import Settings

GOOD = {
    "EVEREST_MYSQL_URL": "mysql://user:p%40ss@db:3307/books",
    "EVEREST_AMQP_URL": "amqp://u:secret@mq:5672/vh",
    "EVEREST_AIRFLOW_URL": "http://airflow:8080",
    "EVEREST_AIRFLOW_USER": "consumer",
    "EVEREST_AIRFLOW_PASSWORD": "hush",
}


def test_the_defaults_are_those_of_the_state_protocol() -> None:
    settings = Settings.from_environment(GOOD, airflow=True)

    assert (settings.workers, settings.hold_limit, settings.poll) == (
        4,
        timedelta(minutes=20),
        timedelta(milliseconds=10),
    )
    assert (settings.dag_wait, settings.dag_postpone) == (timedelta(seconds=30), timedelta(seconds=30))
    assert (settings.mysql.port, settings.mysql.password, settings.mysql.schema) == (3307, "p@ss", "books")


def test_every_problem_is_named_in_one_error() -> None:
    wrong = {
        "EVEREST_MYSQL_URL": "postgres://x",
        "EVEREST_AMQP_URL": "http://x",
        "EVEREST_AIRFLOW_URL": "ftp://x",
        "EVEREST_AIRFLOW_USER": "u",
        "EVEREST_WORKERS": "many",
        "EVEREST_HOLD_LIMIT_S": "0",
        "EVEREST_POLL_MS": "-5",
    }
    with pytest.raises(SettingsError) as error:
        Settings.from_environment(wrong, airflow=True)

    for name in (*wrong.keys() - {"EVEREST_AIRFLOW_USER"}, "EVEREST_AIRFLOW_PASSWORD"):
        assert name in error.value.message


def test_no_secret_shows_in_an_error_or_in_a_repr() -> None:
    with pytest.raises(SettingsError) as error:
        Settings.from_environment({"EVEREST_MYSQL_URL": "mysql://u:secret@", "EVEREST_AMQP_URL": "amq://u:secret@mq"})

    assert "secret" not in error.value.message
    shown = repr(Settings.from_environment(GOOD, airflow=True))
    for secret in ("secret", "p@ss", "hush"):
        assert secret not in shown


@pytest.mark.parametrize("parameter", ["heartbeat=soon", "sslca=/ca.pem", "client_properties=x", "ssl_options={}"])
def test_a_parameter_of_the_brokers_url_that_is_none_is_a_setting_that_is_wrong(parameter: str) -> None:
    """It was an error of ours, that came back at each try to connect."""
    url = f"{GOOD['EVEREST_AMQP_URL']}?{parameter}"
    with pytest.raises(SettingsError, match="EVEREST_AMQP_URL has a parameter behind its") as error:
        Settings.from_environment(GOOD | {"EVEREST_AMQP_URL": url})

    assert "secret" not in error.value.message
    assert Settings.from_environment(GOOD | {"EVEREST_AMQP_URL": f"{GOOD['EVEREST_AMQP_URL']}?heartbeat=30"})


@pytest.mark.parametrize(("name", "scheme"), [("EVEREST_AMQP_URL", "amqp"), ("EVEREST_AIRFLOW_URL", "http")])
def test_tls_that_the_scheme_would_not_speak_is_no_silent_plain_text(name: str, scheme: str) -> None:
    """It was: nothing else said that the password went over the network as it is."""
    asked = f"{GOOD[name]}?ssl_verify=0"
    with pytest.raises(SettingsError, match=f"{name} has ssl_ parameters, .* write {scheme}s://"):
        Settings.from_environment(GOOD | {name: asked}, airflow=True)

    Settings.from_environment(GOOD | {name: asked.replace(scheme, f"{scheme}s", 1)}, airflow=True)


def test_the_relay_needs_no_airflow() -> None:
    assert (
        Settings.from_environment({key: GOOD[key] for key in ("EVEREST_MYSQL_URL", "EVEREST_AMQP_URL")}).airflow is None
    )


def test_every_blocking_call_stays_below_a_short_heartbeat() -> None:
    settings = Settings.from_environment(GOOD | {"EVEREST_HEARTBEAT_S": "4"}, airflow=True)

    assert settings.airflow_timeout < timedelta(seconds=4)
    assert settings.mysql_timeout < timedelta(seconds=4)
    with pytest.raises(SettingsError, match="EVEREST_AIRFLOW_TIMEOUT_S"):
        Settings.from_environment(GOOD | {"EVEREST_HEARTBEAT_S": "4", "EVEREST_AIRFLOW_TIMEOUT_S": "5"}, airflow=True)


@pytest.mark.parametrize("schema", ["books", "b" * 64])
def test_the_name_of_a_lock_fits_and_belongs_to_one_schema(schema: str) -> None:
    def name(schema: str) -> str:
        return MysqlUrl.parse(f"mysql://u:p@db/{schema}").lock_name("relay")

    assert len(name(schema)) <= LOCK_NAME_MAX
    assert name(schema) != name(schema[:-1])
