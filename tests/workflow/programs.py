"""Random workflow programs: what they look like, and the definition each one builds.

A program is a tree (loops have bodies, nested runs have programs). `definition` turns it into an ordinary workflow,
`model.py` says what every run of it must end as. The handlers stand on module level and consult `ENVIRONMENT` for what
fails when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any
from zlib import crc32

from everest.errors import DocumentRefused
from everest.workflow.builder import Builder, workflow
from everest.workflow.definition import Definition

NAMES = ("red", "green", "blue")
"""The plain signals of all programs, in the order in which a round of them is sent."""

FOR_EVER = 10_000
MOST_TRIES = 30


# ------------------------------------------------------------------------------------------------- the program


@dataclass(frozen=True)
class Node:
    """broken: fails for good until a person repairs it (each visit anew). flaky: fails this often, then works.
    undo: has a compensation."""

    broken: bool = False
    flaky: int = 0
    undo: bool = False


@dataclass(frozen=True)
class Plain(Node):
    skip: int = 0
    """It branches forward over so many nodes of its own body."""


@dataclass(frozen=True)
class Group(Node):
    branches: int = 2
    bad: int = 0
    """The branch that is broken or flaky."""


@dataclass(frozen=True)
class Each(Node):
    size: int = 2
    mode: str = "all"
    quorum: int | None = None
    bad: frozenset[int] = frozenset()
    reduces: bool = False


@dataclass(frozen=True)
class Chunks(Node):
    count: int = 3


@dataclass(frozen=True)
class Loop(Node):
    body: tuple[Node, ...] = ()
    times: int = 2
    until: bool = True
    most: int | None = None


@dataclass(frozen=True)
class Nested(Node):
    program: Program | None = None


@dataclass(frozen=True)
class Agents(Node):
    program: Program | None = None
    size: int = 2
    waits: bool = True


@dataclass(frozen=True)
class Sleep(Node):
    seconds: int = 60


@dataclass(frozen=True)
class Signals(Node):
    names: tuple[str, ...] = ("red",)
    mode: str = "one"
    keyed: bool = True


@dataclass(frozen=True)
class Person(Node):
    kind: str = "approval"
    says_no: bool = False


@dataclass(frozen=True)
class Timeout(Node):
    goes_on: bool = True


@dataclass(frozen=True)
class Program:
    nodes: tuple[Node, ...]
    attempts: int = 3
    undoes_failures: bool = False
    cleans_up: bool = False
    keep: int | None = None
    most_steps: int | None = None
    fused: bool = False
    """Whether consecutive plain steps share a task."""
    repaired: bool = True
    """Whether a person repairs and retries what fails."""


# ---------------------------------------------------------------------------------------------------- handlers


@dataclass
class Environment:
    """What the world does to handlers. Keys are a step's `key`, or (run, step, visit)."""

    repaired: set[tuple[int, str, int]] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    on_call: Callable[[], None] = lambda: None

    def trouble(self, step: Any, node: Node, is_bad: bool = True) -> None:
        """Raises what this call is to fail with."""
        self.calls += 1
        self.on_call()
        if not is_bad:
            return
        if node.broken and (step.workflow_id, step.step, step.visit) not in self.repaired:
            raise DocumentRefused(f"{step.step} is broken")
        seen = self.failures.get(step.key, 0)
        if seen < node.flaky:
            self.failures[step.key] = seen + 1
            raise RuntimeError(f"{step.step} failed {seen + 1} times")


ENVIRONMENT = Environment()


def mix(state: dict[str, Any], name: str, visit: int) -> int:
    return (state.get("seed", 0) * 31 + crc32(name.encode()) + visit) % 10_007


def plain(node: Plain, target: str | None, state: dict[str, Any], step: Any) -> dict[str, Any]:
    step.tx.write(effect(step))
    ENVIRONMENT.trouble(step, node)
    output = {"seed": mix(state, step.step, step.visit), step.step: step.visit, "last": step.step, "_private": 1}
    return output if target is None else {**output, "_next_step": target}


def branch(node: Group, number: int, state: dict[str, Any], step: Any) -> dict[str, Any]:
    ENVIRONMENT.trouble(step, node, number == node.bad)
    step.tx.write(effect(step))
    return {f"{step.step}_{number}": mix(state, step.branch, step.visit)}


def item(node: Each, state: dict[str, Any], step: Any) -> dict[str, Any]:
    step.tx.write(effect(step))
    ENVIRONMENT.trouble(step, node, step.index in node.bad)
    return {"value": mix(state, f"{step.step}{step.item}", step.visit)}


def reduce_items(name: str, state: dict[str, Any], step: Any) -> dict[str, Any]:
    return {f"{name}_sum": sum(one["value"] for one in state[name]["results"].values())}


def chunks(node: Chunks, state: dict[str, Any], step: Any, stored: list[Any]) -> Iterator[int]:
    for number in range(len(stored), node.count):
        ENVIRONMENT.trouble(step, node, number == node.count - 1)
        yield mix(state, step.step, number)


def join_chunks(name: str, found: list[Any], state: dict[str, Any]) -> dict[str, Any]:
    return {name: found}


