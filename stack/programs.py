"""What each process of the stack is started with, and as whom.

One place for everybody: the launcher, `up`, `status` and stack.env all read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stack import machine
from stack.accounts import (
    AIRFLOW_ADMIN,
    AIRFLOW_LOGINS,
    CELERY,
    CELERY_VHOST,
    IDENTITIES,
    MONITOR,
    OPERATOR,
    OWNER,
    VHOST,
    Identity,
)
from stack.credentials import Credentials
from stack.layout import Layout, write_private
from stack.machine import ServiceUser
from stack.ports import LOOPBACK, Ports
from stack.processes import MARK, PROGRAM_MARK, SERVERS
from stack.roster import Program, programs
from stack.shape import PREFIX, Shape

SCHEMA = "run_everest_modul"
# Who can log in besides the admin, with the role that Airflow's simple manager gives them. Finance are viewers there:
# they act through the pages, which know them by name (EVEREST_PAGE_ROLES).
PEOPLE = {"analyst": "viewer", "finance": "viewer", "engineer": "op", "warehouse": "viewer"}
PAGE_ROLES = "analyst=user:analyst; finance=user:finance; engineer=user:engineer,user:admin; warehouse=user:warehouse"
TASKS = IDENTITIES["airflow-worker"].mysql
CONSUMER_WORKERS = 12  # of all consumers together; more than task slots, so that no slot waits (bench/README.md, P4)
NEXT_METRICS_PORT = 10  # a second relay answers so many ports above the first, if that has a port
RABBITMQ_NODE = "everest@localhost"

# What our processes take over from the shell that first ran `make up`. Everything else, proxies above all, stays out.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "TMPDIR", "TZ", "USER")


Overrides = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Stack:
    """What everything about the stack is computed from.

    site: the EVEREST_ settings of the shell, for all our programs. overrides: variables by program, over everything
    else; the chaos tests put their proxies between the programs with them.
    """

    layout: Layout
    ports: Ports
    credentials: Credentials
    site: Mapping[str, str] = field(default_factory=dict)
    shape: Shape = field(default_factory=Shape)
    overrides: Overrides = field(default_factory=dict, repr=False)

    @property
    def programs(self) -> tuple[Program, ...]:
        return programs(self.shape)

    def program(self, name: str) -> Program:
        """Raises ValueError for a name that is none."""
        for program in self.programs:
            if program.name == name:
                return program
        raise ValueError(f"no program is called {name}")

    @classmethod
    def open(cls, layout: Layout) -> Stack:
        """The stack as the last `up` left it, or as a first one would make it."""
        ports = Ports.load(layout.ports_file) or Ports.choose()
        site, overrides = _stored(layout.site_file), _stored(layout.overrides_file)
        shape = Shape.load(layout.shape_file) or Shape.choose()
        return cls(layout, ports, Credentials.load_or_make(layout.secrets_file), site, shape, overrides)

    @classmethod
    def choose(cls, layout: Layout, shell: Mapping[str, str] = os.environ, overrides: Overrides | None = None) -> Stack:
        """The stack as this shell wants it: its ports, its shape, and its own EVEREST_ settings for our processes.
        Overrides of an earlier time are forgotten."""
        credentials = Credentials.load_or_make(layout.secrets_file)
        shape = Shape.choose(shell, Shape.load(layout.shape_file))
        stack = cls(layout, Ports.choose(shell, Ports.load(layout.ports_file)), credentials, shape=shape)
        # What a sourced stack.env says came from us: it is no wish of the shell, and no reason to start anything anew.
        ours = {MARK, PROGRAM_MARK, *stack.own_settings()}
        site = {
            name: value
            for name, value in shell.items()
            if name.startswith("EVEREST_") and not name.startswith(("EVEREST_PORT", PREFIX)) and name not in ours
        }
        return replace(stack, site=site, overrides=overrides or {})

    def save(self) -> None:
        self.ports.save(self.layout.ports_file)
        self.shape.save(self.layout.shape_file)
        write_private(self.layout.site_file, json.dumps(dict(self.site), indent=2, sort_keys=True) + "\n")
        if self.overrides:
            write_private(self.layout.overrides_file, json.dumps(dict(self.overrides), indent=2, sort_keys=True) + "\n")
        else:
            self.layout.overrides_file.unlink(missing_ok=True)

    def mysql_url(self, account: str) -> str:
        password = self.credentials.mariadb[account]
        return f"mysql://{account}:{password}@{LOOPBACK}:{self.ports.mariadb}/{SCHEMA}"

    def amqp_url(self, account: str) -> str:
        password = self.credentials.rabbitmq[account]
        return f"amqp://{account}:{password}@{LOOPBACK}:{self.ports.amqp}/{VHOST}"

    @property
    def celery_url(self) -> str:
        """Where Airflow's scheduler puts tasks and Celery workers take them."""
        return f"amqp://{CELERY}:{self.credentials.rabbitmq[CELERY]}@{LOOPBACK}:{self.ports.amqp}/{CELERY_VHOST}"

    @property
    def airflow_url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports.airflow}"

    @property
    def management_url(self) -> str:
        return f"http://{LOOPBACK}:{self.ports.rabbitmq_management}"

    def connections(self, who: Identity) -> dict[str, str]:
        """How the servers are reached: each program as itself, tests as the owner. The management interface is asked
        with an account that can only look, except by the owner and people."""
        manager = who.rabbitmq if who in (OWNER, OPERATOR) else MONITOR
        return {
            "EVEREST_MYSQL_URL": self.mysql_url(who.mysql),
            "EVEREST_AMQP_URL": self.amqp_url(who.rabbitmq),
            **self._airflow_login(who),
            "EVEREST_RABBIT_MANAGEMENT_URL": self.management_url,
            "EVEREST_RABBIT_MANAGEMENT_USER": manager,
            "EVEREST_RABBIT_MANAGEMENT_PASSWORD": self.credentials.rabbitmq[manager],
        }

    def _airflow_login(self, who: Identity) -> dict[str, str]:
        if who.airflow is None:
            return {}
        return {
            "EVEREST_AIRFLOW_URL": self.airflow_url,
            "EVEREST_AIRFLOW_USER": who.airflow,
            "EVEREST_AIRFLOW_PASSWORD": self.credentials.airflow[who.airflow],
        }

    def passwords(self) -> dict[str, str]:
        """The passwords of Airflow's logins, by user: people's and programs'."""
        people = {user: getattr(self.credentials, f"airflow_{user}") for user in PEOPLE}
        return {user: self.credentials.airflow[user] for user in (AIRFLOW_ADMIN, *AIRFLOW_LOGINS)} | people

    def logins(self) -> dict[str, str]:
        """Variables of stack.env that hold the passwords of the pages' people."""
        return {f"EVEREST_LOGIN_{user.upper()}": self.passwords()[user] for user in PEOPLE}

    def own_settings(self) -> dict[str, str]:
        """The EVEREST_ variables that stack.env gives a shell."""
        return self.connections(OWNER) | self.logins()

    def airflow_connection(self) -> str:
        """Airflow's connection everest_mysql, the JSON of AIRFLOW_CONN_EVEREST_MYSQL: the account of the tasks."""
        return json.dumps(
            {
                "conn_type": "mysql",
                "host": LOOPBACK,
                "port": self.ports.mariadb,
                "login": TASKS,
                "password": self.credentials.mariadb[TASKS],
                "schema": SCHEMA,
                "extra": {"charset": "utf8mb4"},
            }
        )

    def environment(self, name: str, shell: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The whole environment of a program."""
        overrides = {} if name in SERVERS else dict(self.overrides.get(name, {}))
        return self._own_environment(name, shell) | overrides

    def _own_environment(self, name: str, shell: Mapping[str, str]) -> dict[str, str]:
        """PYTHONDONTWRITEBYTECODE is not in it, whatever the shell says."""
        env = {key: shell[key] for key in INHERITED if key in shell}
        env |= {MARK: str(self.layout.root), PROGRAM_MARK: name, "PATH": machine.SYSTEM_PATH}
        env.setdefault("LANG", "C.UTF-8")
        if name in ("epmd", "rabbitmq"):
            return env | self._rabbitmq_environment()
        if name in ("mariadb", "postgresql"):
            return env
        program = next((one for one in self.programs if one.name == name), Program(name, ""))
        who = IDENTITIES[program.role]
        if name == "airflow-scheduler" and self.shape.is_celery:  # its tasks are somebody else's children
            who = IDENTITIES["airflow-dag-processor"]
        env |= dict(self.site) | self.connections(who) | self.python_environment()
        env["PATH"] = f"{self.layout.venv / 'bin'}{os.pathsep}{machine.SYSTEM_PATH}"
        # setproctitle would write over the environment by which our processes are found.
        env |= {"SPT_NOENV": "1", "PYTHONUNBUFFERED": "1"}
        if program.role in ("airflow-scheduler", "airflow-worker"):
            env["AIRFLOW__CORE__EXECUTOR"] = "CeleryExecutor" if self.shape.is_celery else "LocalExecutor"
        if who.mysql == TASKS:  # the tasks are its children; nobody else may post
            env["AIRFLOW_CONN_EVEREST_MYSQL"] = self.airflow_connection()
        if name.startswith("airflow"):
            env.setdefault("EVEREST_PAGE_ROLES", PAGE_ROLES)
        port = f"EVEREST_METRICS_PORT_{program.role.upper()}"
        if program.number > 1 and env.get(port, "0").isdecimal() and int(env.get(port, "0")):
            env[port] = str(int(env[port]) + NEXT_METRICS_PORT * (program.number - 1))
        return env

    def python_environment(self) -> dict[str, str]:
        return {"PYTHONPATH": self.layout.python_path, "AIRFLOW_HOME": str(self.layout.airflow_home)}

    def command(self, name: str) -> list[str]:
        """The command line; no secret is ever on it. Raises StackError when the server is not installed."""
        python = str(self.layout.python)
        config, data = self.layout.config, self.layout.data
        program = self.program(name)
        match program.role:
            case "mariadb":
                server = machine.require(machine.program("mariadbd"), "MariaDB")
                return self._as("mysql", *self._set_behind(name), server, f"--defaults-file={config / 'mariadb.cnf'}")
            case "postgresql":
                folder = machine.require(machine.postgresql_bin(), "PostgreSQL")
                settings = f"config_file={config / 'postgresql.conf'}"
                return self._as("postgres", folder / "postgres", "-D", data / "postgresql", "-c", settings)
            case "rabbitmq":
                return self._as("rabbitmq", machine.require(machine.rabbitmq_server(), "RabbitMQ"))
            case "epmd":
                server = machine.require(machine.program("epmd"), "Erlang")
                return self._as("rabbitmq", server, "-address", LOOPBACK, "-port", str(self.ports.epmd))
            case "airflow-scheduler":
                # The API server reads the logs from the same disk; a second log server would listen on every address.
                return [python, "-m", "airflow", "scheduler", "--skip-serve-logs"]
            case "airflow-api-server" | "airflow-dag-processor":
                return [python, "-m", "airflow", name.removeprefix("airflow-")]
            case "airflow-worker":
                # Logs: as above. Gossip and mingle are workers talking about each other; nothing of ours asks for it.
                alone = ["--skip-serve-logs", "--without-gossip", "--without-mingle"]
                # A name of its own, or two on one machine would answer to the same.
                named = ["--celery-hostname", name]
                at_once = str(-(-machine.parallelism() // self.shape.workers))
                return [python, "-m", "airflow", "celery", "worker", *alone, *named, "--concurrency", at_once]
            case "consumer":
                at_once = str(-(-CONSUMER_WORKERS // self.shape.consumers))
                return [python, "-m", "ingest_consumer", "consume", "--workers", at_once]
            case "relay":
                return [python, "-m", "ingest_consumer", "relay"]
            case "reconciler":
                return [python, "-m", "everest.reconciler"]
        raise ValueError(f"no program is called {name}")

    def _as(self, user: str, *argv: str | Path) -> list[str]:
        return ServiceUser.of(self.layout, user).command(argv)

    def _set_behind(self, name: str) -> list[str]:
        """A server's overrides (never a secret) are set behind the change of user: what they bring in, such as another
        clock, must not run as root."""
        variables = [f"{key}={value}" for key, value in self.overrides.get(name, {}).items()]
        return ["env", *variables] if variables else []

    def _rabbitmq_environment(self) -> dict[str, str]:
        config, home = self.layout.config, self.layout.data / "rabbitmq"
        return {
            "HOME": str(home),  # where Erlang keeps its cookie
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self.ports.epmd),
            "RABBITMQ_NODENAME": RABBITMQ_NODE,
            "RABBITMQ_DIST_PORT": str(self.ports.rabbitmq_distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false",
            "RABBITMQ_CONF_ENV_FILE": str(config / "rabbitmq-env.conf"),  # absent: nothing of /etc/rabbitmq is read
            "RABBITMQ_CONFIG_FILE": str(config / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(config / "rabbitmq-plugins"),
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(home / "pid"),
            "RUNNING_UNDER_SYSTEMD": "true",  # the start script becomes the broker instead of waiting beside it
        }


def _stored(file: Path) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return stored
