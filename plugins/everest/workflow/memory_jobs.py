"""The jobs of a run, in memory: shadow rows, and the messages that announce its DAG runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from everest.errors import DocumentMissing
from everest.workflow.memory_fanout import MemoryFanout
from everest.workflow.memory_tables import Message
from everest.workflow.records import Outcome, Run, ShadowRow, is_other_nota, nota_refused


class MemoryRunJobs(MemoryFanout):
    """The part of `RunStore` that the queue sees; `MemoryRunStore` adds runs and steps."""

    def shadow(self, shadow_id: int, lock: bool = False) -> ShadowRow | None:
        row = self._t.shadows.get(shadow_id)
        names = ("id", "transaksi_id", "nomer_nota", "workflow_id", "worker_status", "dag_run_id", "n")
        return None if row is None else ShadowRow(**{name: row[name] for name in names})

    def insert_shadow(self, run: Run, transaksi_id: int | None, nomer_nota: str | None, payload: str) -> int:
        shadow_id = len(self._t.shadows) + 1
        self._t.shadows[shadow_id] = {
            "id": shadow_id, "transaksi_id": transaksi_id, "nomer_nota": nomer_nota, "workflow_id": run.id,
            "worker_status": "PENDING", "dag_run_id": None, "n": None, "current_step": None, "outcome": None,
        }  # fmt: skip
        return shadow_id

    def link_shadow(self, shadow_id: int, run_id: int) -> None:
        self._t.shadows[shadow_id]["workflow_id"] = run_id

    def set_shadow(self, shadow_id: int, outcome: Outcome, current_step: str | None) -> None:
        row = self._t.shadows[shadow_id]
        if row["worker_status"] not in ("COMPLETED", "CANCELLED"):
            row |= {"worker_status": outcome.worker_status, "outcome": outcome, "current_step": current_step}

    def set_shadows(self, run: Run, outcome: Outcome) -> None:
        for row in self._of(run):
            self.set_shadow(row["id"], outcome, run.current_step)

    def part_strangers(self, run: Run, nota: str | None) -> None:
        carrier = self._t.shadows[run.carrier_shadow_id or 0]
        ended_as = nota or carrier["nomer_nota"]
        for row in self._of(run):
            is_document = row["transaksi_id"] is not None and row["transaksi_id"] == carrier["transaksi_id"]
            is_open = row is not carrier and row["worker_status"] not in ("COMPLETED", "CANCELLED")
            if is_document and is_open and is_other_nota(row["nomer_nota"], ended_as):
                refused = nota_refused(row["transaksi_id"], "COMPLETED", ended_as, row["nomer_nota"])
                self.set_shadow(row["id"], refused, None)
                row["workflow_id"] = None

    def announce(self, run: Run, outcome: Outcome) -> None:
        for row in self._of(run):
            if row["id"] == run.carrier_shadow_id:
                self.set_shadow(row["id"], outcome, run.current_step)
                row |= {"dag_run_id": run.dag_run_id, "n": run.n}
            else:
                self.set_shadow(row["id"], Outcome("WAITING"), run.current_step)

    def _of(self, run: Run) -> list[dict[str, Any]]:
        return [row for row in self._t.shadows.values() if row["workflow_id"] == run.id]

    def dag_run_id(self, run: Run) -> str:
        return f"{run.workflow}__{run.idempotency_key or run.id}__{run.carrier_shadow_id}__{run.n}"

    def enqueue(self, run: Run, available_at: datetime | None = None) -> None:
        if run.carrier_shadow_id is None:
            raise DocumentMissing(f"workflow run {run.id} has no shadow row to carry its message")
        due = available_at or self._now
        self._t.outbox.append(Message(run.id, run.carrier_shadow_id, run.dag_run_id, run.n, due))

    def unsend(self, run: Run) -> None:
        self._t.outbox[:] = [one for one in self._t.outbox if one.run_id != run.id or one.sent]

    def outcome_of(self, run: Run) -> Outcome:
        outcome: Outcome | None = self._t.shadows[run.carrier_shadow_id or 0]["outcome"]
        return outcome or Outcome("FAILED", run.error, run.error_code)

    def audit(self, actor: str, action: str, run: Run, reason: str | None, detail: dict[str, Any] | None) -> None:
        self._t.audit.append({"actor": actor, "action": action, "run": run.id, "reason": reason})
