"""Passwords and keys for docker/compose.yaml, each in a file of its own: `python3 -m stack container-secrets FOLDER`.

The accounts are those of the local stack (accounts.py), so that nobody has more rights in a container than here. A
second run changes nothing. Needs a bare Python: the machine that runs containers has no environment of ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

from stack.accounts import (
    AIRFLOW_ADMIN,
    AIRFLOW_LOGINS,
    CELERY,
    CELERY_VHOST,
    MONITOR,
    MYSQL_ACCOUNTS,
    MYSQL_OWNER,
    RABBITMQ_ROLES,
)
from stack.broker_definitions import definitions
from stack.credentials import Credentials
from stack.layout import StackError

SCHEMA = "run_everest_modul"
MYSQL, RABBITMQ, POSTGRESQL = "mysql", "rabbitmq", "postgresql"  # the services of compose.yaml
# The server's own certificate is not one that anybody signed: encrypted, and only to be reached inside the network.
MYSQL_TLS = "?ssl_verify=0"


def write(folder: Path) -> list[str]:
    """Makes what is missing in `folder` and names all files there. Raises StackError when it cannot be private."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    if folder.stat().st_mode & 0o077:
        raise StackError(f"{folder} can be read by others; put it on a file system that has permissions")
    credentials = Credentials.load_or_make(folder / "credentials.json")
    files = contents(credentials)
    for name, text in files.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.unlink(missing_ok=True)
            file.write_text(text, encoding="utf-8")
        # Readable for whoever gets it into their container, where everybody is a user of their own; the folder is not.
        file.chmod(0o444)
    return sorted(files)


def contents(credentials: Credentials) -> dict[str, str]:
    """File name to text; no text ends in a newline, which would become part of a password."""
    mysql_accounts = (MYSQL_OWNER, *MYSQL_ACCOUNTS)
    database = f"postgresql+psycopg2://airflow:{credentials.postgresql_airflow}@{POSTGRESQL}:5432/airflow"
    return {
        "mysql_root_password": credentials.mariadb_root,
        "mysql_accounts.sql": _mysql_accounts(credentials),
        **{f"{name}.mysql_url": _mysql_url(name, credentials.mariadb[name]) for name in mysql_accounts},
        **{
            f"{name}.amqp_url": f"amqp://{name}:{credentials.rabbitmq[name]}@{RABBITMQ}:5672/{role.vhost}"
            for name, role in RABBITMQ_ROLES.items()
        },
        "rabbitmq_definitions.json": json.dumps(definitions(credentials.rabbitmq), indent=2, sort_keys=True),
        "rabbitmq_monitor_password": credentials.rabbitmq[MONITOR],
        "postgresql_password": credentials.postgresql_airflow,
        "airflow_database_url": database,
        "airflow_result_backend": f"db+{database}",
        "airflow_broker_url": f"amqp://{CELERY}:{credentials.rabbitmq[CELERY]}@{RABBITMQ}:5672/{CELERY_VHOST}",
        "airflow_fernet_key": credentials.airflow_fernet,
        "airflow_jwt_secret": credentials.airflow_jwt,
        "airflow_session_key": credentials.airflow_session,
        "airflow_password": credentials.airflow_admin,
        **{f"{user}.airflow_password": credentials.airflow[user] for user in AIRFLOW_LOGINS},
        "airflow_logins.json": json.dumps(
            {
                AIRFLOW_ADMIN: credentials.airflow_admin,
                **{user: credentials.airflow[user] for user in AIRFLOW_LOGINS},
                "analyst": credentials.airflow_analyst,
                "finance": credentials.airflow_finance,
                "engineer": credentials.airflow_engineer,
                "warehouse": credentials.airflow_warehouse,
            }
        ),
        "airflow_connections.json": json.dumps({"everest_mysql": _airflow_connection(credentials)}),
    }


def _mysql_url(account: str, password: str) -> str:
    return f"mysql://{account}:{quote(password, safe='')}@{MYSQL}:3306/{SCHEMA}{MYSQL_TLS}"


def _mysql_accounts(credentials: Credentials) -> str:
    """Run once, when the data folder is made. What a program's account may do, `everest grant` gives later."""
    lines = [f"CREATE DATABASE IF NOT EXISTS {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;"]
    for name in (MYSQL_OWNER, *MYSQL_ACCOUNTS):
        lines.append(f"CREATE USER IF NOT EXISTS '{name}'@'%' IDENTIFIED BY '{credentials.mariadb[name]}' REQUIRE SSL;")
    lines.append(f"GRANT ALL PRIVILEGES ON `run\\_everest\\_modul%`.* TO '{MYSQL_OWNER}'@'%' WITH GRANT OPTION;")
    return "\n".join(lines)


def _airflow_connection(credentials: Credentials) -> dict[str, object]:
    account = "everest_tasks"
    return {
        "conn_type": "mysql",
        "host": MYSQL,
        "port": 3306,
        "login": account,
        "password": credentials.mariadb[account],
        "schema": SCHEMA,
        "extra": {"charset": "utf8mb4", "ssl_mode": "REQUIRED"},
    }
