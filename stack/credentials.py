"""The stack's passwords and keys: made once, kept in .local/secrets for its owner only, reused on every later `up`."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from stack.accounts import (
    AIRFLOW_ADMIN,
    AIRFLOW_LOGINS,
    MYSQL_ACCOUNTS,
    MYSQL_OWNER,
    RABBITMQ_OWNER,
    RABBITMQ_ROLES,
)
from stack.layout import write_private


def _password() -> str:
    # Letters and digits only: it needs no quoting in a URL, an INI file or SQL.
    return secrets.token_hex(16)


@dataclass(frozen=True)
class Credentials:
    mariadb_owner: str = field(default_factory=_password, repr=False)
    mariadb_root: str = field(default_factory=_password, repr=False)  # of a container; here root has none
    rabbitmq_owner: str = field(default_factory=_password, repr=False)
    # The programs' accounts at the database, at the broker and at Airflow, by name (stack/accounts.py).
    mariadb: dict[str, str] = field(default_factory=dict, repr=False)
    rabbitmq: dict[str, str] = field(default_factory=dict, repr=False)
    airflow: dict[str, str] = field(default_factory=dict, repr=False)
    erlang_cookie: str = field(default_factory=_password, repr=False)
    postgresql_admin: str = field(default_factory=_password, repr=False)
    postgresql_airflow: str = field(default_factory=_password, repr=False)
    airflow_admin: str = field(default_factory=_password, repr=False)
    # One login per role of the pages; see PEOPLE in programs.py.
    airflow_analyst: str = field(default_factory=_password, repr=False)
    airflow_finance: str = field(default_factory=_password, repr=False)
    airflow_engineer: str = field(default_factory=_password, repr=False)
    airflow_warehouse: str = field(default_factory=_password, repr=False)
    # HS512 wants 64 bytes; every Airflow process must have the same.
    airflow_jwt: str = field(default_factory=lambda: secrets.token_hex(64), repr=False)
    airflow_session: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)
    airflow_fernet: str = field(
        default_factory=lambda: base64.urlsafe_b64encode(os.urandom(32)).decode("ascii"), repr=False
    )

    def __post_init__(self) -> None:
        self.mariadb[MYSQL_OWNER] = self.mariadb_owner
        self.rabbitmq[RABBITMQ_OWNER] = self.rabbitmq_owner
        self.airflow[AIRFLOW_ADMIN] = self.airflow_admin
        accounts = ((self.mariadb, MYSQL_ACCOUNTS), (self.rabbitmq, RABBITMQ_ROLES), (self.airflow, AIRFLOW_LOGINS))
        for passwords, names in accounts:
            for name in names:
                passwords.setdefault(name, _password())

    @classmethod
    def load_or_make(cls, file: Path) -> Credentials:
        """What is stored, with anything that is missing made and stored now."""
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            stored = {}
        known = {item.name for item in fields(cls)}
        credentials = cls(**{name: value for name, value in stored.items() if name in known})
        if asdict(credentials) != stored:
            write_private(file, json.dumps(asdict(credentials), indent=2) + "\n")
        return credentials


def rabbitmq_password_hash(password: str, salt: bytes | None = None) -> str:
    """RabbitMQ's rabbit_password_hashing_sha256: base64(4 bytes of salt + SHA-256(salt + password))."""
    salt = secrets.token_bytes(4) if salt is None else salt
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode("utf-8")).digest()).decode("ascii")
