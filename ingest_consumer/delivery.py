"""One delivery, from arrival to ack or rejection: the consumer table and the waiting rule of the state protocol.

A state machine that never sleeps: `advance` looks once and returns, so that the worker can serve heartbeats between
two looks. Every look begins by reading the row, because the row decides; whatever was lost on the way (a connection
in mid-commit, an answer of Airflow) is found there again. Nothing here knows AMQP.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingest_consumer import by_hand, logs, notes, shadow
from ingest_consumer.airflow_api import AirflowApi, DagState, run_link
from ingest_consumer.dag_gate import DAG_STATE_TTL_S, DagGate
from ingest_consumer.database import Database
from ingest_consumer.errors import AirflowRefused, AirflowUnavailable, DecodeError, RerunRefused
from ingest_consumer.message import Message, announces_same_run, decode, known_ids, mismatch
from ingest_consumer.pauses import Backoff, Complaints
from ingest_consumer.rejection import DEATHS
from ingest_consumer.settings import Settings
from ingest_consumer.shadow import OPNAME_POSTING, OUR_LETTER, Shadow
from ingest_consumer.verdict import Outcome, Verdict, stages

log = logging.getLogger(__name__)

DEAD_LETTER_HEADERS = (DEATHS, OUR_LETTER)
"""What a delivery carries that has been in the dead-letter queue: the broker's mark, and ours."""
MOVED_BACK_BY = "dead-letter queue"
"""The actor in the audit log when a person moved a letter back with the broker's own tools."""
OWN_LOOK_S = 1.0
"""While a run is at work: a delivery looks so often by itself, and at once when the watch wakes it."""
REFUSED_PAUSE_S = 60.0
LEFT_PAUSE_S = 1.0
"""Before a message goes back to the queue for another program: long enough that two idle ones do not throw it to and
fro, and nothing beside the seconds that a document takes."""


@dataclass(frozen=True)
class Means:
    """What a worker lends its deliveries."""

    database: Database
    api: AirflowApi
    gate: DagGate
    settings: Settings
    complaints: Complaints
    clock: Callable[[], float]


