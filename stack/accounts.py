"""Who each program is, at the database, at the broker and at Airflow. What an account may do there: sql/grants.sql, and
here.

The broker's rights are three patterns over names of exchanges and queues: who may make or delete them (configure), put
something in (write: publish to an exchange, bind a queue) and take something out (read: consume a queue, bind to an
exchange). Nobody may write to the default exchange, so what is published comes in through the two exchanges alone.
"""

from __future__ import annotations

from dataclasses import dataclass

VHOST = "everest"
CELERY_VHOST = "airflow"
CELERY = "everest_celery"
MYSQL_OWNER = "everest_owner"
MYSQL_ACCOUNTS = (
    "everest_consumer",
    "everest_relay",
    "everest_reconciler",
    "everest_tasks",
    "everest_pages",
    "everest_operator",
    "everest_reader",
)


@dataclass(frozen=True)
class BrokerRole:
    """tags: what it may do in the management interface. vhost: where it has these rights; elsewhere it has none."""

    tags: str = ""
    configure: str = "^$"
    write: str = "^$"
    read: str = "^$"
    vhost: str = VHOST


RABBITMQ_OWNER = "everest_owner"
# What Celery makes: a queue and an exchange per queue of tasks, and its remote control, by which Airflow takes back a
# task that nobody began. Queues of tasks are called `default` or as a definition says (letters, digits, - and _).
_CELERYS = r"^([A-Za-z0-9_-]+|celeryev(\..+)?|(.+\.)?(reply\.)?celery\.pidbox)$"
_ALL_OF_OURS = r"^everest\.jobs\.(x|dlx|q|failed\.dlq)$"
RABBITMQ_ROLES = {
    # Makes vhosts, for tests; looks at everything.
    RABBITMQ_OWNER: BrokerRole("administrator", ".*", ".*", ".*"),
    # Makes the topology, takes jobs and rejects them. It publishes no job.
    "everest_consumer": BrokerRole(
        configure=_ALL_OF_OURS, write=r"^everest\.jobs\.(dlx|q|failed\.dlq)$", read=r"^everest\.jobs\.(x|dlx|q)$"
    ),
    # Publishes to both exchanges and takes settled dead letters out. It cannot take a job; so where the queue of jobs
    # is missing, it waits until a consumer has made it.
    "everest_relay": BrokerRole(
        configure=_ALL_OF_OURS, write=_ALL_OF_OURS, read=r"^everest\.jobs\.(x|dlx|failed\.dlq)$"
    ),
    # `python -m ingest_consumer dead-letters`, and the management pages for looking.
    "everest_operator": BrokerRole(
        "monitoring",
        configure=r"^everest\.jobs\.(dlx|failed\.dlq)$",
        write=r"^everest\.jobs\.failed\.dlq$",
        read=r"^everest\.jobs\.(dlx|failed\.dlq)$",
    ),
    # Asks the management API how full the queues are: reconciler, pages. No message, in or out.
    "everest_monitor": BrokerRole("monitoring"),
    # Airflow's tasks on Celery workers: the scheduler puts them in, workers take them out. In a vhost of their own,
    # where nothing can be done to a job.
    # Celery sends to a queue by the default exchange; without the right its message would be gone without a word.
    CELERY: BrokerRole(configure=_CELERYS, write=rf"{_CELERYS}|^amq\.default$", read=_CELERYS, vhost=CELERY_VHOST),
    # Another application that announces its documents itself, as the existing web application does.
    "everest_publisher": BrokerRole(write=r"^everest\.jobs\.x$"),
}


AIRFLOW_ADMIN = "admin"
# A program's login at Airflow and its role there. `user` may trigger DAG runs and write a note on them, which consumer
# and reconciler do; the nightly audit, a task, and the operator's commands look at runs only. None may change a
# connection, a pool or a setting, or see a variable.
AIRFLOW_LOGINS = {
    "everest_consumer": "user",
    "everest_reconciler": "user",
    "everest_tasks": "viewer",
    "everest_operator": "viewer",
}


@dataclass(frozen=True)
class Identity:
    """A program's account at the database, the one it speaks AMQP with, and its login at Airflow (None: it asks Airflow
    nothing)."""

    mysql: str
    rabbitmq: str
    airflow: str | None = None


OWNER = Identity(MYSQL_OWNER, RABBITMQ_OWNER, AIRFLOW_ADMIN)
OPERATOR = Identity("everest_operator", "everest_operator", "everest_operator")
MONITOR = "everest_monitor"
IDENTITIES = {
    "consumer": Identity("everest_consumer", "everest_consumer", "everest_consumer"),
    "relay": Identity("everest_relay", "everest_relay"),
    "reconciler": Identity("everest_reconciler", MONITOR, "everest_reconciler"),
    # The pages run in the API server, the tasks are children of the scheduler, or of a worker; parsing DAGs needs no
    # database.
    "airflow-api-server": Identity("everest_pages", MONITOR),
    "airflow-scheduler": Identity("everest_tasks", MONITOR, "everest_tasks"),
    "airflow-worker": Identity("everest_tasks", MONITOR, "everest_tasks"),
    "airflow-dag-processor": Identity("everest_reader", MONITOR),
    # `up` itself, where it runs a module to its end: as the owner.
    "up": OWNER,
    "airflow": OWNER,
}
