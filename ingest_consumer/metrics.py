"""Every number that consumer, relay and reconciler tell Prometheus, named once; and the meter that counts them.

A meter is off until `switch_on`: then nothing is counted and the Prometheus library is not even imported (it is a
tenth of the consumer's memory). Alerts and dashboard (`deploy/`) may use these names only; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

STAGE_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 3600)
"""Seconds: from a quiet second to an hour, the hold limit among them."""


CONSUMER, RELAY, RECONCILER = "consumer", "relay", "reconciler"
EVERY = (CONSUMER, RELAY, RECONCILER)


@dataclass(frozen=True)
class Metric:
    """`name` as Prometheus gets it; a counter's sample ends in _total, a histogram's in _bucket, _sum and _count.

    programs: who tells it. looked_up: a gauge whose values come all at once from a look at rows or at a queue; without
    a look (on standby, or the server is away) it has none, instead of old ones.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    programs: tuple[str, ...]
    help: str
    labels: tuple[str, ...] = ()
    looked_up: bool = False

    @property
    def samples(self) -> tuple[str, ...]:
        endings = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
        return tuple(self.name + ending for ending in endings[self.kind])


def _counter(name: str, programs: tuple[str, ...], help: str, *labels: str) -> Metric:
    return Metric(f"everest_{name}", "counter", programs, help, labels)


def _gauge(name: str, programs: tuple[str, ...], help: str, *labels: str) -> Metric:
    return Metric(f"everest_{name}", "gauge", programs, help, labels)


def _looked_up(name: str, program: str, help: str, *labels: str) -> Metric:
    return Metric(f"everest_{name}", "gauge", (program,), help, labels, looked_up=True)


# ------------------------------------------------------------------------------------------------- every process
READY = _gauge("ready", EVERY, "1 = ready, as /readyz says")
ACTIVE = _gauge("active", EVERY, "1 = at work, 0 = stands by for another one, or starts")
RETRIES = _counter("retries", EVERY, "Tries that failed and are made again, by what was in the way", "cause")
STAGE_SECONDS = Metric(
    "everest_stage_seconds",
    "histogram",
    (CONSUMER, RELAY),
    "Seconds of a job in each stage: submit_to_publish, publish_to_processing, processing_to_end",
    ("stage",),
)

# ------------------------------------------------------------------------------------------------------ consumer
DELIVERIES = _counter(
    "consumer_deliveries",
    (CONSUMER,),
    "Deliveries let go: acked, dead_lettered, postponed, handed_over, put_back",
    "outcome",
)
HELD = _gauge("consumer_deliveries_held", (CONSUMER,), "Deliveries held just now")
WORKERS = _gauge("consumer_workers", (CONSUMER,), "Deliveries that this process can hold at once")

# --------------------------------------------------------------------------------------------------------- relay
PUBLISHED = _counter("relay_published", (RELAY,), "Outbox rows published", "exchange")
REFUSED = _counter("relay_refused", (RELAY,), "Outbox rows that the broker did not take; each is tried again")
SETTLED = _counter("relay_settled", (RELAY,), "Dead letters taken out because their document is done")
DEAD_LETTERS = _looked_up(
    "dead_letters", RELAY, "Letters in the dead-letter queue: failed, broken or at_work; once a minute", "standing"
)

# ---------------------------------------------------------------------------------------------------- reconciler
REPAIRS = _counter("reconciler_repairs", (RECONCILER,), "Rows repaired, by what was done", "action")
CANNOT_REPAIR = _counter("reconciler_cannot_repair", (RECONCILER,), "Looks at rows it could not handle: a bug")
HANDLERS_HUNG = _counter("reconciler_handlers_hung", (RECONCILER,), "Handlers of workflows that it had to interrupt")
ROUND_SECONDS = Metric("everest_reconciler_round_seconds", "histogram", (RECONCILER,), "Seconds of one round")
STEP_RETRIES = _counter("step_retries", (RECONCILER,), "Tries of steps that failed and are made again", "error")
DATABASE_UP = _gauge("database_up", (RECONCILER,), "1 = the rows could be read at the last look")

