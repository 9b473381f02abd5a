"""Where the servers are and who we are there: how every program of the house reads addresses from its environment.

No password ever shows, neither in a repr nor in what is said about an address that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from ingest_consumer.tls import Tls, split

DEFAULT_VHOST = "/"
LOCK_NAME_MAX = 64
"""MySQL's limit on the name of a GET_LOCK."""
WITHOUT_TLS = frozenset({"amqp", "http"})


@dataclass(frozen=True)
class Login:
    """An HTTP service and who we are there."""

    url: str
    user: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, env: Mapping[str, str], prefix: str, problems: list[str]) -> Login:
        """PREFIX_URL, _USER and _PASSWORD; what is missing or no address is among the problems."""
        url, user, password = (env.get(f"{prefix}_{part}", "") for part in ("URL", "USER", "PASSWORD"))
        for part, value in (("URL", url), ("USER", user), ("PASSWORD", password)):
            if not value:
                problems.append(f"{prefix}_{part} is not set")
        if url and is_readable(f"{prefix}_URL", url, problems) and urlsplit(url).scheme not in ("http", "https"):
            problems.append(f"{prefix}_URL: must begin with http:// or https://")
        return cls(url, user, password)


@dataclass(frozen=True)
class MysqlUrl:
    """Where the rows are: mysql://user:password@host:port/schema, with TLS by its parameters (tls.py)."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    schema: str
    tls: Tls | None = None

    @classmethod
    def parse(cls, text: str) -> MysqlUrl:
        """Raises ValueError with a sentence; the text itself is never shown, it holds a password."""
        plain, tls = split(text)
        parts = urlsplit(plain)
        if parts.scheme != "mysql" or not parts.hostname or len(parts.path) < 2:
            raise ValueError("must look like mysql://user:password@host:port/schema")
        return cls(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            schema=unquote(parts.path[1:]),
            tls=tls,
        )

    def lock_name(self, purpose: str) -> str:
        """The named lock (GET_LOCK) of this schema, not of its server, for `purpose`."""
        name = f"everest.{purpose}.{self.schema}"
        return name if len(name) <= LOCK_NAME_MAX else f"everest.{purpose}.{sha256(name.encode()).hexdigest()[:32]}"


def vhost_of(amqp_url: str) -> str:
    """As pika reads it out of the URL."""
    return unquote(urlsplit(amqp_url).path[1:]) or DEFAULT_VHOST


def is_readable(name: str, url: str, problems: list[str]) -> bool:
    """Whether a URL can be taken apart, the files of its ssl_ parameters read, and TLS spoken where it has some; if
    not, a problem says why."""
    try:
        plain, tls = split(url)
        if tls is not None:
            tls.context()
            if (scheme := urlsplit(plain).scheme) in WITHOUT_TLS:
                raise ValueError(f"has ssl_ parameters, and a scheme that speaks no TLS; write {scheme}s://")
    except OSError as problem:  # ssl.SSLError is one, and a ValueError as well
        problems.append(f"{name}: the files of its ssl_ parameters are of no use: {problem}")
    except ValueError as problem:
        problems.append(f"{name} {problem}")
    else:
        return True
    return False
