"""A world that treats a program badly: commits that are lost, answers that are lost, processes that die, tasks that run
twice, messages that come again, pauses, signals at any time, a cancel. Everything it does follows from its seed.

What a person, the consumer and the reconciler do afterwards is done here, too, until nothing is left to do; then every
run must be what the model says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Literal

from everest.errors import Conflict, EverestError, TransientDatabaseError
from everest.workflow import again, control, engine, pointer, waits
from everest.workflow import definition as d
from everest.workflow.definition import Definition
from everest.workflow.inline import Inline
from everest.workflow.memory_tables import Message
from everest.workflow.records import FINAL, WAITING, Run
from everest.workflow.ticket import Fenced, Go, StepContext, Ticket
from tests.workflow import programs
from tests.workflow.model import ANY_ITEM, Expected, Model
from tests.workflow.programs import NAMES, Program

Fault = Literal["lost commit", "lost answer", "died before", "died after"]
FAULTS: tuple[Fault, ...] = ("lost commit", "lost answer", "died before", "died after")
MOST_IN_A_ROW = 2
"""Fewer than a step's transient tries: a step that gives up is another story."""
MOST_FAULTS = 60
MOST_RETRIES = 12
"""Of one failed step by hand: more than nested runs have approvals to be refused and budgets to break, and than faults
that spoil one."""
MOST_ACTIONS = 3_000


class Died(BaseException):
    """The process is gone, at this very point."""


