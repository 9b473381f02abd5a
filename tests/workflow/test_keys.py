"""`step.key`, the key of effects outside the database: one for each thing that is done, the same at every try of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from everest.errors import DocumentRefused
from everest.workflow import control
from everest.workflow.builder import workflow
from tests.workflow.world import World


class Mail:
    """What went out, by key; the receiver ignores a key it has seen."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []

    def about(self, what: str, **output: Any) -> Callable[..., dict[str, Any]]:
        def handler(state: dict[str, Any], step: Any, *error: Exception) -> dict[str, Any]:
            self.sent.append((what, step.key))
            return output

        return handler

    def failing(self, what: str, times: int) -> Callable[..., None]:
        def handler(state: dict[str, Any], step: Any) -> None:
            self.sent.append((what, step.key))
            if len(self.keys(what)) <= times:
                raise RuntimeError("try again")

        return handler

    def keys(self, what: str) -> list[str]:
        return [key for name, key in self.sent if name == what]


def test_each_compensation_has_a_key_of_its_own_that_is_the_same_at_every_try(world: World) -> None:
    mail = Mail()
    built = (
        workflow("pays")
        .then(mail.about("pay"), name="pay", compensate_with=mail.failing("refund", 1))
        .then(
            lambda state, step: {"turns": state.get("turns", 0) + 1}, name="book", compensate_with=mail.about("unbook")
        )
        .repeat_until("book", "turns", 2)
        .parallel({"compensate": mail.about("branch"), "on_cancel": mail.about("other")}, name="pay_again")
        .wait_for_signal("go")
        .on_cancel(mail.about("on_cancel"))
        .build()
    )
    run_id = world.begin(built)
    world.act(run_id, control.cancel, "ann")

    assert world.run(run_id).compensation == "done"
    assert len(mail.keys("refund")) == 2
    assert len(set(mail.keys("refund"))) == 1, "the second try is the same refund"
    assert len(mail.keys("unbook")) == len(set(mail.keys("unbook"))) == 2, "one for each pass of the loop"
    each = [mail.keys(what)[0] for what in ("pay", "branch", "other", "refund", "on_cancel")] + mail.keys("unbook")
    assert len(set(each)) == len(each)
    assert mail.keys("pay") == [f"{run_id}:pay:1"], "keys of steps stay what they were"
    assert mail.keys("branch") == [f"{run_id}:pay_again:2:compensate"]


def test_what_undoes_a_step_is_told_the_step_and_its_visit(world: World) -> None:
    seen: list[Any] = []

    def undo(state: dict[str, Any], step: Any) -> None:
        seen.append((step.step, step.visit, step.attempt))
        if len(seen) == 1:
            raise RuntimeError("try again")

    built = workflow("undoes").then(lambda state, step: None, name="first", compensate_with=undo).wait_for_signal("go")
    run_id = world.begin(built.build())
    world.act(run_id, control.cancel, "ann")

    assert seen == [("first", 1, 1), ("first", 1, 2)]


def test_a_failure_and_the_next_one_of_the_same_step_have_two_keys(world: World) -> None:
    mail = Mail()

    def fails(state: dict[str, Any], step: Any) -> None:
        mail.sent.append(("work", step.key))
        raise DocumentRefused("no")

    built = workflow("fails").then(fails, name="work").on_failure(mail.about("failure")).build()
    run_id = world.begin(built)
    world.act(run_id, control.retry, "ann")

    assert len(set(mail.keys("failure"))) == 2
    assert set(mail.keys("work")) == {f"{run_id}:work:1"}


def test_a_missed_deadline_has_a_key_beside_the_failure_it_is(world: World) -> None:
    mail = Mail()
    built = (
        workflow("late")
        .wait_for_signal("go", name="gate")
        .must_complete_within(timedelta(hours=1))
        .on_deadline(mail.about("deadline"))
        .on_failure(mail.about("failure"))
        .build()
    )
    run_id = world.begin(built)
    world.database.move_clock(timedelta(hours=2))
    world.do(run_id, control.expire)

    (deadline,), (failure,) = mail.keys("deadline"), mail.keys("failure")
    assert len({deadline, failure, f"{run_id}:gate:1"}) == 3
