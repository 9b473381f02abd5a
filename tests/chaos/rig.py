"""The stack, started so that it can be hurt: a proxy in front of each server it speaks to, and clocks that can be set.

All of it by the variables that a site would use; the programs are the same. What a run may do to a program it does
through the handles kept here. The next `make up`, or the end of the run, gives the stack its own connections back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from everest.settings import Settings
from stack import machine
from stack.accounts import IDENTITIES
from stack.layout import Layout
from stack.ports import LOOPBACK
from stack.programs import Stack
from stack.shape import Shape
from stack.up import up
from tests.chaos.proxy import Proxy, Switchboard

WORKFLOWS = ",".join((*Settings.workflows, "tests.chaos.errand_workflow"))
"""What the reconciler knows: a run of the errands that failed or was called off is undone by their own handlers."""
CLOCKED = ("mariadb", "consumer", "relay", "reconciler")
"""Programs with a clock of their own, which may jump. Airflow's processes share the machine's: their tokens would not
survive a jump of one of them, and none of our decisions rests on their time."""
OF_EITHER_RELEASE = ("consumer", "relay", "reconciler")

PATIENCE = {
    # The same rules as in production, with shorter patience: a run of two minutes has to see the slow repairs happen.
    "EVEREST_HEARTBEAT_S": "20",
    "EVEREST_HOLD_LIMIT_S": "60",
    "EVEREST_DAG_WAIT_S": "5",
    "EVEREST_DAG_POSTPONE_S": "5",
    "EVEREST_RETRY_MAX_S": "10",
    "EVEREST_CHECK_EVERY_S": "15",
    "EVEREST_RECONCILER_LOST_AFTER_S": "20",
    "EVEREST_RECONCILER_REQUEUE_EVERY_S": "20",
}


@dataclass(frozen=True)
class Link:
    """A way from one program to a server. variable: what tells the program where the server is, none for the submits
    of the run itself."""

    name: str
    program: str
    server: str
    variable: str


SUBMITS = "submit-mysql"
"""The way of our own intake; what submits is the run itself."""
LINKS = (
    Link("consumer-broker", "consumer", "amqp", "EVEREST_AMQP_URL"),
    Link("consumer-mysql", "consumer", "mariadb", "EVEREST_MYSQL_URL"),
    Link("consumer-airflow", "consumer", "airflow", "EVEREST_AIRFLOW_URL"),
    Link("consumer-management", "consumer", "rabbitmq_management", "EVEREST_RABBIT_MANAGEMENT_URL"),
    Link("relay-broker", "relay", "amqp", "EVEREST_AMQP_URL"),
    Link("relay-mysql", "relay", "mariadb", "EVEREST_MYSQL_URL"),
    Link("relay-management", "relay", "rabbitmq_management", "EVEREST_RABBIT_MANAGEMENT_URL"),
    Link("reconciler-mysql", "reconciler", "mariadb", "EVEREST_MYSQL_URL"),
    Link("reconciler-airflow", "reconciler", "airflow", "EVEREST_AIRFLOW_URL"),
    Link("reconciler-management", "reconciler", "rabbitmq_management", "EVEREST_RABBIT_MANAGEMENT_URL"),
    Link("tasks-mysql", "airflow-scheduler", "mariadb", "AIRFLOW_CONN_EVEREST_MYSQL"),
    Link("tasks-airflow", "airflow-scheduler", "airflow", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"),
    Link("scheduler-postgresql", "airflow-scheduler", "postgresql", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"),
    Link("api-server-postgresql", "airflow-api-server", "postgresql", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"),
    Link("dag-processor-postgresql", "airflow-dag-processor", "postgresql", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"),
    Link(SUBMITS, "submit", "mariadb", ""),
)
CELERY_LINKS = (
    Link("tasks-mysql", "airflow-worker", "mariadb", "AIRFLOW_CONN_EVEREST_MYSQL"),
    Link("tasks-airflow", "airflow-worker", "airflow", "AIRFLOW__CORE__EXECUTION_API_SERVER_URL"),
    Link("scheduler-celery", "airflow-scheduler", "amqp", "AIRFLOW__CELERY__BROKER_URL"),
    Link("worker-celery", "airflow-worker", "amqp", "AIRFLOW__CELERY__BROKER_URL"),
    Link("scheduler-results", "airflow-scheduler", "postgresql", "AIRFLOW__CELERY__RESULT_BACKEND"),
    Link("worker-results", "airflow-worker", "postgresql", "AIRFLOW__CELERY__RESULT_BACKEND"),
    Link("worker-postgresql", "airflow-worker", "postgresql", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"),
)
"""With Celery the tasks are the workers' children, and there is one broker more to lose."""
OURS = tuple(link.name for link in LINKS if not link.program.startswith("airflow"))
"""Those that need no restart of Airflow, which takes half a minute."""
LINK_NAMES = tuple(dict.fromkeys(link.name for link in (*LINKS, *CELERY_LINKS)))


