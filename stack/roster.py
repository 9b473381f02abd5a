"""The processes of the stack: which there are, and when in the order each is started and stopped.

One table for everybody: the manager's configuration, `up`, `status` and `logs` all read it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stack.shape import Shape


@dataclass(frozen=True)
class Program:
    """One supervised process.

    group: what is stopped together; groups stop in the reverse of their order.
    ports: names in Ports it listens on.
    settings, code: files below .local, and folders of ours, whose change needs a restart.
    start_seconds: a process that lives this long has started; what has no check of its own must live longer.
    stop_signal, stop_seconds: how it is asked to end, and how long it may take before it is killed. stop_children: its
        children are asked, too.
    """

    name: str
    group: str
    ports: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    start_seconds: int = 1
    stop_signal: str = "TERM"
    stop_seconds: int = 20
    stop_children: bool = True

    @property
    def role(self) -> str:
        """What it is, whichever of several it is: `relay` of `relay-2`."""
        name, _, number = self.name.rpartition("-")
        return name if number.isdecimal() else self.name

    @property
    def number(self) -> int:
        number = self.name.rpartition("-")[2]
        return int(number) if number.isdecimal() else 1


EVEREST_CODE = ("ingest_consumer", "plugins", "sql/queries")
AIRFLOW_CODE = (*EVEREST_CODE, "config")
AIRFLOW_SETTINGS = ("airflow/airflow.cfg",)

_ALWAYS = (
    Program("epmd", "names", ("epmd",)),
    Program(
        "mariadb",
        "servers",
        ("mariadb",),
        settings=("config/mariadb.cnf", "config/mariadb-accounts.sql"),
        stop_seconds=40,
    ),
    Program(
        "postgresql",
        "servers",
        ("postgresql",),
        settings=("config/postgresql.conf",),
        stop_signal="INT",  # its "fast" shutdown: TERM would wait for every client to leave
        stop_seconds=30,
    ),
    Program(
        "rabbitmq",
        "servers",
        ("amqp", "rabbitmq_management", "rabbitmq_prometheus", "rabbitmq_distribution"),
        settings=("config/rabbitmq.conf", "config/rabbitmq-plugins", "data/rabbitmq/definitions.json"),
        stop_seconds=40,
    ),
    Program("airflow-api-server", "airflow", ("airflow",), AIRFLOW_SETTINGS, AIRFLOW_CODE),
    # Its workers finish the tasks they have; the launcher and `down` end those that do not.
    Program("airflow-scheduler", "airflow", (), AIRFLOW_SETTINGS, AIRFLOW_CODE, stop_seconds=15),
    Program("airflow-dag-processor", "airflow", (), AIRFLOW_SETTINGS, AIRFLOW_CODE),
    Program("consumer", "everest", code=("ingest_consumer",), start_seconds=3, stop_seconds=30),
    Program("relay", "everest", code=("ingest_consumer",), start_seconds=3),
    Program("reconciler", "everest", code=EVEREST_CODE, start_seconds=3),
)
# Where what there may be several of stands in the order: a group that grows is started anew, so it is one of its own.
GROUPS = ("names", "servers", "airflow", "workers", "everest", "more")


def programs(shape: Shape) -> tuple[Program, ...]:
    """All programs of a stack of this shape, in the order of their start."""
    base = {program.name: program for program in _ALWAYS}
    # Asked to end, a worker finishes its tasks; its children would drop them.
    worker = Program(
        "airflow-worker", "workers", (), AIRFLOW_SETTINGS, AIRFLOW_CODE, stop_seconds=60, stop_children=False
    )
    workers = [(worker, number) for number in range(1, shape.workers + 1)] if shape.is_celery else []
    more = [(base["consumer"], number) for number in range(2, shape.consumers + 1)]
    more += [(base[name], 2) for name in ("relay", "reconciler") if shape.standby]
    every = [
        *_ALWAYS,
        *(replace(one, name=f"{one.name}-{number}") for one, number in workers),
        *(replace(one, name=f"{one.name}-{number}", group="more") for one, number in more),
    ]
    return tuple(sorted(every, key=lambda one: GROUPS.index(one.group)))
