"""Every setting of the pages, read once from the environment; all problems are reported together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from urllib.parse import urlsplit

from everest.errors import SettingsError
from everest.pages.access import RoleMapping
from everest.settings import MysqlUrl, Settings, mysql_url
from ingest_consumer.addresses import DEFAULT_VHOST, Login, vhost_of
from ingest_consumer.secret_files import resolved

DEFAULT_ROLES = "analyst=role:viewer,role:user; engineer=role:op,role:admin"
"""Nobody is finance or warehouse until the site says who."""


@dataclass(frozen=True)
class Broker(Login):
    """RabbitMQ's management API, for the health page."""

    vhost: str = DEFAULT_VHOST


@dataclass(frozen=True)
class PageSettings:
    """roles: who is who. secret: signs the tokens of forms. origins: addresses besides the request's own from which a
    form may come (a proxy in front). stuck_after: a document without news for this long is shown as stuck."""

    mysql: MysqlUrl
    site: Settings
    roles: RoleMapping
    secret: bytes = field(repr=False)
    origins: frozenset[str] = frozenset()
    broker: Broker | None = None
    stuck_after: timedelta = timedelta(minutes=15)

    @classmethod
    def from_environment(
        cls, secret: str, base_url: str | None = None, env: Mapping[str, str] = os.environ
    ) -> PageSettings:
        """Raises SettingsError naming every variable that is wrong."""
        problems: list[str] = []
        env = resolved(env, problems)
        roles = RoleMapping({}, {})
        try:
            roles = RoleMapping.parse(env.get("EVEREST_PAGE_ROLES") or DEFAULT_ROLES)
        except ValueError as problem:
            problems.append(f"EVEREST_PAGE_ROLES: {problem}")
        minutes = env.get("EVEREST_PAGE_STUCK_MINUTES", "15")
        if not minutes.isdecimal() or int(minutes) == 0:
            problems.append(f"EVEREST_PAGE_STUCK_MINUTES={minutes!r}: must be a whole number above 0")
            minutes = "15"
        site, mysql = Settings(), MysqlUrl("", 0, "", "", "")
        try:
            site = Settings.from_environment(env)
        except SettingsError as problem:
            problems.append(problem.message)
        try:
            mysql = mysql_url(env)
        except SettingsError as problem:
            problems.append(problem.message)
        if problems:
            raise SettingsError("; ".join(problems))
        base = urlsplit(base_url or "")
        return cls(
            mysql=mysql,
            site=site,
            roles=roles,
            secret=secret.encode(),
            origins=frozenset({f"{base.scheme}://{base.netloc}"} if base.netloc else ()),
            broker=_broker(env),
            stuck_after=timedelta(minutes=int(minutes)),
        )


def _broker(env: Mapping[str, str]) -> Broker | None:
    url = env.get("EVEREST_RABBIT_MANAGEMENT_URL")
    if not url:
        return None
    user, password = (env.get(f"EVEREST_RABBIT_MANAGEMENT_{part}", "") for part in ("USER", "PASSWORD"))
    return Broker(url, user, password, vhost_of(env.get("EVEREST_AMQP_URL", "")))
