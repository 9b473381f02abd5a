"""Every setting of the reconciler, read once from the environment; all problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from everest.errors import SettingsError
from everest.settings import MysqlUrl, Settings, mysql_url
from ingest_consumer.addresses import DEFAULT_VHOST, Login, vhost_of
from ingest_consumer.endpoints import LOOPBACK, Endpoint
from ingest_consumer.secret_files import resolved


@dataclass(frozen=True)
class Limits:
    """How patient the reconciler is.

    period: between two rounds.
    wake_period: between two looks for waits that are decided and not woken.
    quiet: a job at work is asked about in Airflow only after this long without news; each question costs the API
        server 20-30 ms.
    hold_limit: the consumers' own (EVEREST_HOLD_LIMIT_S): after it nobody holds a delivery that could still trigger a
        run Airflow does not know.
    recoveries: DAG runs begun again for a workflow before it is FAILED 503.
    dead_letter_after: what a consumer that holds the delivery gets to reject it, before we write the letter.
    lost_after: a message that was published this long ago, and is in no queue, is lost.
    requeue_every: a lost message is sent again at most this often.
    wake_grace: what the relay gets to end a delay or a timeout in time.
    batch: rows of one kind in one round.
    handler_timeout: what a workflow's handler gets here (a deadline's, a failure's, a compensation); then it is
        interrupted, and the other repairs go on. Shorter than ANSWER_WITHIN, which else ends it as a lost connection.
    standby_after: a reconciler whose machine vanished is not heard of any more; after so long the database frees its
        turn for the one that stands by. One that dies on a living machine loses it at once.
    """

    period: timedelta = timedelta(seconds=5)
    wake_period: timedelta = timedelta(seconds=1.5)
    quiet: timedelta = timedelta(seconds=5)
    hold_limit: timedelta = timedelta(minutes=20)
    recoveries: int = 3
    dead_letter_after: timedelta = timedelta(seconds=10)
    lost_after: timedelta = timedelta(minutes=5)
    requeue_every: timedelta = timedelta(minutes=10)
    wake_grace: timedelta = timedelta(seconds=10)
    batch: int = 50
    handler_timeout: timedelta = timedelta(seconds=45)
    standby_after: timedelta = timedelta(minutes=2)


@dataclass(frozen=True)
class ReconcilerSettings:
    """Where the servers are, and the limits. `management` None: lost messages are not looked for. `endpoint`: where it
    answers for its metrics and health; off by default."""

    mysql: MysqlUrl
    airflow: Login
    vhost: str = DEFAULT_VHOST
    management: Login | None = None
    http_timeout: timedelta = timedelta(seconds=5)
    limits: Limits = field(default_factory=Limits)
    site: Settings = field(default_factory=Settings)
    endpoint: Endpoint = field(default_factory=Endpoint)

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> ReconcilerSettings:
        """Raises SettingsError naming every variable that is wrong."""
        problems: list[str] = []
        env = resolved(env, problems)

        def seconds(name: str, default: timedelta, least: float, most: float) -> timedelta:
            text = env.get(name) or f"{default.total_seconds():g}"
            try:
                value = float(text)
            except ValueError:
                value = most + 1
            if least <= value <= most:
                return timedelta(seconds=value)
            problems.append(f"{name}={text!r}: must be a number of seconds from {least:g} to {most:g}")
            return default

        def count(name: str, default: int, least: int, most: int) -> int:
            text = env.get(name) or str(default)
            if text.isdecimal() and least <= int(text) <= most:
                return int(text)
            problems.append(f"{name}={text!r}: must be a whole number from {least} to {most}")
            return default

        management = None
        if env.get("EVEREST_RABBIT_MANAGEMENT_URL"):
            management = Login.of(env, "EVEREST_RABBIT_MANAGEMENT", problems)
        mysql, site = MysqlUrl("", 0, "", "", ""), Settings()
        try:
            mysql = mysql_url(env)
        except SettingsError as problem:
            problems.append(problem.message)
        try:
            site = Settings.from_environment(env)
        except SettingsError as problem:
            problems.append(problem.message)
        settings = cls(
            mysql=mysql,
            airflow=Login.of(env, "EVEREST_AIRFLOW", problems),
            vhost=_vhost(env.get("EVEREST_AMQP_URL", ""), problems),
            management=management,
            http_timeout=seconds("EVEREST_RECONCILER_HTTP_TIMEOUT_S", cls.http_timeout, 0.1, 60),
            limits=Limits(
                period=seconds("EVEREST_RECONCILER_PERIOD_S", Limits.period, 0.1, 3600),
                wake_period=seconds("EVEREST_RECONCILER_WAKE_PERIOD_S", Limits.wake_period, 0.1, 2),
                quiet=seconds("EVEREST_RECONCILER_QUIET_S", Limits.quiet, 0, 3600),
                hold_limit=seconds("EVEREST_HOLD_LIMIT_S", Limits.hold_limit, 1, 86_400),
                recoveries=count("EVEREST_RECONCILER_RECOVERIES", Limits.recoveries, 0, 1000),
                dead_letter_after=seconds("EVEREST_RECONCILER_DEAD_LETTER_AFTER_S", Limits.dead_letter_after, 0, 3600),
                lost_after=seconds("EVEREST_RECONCILER_LOST_AFTER_S", Limits.lost_after, 1, 86_400),
                requeue_every=seconds("EVEREST_RECONCILER_REQUEUE_EVERY_S", Limits.requeue_every, 1, 86_400),
                wake_grace=seconds("EVEREST_RECONCILER_WAKE_GRACE_S", Limits.wake_grace, 0, 3600),
                batch=count("EVEREST_RECONCILER_BATCH", Limits.batch, 1, 10_000),
                handler_timeout=seconds("EVEREST_RECONCILER_HANDLER_TIMEOUT_S", Limits.handler_timeout, 0.1, 3600),
                standby_after=seconds("EVEREST_STANDBY_AFTER_S", Limits.standby_after, 2, 3600),
            ),
            site=site,
            endpoint=Endpoint(
                env.get("EVEREST_METRICS_ADDRESS") or LOOPBACK, count("EVEREST_METRICS_PORT_RECONCILER", 0, 0, 65_535)
            ),
        )
        if problems:
            raise SettingsError("; ".join(problems))
        return settings


def _vhost(amqp_url: str, problems: list[str]) -> str:
    """The vhost as pika reads it out of the URL; the rest of the URL is the relay's business."""
    parts = urlsplit(amqp_url)
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
        problems.append("EVEREST_AMQP_URL must look like amqp://user:password@host:port/vhost")
    return vhost_of(amqp_url)
