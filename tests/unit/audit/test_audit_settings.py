from __future__ import annotations

from datetime import timedelta

import pytest

from everest.audit.settings import AuditSettings
from everest.errors import SettingsError

AIRFLOW = {"EVEREST_AIRFLOW_URL": "http://a", "EVEREST_AIRFLOW_USER": "u", "EVEREST_AIRFLOW_PASSWORD": "rahasia"}


def test_nothing_needs_to_be_set() -> None:
    settings = AuditSettings.from_environment({})

    assert (settings.grace, settings.hour_wib, settings.airflow) == (timedelta(minutes=15), 2, None)


def test_all_that_is_wrong_is_said_together() -> None:
    with pytest.raises(SettingsError) as raised:
        AuditSettings.from_environment({"EVEREST_AUDIT_GRACE_MINUTES": "0", "EVEREST_AUDIT_HOUR_WIB": "24"})

    assert "EVEREST_AUDIT_GRACE_MINUTES" in raised.value.message
    assert "EVEREST_AUDIT_HOUR_WIB" in raised.value.message


def test_a_server_is_known_when_address_and_login_are_and_its_password_is_never_shown() -> None:
    settings = AuditSettings.from_environment({**AIRFLOW, "EVEREST_RABBIT_MANAGEMENT_URL": "http://r"})

    assert settings.airflow is not None and settings.management is None
    assert "rahasia" not in repr(settings)


def test_the_vhost_is_that_of_the_broker() -> None:
    assert AuditSettings.from_environment({"EVEREST_AMQP_URL": "amqp://u:p@h:5672/everest"}).vhost == "everest"
    assert AuditSettings.from_environment({"EVEREST_AMQP_URL": "amqp://u:p@h:5672/%2F"}).vhost == "/"
