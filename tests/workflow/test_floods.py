"""More signals than anybody reads: each name has room for so many, and what is needed is never crowded out."""

from __future__ import annotations

from typing import Any

import pytest

from everest.errors import Conflict
from everest.workflow import answers, control
from everest.workflow.builder import workflow
from tests.workflow.world import World, gives

ROOM = 3
TWO = workflow("two").wait_for_signal("red", name="red").wait_for_signal("blue", name="blue").build()


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MAX_UNREAD", ROOM)


def fill(world: World, run_id: int, *names: str) -> None:
    for name in names:
        world.do(run_id, control.signal, name)


def test_a_name_has_room_for_so_many_and_the_next_is_refused_without_a_trace(world: World) -> None:
    run_id = world.begin(TWO)
    fill(world, run_id, *["blue"] * ROOM)
    before = world.signals(run_id), world.events(run_id)

    with pytest.raises(Conflict, match=f"workflow {run_id} has 3 signals blue already that nobody has read"):
        world.do(run_id, control.signal, "blue")

    assert (world.signals(run_id), world.events(run_id)) == before


def test_others_of_another_name_take_no_room(world: World) -> None:
    run_id = world.begin(TWO)
    fill(world, run_id, *["blue"] * ROOM)

    world.signal(run_id, "red", {"r": 1})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"r": 1})


def test_names_that_no_step_waits_for_share_one_room(world: World) -> None:
    run_id = world.begin(TWO)
    fill(world, run_id, *[f"stray_{one}" for one in range(ROOM)])

    with pytest.raises(Conflict, match="waits for a signal stray_3, and 3 of its signals are unread"):
        world.do(run_id, control.signal, "stray_3")

    fill(world, run_id, "blue", "red")
    world.walk()
    assert world.status(run_id) == "completed"


def test_what_the_open_wait_is_missing_is_taken_however_many_others_of_its_name_are_unread(world: World) -> None:
    built = workflow("mine").wait_for_signal("paid", name="wait", correlation_key="order").build()
    run_id = world.begin(built, {"order": 7})
    for other in range(ROOM):
        world.do(run_id, control.signal, "paid", {"order": 100 + other})
    with pytest.raises(Conflict, match="3 signals paid"):
        world.do(run_id, control.signal, "paid", {"order": 200})

    world.signal(run_id, "paid", {"order": 7, "by": "ann"})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"order": 7, "by": "ann"})


def test_what_a_wait_has_read_makes_room(world: World) -> None:
    loop = workflow("reads").wait_for_signal("go", name="go").then(gives(), name="turn")
    run_id = world.start(loop.repeat_while("go", "more").build(), {"more": True})
    fill(world, run_id, *["go"] * ROOM)
    world.walk()

    fill(world, run_id, "go")
    world.walk()
    assert world.effects == ["turn"] * (ROOM + 1)


def test_a_failed_run_and_a_paused_one_have_room_for_as_many(world: World) -> None:
    def broken(state: dict[str, Any], step: Any) -> None:
        raise ValueError("no")

    failed = world.begin(workflow("failed").then(broken).wait_for_signal("go").max_attempts(1).build())
    paused = world.begin(TWO)
    world.do(paused, control.pause)
    fill(world, paused, "red")  # this one it has been waiting for
    for run_id, name in ((failed, "go"), (paused, "red")):
        fill(world, run_id, *[name] * ROOM)
        with pytest.raises(Conflict, match="nobody has read"):
            world.do(run_id, control.signal, name)


def test_answers_of_people_need_no_room(world: World) -> None:
    run_id = world.begin(workflow("asks").wait_for_approval().build())
    fill(world, run_id, *["approval"] * ROOM)

    world.act(run_id, control.approve, "ann")

    assert world.status(run_id) == "completed"
