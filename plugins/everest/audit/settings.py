"""How patient an audit is, how much it shows, and where Airflow and the broker's management are; read once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from everest.errors import SettingsError
from ingest_consumer.addresses import DEFAULT_VHOST, Login, vhost_of
from ingest_consumer.secret_files import resolved


@dataclass(frozen=True)
class AuditSettings:
    """grace: what queue, Airflow and reconciler get to deal with a job before it is a finding.
    lookback: movements are looked for that were entered late against postings of this long.
    named: findings named in an error message; all are stored, up to `stored`, and all are counted.
    hour_wib: when the nightly audit begins. page: rows read at once of jobs in one status.
    airflow, management: None where they cannot be asked; vhost: of the broker.
    """

    grace: timedelta = timedelta(minutes=15)
    lookback: timedelta = timedelta(days=35)
    named: int = 20
    stored: int = 1_000
    hour_wib: int = 2
    page: int = 1_000
    airflow: Login | None = None
    management: Login | None = None
    vhost: str = DEFAULT_VHOST

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> AuditSettings:
        """Raises SettingsError naming every variable that is wrong."""
        problems: list[str] = []
        env = resolved(env, problems)

        def whole(name: str, default: int, least: int, most: int) -> int:
            given = env.get(name) or str(default)
            if given.isdecimal() and least <= int(given) <= most:
                return int(given)
            problems.append(f"{name}={given!r}: must be a whole number from {least} to {most}")
            return default

        settings = cls(
            grace=timedelta(minutes=whole("EVEREST_AUDIT_GRACE_MINUTES", 15, 1, 10_000)),
            lookback=timedelta(days=whole("EVEREST_AUDIT_LOOKBACK_DAYS", 35, 1, 10_000)),
            named=whole("EVEREST_AUDIT_NAMED", 20, 1, 1_000),
            hour_wib=whole("EVEREST_AUDIT_HOUR_WIB", 2, 0, 23),
            airflow=_login(env, "EVEREST_AIRFLOW"),
            management=_login(env, "EVEREST_RABBIT_MANAGEMENT"),
            vhost=vhost_of(env.get("EVEREST_AMQP_URL", "")),
        )
        if problems:
            raise SettingsError("; ".join(problems))
        return settings


def _login(env: Mapping[str, str], prefix: str) -> Login | None:
    """None where a part is missing: then it cannot be asked, which the audit says."""
    missing: list[str] = []
    found = Login.of(env, prefix, missing)
    return None if missing else found
