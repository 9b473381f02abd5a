"""What rows keep of waits and refusals is told in its reader's language, names and lengths of time included."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from everest.pages import telling
from everest.words import LANGUAGES, span
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.questions import ask_decision
from tests.unit.words import foreign
from tests.workflow.world import MemoryWorld, World, gives


def fails(state: dict[str, Any], step: Any) -> None:
    raise ValueError("no")


CHILD = workflow("child").then(gives(), name="work").build()
PATIENT = workflow("patient").wait_for_signal("never", name="never").build()
FAILING = workflow("failing").then(fails, name="fails").max_attempts(1).build()


def a_late_signal(world: World) -> int:
    late = workflow("late").wait_for_signals(["red", "blue"], name="colours", timeout=timedelta(minutes=90)).build()
    run_id = world.begin(late)
    world.pass_time(timedelta(hours=2))
    return run_id


def a_late_workflow(world: World) -> int:
    other = world.begin(PATIENT)
    late = workflow("late").wait_for_workflow("other", name="wait", timeout=timedelta(days=3)).build()
    run_id = world.begin(late, {"other": other})
    world.pass_time(timedelta(days=4))
    return run_id


def a_late_nested_run(world: World) -> int:
    run_id = world.begin(workflow("late").run_workflow(PATIENT, name="inner", timeout=timedelta(seconds=90)).build())
    world.pass_time(timedelta(minutes=2))
    return run_id


def a_failed_workflow(world: World) -> int:
    others = [world.begin(FAILING), world.begin(CHILD)]
    return world.begin(workflow("needs").wait_for_workflows("others", name="wait").build(), {"others": others})


def too_few(world: World) -> int:
    other = world.begin(CHILD)
    built = workflow("needs").wait_for_workflows("others", mode="quorum", quorum=2, name="wait").build()
    return world.begin(built, {"others": [other]})


def a_workflow_that_is_gone(world: World) -> int:
    return world.begin(workflow("needs").wait_for_workflow("other", name="wait").build(), {"other": 99})


def branches_that_share(world: World) -> int:
    return world.begin(workflow("both").parallel({"b": gives(x=1), "a": gives(x=2)}, name="group").build())


def an_item_that_asks(world: World) -> int:
    def asks(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return ask_decision(["why"], "evidence")

    return world.begin(workflow("asks").for_each("items", asks, name="each").build(), {"items": [1]})


@pytest.mark.parametrize(
    ("failed", "indonesian", "english"),
    [
        (
            a_late_signal,
            "langkah colours: red, blue tidak datang dalam 90 menit",
            "step colours: red, blue did not come within 90 min",
        ),
        (
            a_late_workflow,
            "langkah wait: alur kerja yang ditunggu tidak selesai dalam 3 hari",
            "step wait: the workflows that it waits for did not end within 3 d",
        ),
        (
            a_late_nested_run,
            "langkah inner: alur kerja 2 tidak selesai dalam 90 detik",
            "step inner: workflow 2 did not end within 90 s",
        ),
        (
            a_failed_workflow,
            "langkah wait tidak bisa terpenuhi: 1 gagal",
            "step wait cannot be satisfied: 1 failed",
        ),
        (
            too_few,
            "langkah wait tidak bisa terpenuhi: hanya 1 alur kerja, perlu 2",
            "step wait cannot be satisfied: only 1 workflows, 2 are needed",
        ),
        (a_workflow_that_is_gone, "langkah wait: alur kerja 99 tidak ada", "step wait: workflows 99 do not exist"),
        (
            branches_that_share,
            "langkah group: cabang a dan b sama-sama mengembalikan x",
            "step group: branches a and b both return x",
        ),
        (
            an_item_that_asks,
            "langkah each: item 0 tidak bisa meminta keputusan, hanya langkah biasa yang bisa",
            "step each: item 0 cannot ask for a decision, only a plain step can",
        ),
    ],
)
def test_a_failure_is_told_in_one_language(
    world: World, failed: Callable[[World], int], indonesian: str, english: str
) -> None:
    run_id = failed(world)

    assert world.status(run_id) == "failed"
    error = world.run(run_id).error
    assert (telling.plain("id", error), telling.plain("en", error)) == (indonesian, english)


def test_a_nested_run_is_waited_for_in_both_languages(world: World) -> None:
    run_id = world.begin(workflow("outer").run_workflow(PATIENT, name="inner").build())

    parked = [one["detail"] for one in world.events(run_id) if one["event"] == "parked"][-1]
    assert telling.plain("id", parked) == f"menunggu alur kerja {run_id + 1}"
    assert telling.plain("en", parked) == f"waits for workflows {run_id + 1}"


def test_of_very_many_workflows_the_first_are_named_and_the_rest_counted() -> None:
    world = MemoryWorld()
    others = [world.start(PATIENT) for _ in range(12)]
    run_id = world.begin(workflow("many").wait_for_workflows("others", name="wait").build(), {"others": others})

    parked = [one["detail"] for one in world.events(run_id) if one["event"] == "parked"][-1]
    assert telling.plain("id", parked) == "menunggu alur kerja 1, 2, 3, 4, 5, dan 7 lagi"
    assert telling.plain("en", parked) == "waits for workflows 1, 2, 3, 4, 5, and 7 more"
    assert world.waiting(run_id)["remaining"] == others, "what it waits for is kept whole"

    for one in others:
        world.do(one, control.cancel)
    world.walk()
    told = {language: telling.plain(language, world.run(run_id).error) for language in LANGUAGES}
    lost = ", ".join(f"{one} dibatalkan" for one in range(1, 6))
    assert told["id"] == f"langkah wait tidak bisa terpenuhi: {lost}, dan 7 lagi"
    assert not [piece for language, text in told.items() for piece in foreign(language, text)]


@pytest.mark.parametrize(
    ("length", "indonesian"),
    [
        (timedelta(days=14), "14 hari"),
        (timedelta(hours=36), "36 jam"),
        (timedelta(minutes=5), "5 menit"),
        (timedelta(seconds=61), "61 detik"),
        (timedelta(seconds=0.25), "0.25 detik"),
        (timedelta(), "0 detik"),
        (timedelta(days=100, seconds=1), "8640001 detik"),
    ],
)
def test_a_length_of_time_is_said_in_whole_numbers_of_its_largest_unit(length: timedelta, indonesian: str) -> None:
    assert span(length) == indonesian