def tick(name: str, state: dict[str, Any], step: Any) -> dict[str, Any]:
    ENVIRONMENT.trouble(step, Node())
    return {name: state.get(name, 0) + 1}


def is_round(name: str, times: int, until: bool, state: dict[str, Any]) -> bool:
    return (state[name] % times == 0) == until


def undo(state: dict[str, Any], step: Any) -> None:
    step.tx.write((step.workflow_id, "undo", sorted(state)))
    ENVIRONMENT.on_call()


def clean_up(state: dict[str, Any], step: Any) -> None:
    step.tx.write((step.workflow_id, "clean_up"))


def effect(step: Any) -> tuple[Any, ...]:
    return (step.workflow_id, step.step, step.visit, step.branch if step.index is None else step.index)


# -------------------------------------------------------------------------------------------------- definition


def definition(program: Program, name: str = "root") -> Definition:
    builder = workflow(name).max_attempts(program.attempts)
    if program.undoes_failures:
        builder.compensate_on_failure()
    if program.cleans_up:
        builder.on_cancel(clean_up)
    if program.fused:
        # The steps of a fused task share its tries, and each may be flaky once.
        builder.tasks("fused").max_attempts(MOST_TRIES)
    if program.keep is not None:
        builder.prune_state_after(program.keep)
    if program.most_steps is not None:
        builder.max_transitions(program.most_steps)
    _add(builder, program.nodes, name, "end")
    return builder.then(partial(plain, Plain(), None), name="end").build()


def _add(builder: Builder, nodes: tuple[Node, ...], name: str, after: str) -> None:
    names = [*(f"{name}_{number}" for number in range(len(nodes))), after]
    for number, node in enumerate(nodes):
        own = names[number]
        undoes: dict[str, Any] = {"compensate_with": undo} if node.undo else {}
        match node:
            case Plain(skip=skip):
                target = first_step(nodes, names, min(number + skip + 1, len(nodes))) if skip else None
                builder.then(partial(plain, node, target), name=own, **undoes)
            case Group(branches=count):
                builder.parallel({f"b{one}": partial(branch, node, one) for one in range(count)}, name=own, **undoes)
            case Each():
                reducer = partial(reduce_items, own) if node.reduces else None
                builder.for_each(
                    f"items_{node.size}", partial(item, node), own, node.mode, node.quorum, reducer, own, **undoes
                )  # type: ignore[arg-type]
            case Chunks():
                builder.stream(partial(chunks, node), partial(join_chunks, own), name=own, **undoes)
            case Loop():
                builder.then(partial(tick, f"{own}_count"), name=f"{own}_tick")
                _add(builder, node.body, own, f"{own}_again")
                build = builder.repeat_until if node.until else builder.repeat_while
                condition = partial(is_round, f"{own}_count", node.times, node.until)
                build(f"{own}_tick", condition=condition, max_iterations=node.most, name=f"{own}_again")
            case Nested(program=inner):
                assert inner is not None
                builder.run_workflow(definition(inner, own), name=own, **undoes)
            case Agents(program=inner):
                assert inner is not None
                keys = {"result_key": f"{own}_ids", "name": own}
                builder.start_workflows(f"items_{node.size}", definition(inner, own), **keys, **undoes)  # type: ignore[arg-type]
                if node.waits:
                    builder.wait_for_agents(f"{own}_ids", result_key=f"{own}_all", name=f"{own}_wait")
            case Sleep():
                builder.delay(seconds=node.seconds, name=own)
            case Signals(mode="one"):
                key = {"result_key": own} if node.keyed else {}
                builder.wait_for_signal(node.names[0], name=own, **key, **undoes)
            case Signals():
                builder.wait_for_signals(node.names, mode=node.mode, name=own, result_key=own, **undoes)  # type: ignore[arg-type]
            case Person():
                wait = getattr(builder, f"wait_for_{node.kind}")
                wait(node.kind, name=own, result_key=own, **undoes)
            case Timeout():
                late = {f"{own}_late": True} if node.goes_on else None
                builder.wait_for_signal("never", name=own, timeout=timedelta(hours=1), on_timeout=late)
            case _:
                raise TypeError(node)


def first_step(nodes: tuple[Node, ...], names: list[str], number: int) -> str:
    """The first step that a node becomes; behind the last one, what follows."""
    is_loop = number < len(nodes) and isinstance(nodes[number], Loop)
    return f"{names[number]}_tick" if is_loop else names[number]


def parts(program: Program, name: str = "root") -> tuple[dict[str, Program], dict[str, Node]]:
    """All programs by the name of their definition, and all nodes by the name of their first or only step."""
    programs, nodes = {name: program}, {}

    def look(inside: tuple[Node, ...], name: str) -> None:
        for number, node in enumerate(inside):
            own = f"{name}_{number}"
            nodes[own] = node
            if isinstance(node, Loop):
                look(node.body, own)
            if isinstance(node, Nested | Agents):
                assert node.program is not None
                inner = parts(node.program, own)
                programs.update(inner[0])
                nodes.update(inner[1])

    look(program.nodes, name)
    return programs, nodes


def payload_of(seed: int) -> dict[str, Any]:
    return {"seed": seed} | {f"items_{size}": list(range(size)) for size in range(5)}
