"""What the broker is told at its start: vhosts, users, rights. The same for the local stack and for containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stack.accounts import CELERY_VHOST, RABBITMQ_OWNER, RABBITMQ_ROLES, VHOST, BrokerRole
from stack.credentials import rabbitmq_password_hash


def definitions(passwords: Mapping[str, str]) -> dict[str, object]:
    """RabbitMQ's definitions.json, with the passwords by user as hashes. The owner has every right in both vhosts."""

    def user(name: str, role: BrokerRole) -> dict[str, object]:
        password = passwords[name]
        # The salt comes from the password, so that the file, and with it the broker, is the same on every start.
        salt = password.encode("ascii")[:4]
        return {
            "name": name,
            "password_hash": rabbitmq_password_hash(password, salt),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": role.tags,
        }

    def rights(name: str, role: BrokerRole) -> dict[str, str]:
        return {"user": name, "vhost": role.vhost, "configure": role.configure, "write": role.write, "read": role.read}

    return {
        "users": [user(name, role) for name, role in RABBITMQ_ROLES.items()],
        "vhosts": [{"name": VHOST}, {"name": CELERY_VHOST}],
        "permissions": [
            *(rights(name, role) for name, role in RABBITMQ_ROLES.items()),
            rights(RABBITMQ_OWNER, replace(RABBITMQ_ROLES[RABBITMQ_OWNER], vhost=CELERY_VHOST)),
        ],
    }
