"""What a random program must do, in plain Python: no pointers, no rows, no transactions, no attempts.

The model plays a program in one go, with everything that a person does to it later already known: what is broken fails
once and is repaired, or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.workflow.programs import (
    NAMES,
    Agents,
    Chunks,
    Each,
    Group,
    Loop,
    Nested,
    Node,
    Person,
    Plain,
    Program,
    Signals,
    Sleep,
    Timeout,
    mix,
)

ANY_ITEM = "item"
"""In the place of its index, where the order of a for_each is chance."""


@dataclass
class Expected:
    """What one run must end as. completed: (step, state keys where it has something to undo)."""

    status: str = "running"
    state: dict[str, Any] = field(default_factory=dict)
    effects: list[tuple[Any, ...]] = field(default_factory=list)
    completed: list[tuple[str, list[str] | None]] = field(default_factory=list)
    failed_once: bool = False
    is_compensated: bool = False
    cleans_up: bool = False


class Fails(Exception):
    """The run fails; whether a person can repair it."""

    def __init__(self, repairable: bool) -> None:
        super().__init__()
        self.repairable = repairable


class Model:
    """Plays a program in one go. Runs by path: "" is the root, then "/step.visit.index"."""

    def __init__(self, program: Program, payload: dict[str, Any]) -> None:
        self.runs: dict[str, Expected] = {}
        self.play(program, "root", "", payload)

    def play(self, program: Program, name: str, path: str, payload: dict[str, Any]) -> Expected:
        return _Player(self, program, name, path, payload).run()


class _Player:
    def __init__(self, model: Model, program: Program, name: str, path: str, payload: dict[str, Any]) -> None:
        self.model, self.program, self.name, self.path, self.payload = model, program, name, path, payload
        self.expected = model.runs[path] = Expected(state=dict(payload), cleans_up=program.cleans_up)
        self.visit, self.steps, self.used = 1, 0, 0
        self.writers: dict[str, int] = {}
        self.consumed = dict.fromkeys(NAMES, 0)

    def run(self) -> Expected:
        expected = self.expected
        try:
            self.body(self.program.nodes, self.name)
            self.plain("end", Plain())
            expected.status = "completed"
        except Fails:
            expected.status, expected.failed_once = "failed", True
        expected.is_compensated = expected.status == "failed" and self.owes()
        return expected

    def owes(self) -> bool:
        return self.program.undoes_failures and any(keys is not None for _, keys in self.expected.completed)

    def fails_once(self) -> None:
        """A failure that a person may repair and retry; not once it was compensated."""
        self.expected.failed_once = True
        if not self.program.repaired or self.owes():
            raise Fails(True)
        self.used = 0

    def breaks_budget(self) -> bool:
        """Whether one step more is too many; who then retries has as many again."""
        return self.program.most_steps is not None and self.used + 1 > self.program.most_steps

    def merge(self, output: dict[str, Any]) -> None:
        self.expected.state.update(output)
        self.writers.update(dict.fromkeys(output, self.steps))

    def done(self, step: str, node: Node, output: dict[str, Any], effects: list[tuple[Any, ...]]) -> None:
        """The step's commit: all of it or, where a budget breaks, nothing."""
        if self.breaks_budget():
            self.fails_once()
        self.merge(output)
        if self.program.keep is not None:
            for key in [key for key, written in self.writers.items() if written <= self.steps - self.program.keep]:
                del self.writers[key]
                if key not in self.payload:
                    self.expected.state.pop(key, None)
        self.steps += 1
        self.used += 1
        self.expected.effects += effects
        self.expected.completed.append((step, sorted(self.expected.state) if node.undo else None))

    def body(self, nodes: tuple[Node, ...], name: str) -> None:
        number = 0
        while number < len(nodes):
            node, own = nodes[number], f"{name}_{number}"
            getattr(self, type(node).__name__.lower())(own, node)
            number += 1 + getattr(node, "skip", 0)

    # ------------------------------------------------------------------------------------------------- nodes

    def plain(self, own: str, node: Plain) -> None:
        if node.broken:
            self.fails_once()
        output = {"seed": mix(self.expected.state, own, self.visit), own: self.visit, "last": own}
        self.done(own, node, output, [(own, self.visit, "")])

    def group(self, own: str, node: Group) -> None:
        for number in range(node.branches):
            if node.broken and number == node.bad:
                self.fails_once()
            output = {f"{own}_{number}": mix(self.expected.state, f"b{number}", self.visit)}
            effects = [(own, self.visit, f"b{number}")]
            if number == node.branches - 1:
                if self.breaks_budget():
                    self.fails_once()
                self.merge(output)
                self.done(own, node, {}, effects)
            else:
                self.merge(output)
                self.expected.effects += effects

    def each(self, own: str, node: Each) -> None:
        if (node.mode != "all" and node.size == 0) or (node.quorum or 0) > node.size:
            raise Fails(False)
        needed = {"all": node.size, "first_success": 1}.get(node.mode, node.quorum or 1)
        order: list[int] = []
        failed: list[int] = []
        is_repaired = False
        effects: list[tuple[Any, ...]] = []
        while len(order) < needed or self.breaks_budget():
            if len(order) == needed:
                self.fails_once()  # what settled it is taken back, and what had failed before is tried again, too
                order, effects, failed, is_repaired = order[:-1], [], [], True
                continue
            self.expected.effects += effects
            effects = []
            at = next(one for one in range(node.size) if one not in order and one not in failed)
            if node.broken and at in node.bad and not is_repaired:
                failed.append(at)
                if node.size - len(failed) < needed:
                    self.fails_once()
                    is_repaired, failed = True, []
                continue
            order.append(at)
            effects = [(own, self.visit, ANY_ITEM if node.flaky else at)]
        results = {str(at): {"value": mix(self.expected.state, f"{own}{at}", self.visit)} for at in sorted(order)}
        aggregate = {
            "mode": node.mode,
            "total": node.size,
            "succeeded": len(order),
            "failed": len(failed),
            "winner": order[0] if order and not node.flaky else None,
            "results": results,
            "failures": sorted(map(str, failed)),
        }
        output = {own: aggregate}
        if node.reduces and node.size:
            output[f"{own}_sum"] = sum(one["value"] for one in results.values())
        self.done(own, node, output, effects)

    def chunks(self, own: str, node: Chunks) -> None:
        if node.broken and node.count:
            self.fails_once()
        self.done(own, node, {own: [mix(self.expected.state, own, number) for number in range(node.count)]}, [])

    def loop(self, own: str, node: Loop) -> None:
        for turn in range(1, node.times + 1):
            count = f"{own}_count"
            self.done(f"{own}_tick", Node(), {count: self.expected.state.get(count, 0) + 1}, [])
            self.body(node.body, own)
            goes_back = (self.expected.state[count] % node.times == 0) is False
            if goes_back and node.most is not None and turn > node.most:
                raise Fails(False)
            self.done(f"{own}_again", Node(), {}, [])
            self.visit += goes_back

    def nested(self, own: str, node: Nested) -> None:
        assert node.program is not None
        child = self.model.play(node.program, own, f"{self.path}/{own}.{self.visit}", dict(self.expected.state))
        if child.failed_once:
            self.fails_once()
        if child.status == "failed":
            raise Fails(False)
        self.done(own, node, dict(child.state), [])

    def agents(self, own: str, node: Agents) -> None:
        assert node.program is not None
        state = dict(self.expected.state)
        paths = [f"{self.path}/{own}.{self.visit}.{index}" for index in range(node.size)]
        self.done(own, node, {f"{own}_ids": paths}, [])
        children = [
            self.model.play(node.program, own, path, {**state, "item": index, "start_item_index": index})
            for index, path in enumerate(paths)
        ]
        if not node.waits:
            return
        if any(child.failed_once for child in children):
            self.fails_once()
        if any(child.status == "failed" for child in children):
            raise Fails(False)
        results = {path: dict(child.state) for path, child in zip(paths, children, strict=True)}
        self.done(f"{own}_wait", Node(), {f"{own}_all": results}, [])

    def sleep(self, own: str, node: Sleep) -> None:
        self.done(own, node, {}, [])

    def signals(self, own: str, node: Signals) -> None:
        names = node.names[:1] if node.mode == "one" else node.names
        if node.mode == "any":
            names = (min(names, key=lambda name: (self.consumed[name], NAMES.index(name))),)
        got = {}
        for name in names:
            self.consumed[name] += 1
            got[name] = {name: self.consumed[name]}
        value = got[names[0]] if node.mode == "one" else got
        self.done(own, node, {own: value} if node.keyed or node.mode != "one" else value, [])

    def person(self, own: str, node: Person) -> None:
        if node.kind == "approval" and node.says_no:
            self.fails_once()
        is_asked_again = self.breaks_budget()
        if is_asked_again:
            self.fails_once()
        if node.kind == "input":
            output: dict[str, Any] = {"answer": self.visit}
        else:
            no = node.kind == "decision" and node.says_no and not is_asked_again
            outcome = "rejected" if no else "approved"
            output = {"outcome": outcome, "signal": node.kind, "by": "ann", "reason": "no" if no else None, "data": {}}
        self.done(own, node, {own: output}, [])

    def timeout(self, own: str, node: Timeout) -> None:
        if not node.goes_on:
            raise Fails(False)
        self.done(own, node, {f"{own}_late": True}, [])
