"""The meter: silent and weightless until it is switched on, then exactly what its program tells."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from ingest_consumer import metrics
from ingest_consumer.metrics import Meter
from tests.queue_rig import ROOT


def lines(meter: Meter) -> set[str]:
    return {line for line in meter.render().decode().splitlines() if not line.startswith("#")}


def test_a_meter_that_is_off_takes_everything_and_keeps_nothing() -> None:
    meter = Meter()
    meter.count(metrics.PUBLISHED, exchange="x")
    meter.set(metrics.READY, 1)
    meter.observe(metrics.STAGE_SECONDS, 1.0, stage="submit_to_publish")
    assert not meter.is_on


def test_the_consumer_imports_neither_the_library_nor_a_web_server_while_its_metrics_are_off() -> None:
    heavy = ["prometheus_client", "http.server", "wsgiref"]
    code = f"import sys, ingest_consumer.__main__; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_what_is_counted_is_read_under_the_names_that_are_declared() -> None:
    meter = Meter()
    meter.switch_on(metrics.RELAY)
    meter.count(metrics.PUBLISHED, exchange="everest.jobs.x")
    meter.count(metrics.PUBLISHED, 2, exchange="everest.jobs.x")
    meter.observe(metrics.STAGE_SECONDS, 0.2, stage="submit_to_publish")
    meter.observe(metrics.STAGE_SECONDS, -5, stage="submit_to_publish")
    found = lines(meter)
    assert 'everest_relay_published_total{exchange="everest.jobs.x"} 3.0' in found
    assert 'everest_stage_seconds_bucket{le="0.1",stage="submit_to_publish"} 1.0' in found, "a clock that jumps is 0"
    assert 'everest_stage_seconds_count{stage="submit_to_publish"} 2.0' in found


@pytest.mark.parametrize("program", metrics.EVERY)
def test_a_program_tells_its_own_metrics_and_no_other_programs(program: str) -> None:
    meter = Meter()
    meter.switch_on(program)
    text = meter.render().decode()
    told = set(re.findall(r"^# TYPE (everest_\w+?)(?:_total)? \w+$", text, re.MULTILINE))
    told = {name for name in told if not name.endswith("_created")}
    assert told == {one.name for one in metrics.ALL if program in one.programs and not one.looked_up}


def test_looked_up_values_are_those_of_the_last_look_and_none_without_one() -> None:
    meter = Meter()
    meter.switch_on(metrics.RECONCILER)
    meter.tell({metrics.JOBS: {("document", "FAILED"): 2, ("document", "PENDING"): 1}, metrics.OUTBOX_DUE: {(): 7}})
    assert 'everest_jobs{kind="document",worker_status="FAILED"} 2.0' in lines(meter)
    assert "everest_outbox_due 7.0" in lines(meter)

    meter.tell({metrics.JOBS: {("document", "PENDING"): 3}})
    assert 'everest_jobs{kind="document",worker_status="PENDING"} 3.0' in lines(meter)
    assert not [line for line in lines(meter) if "FAILED" in line]

    meter.forget()
    assert not [line for line in lines(meter) if line.startswith(("everest_jobs", "everest_outbox"))]


def test_every_metric_has_a_name_of_the_house_a_help_and_a_program() -> None:
    names = [one.name for one in metrics.ALL]
    assert len(names) == len(set(names)) > 20
    for one in metrics.ALL:
        assert re.fullmatch(r"everest_[a-z_]+", one.name)
        assert one.help
        assert set(one.programs) <= set(metrics.EVERY)
        assert one.programs