# What the rows say: the active reconciler alone looks, and counts no further than CAP.
CAP = 10_000
"""Where counting rows ends: a number that says "many" must not cost the database more than that."""
JOBS = _looked_up("jobs", RECONCILER, "Jobs that are not done", "kind", "worker_status")
JOBS_OLDEST = _looked_up("jobs_oldest_seconds", RECONCILER, "Since the last news of the oldest", "worker_status")
JOBS_ENDED = _looked_up("jobs_ended_last_hour", RECONCILER, "Jobs that ended within an hour", "worker_status")
JOBS_FAILED = _looked_up("jobs_failed", RECONCILER, "FAILED jobs, which wait for a person, by code", "code")
LETTERS_OWED = _looked_up("dead_letters_owed", RECONCILER, "FAILED for over a minute without a dead letter")
OUTBOX_DUE = _looked_up("outbox_due", RECONCILER, "Messages that are due and not published")
OUTBOX_OLDEST = _looked_up("outbox_oldest_seconds", RECONCILER, "Since the oldest due message was due")
OUTBOX_LATER = _looked_up("outbox_later", RECONCILER, "Messages that become due later: delays and timeouts")
HEARTBEAT_AGE = _looked_up("heartbeat_age_seconds", RECONCILER, "Since the newest heartbeat of a program", "name")
PROCESSES = _looked_up("processes", RECONCILER, "Instances seen within half a minute and not stopped", "name")
AUDIT_FINDINGS = _looked_up(
    "audit_findings",
    RECONCILER,
    "Findings of the audit of the books that stand and that nobody acknowledged",
    "invariant",
)
AUDIT_AGE = _looked_up(
    "audit_age_seconds", RECONCILER, "Since an invariant of the books was last looked at to the end", "invariant"
)

ALL = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
LABEL_VALUES: Mapping[str, tuple[str, ...]] = {
    "stage": ("submit_to_publish", "publish_to_processing", "processing_to_end"),
    "outcome": ("acked", "dead_lettered", "postponed", "handed_over", "put_back"),
    "standing": ("failed", "broken", "at_work"),
    "cause": ("database", "broker", "topology", "blocked", "airflow", "bug"),
    "action": (
        "began-again",
        "sent-again",
        "dead-lettered",
        "linked",
        "parked",
        "woke",
        "respelled",
        "compensated",
        "clock-set-right",
        "failed-499",
        "failed-503",
        "failed-504",
    ),
    "kind": ("document", "workflow"),
    "worker_status": ("PENDING", "PROCESSING", "WAITING", "FAILED", "COMPLETED", "CANCELLED"),
    "name": EVERY,
}
"""Of the labels whose values are known beforehand. An alert that waits for another value would never fire."""
Values = Mapping[tuple[str, ...], float]
"""Of a looked-up metric: its values by labels; () without labels."""


class Meter:
    """Counts. Safe to use from all threads; does nothing until it is switched on, and then only what its program
    tells."""

    def __init__(self) -> None:
        self._made: dict[str, Any] | None = None
        self._registry: Any = None
        self._told: dict[Metric, Values] = {}

    @property
    def is_on(self) -> bool:
        return self._made is not None

    def switch_on(self, program: str) -> None:
        """From here on it counts. Imports the Prometheus library."""
        import prometheus_client as prometheus

        registry = prometheus.CollectorRegistry()
        prometheus.ProcessCollector(registry=registry)
        kinds: dict[str, Callable[..., Any]] = {
            "counter": prometheus.Counter,
            "gauge": prometheus.Gauge,
            "histogram": partial(prometheus.Histogram, buckets=STAGE_BUCKETS),
        }
        registry.register(_LookedUp(self))
        self._made = {
            metric.name: kinds[metric.kind](metric.name, metric.help, metric.labels, registry=registry)
            for metric in ALL
            if program in metric.programs and not metric.looked_up
        }
        self._registry = registry

    def count(self, metric: Metric, amount: int = 1, **labels: str) -> None:
        if self._made is not None:
            self._of(metric, labels).inc(amount)

    def add(self, metric: Metric, amount: int) -> None:
        """A gauge goes up, or down."""
        if self._made is not None:
            self._of(metric, {}).inc(amount)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        if self._made is not None:
            self._of(metric, labels).set(value)

    def observe(self, metric: Metric, seconds: float, **labels: str) -> None:
        if self._made is not None:
            self._of(metric, labels).observe(max(0.0, seconds))

    def tell(self, found: Mapping[Metric, Values]) -> None:
        """What a look has found: the only values that these metrics have from here on."""
        self._told = {**self._told, **found}

    def forget(self) -> None:
        """Nothing that was looked up is known any more."""
        self._told = {}

    def render(self) -> bytes:
        """What Prometheus reads."""
        from prometheus_client import generate_latest

        text: bytes = generate_latest(self._registry)
        return text

    def told(self) -> dict[Metric, Values]:
        return self._told

    def _of(self, metric: Metric, labels: Mapping[str, str]) -> Any:
        assert self._made is not None
        one = self._made[metric.name]
        return one.labels(**labels) if labels else one


class _LookedUp:
    """The looked-up values, as the Prometheus library asks for them."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        for metric, values in self._meter.told().items():
            family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for labels, value in values.items():
                family.add_metric(labels, value)
            yield family
