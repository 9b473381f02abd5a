"""A definition is checked when it is built; every mistake names its step."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everest.errors import DefinitionError
from everest.workflow.builder import Builder, workflow
from everest.workflow.handlers import dotted_name, resolve


def first(state: dict[str, Any], step: Any) -> None:
    """Does the first thing."""


def second(state: dict[str, Any], step: Any) -> None:
    """Does the second thing."""


def test_steps_are_named_after_their_functions() -> None:
    built = workflow("closing").then(first).then(second, name="last").build()

    assert [step.name for step in built.steps] == ["first", "last"]
    assert built.steps[0].doc == "Does the first thing."
    assert dotted_name(first).endswith("test_definition:first")
    assert resolve(dotted_name(first)) is first
    assert built.index("last") == 1


@pytest.mark.parametrize(
    ("builder", "sentence"),
    [
        (workflow("empty"), "at least one step"),
        (workflow("no spaces").then(first), "workflow name 'no spaces'"),
        (workflow("twice").then(first).then(first), "step 2 'first': the name is taken"),
        (workflow("lambda").then(lambda state, step: None), "step 1 '<lambda>'"),
        (workflow("late").then(first, timeout=timedelta(0)), "step 1 'first': the timeout"),
        (workflow("never").then(first).max_attempts(0), "max_attempts is 0"),
        (workflow("text").then("first"), "step 1 ''"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_is_named(builder: Builder, sentence: str) -> None:
    with pytest.raises(DefinitionError, match="workflow") as refused:
        builder.build()
    assert sentence in refused.value.message


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(DefinitionError) as refused:
        workflow("bad name").then(first).then(first).max_attempts(0).build()
    assert refused.value.message.count(";") == 2


def test_the_hash_is_of_the_shape_not_of_the_code() -> None:
    shape = workflow("closing").then(first).then(second)

    assert shape.build().definition_hash == shape.build().definition_hash
    other = workflow("closing").then(first, name="second").then(second, name="first").build()
    assert other.definition_hash != shape.build().definition_hash
    assert workflow("closing", version="2").then(first).then(second).build().definition_hash != (
        shape.build().definition_hash
    )


def test_the_key_comes_from_the_payload() -> None:
    built = workflow("closing").then(first).idempotency_key("{gudang}-{bulan}").build()

    assert built.key({"gudang": "GD-A", "bulan": "2026-03"}) == "GD-A-2026-03"