class Chaos(Inline):
    """rate: of faults per commit, handler call and pause between two tasks. plan: faults by the number of the commit,
    instead of random ones."""

    def __init__(
        self,
        program: Program,
        seed: int = 0,
        rate: float = 0.0,
        plan: Mapping[int, Fault] | None = None,
        cancels: bool = False,
    ) -> None:
        self.root = programs.definition(program)
        super().__init__(self.root)
        self.program, self.rate, self.plan, self.cancels = program, rate, plan, cancels
        self.rng = Random(seed)
        self.payload = programs.payload_of(seed % 1000)
        self.programs, self.nodes = programs.parts(program)
        self.commits = self.faults = self.in_a_row = self.actions = self.depth = 0
        self.fault: Fault | None = None
        self.is_committed = False
        self.sent: dict[int, int] = {}
        self.retried: dict[tuple[int, str, int], int] = {}
        self.environment = programs.ENVIRONMENT
        self.environment.__init__()  # type: ignore[misc]
        self.environment.on_call = self._on_call
        self.database.before_commit, self.database.after_commit = self._before, self._after

    # ------------------------------------------------------------------------------------------------ faults

    def _draw(self) -> Fault | None:
        if self.plan is not None:
            return self.plan.get(self.commits)
        is_bad = self.faults < MOST_FAULTS and self.in_a_row < MOST_IN_A_ROW and self.rng.random() < self.rate
        self.in_a_row = self.in_a_row + 1 if is_bad else 0
        return self.rng.choice(FAULTS) if is_bad else None

    def _before(self) -> None:
        self.commits += 1
        self.fault, self.is_committed = self._draw(), False
        self.faults += self.fault is not None
        if self.fault == "lost commit":
            raise TransientDatabaseError("server has gone away", 2006)
        if self.fault == "died before":
            raise Died

    def _after(self) -> None:
        self.is_committed = True
        if self.fault == "lost answer":
            raise TransientDatabaseError("lost connection during COMMIT", 2013)
        if self.fault == "died after":
            raise Died

    def _on_call(self) -> None:
        if self.plan is None and self.faults < MOST_FAULTS and self.rng.random() < self.rate / 2:
            self.faults += 1
            raise Died if self.rng.random() < 0.5 else TransientDatabaseError("deadlock", 1213)

    def act(self, action: Callable[[Any], Any]) -> bool:
        """One transaction of somebody. Whether it is committed, whatever became of the answer."""
        self.is_committed = False
        try:
            with self.database.transaction() as tx:
                action(tx)
        except (Conflict, TransientDatabaseError, Died):
            pass
        return self.is_committed

    def persist(self, action: Callable[[], Any]) -> Any:
        """What is done again until it is done: the reconciler's rounds, a person who repeats a command."""
        while True:
            try:
                return action()
            except (TransientDatabaseError, Died):
                continue

    # --------------------------------------------------------------------------------------------- the world

    def play(self) -> None:
        while not self.act(lambda tx: control.dispatch(tx, self.root, self.payload)):
            pass
        while self.step() or self.settle():
            self.actions += 1
            assert self.actions < MOST_ACTIONS, "the world does not come to rest"

    def runs(self) -> list[Run]:
        return list(self.database.tables.runs.values())

    def step(self) -> bool:
        """A message that is due, any of them, reaches its DAG run."""
        due = [one for one in self.database.tables.outbox if not one.sent and one.due_at <= self.database.now]
        if not due:
            return False
        message = self.rng.choice(due)
        message.sent = True
        self.dag_run(message)
        return True

    def dag_run(self, message: Message) -> None:
        for _ in range(3):
            try:
                return super().dag_run(message)
            except (Died, TransientDatabaseError):
                if self.rng.random() < 0.5:
                    return None  # the reconciler finds a dead DAG run
        return None

    def _task(self, definition: Definition, ticket: Ticket, steps: list[str], branch: str) -> bool:
        self._between()
        ghost = self._begin_twice(definition, ticket, self.rng.choice(steps), branch)
        goes_on = super()._task(definition, ticket, steps, branch)
        ghost()
        return goes_on

    def _begin_twice(self, definition: Definition, ticket: Ticket, step: str, branch: str) -> Callable[[], None]:
        """A copy of the task that begins first and comes to its commit last."""
        is_plain = isinstance(definition.step(step), d.Then | d.Parallel)
        if self.plan is not None or not is_plain or self.rng.random() > self.rate:
            return lambda: None
        with self.database.transaction() as tx:
            start = engine.begin(tx, definition, ticket, step, branch)
        if not isinstance(start, Go):
            return lambda: None

        def settle() -> None:
            token = start.token
            try:
                with self.database.transaction() as tx:
                    context = StepContext(
                        tx, token.run_id, step, token.visit, token.attempt, ticket.shadow_id, token.dag_run_id,
                        token.n, branch,
                    )  # fmt: skip
                    output = engine.handler_of(definition.step(step), branch)(dict(start.state), context)
                    engine.settle(tx, definition, token, output)
            except (Fenced, EverestError, RuntimeError):
                pass

        return settle

    def _between(self) -> None:
        """What happens in the world between two tasks."""
        if self.plan is not None or self.rng.random() > 2 * self.rate:
            return
        run = self.rng.choice(self.runs())
        definition = self.definitions[run.workflow]
        match self.rng.randrange(7):
            case 0:
                self.act(lambda tx: control.pause(tx, definition, run.id))
            case 1:
                self.act(lambda tx: control.resume(tx, definition, run.id))
            case 2:
                self.send(run)
            case 3:
                self.answer(run)
            case 4 if self.depth < 2:
                self.depth += 1
                self.step()
                self.depth -= 1
            case 5:
                self.dag_run(self.rng.choice([one for one in self.database.tables.outbox if one.sent]))
            case 6 if self.cancels:
                self.act(lambda tx: control.cancel(tx, self.root, 1, "ann"))

    def send(self, run: Run) -> bool:
        """The next plain signal of its endless row."""
        number = self.sent.get(run.id, 0)
        name, payload = NAMES[number % len(NAMES)], {NAMES[number % len(NAMES)]: number // len(NAMES) + 1}
        definition = self.definitions[run.workflow]
        is_sent = self.act(lambda tx: control.signal(tx, definition, run.id, name, payload))
        self.sent[run.id] = number + is_sent
        return is_sent

    def answer(self, run: Run) -> bool:
        waiting, definition = run.waiting, self.definitions[run.workflow]
        if waiting is None or waiting["kind"] not in ("approval", "decision", "input"):
            return False
        number, node = waiting["sequence"], self.nodes[waiting["step"]]
        says_no = node.says_no and (run.id, waiting["step"], waiting["visit"]) not in self.environment.repaired
        if waiting["kind"] == "input":
            values = {"answer": waiting["visit"]}
            return self.act(lambda tx: control.submit_input(tx, definition, run.id, "ann", values, number))
        if says_no:
            return self.act(lambda tx: control.reject(tx, definition, run.id, "ann", "no", sequence=number))
        return self.act(lambda tx: control.approve(tx, definition, run.id, "ann", sequence=number))

    # ------------------------------------------------------------------------------------- when all is quiet

    def settle(self) -> bool:
        """What must follow sooner or later. Whether there was anything."""
        return any(kind() for kind in (self._resume, self._reconcile, self._let_time_pass, self._serve, self._repair))

    def _resume(self) -> bool:
        paused = [run for run in self.runs() if run.status == "paused"]
        for run in paused:
            self.act(lambda tx, run=run: control.resume(tx, self.definitions[run.workflow], run.id))
        return bool(paused)

    def _reconcile(self) -> bool:
        looked = [self.persist(lambda run=run: self._look_after(run)) for run in self.runs()]
        return any(looked)

    def _look_after(self, run: Run) -> bool:
        if run.compensation == "pending":
            control.compensate_all(self.database.transaction, run.id, self.deployed, again.at_once)
            return True
        if run.status in FINAL or run.status == "failed":
            return False
        with self.database.transaction() as tx:
            run = tx.runs.lock(run.id)
            job = tx.runs.shadow(run.carrier_shadow_id or 0)
            assert job is not None
            is_sent = all(one.sent for one in self.database.tables.outbox if one.run_id == run.id)
            if job.worker_status == "PROCESSING":
                if run.status == "paused":
                    pointer.park(tx, run, pointer.paused())
                else:
                    engine.recover(tx, self.definitions[run.workflow], run, programs.FOR_EVER, "died")
            elif (job.worker_status == "PENDING" and is_sent) or (
                run.wakes_at is not None and run.wakes_at <= tx.now and is_sent and run.status != "paused"
            ):
                tx.runs.enqueue(run)
            else:
                return waits.wake_if_decided(tx, run)
        return True

    def _let_time_pass(self) -> bool:
        times = [one.due_at for one in self.database.tables.outbox if not one.sent]
        if not times:
            return False
        self.database.now = max(self.database.now, *times[:1], min(times)) + timedelta(seconds=1)
        return True

    def _serve(self) -> bool:
        """People answer, signals come, failed compensations are tried again by hand."""
        served = False
        for run in self.runs():
            if run.compensation == "failed":
                definition = self.definitions[run.workflow]
                served |= self.act(lambda tx, one=run, known=definition: control.compensate(tx, known, one.id)) or True
            elif run.status == "waiting_for_signal":
                kind = (run.waiting or {})["kind"]
                self.send(run) if kind == "signal" else self.answer(run)
                served = True
        return served

    def _repair(self) -> bool:
        """A person repairs what failed and retries it, nested runs first."""
        found = False
        for run in sorted(self.runs(), key=lambda one: -one.id):
            place = (run.id, run.current_step or "", run.visit)
            if run.status != "failed" or run.compensation or not self.programs[run.workflow].repaired:
                continue
            if self.retried.get(place, 0) >= MOST_RETRIES:
                continue
            self.environment.repaired.add(place)
            if self.act(lambda tx, run=run: control.retry(tx, self.definitions[run.workflow], run.id)):
                self.retried[place] = self.retried.get(place, 0) + 1
            found = True
        return found

    # ---------------------------------------------------------------------------------------------- the end

    def path(self, run_id: int) -> str:
        """A run's place in the program: its key says which step of which run began it."""
        key = self.database.tables.runs[run_id].idempotency_key
        if key is None:
            return ""
        parent, *place = key.split(":")
        return f"{self.path(int(parent))}/{'.'.join(place)}"

    def told(self, value: Any, key: str = "") -> Any:
        """A state as the model writes it: paths for ids, no instants, failures by index."""
        if key.endswith("_ids"):
            return [self.path(one) for one in value]
        if key.endswith("_all") and isinstance(value, dict):
            return {self.path(int(one)): self.told(inner) for one, inner in value.items()}
        if key == "failures":
            return sorted(value)
        if isinstance(value, dict):
            if self._is_in_any_order(key) and "winner" in value:
                value = {**value, "winner": None}
            return {
                name: self.told(inner, name)
                for name, inner in value.items()
                if (name, "outcome" in value) != ("at", True)
            }
        return value

    def check(self) -> None:
        model = Model(self.program, self.payload)
        runs = {self.path(run.id): run for run in self.runs()}
        is_cancelled = runs[""].status == "cancelled"
        assert runs.keys() <= model.runs.keys()
        assert is_cancelled or runs.keys() == model.runs.keys()
        for path, run in runs.items():
            if run.status == "cancelled":
                assert is_cancelled
                self._check_cancelled(run, model.runs[path])
            else:
                self._check_ended(run, model.runs[path])
            self._check_rest(run)

    def _effects(self, run: Run) -> tuple[list[Any], list[Any], bool]:
        mine = [one[1:] for one in self.database.tables.effects if one[0] == run.id]
        undone = [one[1] for one in mine if one[0] == "undo"]
        done = [one for one in mine if one[0] not in ("undo", "clean_up")]
        told = [(*one[:2], ANY_ITEM) if self._is_in_any_order(one[0]) else one for one in done]
        return told, undone, mine[-1:] == [("clean_up",)]

    def _is_in_any_order(self, step: str) -> bool:
        node = self.nodes.get(step)
        return isinstance(node, programs.Each) and node.flaky > 0

    def _completed(self, run: Run) -> list[str]:
        events = (one for one in self.database.tables.events if (one["run"], one["event"]) == (run.id, "completed"))
        return [one["step"] for one in events]

    def _check_ended(self, run: Run, expected: Expected) -> None:
        effects, undone, _ = self._effects(run)
        assert (run.status, run.error) == (expected.status, run.error)
        assert effects == expected.effects
        assert self._completed(run) == [step for step, _ in expected.completed]
        assert self.told(run.state) == expected.state
        owed = [keys for _, keys in reversed(expected.completed) if keys is not None]
        assert undone == (owed if expected.is_compensated else [])
        assert run.compensation == ("done" if expected.is_compensated else None)

    def _check_cancelled(self, run: Run, expected: Expected) -> None:
        effects, undone, is_clean = self._effects(run)
        completed = self._completed(run)
        assert effects == expected.effects[: len(effects)]
        assert completed == [step for step, _ in expected.completed[: len(completed)]]
        assert undone == [keys for _, keys in reversed(expected.completed[: len(completed)]) if keys is not None]
        assert is_clean == expected.cleans_up

    def _check_rest(self, run: Run) -> None:
        """Nothing is left behind."""
        job = self.database.tables.shadows[run.carrier_shadow_id or 0]
        assert job["worker_status"] == run.status.upper()
        assert run.status not in WAITING
        assert [one for one in self.database.tables.outbox if one.run_id == run.id and not one.sent] == []
        if run.status == "completed":
            assert not any(chunks for key, chunks in self.database.tables.chunks.items() if key[0] == run.id)
