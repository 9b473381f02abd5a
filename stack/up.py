"""`up`: from whatever is there to a working stack, in order, with a line per step.

The order: the three servers; their accounts and schemas; the API server; scheduler and DAG processor (an API server
that is not ready yet burns tasks' tries); consumer, relay and reconciler. What runs already and has not changed stays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from stack import airflow, manager, ports, processes, servers
from stack.layout import Layout, StackError, write_private
from stack.ports import Ports
from stack.programs import Overrides, Stack
from stack.shape import Shape
from stack.shell import write_env_file
from stack.turns import alone

Check = Callable[[Stack], str | None]  # None when it works, else what is in the way

SLOWEST_START_SECONDS = 180
POLL_SECONDS = 0.2
DEATHS = 4  # so often may a program end before it is said that it does not start


def up(layout: Layout, overrides: Overrides | None = None, shape: Shape | None = None) -> None:
    """As this shell wants it. overrides: variables by program, until the next `up`. shape: nothing is asked of the
    shell, the stack stays as it is but in that shape. Raises StackError with a sentence that says what to do."""
    began = time.monotonic()
    with alone(layout):
        layout.make_folders()
        earlier = Ports.load(layout.ports_file)
        stack = Stack.choose(layout, overrides=overrides) if shape is None else replace(Stack.open(layout), shape=shape)
        rise = _Rise(stack)
        with_manager(stack, earlier, rise.all)
        write_env_file(stack)
    print(f"The stack is up after {time.monotonic() - began:.0f} s: {rise.summary}.")
    print(f"Airflow: {stack.airflow_url}, user admin, password: see EVEREST_AIRFLOW_PASSWORD in .local/stack.env")


def with_manager(stack: Stack, earlier: Ports | None, work: Callable[[], None]) -> None:
    """Does the work with a manager that knows this stack's programs; from its beginning, with a new one, when the
    manager ends meanwhile: one that was told to end answers for up to a second more. Raises StackError when one runs
    on other ports than `earlier`."""
    try:
        if manager.is_answering(stack.layout):
            if earlier != stack.ports:
                raise StackError("the stack runs on other ports: `make down`, then `make up` with the new ones")
            manager.adopt(stack.layout, stack.shape)
        else:
            _start_manager(stack)
        work()
    except manager.Gone:
        print("the process manager has ended meanwhile; it is started again", flush=True)
        _start_manager(stack)
        work()


def _start_manager(stack: Stack) -> None:
    ended = processes.end_all(stack.layout)
    if ended:
        print(f"ended {ended} {'process' if ended == 1 else 'processes'} that an earlier start had left behind")
    ports.require_free(stack.ports, ports.OFFSETS)
    manager.start(stack.layout, stack.shape)


class _Rise:
    """One way up. Remembers with which command, settings and code each program was started."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.started: list[str] = []
        self._marks_file = stack.layout.run / "started.json"
        try:
            self._marks: dict[str, str] = json.loads(self._marks_file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._marks = {}

    @property
    def summary(self) -> str:
        return f"started {', '.join(dict.fromkeys(self.started))}" if self.started else "everything was running already"

    def all(self) -> None:
        self.stack.save()
        self.servers()
        self.airflow()
        self.workers()

    def servers(self) -> None:
        for prepare in (servers.prepare_mariadb, servers.prepare_postgresql, servers.prepare_rabbitmq, airflow.prepare):
            prepare(self.stack)
        self._start({"epmd": _always})
        # The broker takes longest and nobody needs it before the consumer: its wait comes after the schemas.
        fresh = self._begin(["rabbitmq"])
        self._start({"mariadb": servers.mariadb_answers, "postgresql": servers.postgresql_answers})
        self._schemas()
        self._await(fresh, {"rabbitmq": servers.rabbitmq_answers})

    def _schemas(self) -> None:
        def books() -> None:
            failure = "the books' schema could not be migrated (`make clean` would start from nothing)"
            airflow.run_python(self.stack, ["-m", "everest", "migrate"], failure)
            failure = "the accounts could not be given their rights"
            airflow.run_python(self.stack, ["-m", "everest", "grant"], failure)

        def metadata() -> None:
            servers.provision_postgresql(self.stack)
            airflow.migrate(self.stack)

        with _step("schemas"), ThreadPoolExecutor() as pool:
            for done in [pool.submit(books), pool.submit(metadata)]:
                done.result()

    def airflow(self) -> None:
        self._start({"airflow-api-server": airflow.answers})
        now = datetime.now(UTC)
        self._start(
            {
                "airflow-scheduler": partial(airflow.works, component="scheduler", since=now),
                "airflow-dag-processor": partial(airflow.works, component="dag_processor", since=now),
            }
        )
        self._wait("the DAGs", airflow.knows_dag)

    def workers(self) -> None:
        self._start(dict.fromkeys(self._names("workers"), _always))
        if self.stack.shape.is_celery:
            self._wait("the workers", servers.workers_listen)
        self._start(dict.fromkeys(self._names("everest", "more"), _always))

    def _names(self, *groups: str) -> list[str]:
        return [program.name for program in self.stack.programs if program.group in groups]

    def _start(self, checks: dict[str, Check]) -> None:
        self._await(self._begin(list(checks)), checks)

    def _begin(self, names: list[str]) -> list[str]:
        """Starts those that do not run or have changed, and names them."""
        states = manager.states(self.stack.layout)
        fresh = []
        for name in names:
            program, state = self.stack.program(name), states[name]
            mark = manager.fingerprint(self.stack, program)
            if state.is_running and self._marks.get(name) == mark:
                continue
            if state.state not in manager.STOPPED:
                manager.stop_program(self.stack.layout, program)
            ports.require_free(self.stack.ports, program.ports)
            manager.start_program(self.stack.layout, program)
            self._marks[name] = mark
            fresh.append(name)
        write_private(self._marks_file, json.dumps(self._marks, indent=2))
        self.started += fresh
        return fresh

    def _await(self, fresh: list[str], checks: dict[str, Check]) -> None:
        for name in fresh:
            self._wait(name, _Watch(name, checks[name]).is_up, name)

    def _wait(self, what: str, check: Check, program: str | None = None) -> None:
        problem: str | None = None
        with _step(what):
            deadline = time.monotonic() + SLOWEST_START_SECONDS
            while time.monotonic() < deadline:
                problem = check(self.stack)
                if problem is None:
                    return
                time.sleep(POLL_SECONDS)
            hint = f"; see .local/logs/{program}.log" if program else ""
            raise StackError(f"{what} did not come up within {SLOWEST_START_SECONDS} s: {problem}{hint}")


class _Watch:
    """Follows one program until it is up, or gives up when it ends again and again."""

    def __init__(self, name: str, check: Check) -> None:
        self.name, self.check = name, check
        self._pids: set[int] = set()

    def is_up(self, stack: Stack) -> str | None:
        """None when the manager says it runs (it has lived for its first seconds) and its own check agrees."""
        state = manager.states(stack.layout)[self.name]
        self._pids |= {state.pid} - {0}
        if state.state == "FATAL" or len(self._pids) > DEATHS:
            raise StackError(f"{self.name} ends as soon as it starts: {state.problem or self._last_words(stack)}")
        return self.check(stack) if state.is_running else f"the process is {state.state.lower()}"

    def _last_words(self, stack: Stack) -> str:
        log = stack.layout.logs / f"{self.name}.log"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return "\n  ".join(["", *text.strip().splitlines()[-12:]])


def _always(stack: Stack) -> str | None:
    return None


@contextmanager
def _step(what: str) -> Iterator[None]:
    """One line: what is being done, and when it is done the seconds it took."""
    began = time.monotonic()
    print(f"  {what:<24}", end="", flush=True)
    try:
        yield
    except BaseException:
        print(" failed")
        raise
    print(f" ok {time.monotonic() - began:6.1f} s", flush=True)
