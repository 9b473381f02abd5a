"""Every setting of the consumer, read once from the environment; all problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from ingest_consumer.addresses import Login, MysqlUrl, is_readable
from ingest_consumer.broker import parameters_of
from ingest_consumer.endpoints import LOOPBACK, Endpoint
from ingest_consumer.errors import SettingsError
from ingest_consumer.secret_files import resolved


@dataclass(frozen=True)
class Settings:
    """What a site can decide.

    hold_limit: how long a delivery is held for a run at work; well under the broker's delivery timeout (30 min).
    poll: the shortest pause between two looks at the rows of the runs that are waited for (watch.py).
    dag_wait: how long a delivery waits for a paused, missing or broken DAG before it is postponed for `dag_postpone`.
    heartbeat: seconds; every blocking call is bounded well below it, or the broker would cut the connection.
    takes_foreign_jobs: whether jobs that another program wrote and nobody has begun are ours to begin (decision 0043).
    stop_wait: how long a worker that is to stop waits for the end of the run it holds, before it gives it back.
    standby_after: a relay whose machine vanished is not heard of any more; after so long the database frees its turn
        for the one that stands by. One that dies on a living machine loses it at once.
    consumer_endpoint, relay_endpoint: where each answers for its metrics and health; off by default.
    """

    mysql: MysqlUrl
    amqp_url: str = field(repr=False)
    airflow: Login | None = None
    management: Login | None = None
    workers: int = 4
    hold_limit: timedelta = timedelta(minutes=20)
    poll: timedelta = timedelta(milliseconds=10)
    dag_wait: timedelta = timedelta(seconds=30)
    dag_postpone: timedelta = timedelta(seconds=30)
    heartbeat: int = 60
    airflow_timeout: timedelta = timedelta(seconds=10)
    mysql_timeout: timedelta = timedelta(seconds=10)
    retry_max: timedelta = timedelta(seconds=30)
    relay_poll: timedelta = timedelta(milliseconds=150)
    relay_batch: int = 50
    check_every: timedelta = timedelta(minutes=1)
    takes_foreign_jobs: bool = True
    stop_wait: timedelta = timedelta(0)
    standby_after: timedelta = timedelta(minutes=2)
    consumer_endpoint: Endpoint = field(default_factory=Endpoint)
    relay_endpoint: Endpoint = field(default_factory=Endpoint)

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ, *, airflow: bool = False) -> Settings:
        """`airflow`: this command cannot work without it. Raises SettingsError naming every variable that is wrong."""
        problems: list[str] = []
        env = resolved(env, problems)

        def number(name: str, default: float, least: float, most: float, whole: bool = True) -> float:
            text = env.get(name, "")
            try:
                value = (int(text) if whole else float(text)) if text else default
            except ValueError:
                value = most + 1
            if not least <= value <= most:
                kind = "whole number" if whole else "number"
                problems.append(f"{name}={text!r}: must be a {kind} from {least:g} to {most:g}")
                return default
            return value

        def login(prefix: str, needed: bool) -> Login | None:
            return Login.of(env, prefix, problems) if needed or env.get(f"{prefix}_URL") else None

        mysql = MysqlUrl("", 0, "", "", "")
        try:
            mysql = MysqlUrl.parse(env.get("EVEREST_MYSQL_URL", ""))
        except ValueError as problem:
            is_set = bool(env.get("EVEREST_MYSQL_URL"))
            problems.append(f"EVEREST_MYSQL_URL {problem if is_set else 'is not set'}")
        else:
            is_readable("EVEREST_MYSQL_URL", env["EVEREST_MYSQL_URL"], problems)
        amqp_url = env.get("EVEREST_AMQP_URL", "")
        if is_readable("EVEREST_AMQP_URL", amqp_url, problems):
            if urlsplit(amqp_url).scheme not in ("amqp", "amqps") or not urlsplit(amqp_url).hostname:
                wanted = "must look like amqp://user:password@host:port/vhost"
                problems.append(f"EVEREST_AMQP_URL {wanted if amqp_url else 'is not set'}")
            else:
                try:
                    parameters_of(amqp_url)
                except ValueError as problem:
                    problems.append(f"EVEREST_AMQP_URL {problem}")

        foreign_jobs = env.get("EVEREST_FOREIGN_JOBS") or "take"
        if foreign_jobs not in ("take", "leave"):
            problems.append(f"EVEREST_FOREIGN_JOBS={foreign_jobs!r}: must be take or leave")

        heartbeat = int(number("EVEREST_HEARTBEAT_S", 60, 2, 600))
        airflow_timeout = number("EVEREST_AIRFLOW_TIMEOUT_S", min(10, heartbeat / 4), 0.1, heartbeat / 2, whole=False)
        mysql_timeout = number("EVEREST_MYSQL_TIMEOUT_S", min(10, heartbeat // 2), 1, heartbeat / 2)
        metrics_address = env.get("EVEREST_METRICS_ADDRESS") or LOOPBACK
        settings = cls(
            mysql=mysql,
            amqp_url=amqp_url,
            airflow=login("EVEREST_AIRFLOW", airflow),
            management=login("EVEREST_RABBIT_MANAGEMENT", False),
            workers=int(number("EVEREST_WORKERS", 4, 1, 64)),
            hold_limit=timedelta(seconds=number("EVEREST_HOLD_LIMIT_S", 1200, 1, 86_400)),
            poll=timedelta(milliseconds=number("EVEREST_POLL_MS", 10, 1, 10_000)),
            dag_wait=timedelta(seconds=number("EVEREST_DAG_WAIT_S", 30, 0, 600)),
            dag_postpone=timedelta(seconds=number("EVEREST_DAG_POSTPONE_S", 30, 1, 3600)),
            heartbeat=heartbeat,
            airflow_timeout=timedelta(seconds=airflow_timeout),
            mysql_timeout=timedelta(seconds=mysql_timeout),
            retry_max=timedelta(seconds=number("EVEREST_RETRY_MAX_S", 30, 1, 600)),
            relay_poll=timedelta(milliseconds=number("EVEREST_RELAY_POLL_MS", 150, 10, 10_000)),
            relay_batch=int(number("EVEREST_RELAY_BATCH", 50, 1, 1000)),
            check_every=timedelta(seconds=number("EVEREST_CHECK_EVERY_S", 60, 1, 3600)),
            stop_wait=timedelta(seconds=number("EVEREST_STOP_WAIT_S", 0, 0, 86_400)),
            takes_foreign_jobs=foreign_jobs == "take",
            standby_after=timedelta(seconds=number("EVEREST_STANDBY_AFTER_S", 120, 2, 3600)),
            consumer_endpoint=Endpoint(metrics_address, int(number("EVEREST_METRICS_PORT_CONSUMER", 0, 0, 65_535))),
            relay_endpoint=Endpoint(metrics_address, int(number("EVEREST_METRICS_PORT_RELAY", 0, 0, 65_535))),
        )
        if any(problem.endswith(" is not set") for problem in problems):
            problems.append("`source .local/stack.env` sets them for the local stack")
        if problems:
            raise SettingsError("; ".join(problems))
        return settings
