"""Each mistake in a definition has a sentence of its own, and it names the step: all step types, all options."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DefinitionError
from everest.workflow.builder import Builder, workflow

ONE_DAY = timedelta(days=1)


def work(state: dict[str, Any], step: Any) -> None:
    """Works."""


def chunks(state: dict[str, Any], step: Any, stored: list[Any]) -> Iterator[int]:
    """Streams."""
    yield 1


def joined(stored: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    return {"all": stored}


def needs_three(state: dict[str, Any], step: Any, more: Any) -> None:
    """Wants more than it gets."""


CHILD = workflow("child").then(work).build()
OTHER_CHILD = workflow("child").then(work).then(work, name="more").build()


def begun() -> Builder:
    return workflow("report").then(work)


def refusal(builder: Builder) -> str:
    with pytest.raises(DefinitionError) as refused:
        builder.build()
    return refused.value.message


@pytest.mark.parametrize(
    ("builder", "sentence"),
    [
        # then
        (begun().then(work), "step 2 'work': the name is taken by an earlier step"),
        (
            begun().then(work, name="Work"),
            "step 2 'Work': the name differs only in its capitals from that of the earlier s",
        ),
        (begun().then("work", name="late"), "step 2 'late': the handler is not callable"),  # type: ignore[arg-type]
        (begun().then(needs_three), "step 2 'needs_three': the handler must take (state, step)"),
        (begun().then(lambda state, step: None), "step 2 '<lambda>': give it a name"),
        (begun().then(work, name="with-hyphen"), "step 2 'with-hyphen': give it a name"),
        (begun().then(work, name="x" * 81), "give it a name of letters, digits and underscores, at most 80"),
        (begun().then(work, name="late", timeout=timedelta(0)), "step 2 'late': the timeout must be above zero"),
        (begun().then(work, name="late", timeout=5), "step 2 'late': the timeout is 5"),  # type: ignore[arg-type]
        (begun().then(work, name="u", compensate_with=1), "step 2 'u': compensate_with is not callable"),  # type: ignore[arg-type]
        (begun().then(work, name="u", compensate_with=needs_three), "step 2 'u': compensate_with must take"),
        # parallel
        (begun().parallel([]), "step 2 'parallel': a parallel group needs at least one branch"),
        (begun().parallel([work, work]), "step 2 'parallel': branch 'work' stands there twice"),
        (begun().parallel({"a b": work}), "step 2 'parallel': branch 'a b': give it a name"),
        (begun().parallel({"a": 1}), "step 2 'parallel': the handler of branch 'a' is not callable"),  # type: ignore[dict-item]
        (begun().parallel([work], on_conflict="first"), "step 2 'parallel': on_conflict 'first'"),  # type: ignore[arg-type]
        # for_each
        (begun().for_each("items", work, name="each", mode="any"), "step 2 'each': mode 'any' is none of all, first_s"),
        (begun().for_each("items", work, name="each", mode="quorum"), "step 2 'each': mode quorum needs a quorum"),
        (
            begun().for_each("items", work, name="each", quorum=2),
            "step 2 'each': a quorum is given, but the mode is all",
        ),
        (begun().for_each("items", work, name="each", concurrency=0), "step 2 'each': concurrency is 0"),
        (begun().for_each("items", work, name="each", reducer=needs_three), "step 2 'each': the reducer must take"),
        (begun().for_each("", work, name="each"), "step 2 'each': items_key is ''"),
        (begun().for_each("items", work, name="each", result_key="_r"), "step 2 'each': result_key '_r' begins with _"),
        # start_workflows
        (
            begun().start_workflows("items", workflow("c").then(work)),
            "step 2 'start_workflows': the workflow must be a",
        ),  # type: ignore[arg-type]
        (begun().start_agents("items", CHILD, payload_key="_p"), "step 2 'start_workflows': payload_key '_p' begins"),
        # repeat
        (begun().repeat_until("later", "done"), "step 2 'repeat': its target 'later' is no earlier step"),
        (begun().repeat_until("work"), "step 2 'repeat': give exactly one of state_key and condition"),
        (begun().repeat_while("work", "done", condition=bool), "step 2 'repeat': give exactly one of state_key and co"),
        (begun().repeat_until("work", condition=work), "step 2 'repeat': the condition must take (state)"),  # type: ignore[arg-type]
        (begun().repeat_until("work", "done", max_iterations=0), "step 2 'repeat': max_iterations is 0"),
        (begun().repeat_until("work", "done", expected=object()), "step 2 'repeat': expected cannot be stored"),
        (begun().repeat_until("work", "done", times=3), "step 2 'repeat': it has no option 'times'"),  # type: ignore[call-arg]
        # run_workflow
        (
            begun().run_workflow(workflow("c").then(work)),
            "step 2 'run_workflow': the workflow must be a built definition",
        ),  # type: ignore[arg-type]
        (begun().run_workflow(CHILD, timeout=-ONE_DAY), "step 2 'child': the timeout must be above zero"),
        (
            begun().run_workflow(CHILD).run_workflow(OTHER_CHILD, name="again"),
            "two different workflows in it have the dag_id 'child'",
        ),
        (workflow("child").run_workflow(CHILD, name="inner"), "two different workflows in it have the dag_id 'child'"),
        # delay
        (begun().delay(hours=-1), "step 2 'delay': a delay cannot be negative"),
        # signals
        (begun().wait_for_signal(""), "step 2 'wait_for_': it waits for no signal"),
        (begun().wait_for_signals([]), "step 2 'wait_for_signals': it waits for no signal"),
        (begun().wait_for_signals(["a", "a"]), "step 2 'wait_for_signals': it names a signal twice"),
        (begun().wait_for_signals("ab"), "step 2 'wait_for_signals': signals is the text 'ab', must be a list"),
        (begun().wait_for_signals(["a"], mode="quorum"), "step 2 'wait_for_signals': mode 'quorum' is neither all nor"),
        (begun().wait_for_signal("x" * 101, name="long"), "step 2 'long': a signal's name has at most 100 characters"),
        (begun().wait_for_approval(on_timeout={"a": 1}), "step 2 'wait_for_approval': on_timeout needs a timeout"),
        (
            begun().wait_for_approval(timeout=ONE_DAY, on_timeout=[1]),  # type: ignore[arg-type]
            "step 2 'wait_for_approval': on_timeout is [1], must be a dict",
        ),
        (
            begun().wait_for_input(match_payload={"a": object()}),
            "step 2 'wait_for_input': match_payload cannot be stor",
        ),
        (begun().wait_for_decision(timeout=-ONE_DAY), "step 2 'wait_for_decision': the timeout must be above zero"),
        (begun().wait_for_decision(result_key="_d"), "step 2 'wait_for_decision': result_key '_d' begins with _"),
        (begun().wait_for_signal("go", timeuot=ONE_DAY), "step 2 'wait_for_go': it has no option 'timeuot'; there are"),  # type: ignore[call-arg]
        # dependencies
        (begun().wait_for_workflow(""), "step 2 'wait_for_workflow': it waits for no workflow"),
        (begun().wait_for_workflow(1.5), "step 2 'wait_for_workflow': 1.5 is neither a workflow id"),  # type: ignore[arg-type]
        (begun().wait_for_workflows([]), "step 2 'wait_for_workflows': it waits for no workflow"),
        (begun().wait_for_workflows([1, True]), "step 2 'wait_for_workflows': (1, True) is neither a workflow id"),
        (begun().wait_for_workflows([1], mode="first_success"), "step 2 'wait_for_workflows': mode 'first_success'"),
        (begun().wait_for_workflows([1, 2], mode="quorum", quorum=3), "'wait_for_workflows': a quorum of 3 of 2 workf"),
        (begun().wait_for_agents(mode="quorum"), "step 2 'wait_for_agents': mode quorum needs a quorum"),
        (begun().wait_for_workflow_group("g", quorum=1), "step 2 'wait_for_workflow_group': a quorum is given, but"),
        (begun().wait_for_workflow(1, on_timeout={}), "step 2 'wait_for_workflow': on_timeout needs a timeout"),
        # stream
        (begun().stream(needs_three, joined), "step 2 'needs_three': the handler of a stream must be a generator"),  # type: ignore[arg-type]
        (begun().stream(work, joined), "step 2 'work': the handler must take (state, step, chunks)"),  # type: ignore[arg-type]
        (begun().stream(chunks, needs_three), "step 2 'chunks': on_complete must take (chunks, state)"),  # type: ignore[arg-type]
        # the workflow and its options
        (workflow("report"), "a workflow needs at least one step"),
        (workflow("2nd").then(work), "workflow name '2nd' must be letters"),
        (workflow("report", dag_id="a b").then(work), "dag_id 'a b' must be letters"),
        (begun().version("v 1"), "version 'v 1' must be letters, digits, dots, hyphens"),
        (begun().max_attempts(0), "max_attempts is 0, must be at least 1"),
        (begun().max_attempts(True), "max_attempts is True, must be a whole number"),
        (begun().prune_state_after(-1), "prune_state_after is -1, must be at least 0"),
        (begun().max_transitions(0), "max_transitions is 0"),
        (begun().max_for_each_items(0), "max_for_each_items is 0"),
        (begun().max_state_bytes(0), "max_state_bytes is 0"),
        (begun().max_started_workflows(0), "max_started_workflows is 0"),
        (begun().with_priority("asap"), "priority 'asap' is none of low, normal, high, urgent"),  # type: ignore[arg-type]
        (begun().on_queue(""), "the queue has no name"),
        (begun().tasks("one"), "tasks 'one' is neither per_step nor fused"),  # type: ignore[arg-type]
        (begun().must_complete_within(timedelta(0)), "must_complete_within must be above zero"),
        (begun().on_deadline(work), "on_deadline needs must_complete_within"),
        (begun().on_cancel(needs_three), "on_cancel must take (state, step)"),
        (begun().on_failure(work), "on_failure must take (state, step, error)"),  # type: ignore[arg-type]
    ],
)
def test_36_a_mistake_is_found_when_built_and_named_with_its_step(builder: Builder, sentence: str) -> None:
    message = refusal(builder)

    assert message.startswith("workflow ")
    assert sentence in message


def test_all_mistakes_are_told_at_once() -> None:
    message = refusal(begun().parallel([]).delay(days=-1).then(work).max_attempts(0))

    assert message.count(";") == 3


def test_36_an_earlier_step_of_any_kind_is_a_target_of_a_loop() -> None:
    built = begun().parallel({"a": work}, name="group").delay(seconds=1).repeat_until("group", "done").build()

    assert [step.name for step in built.steps] == ["work", "group", "delay", "repeat"]


def test_the_same_workflow_may_run_in_several_places() -> None:
    built = begun().run_workflow(CHILD).run_workflow(CHILD, name="again").start_workflows("items", CHILD).build()

    assert {child.name for child in built.children()} == {"child"}


def test_steps_without_a_name_are_numbered() -> None:
    built = begun().wait_for_approval().wait_for_approval().wait_for_signal("go").wait_for_signal("go").build()

    assert [step.name for step in built.steps][1:] == [
        "wait_for_approval", "wait_for_approval_2", "wait_for_go", "wait_for_go_2",
    ]  # fmt: skip
