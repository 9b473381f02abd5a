"""Settings of the reconciler: read once, all problems at once, no password shown."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everest.errors import SettingsError
from everest.reconciler.settings import Limits, ReconcilerSettings

ENV = {
    "EVEREST_MYSQL_URL": "mysql://everest:geheim@db:3307/books",
    "EVEREST_AMQP_URL": "amqp://everest:geheim@mq/gudang%2Fsatu",
    "EVEREST_AIRFLOW_URL": "http://airflow:8080",
    "EVEREST_AIRFLOW_USER": "admin",
    "EVEREST_AIRFLOW_PASSWORD": "geheim",
}
MANAGEMENT = {
    "EVEREST_RABBIT_MANAGEMENT_URL": "http://mq:15672",
    "EVEREST_RABBIT_MANAGEMENT_USER": "monitor",
    "EVEREST_RABBIT_MANAGEMENT_PASSWORD": "geheim",
}


def test_the_least_that_is_needed_gives_the_documented_limits() -> None:
    settings = ReconcilerSettings.from_environment(ENV)

    assert settings.limits == Limits()
    assert (settings.limits.period, settings.limits.hold_limit) == (timedelta(seconds=5), timedelta(minutes=20))
    assert (settings.vhost, settings.management) == ("gudang/satu", None)


@pytest.mark.parametrize("url", ["amqp://mq", "amqp://mq/", "amqps://mq:5671/%2F"])
def test_no_vhost_in_the_url_means_the_default_one(url: str) -> None:
    assert ReconcilerSettings.from_environment(ENV | {"EVEREST_AMQP_URL": url}).vhost == "/"


def test_every_limit_can_be_set() -> None:
    settings = ReconcilerSettings.from_environment(
        ENV
        | MANAGEMENT
        | {
            "EVEREST_RECONCILER_PERIOD_S": "0.5",
            "EVEREST_RECONCILER_WAKE_PERIOD_S": "1.5",
            "EVEREST_RECONCILER_QUIET_S": "1",
            "EVEREST_HOLD_LIMIT_S": "60",
            "EVEREST_RECONCILER_RECOVERIES": "7",
            "EVEREST_RECONCILER_DEAD_LETTER_AFTER_S": "2",
            "EVEREST_RECONCILER_LOST_AFTER_S": "30",
            "EVEREST_RECONCILER_REQUEUE_EVERY_S": "45",
            "EVEREST_RECONCILER_WAKE_GRACE_S": "3",
            "EVEREST_RECONCILER_BATCH": "9",
            "EVEREST_RECONCILER_HTTP_TIMEOUT_S": "4",
        }
    )

    half, one, minute = timedelta(seconds=0.5), timedelta(seconds=1), timedelta(minutes=1)
    assert settings.limits == Limits(half, 3 * half, one, minute, 7, 2 * one, 30 * one, 45 * one, 3 * one, 9)
    assert settings.http_timeout == 4 * one
    assert settings.management is not None
    assert settings.management.user == "monitor"


def test_everything_that_is_wrong_is_named_at_once_and_no_secret_with_it() -> None:
    with pytest.raises(SettingsError) as refusal:
        ReconcilerSettings.from_environment(
            {
                "EVEREST_MYSQL_URL": "geheim",
                "EVEREST_AMQP_URL": "http://everest:geheim@mq/",
                "EVEREST_AIRFLOW_URL": "airflow:8080",
                "EVEREST_RABBIT_MANAGEMENT_URL": "http://mq",
                "EVEREST_RECONCILER_PERIOD_S": "nan",
                "EVEREST_RECONCILER_BATCH": "-1",
                "EVEREST_FOREIGN_ZONE": "Mars/Olympus",
            }
        )

    text = str(refusal.value)
    for name in (
        "EVEREST_MYSQL_URL",
        "EVEREST_AMQP_URL",
        "EVEREST_AIRFLOW_URL",
        "EVEREST_AIRFLOW_USER",
        "EVEREST_AIRFLOW_PASSWORD",
        "EVEREST_RABBIT_MANAGEMENT_USER",
        "EVEREST_RABBIT_MANAGEMENT_PASSWORD",
        "EVEREST_RECONCILER_PERIOD_S",
        "EVEREST_RECONCILER_BATCH",
        "EVEREST_FOREIGN_ZONE",
    ):
        assert name in text
    assert "geheim" not in text


def test_a_password_never_shows() -> None:
    assert "geheim" not in repr(ReconcilerSettings.from_environment(ENV | MANAGEMENT))