def links_of(shape: Shape) -> tuple[Link, ...]:
    """The ways of a stack of this shape, by their names once each."""
    if not shape.is_celery:
        return LINKS
    others = {link.name for link in CELERY_LINKS}
    return (*(link for link in LINKS if link.name not in others), *CELERY_LINKS)


@dataclass
class Rig:
    """links: proxies by name; clocks: the file that sets a program's clock, by program."""

    layout: Layout
    board: Switchboard
    links: dict[str, Proxy]
    clocks: dict[str, Path]

    @property
    def missing(self) -> list[str]:
        """What a schedule may need and this rig does not have."""
        links = [name for name in LINK_NAMES if name not in self.links]
        return links + [f"clock of {program}" for program in CLOCKED if program not in self.clocks]

    def set_clock(self, program: str, seconds: int) -> None:
        """So far from the machine's; the program sees it within a second."""
        self.clocks[program].write_text(f"{seconds:+d}\n", encoding="ascii")

    def heal(self) -> None:
        self.board.heal()
        for program in self.clocks:
            self.set_clock(program, 0)


@contextmanager
def rigged(layout: Layout, links: Sequence[str] = LINK_NAMES, older: Path | None = None) -> Iterator[Rig]:
    """The running stack of this checkout, with these links behind proxies; as it was before afterwards. older: where
    the second consumer, relay and reconciler have their code from, a checkout of another release."""
    board = Switchboard()
    try:
        stack = Stack.open(layout)
        rig = Rig(layout, board, {}, {})
        overrides: dict[str, dict[str, str]] = {
            program.name: dict(PATIENCE) if program.role in OF_EITHER_RELEASE else {} for program in stack.programs
        }
        for program in stack.programs:
            if program.role == "reconciler":
                overrides[program.name]["EVEREST_WORKFLOWS"] = WORKFLOWS
            if older is not None and program.role in OF_EITHER_RELEASE and program.number > 1:
                overrides[program.name] |= {"PYTHONPATH": f"{older}:{older / 'plugins'}", "PYTHONSAFEPATH": "1"}
        for link in links_of(stack.shape):
            if link.name in links:
                rig.links[link.name] = proxy = board.open(getattr(stack.ports, link.server))
                for program in stack.programs:
                    if program.role == link.program:  # every consumer, the standby too: one way for all of them
                        overrides[program.name][link.variable] = _address(stack, link, proxy.port)
        if (library := machine.fake_clock()) is not None:
            for role in CLOCKED:
                rig.clocks[role] = layout.run / f"clock-{role}"
                rig.set_clock(role, 0)
                for program in stack.programs:
                    if program.role == role:
                        overrides[program.name].update(_clock(library, rig.clocks[role]))
        try:
            up(layout, {program: changed for program, changed in overrides.items() if changed})
            yield rig
        finally:
            rig.heal()
            up(layout)
            for clock in rig.clocks.values():
                clock.unlink(missing_ok=True)
    finally:
        board.close()


def _clock(library: Path, file: Path) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        # A clock that jumps is the wall clock; waits and timeouts go by the other one.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def _address(stack: Stack, link: Link, port: int) -> str:
    """What the variable says in production, with the proxy's port for the server's."""
    if link.server == "postgresql":
        password = stack.credentials.postgresql_airflow
        kind = "db+postgresql" if link.variable.endswith("RESULT_BACKEND") else "postgresql"
        return f"{kind}+psycopg2://airflow:{password}@{LOOPBACK}:{port}/airflow"
    if link.variable == "AIRFLOW__CELERY__BROKER_URL":
        return stack.celery_url.replace(f"{LOOPBACK}:{stack.ports.amqp}", f"{LOOPBACK}:{port}")
    if link.variable == "AIRFLOW_CONN_EVEREST_MYSQL":
        return json.dumps(json.loads(stack.airflow_connection()) | {"port": port})
    if link.variable == "AIRFLOW__CORE__EXECUTION_API_SERVER_URL":
        return f"http://{LOOPBACK}:{port}/execution/"
    here, there = f"{LOOPBACK}:{getattr(stack.ports, link.server)}", f"{LOOPBACK}:{port}"
    return stack.connections(IDENTITIES[link.program])[link.variable].replace(here, there)
