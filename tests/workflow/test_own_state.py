"""What a function does to the state it was given, instead of returning it, nobody else sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everest.workflow.builder import workflow
from tests.workflow.world import World

NESTED = {"items": [1, 2, 3], "kept": {"marks": []}}


def spoils(state: dict[str, Any]) -> int:
    """How many others have left their mark, before it leaves its own."""
    found = len(state["kept"]["marks"]) + ("mark" in state)
    state["kept"]["marks"].append(1)
    state["items"].clear()
    state["mark"] = 1
    return found


def test_items_of_one_slot_do_not_see_what_the_others_did_to_their_state(world: World) -> None:
    def item(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {"items": len(state["items"]), "seen": spoils(state)}

    run_id = world.begin(workflow("spoils").for_each("items", item, name="each").build(), NESTED)

    assert world.status(run_id) == "completed"
    results = world.state(run_id)["each"]["results"]
    assert list(results.values()) == [{"items": 3, "seen": 0}] * 3
    assert {name: world.state(run_id)[name] for name in NESTED} == NESTED


def test_a_try_does_not_see_what_an_earlier_one_of_the_same_item_did_to_its_state(world: World) -> None:
    seen: list[int] = []

    def item(state: dict[str, Any], step: Any) -> None:
        seen.append(spoils(state))
        if len(seen) % 2:
            raise RuntimeError("once more")

    world.begin(workflow("again").for_each("items", item, name="each").build(), NESTED)

    assert len(seen) > 3
    assert set(seen) == {0}


def test_branches_do_not_see_each_others_state(world: World) -> None:
    def branch(state: dict[str, Any], step: Any) -> dict[str, Any]:
        return {step.branch: spoils(state)}

    run_id = world.begin(workflow("both").parallel({"a": branch, "b": branch}).build(), NESTED)

    assert (world.state(run_id)["a"], world.state(run_id)["b"]) == (0, 0)


def test_on_complete_does_not_see_what_the_generator_did_to_its_state(world: World) -> None:
    def generator(state: dict[str, Any], step: Any, chunks: list[Any]) -> Iterator[int]:
        spoils(state)
        yield 1

    run_id = world.begin(
        workflow("streams").stream(generator, lambda chunks, state: {"seen": spoils(state)}, name="s").build(), NESTED
    )

    assert world.state(run_id)["seen"] == 0
