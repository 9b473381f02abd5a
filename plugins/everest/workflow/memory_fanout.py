"""The store in memory, its part for items, signals, chunks and compensations (in MySQL: `everest.store.fanout`)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from everest.workflow.memory_tables import Tables, plain
from everest.workflow.records import Compensation, Item, ItemCounts, Run, Signal, Standing


class MemoryFanout:
    """The part of `RunStore` below a step; `MemoryRunJobs` adds jobs, `MemoryRunStore` runs and steps."""

    def __init__(self, tables: Tables, now: datetime) -> None:
        self._t, self._now = tables, now

    # ------------------------------------------------------------------------------------------------- items

    def _items(self, run: Run | Standing, step: str) -> dict[int, dict[str, Any]]:
        return self._t.items.setdefault((run.id, step, run.visit), {})

    def add_items(self, run: Run, step: str, items: Sequence[Any]) -> None:
        for index, item in enumerate(items):
            self._items(run, step)[index] = {
                "index": index, "status": "pending", "attempt": 0, "item": plain(item), "output": None, "error": None,
                "slot": None, "n": run.n, "order": 0,
            }  # fmt: skip

    def has_items(self, run: Run, step: str) -> bool:
        return bool(self._t.items.get((run.id, step, run.visit)))

    def free_items(self, run: Run, step: str, slot: str) -> None:
        for one in self._items(run, step).values():
            is_left = one["status"] == "running" and one["slot"] == slot
            if is_left or one["n"] < {"failed": run.last_failed_n + 1, "succeeded": 0}.get(one["status"], run.n):
                one |= {"status": "pending", "slot": None}

    def release_items(self, run: Run, step: str, slot: str) -> None:
        for one in self._items(run, step).values():
            if one["status"] == "pending" and one["slot"] == slot:
                one["slot"] = None

    def reopen_items(self, run: Run, step: str) -> None:
        for one in self._items(run, step).values():
            if one["status"] != "succeeded":
                one |= {"status": "pending", "slot": None}

    def claim_item(self, run_id: int, step: str, visit: int, slot: str, n: int, is_fresh: bool = False) -> Item | None:
        for one in self._t.items.get((run_id, step, visit), {}).values():
            is_free = one["status"] == "pending" and one["slot"] is None
            if is_free or (not is_fresh and one["status"] in ("pending", "running") and one["slot"] == slot):
                one |= {"status": "running", "attempt": one["attempt"] + 1, "slot": slot, "n": n}
                return _item(one)
        return None

    def finish_item(
        self,
        run: Run | Standing,
        step: str,
        index: int,
        attempt: int,
        status: str,
        output: Any,
        error: dict[str, Any] | None,
    ) -> bool:
        held = self._items(run, step).get(index)
        if held is None or (held["status"], held["attempt"]) != ("running", attempt):
            return False
        order = 1 + max(one["order"] for one in self._items(run, step).values())
        self._items(run, step)[index] |= {"status": status, "output": plain(output), "error": error, "order": order}
        return True

    def all_succeeded(self, run: Run | Standing, step: str) -> bool:
        return all(one["status"] == "succeeded" for one in self._items(run, step).values())

    def count_items(self, run: Run | Standing, step: str) -> ItemCounts:
        statuses = [one["status"] for one in self._items(run, step).values()]
        return ItemCounts(len(statuses), statuses.count("succeeded"), statuses.count("failed"))

    def items(self, run: Run, step: str) -> list[Item]:
        return [_item(one) for one in self._items(run, step).values()]

    def first_success(self, run: Run, step: str) -> int | None:
        done = [one for one in self._items(run, step).values() if one["status"] == "succeeded"]
        return min(done, key=lambda one: int(one["order"]))["index"] if done else None

    def add_dependencies(self, run: Run, step: str, depends_on: Sequence[int]) -> None:
        self._t.dependencies[run.id, step, run.visit] = list(depends_on)

    # ----------------------------------------------------------------------------------------------- signals

    def add_signal(
        self,
        run: Run,
        name: str,
        payload: Mapping[str, Any],
        correlation: str | None,
        sent_by: str | None,
        sequence: int | None,
    ) -> int:
        signal_id = len(self._t.signals) + 1
        self._t.signals.append(
            {"id": signal_id, "run": run.id, "name": name, "payload": plain(dict(payload)), "sequence": sequence,
             "correlation": correlation, "by": sent_by, "at": self._now, "consumed": None}
        )  # fmt: skip
        return signal_id

    def open_signals(self, run: Run, names: Sequence[str]) -> list[Signal]:
        return [
            Signal(one["id"], one["name"], one["payload"], one["correlation"], one["by"], one["at"])
            for one in self._t.signals
            if one["run"] == run.id and one["name"] in names and one["consumed"] is None and one["sequence"] is None
        ]

    def unread_signals(self, run: Run, name: str | None, most: int) -> int:
        names = {one["name"] for one in self._t.signals} if name is None else {name}
        return min(most, len(self.open_signals(run, sorted(names))))

    def release_signals(self, run: Run, step: str) -> None:
        for one in self._t.signals:
            if one["run"] == run.id and one["consumed"] == (step, run.visit) and one["sequence"] is None:
                one["consumed"] = None

    def consume_signal(self, run: Run, signal_id: int, step: str) -> None:
        self._t.signals[signal_id - 1]["consumed"] = (step, run.visit)

    # ------------------------------------------------------------------------------------------------ chunks

    def add_chunk(self, run: Run, step: str, chunk: Any) -> None:
        self._t.chunks.setdefault((run.id, step, run.visit), []).append(plain(chunk))

    def chunks(self, run_id: int, step: str, visit: int) -> list[Any]:
        return list(self._t.chunks.get((run_id, step, visit), []))

    def drop_chunks(self, run: Run, step: str) -> None:
        self._t.chunks.pop((run.id, step, run.visit), None)

    # ----------------------------------------------------------------------------------------- compensations

    def add_compensation(self, run: Run, step: str, handler: str, state: dict[str, Any], first: bool = False) -> None:
        mine = [one["sequence"] for one in self._t.compensations if one["run"] == run.id]
        self._t.compensations.append(
            {"id": len(self._t.compensations) + 1, "run": run.id, "sequence": 0 if first else max([*mine, 0]) + 1,
             "step": step, "visit": run.visit, "handler": handler, "state": plain(state), "status": "pending",
             "attempts": 0, "error": None}
        )  # fmt: skip

    def next_compensation(self, run_id: int, lock: bool = True) -> Compensation | None:
        todo = [one for one in self.compensations(run_id) if one.status != "done"]
        return max(todo, key=lambda one: one.sequence) if todo else None

    def owes_below(self, run_id: int) -> bool:
        nested = [one for one in self._t.runs.values() if one.parent_id == run_id and one.parent_step is not None]
        return any(one.compensation == "pending" or self.owes_below(one.id) for one in nested)

    def compensations(self, run_id: int) -> list[Compensation]:
        mine = (copy.deepcopy(one) for one in self._t.compensations if one["run"] == run_id)
        return [Compensation(**{key: one[key] for key in one if key != "run"}) for one in mine]

    def finish_compensation(self, compensation_id: int, status: str, error: dict[str, Any] | None) -> None:
        one = self._t.compensations[compensation_id - 1]
        one |= {"status": status, "attempts": one["attempts"] + 1, "error": error}


def _item(one: dict[str, Any]) -> Item:
    return Item(one["index"], one["status"], one["attempt"], copy.deepcopy(one["item"]), one["output"], one["error"])
