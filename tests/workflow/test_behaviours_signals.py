"""Behaviours 42 to 53: messages and answers from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict, DocumentMissing
from everest.workflow import control
from everest.workflow.builder import workflow
from tests.workflow.world import World, gives

GATE = workflow("gate").then(gives(a=1), name="a").wait_for_signal("go").then(gives(z=1), name="z").build()


def test_042_reaching_the_wait_leaves_a_waiting_run_and_no_message(world: World) -> None:
    run_id = world.begin(GATE)

    assert (world.status(run_id), world.job(run_id)) == ("waiting_for_signal", "WAITING")
    assert (world.messages(run_id), world.run(run_id).current_step) == ([], "wait_for_go")
    assert world.waiting(run_id)["remaining"] == ["go"]


def test_043_a_signal_resumes_and_its_payload_is_in_the_state(world: World) -> None:
    seen: list[dict[str, Any]] = []

    def look(state: dict[str, Any], step: Any) -> None:
        seen.append(dict(state))

    run_id = world.begin(workflow("gate").wait_for_signal("go").then(look).build(), {"p": 0})

    world.do(run_id, control.signal, "go", {"by": "sari", "_hidden": 1})

    assert len(world.messages(run_id)) == 1
    world.walk()
    assert (world.status(run_id), seen) == ("completed", [{"p": 0, "by": "sari"}])


def test_044_a_signal_before_the_wait_is_kept_and_nothing_waits(world: World) -> None:
    run_id = world.start(GATE)
    world.do(run_id, control.signal, "go", {"early": True})

    world.walk()

    assert (world.status(run_id), world.run(run_id).n) == ("completed", 1)
    assert world.state(run_id) == {"a": 1, "early": True, "z": 1}
    assert world.names(run_id, "parked") == []


def test_045_a_signal_of_another_name_is_stored_and_resumes_nothing(world: World) -> None:
    run_id = world.begin(GATE)

    world.signal(run_id, "stop", {"x": 1})

    assert (world.status(run_id), world.messages(run_id)) == ("waiting_for_signal", [])
    assert world.signals(run_id) == [("stop", {"x": 1})]


def test_046_two_gates_as_first_and_as_last_step(world: World) -> None:
    built = workflow("gates").wait_for_signal("open").then(gives(a=1), name="a").wait_for_signal("close").build()
    run_id = world.begin(built)
    seen = []
    for name in ("open", "close"):
        seen.append((world.status(run_id), world.waiting(run_id)["remaining"], list(world.effects)))
        world.signal(run_id, name, {name: True})

    assert seen == [("waiting_for_signal", ["open"], []), ("waiting_for_signal", ["close"], ["a"])]
    assert (world.status(run_id), world.state(run_id)) == ("completed", {"open": True, "a": 1, "close": True})


def test_047_every_signal_is_stored_in_order_duplicates_too_and_serves_one_wait(world: World) -> None:
    built = (
        workflow("queue").wait_for_signal("go", result_key="one").wait_for_signal("go", name="again", result_key="two")
    )
    run_id = world.start(built.build())
    for number in (1, 1, 3):
        world.do(run_id, control.signal, "go", {"n": number})

    world.walk()

    assert world.signals(run_id) == [("go", {"n": 1}), ("go", {"n": 1}), ("go", {"n": 3})]
    assert (world.status(run_id), world.state(run_id)) == ("completed", {"one": {"n": 1}, "two": {"n": 1}})


def test_048_all_of_two_shows_what_came_and_what_is_missing(world: World) -> None:
    built = workflow("both").wait_for_signals(["left", "right"], result_key="came").then(gives(z=1), name="z").build()
    run_id = world.begin(built)

    world.signal(run_id, "right", {"r": 1})

    waiting = world.waiting(run_id)
    assert (world.status(run_id), list(waiting["matched"]), waiting["remaining"]) == (
        "waiting_for_signal",
        ["right"],
        ["left"],
    )
    world.signal(run_id, "right", {"r": 2})
    world.signal(run_id, "left", {"l": 1})
    assert (world.status(run_id), world.state(run_id)["came"]) == ("completed", {"right": {"r": 1}, "left": {"l": 1}})


def test_049_any_of_two_resumes_on_either(world: World) -> None:
    built = workflow("either").wait_for_signals(["left", "right"], mode="any", result_key="came").build()
    run_id = world.begin(built)

    world.signal(run_id, "right", {"r": 1})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"came": {"right": {"r": 1}}})


def test_050_an_approval_then_an_input_each_under_its_own_key(world: World) -> None:
    built = workflow("people").wait_for_approval().wait_for_input().then(gives(z=1), name="z").build()
    run_id = world.begin(built)
    with pytest.raises(Conflict, match="waits for no input"):
        world.do(run_id, control.submit_input, "sari", {"rak": "B-2"})

    world.act(run_id, control.approve, "budi", reason="cocok", payload={"lampiran": 7})
    with pytest.raises(Conflict, match="waits for no approval"):
        world.do(run_id, control.approve, "budi")
    world.act(run_id, control.submit_input, "sari", {"rak": "B-2"})

    state = world.state(run_id)
    assert world.status(run_id) == "completed"
    approval = {key: state["approval"][key] for key in ("outcome", "by", "reason", "data")}
    assert approval == {"outcome": "approved", "by": "budi", "reason": "cocok", "data": {"lampiran": 7}}
    assert state["input"] == {"rak": "B-2"}


def test_050_an_answer_to_a_question_that_is_not_open_is_a_conflict(world: World) -> None:
    built = workflow("twice").wait_for_approval().wait_for_approval("second").build()
    run_id = world.start(built)
    with pytest.raises(Conflict, match="waits for no approval"):
        world.do(run_id, control.approve, "budi")
    world.walk()
    seen = world.waiting(run_id)["sequence"]
    world.act(run_id, control.approve, "budi", sequence=seen)

    with pytest.raises(Conflict, match="waits for something else"):
        world.do(run_id, control.approve, "budi", sequence=seen)
    assert world.status(run_id) == "waiting_for_signal"


def test_050_of_two_answers_to_one_question_the_second_is_a_conflict(world: World) -> None:
    run_id = world.begin(workflow("once").wait_for_decision().build())
    world.do(run_id, control.approve, "budi")

    with pytest.raises(Conflict, match="has its answer already"):
        world.do(run_id, control.reject, "sari", "tidak")
    world.walk()
    assert world.state(run_id)["decision"]["outcome"] == "approved"


def test_051_a_correlated_wait_takes_only_its_own_signal(world: World) -> None:
    built = workflow("orders").wait_for_signal("paid", correlation_key="order", result_key="paid").build()
    run_id = world.begin(built, {"order": "A-7"})
    assert world.waiting(run_id)["correlation"] == {"key": "order", "value": "A-7"}

    world.signal(run_id, "paid", {"order": "A-8"})
    world.signal(run_id, "paid", {}, correlation="A-9")
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "paid", {"sum": 5}, correlation="A-7")

    assert (world.status(run_id), world.state(run_id)["paid"]) == ("completed", {"sum": 5})
    assert len(world.signals(run_id)) == 3


def test_051_a_wait_may_ask_for_certain_values(world: World) -> None:
    built = workflow("picky").wait_for_signal("done", match_payload={"ok": True}, result_key="done").build()
    run_id = world.begin(built)

    world.signal(run_id, "done", {"ok": False})
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "done", {"ok": True, "n": 1})

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"done": {"ok": True, "n": 1}})


def test_052_a_rejected_decision_gives_outcome_signal_and_data(world: World) -> None:
    built = workflow("decides").wait_for_decision("check").then(gives(z=1), name="z").build()
    run_id = world.begin(built)

    world.act(run_id, control.reject, "sari", "kurang bukti", payload={"baris": 3})

    decision = world.state(run_id)["decision"]
    assert world.status(run_id) == "completed"
    assert (decision["outcome"], decision["signal"], decision["data"]) == ("rejected", "check", {"baris": 3})
    assert (decision["by"], decision["reason"]) == ("sari", "kurang bukti")
    assert decision["at"].tzinfo is not None


def test_052_a_rejected_approval_fails_the_run_and_a_retry_asks_again(world: World) -> None:
    run_id = world.begin(workflow("asks").wait_for_approval().then(gives(z=1), name="z").build())
    world.act(run_id, control.reject, "sari", "kurang bukti")
    assert (world.status(run_id), world.run(run_id).error_code) == ("failed", 403)
    assert "kurang bukti" in world.error(run_id)

    world.act(run_id, control.retry)
    assert world.status(run_id) == "waiting_for_signal", "a refusal does not outlive the retry"
    world.act(run_id, control.approve, "budi")

    assert (world.status(run_id), world.effects) == ("completed", ["z"])


def test_053_a_signal_to_an_unknown_or_finished_run_is_an_error_to_its_sender(world: World) -> None:
    run_id = world.begin(workflow("ends").then(gives(a=1), name="a").build())

    with pytest.raises(DocumentMissing):
        world.do(run_id + 100, control.signal, "go")
    with pytest.raises(Conflict, match="is completed"):
        world.do(run_id, control.signal, "go")
    assert world.signals(run_id) == []


def test_042_a_wait_that_nobody_answers_ends_by_its_timeout(world: World) -> None:
    fails = world.begin(workflow("fails").wait_for_signal("go", timeout=timedelta(hours=1)).build())
    goes_on = world.begin(
        workflow("goes_on").wait_for_signal("go", timeout=timedelta(hours=1), on_timeout={"late": True}).build()
    )
    assert len(world.messages(fails)) == 1, "its timeout is a message that is due later"

    world.pass_time(timedelta(minutes=59))
    assert [world.status(one) for one in (fails, goes_on)] == ["waiting_for_signal"] * 2
    world.pass_time(timedelta(minutes=1))

    assert (world.status(fails), world.run(fails).error_code) == ("failed", 504)
    assert (world.status(goes_on), world.state(goes_on)) == ("completed", {"late": True})


def test_043_a_timer_that_comes_due_behind_the_answer_starts_nothing(world: World) -> None:
    built = workflow("late").wait_for_signal("go", timeout=timedelta(hours=1)).then(gives(z=1), name="z").build()
    run_id = world.begin(built)
    world.signal(run_id, "go")

    world.pass_time(timedelta(hours=2))

    assert (world.status(run_id), world.effects, world.messages(run_id)) == ("completed", ["z"], [])


def test_043_a_signal_while_paused_is_kept_and_the_resume_goes_on(world: World) -> None:
    run_id = world.begin(GATE)
    world.act(run_id, control.pause)
    world.signal(run_id, "go", {"x": 1})
    assert world.status(run_id) == "paused"

    world.act(run_id, control.resume)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"a": 1, "x": 1, "z": 1})


def test_042_a_resume_without_a_signal_shows_the_wait_again(world: World) -> None:
    run_id = world.begin(GATE)
    world.act(run_id, control.pause)
    world.act(run_id, control.resume)

    assert (world.status(run_id), world.job(run_id), world.messages(run_id)) == ("waiting_for_signal", "WAITING", [])
    world.signal(run_id, "go")
    assert world.status(run_id) == "completed"


def test_051_a_payload_without_the_key_is_no_match_for_a_run_that_knows_no_value(world: World) -> None:
    built = workflow("known").wait_for_signal("paid", name="gate", correlation_key="order").max_attempts(1).build()
    run_id = world.begin(built, {"order": None})

    assert world.status(run_id) == "failed"
    assert "'order'" in world.error(run_id)


def test_051_a_tuple_to_match_is_the_list_that_a_payload_has(world: World) -> None:
    built = workflow("pairs").wait_for_signal("go", name="gate", match_payload={"pair": (1, {"a": (2,)})}).build()
    run_id = world.begin(built)

    world.signal(run_id, "go", {"pair": [1, {"a": [3]}]})
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "go", {"pair": [1, {"a": [2]}]})
    assert world.status(run_id) == "completed"


def test_a_signal_to_a_failed_run_is_kept_for_its_retry(world: World) -> None:
    broken = [True]

    def stumble(state: dict[str, Any], step: Any) -> None:
        if broken:
            raise ValueError("not yet")

    run_id = world.begin(workflow("later").then(stumble, name="a").max_attempts(1).wait_for_signal("go").build())
    assert world.status(run_id) == "failed"

    world.signal(run_id, "go", {"x": 1})
    assert (world.status(run_id), world.messages(run_id)) == ("failed", [])
    broken.clear()
    world.act(run_id, control.retry)

    assert (world.status(run_id), world.state(run_id)) == ("completed", {"x": 1})


def test_051_a_number_is_no_truth_value_to_match(world: World) -> None:
    run_id = world.begin(workflow("strict").wait_for_signal("go", match_payload={"ok": True}).build())

    world.signal(run_id, "go", {"ok": 1})
    assert world.status(run_id) == "waiting_for_signal"
    world.signal(run_id, "go", {"ok": True})
    assert world.status(run_id) == "completed"
