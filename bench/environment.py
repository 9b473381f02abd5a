"""P6: the stack's Airflow, its settings, bytecode and preloading, against Airflow as pip and its defaults leave it.

The same DAG of three tasks, one of which imports pandas, on both, and bursts of runs triggered by REST in turn. Both
Airflows are up all the time: what each uses while it has nothing to do is measured before and told in the note.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from bench import cpu, plain
from bench.airflow import FOLDER, Airflow, burst, with_dags
from bench.measure import Result, Run, against_floor, show, side_by_side, spread
from stack.layout import Layout

DAG = "bench_three"
BURST, PAIRS, WARM_UP = 20, 5, 12
IDLE_SECONDS = 10


def p6(layout: Layout, smoke: bool) -> list[Result]:
    """The smoke form leaves the peer out (it takes minutes to make) and lets the stack's Airflow run against itself."""
    if smoke:
        with with_dags(layout, DAG) as ours:
            return [_measure(layout, ours, ours, 2, 1)]
    with with_dags(layout, DAG) as ours, plain.running(layout, FOLDER / f"{DAG}.py") as peer:
        for each in (ours, peer):  # every worker process has had a task
            burst(each, DAG, f"warm_{datetime.now(UTC):%y%m%d%H%M%S}_", WARM_UP)
        return [_measure(layout, ours, peer, BURST, PAIRS)]


def _measure(layout: Layout, ours: Airflow, peer: Airflow, count: int, pairs: int) -> Result:
    session = f"{datetime.now(UTC):%y%m%d%H%M%S}"
    before = cpu.by_program(layout)
    time.sleep(IDLE_SECONDS if count == BURST else 0.1)
    idle = _sides(cpu.between(before, cpu.by_program(layout)))
    used: dict[str, list[float]] = {"ours": [], "plain": []}

    def side(name: str, airflow: Airflow, index: int) -> float:
        start = cpu.by_program(layout)
        seconds = burst(airflow, DAG, f"{name}_{session}_{index}_", count)
        used[name].append(_sides(cpu.between(start, cpu.by_program(layout)))[name] / count)
        return seconds

    seconds = side_by_side(pairs, lambda index: side("ours", ours, index), lambda index: side("plain", peer, index))
    return against_floor(
        "P6",
        f"our Airflow environment: bursts of {count} runs of 3 tasks, one of which imports pandas",
        "runs/s",
        "Airflow by plain pip with its default settings (LocalExecutor, PostgreSQL)",
        [Run(count / one, count / other) for one, other in seconds],
        must=2,
        aim=4,
        larger_is_better=True,
        note=(
            "seconds per burst "
            + " against ".join(spread(each) for each in zip(*seconds, strict=True))
            + f"; CPU-s per run without PostgreSQL {spread(used['ours'])} against {spread(used['plain'])};"
            + f" CPU-s of each in {IDLE_SECONDS} s without work {show(idle['ours'])} and {show(idle['plain'])}"
        ),
    )


def _sides(used: dict[str, float]) -> dict[str, float]:
    """CPU of the two Airflows, without the database that they share."""
    ours = sum(seconds for program, seconds in used.items() if program.startswith("airflow-"))
    return {"ours": ours, "plain": used.get(plain.PROGRAM, 0.0)}
