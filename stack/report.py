"""`status` and `logs`: what a person wants to know about the stack."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stack import processes
from stack.layout import Layout, StackError
from stack.programs import PEOPLE, Stack
from stack.roster import programs
from stack.shape import Shape


def status(layout: Layout) -> bool:
    """Prints a row per process; whether all of them run."""
    try:
        from stack import manager  # needs the environment
    except ImportError:
        print("There is no environment yet; `make up` makes it and starts the stack.")
        return False
    if not layout.secrets_file.exists() or not manager.is_answering(layout):
        left = processes.find(layout)
        print("The stack is not running; `make up` starts it.")
        if left:
            are = "process of an earlier start is" if len(left) == 1 else "processes of an earlier start are"
            print(f"{len(left)} {are} still there; `make up` or `make down` ends what is left.")
        return False
    stack, states = Stack.open(layout), manager.states(layout)
    rows = [("PROCESS", "STATE", "PID", "UP", "WHERE")]
    for program in stack.programs:
        state = states[program.name]
        where = ", ".join(f"127.0.0.1:{getattr(stack.ports, port)}" for port in program.ports)
        where = {
            "airflow-api-server": stack.airflow_url,
            "rabbitmq": f"{where.split(',')[0]}, {stack.management_url}",
        }.get(program.name, where)
        rows.append(
            (
                program.name,
                state.state.lower(),
                str(state.pid or "-"),
                _duration(state.seconds) if state.pid else "-",
                where,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print(f"Log in at {stack.airflow_url} as admin (EVEREST_AIRFLOW_PASSWORD) or, to see what each role sees, as")
    people = ", ".join(f"{user} (EVEREST_LOGIN_{user.upper()})" for user in PEOPLE)
    print(f"{people}. The passwords are in .local/stack.env.")
    return all(states[program.name].is_running for program in stack.programs)


def logs(layout: Layout, names: Sequence[str]) -> None:
    """Becomes `tail -F` over the named programs' logs, or all. Raises StackError for a name that is none."""
    every = programs(Shape.load(layout.shape_file) or Shape())
    known = {program.name: layout.logs / f"{program.name}.log" for program in every}
    known["manager"] = layout.logs / "manager.log"
    unknown = [name for name in names if name not in known]
    if unknown:
        raise StackError(f"no process is called {', '.join(unknown)}; there are {', '.join(known)}")
    files = [str(known[name]) for name in names or known if known[name].exists()]
    if not files:
        what = ", ".join(names) or "the stack"
        raise StackError(f"{what} has no log yet; `make up` starts the stack, `make status` says what runs")
    os.execvp("tail", ["tail", "-n", "20", "-F", *files])


def _duration(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
