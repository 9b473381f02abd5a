"""What a person does in the Airflow UI, at the worst moment: pause the DAG, clear tasks, mark them and their runs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

import httpx

from everest.opname.workflow import POST_OPNAME, REVERSE_OPNAME
from tests.chaos.happening import Happening, Lasting, span
from tests.chaos.world import NotNow, Sent, World

POSTING, REVERSAL = POST_OPNAME.name, REVERSE_OPNAME.name
TASKS = tuple(step.name for step in POST_OPNAME.steps)
(REVERSING,) = (step.name for step in REVERSE_OPNAME.steps)
OUTCOMES = ("success", "failed")


def _run_of(world: World, place: float, *statuses: str) -> tuple[Sent, str, str]:
    """A document of ours whose DAG run a person may come across, its DAG, and that run."""
    sent = world.some(place, *statuses)
    run_id = world.live.shadow(sent.shadow_id)["dag_run_id"]
    if run_id is None:
        raise NotNow("it has no run yet")
    return sent, POSTING if sent.paper.reverses is None else REVERSAL, str(run_id)


def _task_of(dag: str, task: str) -> str:
    """A reversal has one task only."""
    return task if dag == POSTING else REVERSING


def _accepted(answer: httpx.Response) -> None:
    """A refusal (no such task yet, a state that cannot be set) is an answer."""
    if 400 <= answer.status_code < 500:
        raise NotNow(f"Airflow said {answer.status_code}")
    answer.raise_for_status()


@dataclass(frozen=True)
class PauseDag(Lasting):
    name: ClassVar[str] = "pause-dag"
    weight: ClassVar[int] = 2
    dag: str = POSTING

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 2, 25), rng.choice((POSTING, POSTING, REVERSAL)))

    @property
    def target(self) -> str:
        return f"{self.name} {self.dag}"

    def begin(self, world: World) -> None:
        self._set(world, True)

    def end(self, world: World) -> None:
        world.insist(lambda: self._set(world, False))

    def _set(self, world: World, is_paused: bool) -> None:
        with world.live.airflow() as airflow:
            airflow.patch(f"/dags/{self.dag}", json={"is_paused": is_paused}).raise_for_status()


@dataclass(frozen=True)
class ClearTasks(Happening):
    """From one task on, whether it has run or not. Of a posted document too: then nothing may happen."""

    name: ClassVar[str] = "clear"
    weight: ClassVar[int] = 4
    place: float
    task: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.choice(TASKS))

    def begin(self, world: World) -> str:
        sent, dag, run_id = _run_of(world, self.place, "PROCESSING", "FAILED", "COMPLETED")
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [_task_of(dag, self.task)],
            "include_downstream": True,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        with world.live.airflow() as airflow:
            _accepted(airflow.post(f"/dags/{dag}/clearTaskInstances", json=body))
        return sent.paper.nota


@dataclass(frozen=True)
class MarkRun(Happening):
    name: ClassVar[str] = "mark-run"
    weight: ClassVar[int] = 2
    place: float
    state: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.choice(OUTCOMES))

    def begin(self, world: World) -> str:
        sent, dag, run_id = _run_of(world, self.place, "PROCESSING")
        sent.is_marked = True
        with world.live.airflow() as airflow:
            _accepted(airflow.patch(f"/dags/{dag}/dagRuns/{run_id}", json={"state": self.state}))
        return sent.paper.nota


@dataclass(frozen=True)
class MarkTask(Happening):
    name: ClassVar[str] = "mark-task"
    weight: ClassVar[int] = 2
    place: float
    task: str
    state: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.choice(TASKS), rng.choice(OUTCOMES))

    def begin(self, world: World) -> str:
        sent, dag, run_id = _run_of(world, self.place, "PROCESSING")
        sent.is_marked = True
        url = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{_task_of(dag, self.task)}"
        with world.live.airflow() as airflow:
            _accepted(airflow.patch(url, json={"new_state": self.state}))
        return sent.paper.nota