class Delivery:
    """`wait_s` tells the worker how long `advance` has no reason to be called again."""

    def __init__(self, body: bytes, headers: dict[str, Any], redelivered: bool, means: Means) -> None:
        self._body = body
        self._was_dead = any(name in headers for name in DEAD_LETTER_HEADERS)
        self._redelivered = redelivered
        self._means = means
        self._message: Message | None = None
        self._run: tuple[str, str] | None = None  # (dag_id, dag_run_id) once the run is ours to wait for
        self._claimed = False  # by this delivery: then it knows when the job went to work
        self._claimed_at: datetime | None = None
        self.ids: dict[str, Any] = {}
        """Of its job, for the log."""
        self._triggered = False
        self._nota_told = False
        # an earlier CAS for the dead letter may have committed without anybody rejecting: then reject in any case
        self._may_owe_letter = redelivered or self._was_dead
        self._received_at = means.clock()
        self._not_before = 0.0
        self._is_left = False
        self._backoff = Backoff(means.settings.retry_max)

    @property
    def wait_s(self) -> float:
        return max(0.0, self._not_before - self._means.clock())

    @property
    def waits_for(self) -> tuple[int, str] | None:
        """The shadow row and the run whose end it waits for, once that is triggered."""
        if self._message is None or self._run is None or not self._triggered:
            return None
        return self._message.shadow_id, self._run[1]

    def look_now(self) -> None:
        """What it waits for is over, somebody says: the next look is due."""
        self._not_before = 0.0

    @property
    def has_a_run(self) -> bool:
        """Whether it waits for the end of a DAG run."""
        return self._run is not None

    def advance(self) -> Verdict | None:
        """One look. None = still held. Raises what the database raises; Airflow's troubles stay inside."""
        if self._message is None:
            try:
                self._message = decode(self._body)
            except DecodeError as error:
                return Verdict(Outcome.REJECT, error.message)
        row = self._read(self._message)
        self.ids = known_ids(self._message, row)
        with logs.about(**self.ids):
            return self._look(self._message, row)

    def _look(self, message: Message, row: Shadow | None) -> Verdict | None:
        try:
            return self._wait(message, row) if self._run else self._decide(message, row)
        except AirflowUnavailable as error:
            self._means.complaints.say("Airflow", error.message)
            self.pause(self._backoff.next_s())
        except AirflowRefused as error:
            self._means.complaints.say("Airflow", f"OUR BUG, please report: {error.message}", logging.ERROR)
            self.pause(REFUSED_PAUSE_S)
        return self._beyond_hold_limit(message)

    def last_look(self) -> Verdict | None:
        """Before the worker stops: the verdict if the run is over, None to give the delivery back."""
        if self._message is None or self._run is None:
            return None
        row = self._read(self._message)
        return None if self._is_at_work(row) else self._settle(row)

    def _read(self, message: Message) -> Shadow | None:
        """The row; a status that somebody wrote in a spelling of their own is put right first, for everybody."""
        with self._means.database.transaction() as conn:
            row = shadow.get(conn, message.shadow_id)
            return row if row is None or mismatch(message, row) else shadow.respelled(conn, row)

    def pause(self, seconds: float) -> None:
        self._not_before = self._means.clock() + seconds

    def doubt(self) -> None:
        """A database error may have swallowed a commit: from here a lost race for the dead letter proves nothing."""
        self._may_owe_letter = True

    def _decide(self, message: Message, row: Shadow | None) -> Verdict | None:
        """The consumer table, row by row."""
        wrong = mismatch(message, row)
        if wrong or row is None:
            return Verdict(Outcome.REJECT, wrong or "no shadow row")
        if message.nota not in (None, row.nomer_nota) and not self._nota_told:
            self._nota_told = True
            log.warning("shadow row %s is nota %a, the message says %a", row.id, row.nomer_nota, message.nota)
        if row.worker_status == "PENDING":
            return self._pending(message, row)
        if row.worker_status == "PROCESSING":
            if row.dag_run_id is None:
                return Verdict(Outcome.ACK, f"another program is at work on shadow row {row.id}")
            if not announces_same_run(message, row):
                return Verdict(Outcome.ACK, f"stale duplicate: {row.dag_run_id} owns shadow row {row.id}")
            self._run = (row.dag_id or OPNAME_POSTING, row.dag_run_id)
            return None
        if row.needs_dead_letter:
            return self._failed(row)
        return Verdict(Outcome.ACK, f"shadow row {row.id} is {row.worker_status}")

    def _pending(self, message: Message, row: Shadow) -> Verdict | None:
        # A row without a run stands at its first one. What names another outlived a row that went back in time
        # (decision 0045); the row stays PENDING, and the reconciler sends the message that fits it.
        run_id = row.dag_run_id or shadow.dag_run_id(OPNAME_POSTING, row.transaksi_id, row.workflow_id, row.id, 1)
        if not announces_same_run(message, row) or message.dag_run_id not in (None, run_id):
            return Verdict(Outcome.ACK, f"stale duplicate: shadow row {row.id} announces {run_id}")
        if row.dag_run_id is None and not self._means.settings.takes_foreign_jobs:
            return self._leave(row)
        dag_id = row.dag_id or message.dag_id or OPNAME_POSTING
        state = self._means.gate.state(dag_id, self._means.clock())
        self._airflow_answered()
        if state is not DagState.READY:
            return self._wait_for_dag(message, dag_id, state)
        self._means.complaints.over(f"DAG {dag_id}")
        with self._means.database.transaction() as conn:
            won = shadow.claim(conn, row.id, row.dag_run_id, dag_id, run_id, row.n or message.n)
        if won:
            self._run, self._claimed = (dag_id, run_id), True
        return None  # won or lost: the next look reads the row again

    def _leave(self, row: Shadow) -> Verdict | None:
        """A job that nobody has begun, on a site where the older worker begins them (decision 0043)."""
        if self._is_left:
            return Verdict(Outcome.PUT_BACK, f"shadow row {row.id} is left to another program")
        self._is_left = True
        self.pause(LEFT_PAUSE_S)
        return None

    def _wait_for_dag(self, message: Message, dag_id: str, state: DagState) -> Verdict | None:
        """Before the CAS: a run of a paused DAG would stay queued for ever, so the message waits instead of the row."""
        settings, now = self._means.settings, self._means.clock()
        self._means.complaints.say(
            f"DAG {dag_id}", f"DAG {dag_id} IS {state.name}: its documents wait, nobody posts them", logging.ERROR
        )
        if self._means.gate.not_ready_s(dag_id, now) < settings.dag_wait.total_seconds():
            self.pause(min(DAG_STATE_TTL_S, settings.dag_wait.total_seconds()))
            return None
        return self._postpone(message, f"DAG {dag_id} is {state.name}")

    def _wait(self, message: Message, row: Shadow | None) -> Verdict | None:
        """The waiting rule: read the row until its run is over or no longer ours; trigger first, as often as needed."""
        assert self._run is not None
        if row is None or not self._is_at_work(row):
            return self._settle(row)
        if self._claimed and self._claimed_at is None:
            self._claimed_at = row.worker_at  # nothing has triggered the run yet, so nobody else wrote the row
        if not self._triggered:
            dag_id, run_id = self._run
            ids: dict[str, Any] = {
                "shadow_id": row.id,
                "workflow_id": row.workflow_id,
                "transaksi_id": row.transaksi_id,
            }
            ids |= {"n": row.n or message.n, "nota": row.nomer_nota}  # the nota for the lines of the tasks' logs
            conf = {key: value for key, value in ids.items() if value is not None}
            answer = self._means.api.trigger(dag_id, run_id, conf)
            self._triggered = True
            self._airflow_answered()
            log.info("shadow row %s: run %s %s", row.id, run_id, answer.value)
        self.pause(OWN_LOOK_S)
        return self._beyond_hold_limit(message)

    def _settle(self, row: Shadow | None) -> Verdict:
        """The run is over, or the row went on to another run."""
        assert self._run is not None
        dag_id, run_id = self._run
        if row is None:
            return Verdict(Outcome.REJECT, "the shadow row disappeared while its run was at work")
        if row.dag_run_id != run_id:
            # Parked, or gone back: a person who looks at this green run finds why it ended and where it goes on.
            cause = f"WAITING: {row.reason}; " if row.worker_status == "WAITING" else ""
            why = f"shadow row {row.id} went on to {row.dag_run_id}"
            onward = run_link(row.dag_id or dag_id, row.dag_run_id) if row.dag_run_id else "no run yet"
            goes_on = self._note(f"{cause}goes on in {onward}", row)
            return Verdict(Outcome.ACK, why, dag_id, run_id, goes_on, stages=stages(row, self._claimed_at))
        why = f"shadow row {row.id} is {row.worker_status}"
        if row.meant_status is None:
            return Verdict(Outcome.REJECT, f"{why}, which is none of ours", dag_id, run_id)
        told = f"{row.worker_status}: {row.reason}" if row.worker_status in ("FAILED", "WAITING") else None
        note = self._note(told, row)
        if not row.needs_dead_letter:
            return Verdict(Outcome.ACK, why, dag_id, run_id, note, stages=stages(row, self._claimed_at))
        with self._means.database.transaction() as conn:
            won = shadow.mark_dead_lettered(conn, row.id, run_id)
        outcome = Outcome.REJECT if won or self._may_owe_letter else Outcome.ACK
        return Verdict(outcome, f"{why}: {row.reason}", dag_id, run_id, note, stages=stages(row, self._claimed_at))

    def _note(self, told: str | None, row: Shadow) -> str | None:
        assert self._run is not None
        with self._means.database.transaction() as conn:
            return notes.joined(told, notes.way_back(*self._run), notes.relatives(conn, row, self._claimed_at))

    def _failed(self, row: Shadow) -> Verdict | None:
        """FAILED on arrival: the rejection a crash prevented, or a letter that a person moved back to run it again."""
        if self._redelivered or not self._was_dead:
            with self._means.database.transaction() as conn:
                shadow.mark_dead_lettered(conn, row.id, row.dag_run_id)
            # in any case: the crash may have come between that mark and the rejection
            return Verdict(Outcome.REJECT, f"shadow row {row.id} is FAILED: {row.reason}")
        try:
            with self._means.database.transaction() as conn:
                run_id = by_hand.rerun(conn, row.id, MOVED_BACK_BY, "moved back to the queue by hand")
        except RerunRefused as refusal:
            if refusal.status == "FAILED":
                return Verdict(Outcome.REJECT, f"cannot be run again: {refusal.message}")
            self.pause(OWN_LOOK_S)
            return None  # it changed between the two looks; look again
        return Verdict(Outcome.ACK, f"shadow row {row.id} runs again as {run_id}")

    def _beyond_hold_limit(self, message: Message) -> Verdict | None:
        """Held too long: the reconciler answers for a run at work, the outbox for a message that found no Airflow."""
        if self._means.clock() - self._received_at < self._means.settings.hold_limit.total_seconds():
            return None
        if self._run is None:
            return self._postpone(message, "Airflow did not answer within the hold limit")
        run_id = self._run[1]
        with self._means.database.transaction() as conn:
            handed_over = shadow.hand_over(conn, message.shadow_id, run_id, message.text)
        return (
            Verdict(Outcome.ACK, f"hold limit: {run_id} handed over to the reconciler", ended="handed_over")
            if handed_over
            else None
        )

    def _postpone(self, message: Message, why: str) -> Verdict:
        seconds = int(self._means.settings.dag_postpone.total_seconds())
        with self._means.database.transaction() as conn:
            shadow.postpone(conn, message.text, message.shadow_id, seconds)
        log.warning("shadow row %s: POSTPONED by %s s: %s", message.shadow_id, seconds, why)
        return Verdict(Outcome.ACK, f"shadow row {message.shadow_id} postponed: {why}", ended="postponed")

    def _is_at_work(self, row: Shadow | None) -> bool:
        if row is None or self._run is None:
            return False
        return row.worker_status == "PROCESSING" and row.dag_run_id == self._run[1]

    def _airflow_answered(self) -> None:
        self._backoff.reset()
        self._means.complaints.over("Airflow")
