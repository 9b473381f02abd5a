"""What belongs to one step of a run: items of a for_each, dependencies, signals, chunks, compensations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any

from everest.store import json_rows
from everest.store.database import Connection, Statements, last_insert_id, load_queries
from everest.workflow import codec
from everest.workflow.records import Compensation, Item, ItemCounts, Run, Signal, Standing

QUERIES = load_queries("workflow")


class MysqlFanout:
    """The part of `RunStore` below a step; `MysqlRunJobs` adds jobs, `MysqlRunStore` runs and steps."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._together: Statements | None = None

    @contextmanager
    def at_once(self) -> Iterator[None]:
        self._together = statements = Statements(self._conn)
        try:
            yield
        finally:
            self._together = None
        statements.send()

    def _write(self, query: Any, refusal: Exception | None = None, **parameters: Any) -> None:
        """A write whose answer nobody needs: now, or with the others of an `at_once`. One with a refusal (see
        `Statements.add`) is always one of those."""
        if self._together is None:
            query(self._conn, **parameters)
        else:
            self._together.add(query, parameters, refusal)

    # ------------------------------------------------------------------------------------------------- items

    def add_items(self, run: Run, step: str, items: Sequence[Any]) -> None:
        rows = [[index, codec.dumps(item)] for index, item in enumerate(items)]
        for some in json_rows.arrays(rows):
            QUERIES.add_items(self._conn, n=run.n, rows=some, **_visit(run, step))

    def has_items(self, run: Run, step: str) -> bool:
        return QUERIES.has_items(self._conn, **_visit(run, step)) is not None

    def free_items(self, run: Run, step: str, slot: str) -> None:
        QUERIES.free_items(self._conn, slot=slot, n=run.n, failed_n=run.last_failed_n, **_visit(run, step))

    def release_items(self, run: Run, step: str, slot: str) -> None:
        QUERIES.release_items(self._conn, run_id=run.id, step=step, visit=run.visit, slot=slot)

    def reopen_items(self, run: Run, step: str) -> None:
        QUERIES.reopen_items(self._conn, **_visit(run, step))

    def claim_item(self, run_id: int, step: str, visit: int, slot: str, n: int, is_fresh: bool = False) -> Item | None:
        at = {"run_id": run_id, "step": step, "visit": visit}
        row = None if is_fresh else QUERIES.own_item(self._conn, slot=slot, **at)
        row = row or QUERIES.free_item(self._conn, **at)
        if row is None:
            return None
        QUERIES.claim_item(self._conn, id=row["id"], slot=slot, n=n)
        return _item({**row, "status": "running", "attempt": row["attempt"] + 1})

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
        changed: int = QUERIES.finish_item(
            self._conn,
            item_index=index,
            attempt=attempt,
            status=status,
            output=None if output is None else codec.dumps(output),
            error=None if error is None else codec.dumps(error),
            **_visit(run, step),
        )
        return changed == 1

    def others_at_work(self, run: Run, step: str, branch: str) -> bool:
        return bool(QUERIES.others_at_work(self._conn, n=run.n, branch=branch, **_visit(run, step)))

    def all_succeeded(self, run: Run | Standing, step: str) -> bool:
        return not QUERIES.items_left(self._conn, **_visit(run, step))

    def count_items(self, run: Run | Standing, step: str) -> ItemCounts:
        counts = {row["status"]: row["n"] for row in QUERIES.count_items(self._conn, **_visit(run, step))}
        return ItemCounts(sum(counts.values()), counts.get("succeeded", 0), counts.get("failed", 0))

    def items(self, run: Run, step: str) -> list[Item]:
        return [_item(row) for row in QUERIES.all_items(self._conn, **_visit(run, step))]

    def first_success(self, run: Run, step: str) -> int | None:
        found = QUERIES.first_success(self._conn, **_visit(run, step))
        return None if found is None else int(found)

    def add_dependencies(self, run: Run, step: str, depends_on: Sequence[int]) -> None:
        if depends_on:
            rows = [
                {**_visit(run, step), "item_index": index, "depends_on_id": one} for index, one in enumerate(depends_on)
            ]
            QUERIES.add_dependency(self._conn, rows)

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
        QUERIES.add_signal(
            self._conn,
            run_id=run.id,
            name=name,
            payload=codec.dumps(dict(payload)),
            correlation=correlation,
            sent_by=sent_by,
            wait_sequence=sequence,
        )
        return last_insert_id(self._conn)

    def open_signals(self, run: Run, names: Sequence[str]) -> list[Signal]:
        rows = QUERIES.open_signals(self._conn, run_id=run.id, names=list(names))
        return [
            Signal(
                row["id"],
                row["name"],
                codec.loads(row["payload"]) or {},
                row["correlation"],
                row["sent_by"],
                row["created_at"].replace(tzinfo=UTC),
            )
            for row in rows
        ]

    def unread_signals(self, run: Run, name: str | None, most: int) -> int:
        return int(QUERIES.unread_signals(self._conn, run_id=run.id, name=name, most=most))

    def release_signals(self, run: Run, step: str) -> None:
        QUERIES.release_signals(self._conn, **_visit(run, step))

    def consume_signal(self, run: Run, signal_id: int, step: str) -> None:
        QUERIES.consume_signal(self._conn, signal_id=signal_id, step=step, visit=run.visit)

    # ------------------------------------------------------------------------------------------------ chunks

    def add_chunk(self, run: Run, step: str, chunk: Any) -> None:
        QUERIES.add_chunk(self._conn, chunk=codec.dumps(chunk), **_visit(run, step))

    def chunks(self, run_id: int, step: str, visit: int) -> list[Any]:
        return [codec.loads(row["chunk"]) for row in QUERIES.chunks(self._conn, run_id=run_id, step=step, visit=visit)]

    def drop_chunks(self, run: Run, step: str) -> None:
        QUERIES.drop_chunks(self._conn, **_visit(run, step))

    # ----------------------------------------------------------------------------------------- compensations

    def add_compensation(self, run: Run, step: str, handler: str, state: dict[str, Any], first: bool = False) -> None:
        sequence = 0 if first else int(QUERIES.top_compensation(self._conn, run_id=run.id)) + 1
        QUERIES.add_compensation(
            self._conn, sequence=sequence, handler=handler, state=codec.dumps(state), **_visit(run, step)
        )

    def next_compensation(self, run_id: int, lock: bool = True) -> Compensation | None:
        query = QUERIES.lock_next_compensation if lock else QUERIES.next_compensation
        row = query(self._conn, run_id=run_id)
        return None if row is None else _compensation(row)

    def owes_below(self, run_id: int) -> bool:
        return bool(QUERIES.owes_below(self._conn, run_id=run_id))

    def compensations(self, run_id: int) -> list[Compensation]:
        return [_compensation(row) for row in QUERIES.compensations(self._conn, run_id=run_id)]

    def finish_compensation(self, compensation_id: int, status: str, error: dict[str, Any] | None) -> None:
        QUERIES.finish_compensation(
            self._conn, id=compensation_id, status=status, error=None if error is None else codec.dumps(error)
        )


def _visit(run: Run | Standing, step: str) -> dict[str, Any]:
    return {"run_id": run.id, "step": step, "visit": run.visit}


def _item(row: dict[str, Any]) -> Item:
    return Item(
        index=row["item_index"],
        status=row["status"],
        attempt=row["attempt"],
        item=codec.loads(row["item"]),
        output=codec.loads(row["output"]),
        error=codec.loads(row["error"]),
    )


def _compensation(row: dict[str, Any]) -> Compensation:
    return Compensation(**{**row, "state": codec.loads(row["state"]), "error": codec.loads(row["error"])})
