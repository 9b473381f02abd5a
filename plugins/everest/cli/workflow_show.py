"""Workflows on a terminal: a list, one run with what to do about it, and its history."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.text import Text

from everest.cli import output
from everest.store.workflow_lists import Event, ListedRun
from everest.store.workflow_trace import TracedStep
from everest.store.workflow_views import RunView, Wait, plain

STYLES = {
    "completed": "green", "failed": "bold red", "cancelled": "red", "paused": "magenta", "running": "cyan",
    "waiting_for_signal": "yellow", "waiting_for_workflows": "yellow",
}  # fmt: skip
MAX_VALUE = 200
"""Characters of a value on a terminal; --json shows all."""

MAX_DAG_RUNS = 10
MAX_CHILDREN = 20


def print_list(runs: Sequence[ListedRun], following: int | None) -> None:
    if not runs:
        click.echo("No such runs.")
        return
    table = output.Table(title="workflows, newest first", title_justify="left")
    for name in ("run", "workflow", "key", "status", "step", "waits for / reason", "since", "dispatched"):
        table.add_column(name, overflow="fold")
    for one in runs:
        waits = ", ".join(map(str, one.waits_for)) or (f"until {_wib(one.wakes_at)}" if one.wakes_at else "")
        reason = str((one.error or {}).get("message", ""))
        table.add_row(
            str(one.id),
            _safe(one.workflow),
            _safe(one.nomer_nota or one.idempotency_key or ""),
            _styled(one.status) + (" (not undone)" if one.compensation == "failed" else ""),
            _safe(one.current_step or ""),
            _safe(_short(waits or reason)),
            _wib(one.updated_at),
            _wib(one.created_at),
        )
    output.console().print(table)
    if following is not None:
        click.echo(f"More: --before {following}")


def print_run(view: RunView) -> None:
    output.console().print(Group(*_parts(view)))


def print_timeline(run_id: int, events: Sequence[Event], following: int | None) -> None:
    table = output.Table(title=f"history of workflow {run_id}", title_justify="left")
    for name in ("line", "time", "event", "step", "visit", "try", "DAG run", "detail"):
        table.add_column(name, overflow="fold")
    for one in events:
        step = f"{one.step or ''}{'.' + one.branch if one.branch else ''}"
        numbers = ["" if number is None else str(number) for number in (one.visit, one.attempt, one.n)]
        detail = {key: value for key, value in (one.detail or {}).items() if value not in (None, [], {})}
        table.add_row(str(one.id), _wib(one.at), _safe(one.event), _safe(step), *numbers, _safe(_pairs(detail)))
    output.console().print(table)
    if following is not None:
        click.echo(f"More: --after {following}")


def print_trace(run_id: int, steps: Sequence[TracedStep], following: int | None) -> None:
    table = output.Table(title=f"steps of workflow {run_id}, as they began", title_justify="left", show_lines=True)
    for name in (
        "line",
        "step",
        "visit",
        "status",
        "try",
        "DAG run",
        "took",
        "returned",
        "state before",
        "state after",
    ):
        table.add_column(name, overflow="fold")
    for one in steps:
        step = f"{one.step}{'.' + one.branch if one.branch else ''}"
        took = "" if one.finished_at is None else f"{(one.finished_at - one.started_at).total_seconds():.3f} s"
        returned = one.output if one.error is None else {"error": one.error.get("message")}
        values = [
            "" if value is None else _safe(_pairs(value)) for value in (returned, one.state_before, one.state_after)
        ]
        numbers = (str(one.attempt), str(one.n), took)
        table.add_row(str(one.id), _safe(step), str(one.visit), _safe(one.status), *numbers, *values)
    output.console().print(table)
    if following is not None:
        click.echo(f"More: --after {following}")


def print_state(step: str, values: dict[str, Any]) -> None:
    output.console().print(_mapping(f"public state after {_safe(step)}", values))


# ------------------------------------------------------------------------------------------------------ one run


def _parts(view: RunView) -> Iterator[RenderableType]:
    yield _facts(view)
    if view.state:
        yield _mapping("public state", view.state)
    if view.children:
        yield _children(view)
    if view.compensations:
        yield _compensations(view)
    yield _dag_runs(view)
    yield Text(output.plain("\n".join(_next(view))))


def _facts(view: RunView) -> output.Table:
    key = view.nomer_nota or view.idempotency_key
    title = f"workflow {view.id} · {_safe(view.workflow)}" + (f" · {_safe(key)}" if key else "")
    table = output.Table(show_header=False, title=title, title_justify="left")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    paused = f" (was {view.paused_status})" if view.paused_status else ""
    table.add_row("status", f"{_styled(view.status)}{paused}, since {_wib(view.updated_at)}")
    if view.current_step:
        at = f" ({view.position} of {view.total_steps})" if view.position else ""
        again = f", pass {view.visit}" if view.visit > 1 else ""
        table.add_row("step", _safe(f"{view.current_step}{at}{again}"))
    elif view.total_steps:
        table.add_row("step", f"all {view.total_steps} done")
    if view.items:
        table.add_row("items", ", ".join(f"{number} {status}" for status, number in view.items.items()))
    for branch in view.branches[:MAX_CHILDREN]:
        table.add_row(f"  {_safe(branch['branch'])}", f"{branch['status']}, try {branch['attempt']}")
    if view.waiting:
        table.add_row("waits for", "\n".join(_safe(line) for line in _wait(view.waiting)))
    if view.wakes_at:
        # A delay and a retry go on then; a wait is over.
        is_delay = view.waiting is None or view.waiting.kind == "delay"
        table.add_row("goes on at" if is_delay else "times out at", _wib(view.wakes_at))
    if view.deadline_at:
        table.add_row("deadline", _wib(view.deadline_at))
    if view.error:
        table.add_row("error", _safe(f"{view.error.get('code')}: {view.error.get('message')}"))
    if view.parent:
        how = "nested in" if view.parent["is_nested"] else "started by"
        parent = f"{how} workflow {view.parent['id']} ({view.parent['workflow']}, {view.parent['status']})"
        table.add_row("parent", _safe(parent))
    used = [f"{one.name} {one.used}" + (f" of {one.limit}" if one.limit else "") for one in view.budgets if one.used]
    used += [f"{name} went back {times}x" for name, times in view.loops.items()]
    table.add_row("used", _safe(", ".join(used)))
    table.add_row(
        "definition", _safe(f"version {view.version}, {view.definition_hash[:12]}, {_DEFINITION[view.definition]}")
    )
    table.add_row("job", f"#{view.shadow_id} {view.worker_status}")
    table.add_row("dispatched", _wib(view.created_at))
    if view.finished_at:
        table.add_row("ended", _wib(view.finished_at))
    return table


_DEFINITION = {
    "deployed": "deployed here",
    "changed": "ANOTHER ONE is deployed here under this version",
    "missing": "NOT deployed here",
}


def _wait(wait: Wait) -> Iterator[str]:
    until = f", at the latest at {_wib(wait.until)}" if wait.until else ""
    number = "" if wait.kind in ("workflows", "child", "delay") else f" (question {wait.sequence})"
    how = f", {wait.mode}{f' {wait.quorum}' if wait.quorum else ''}" if wait.mode else ""
    yield f"{wait.kind}{how}{number}{until}"
    if wait.workflows:
        yield f"matched: {wait.matched}, remaining: {', '.join(map(str, wait.remaining)) or 'none'}"
        for one in wait.workflows[:MAX_CHILDREN]:
            yield f"  workflow {one['id']} ({one['workflow']}): {one['status']}"
    elif wait.names:
        matched = [f"{name} (by {said.get('by')})" for name, said in wait.matched.items()]
        yield f"matched: {', '.join(matched) or 'none'}; remaining: {', '.join(wait.remaining) or 'none'}"
    for reason in wait.reasons[:MAX_CHILDREN]:
        yield f"  {output.problem_line(reason)}"
    if len(wait.reasons) > MAX_CHILDREN:
        yield f"  and {len(wait.reasons) - MAX_CHILDREN} more; --json shows all"
    if wait.not_by:
        yield f"not to be answered by {', '.join(wait.not_by)}"
    if wait.correlation:
        yield f"only with {wait.correlation['key']} = {plain(wait.correlation['value'])}"


def _mapping(title: str, values: dict[str, Any]) -> output.Table:
    table = output.Table(show_header=False, title=title, title_justify="left")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in values.items():
        table.add_row(_safe(name), _safe(_short(_text(value))))
    return table


def _children(view: RunView) -> output.Table:
    totals = ", ".join(f"{number} {status}" for status, number in view.children_by_status.items())
    table = output.Table(title=f"workflows it began: {totals}", title_justify="left")
    for name in ("run", "workflow", "status", "step", "began in"):
        table.add_column(name)
    for one in view.children[:MAX_CHILDREN]:
        began = one["parent_step"] or f"handed off, item {one['parent_index']}"
        cells = (_safe(one["workflow"]), _styled(one["status"]), _safe(one["current_step"] or ""), _safe(began))
        table.add_row(str(one["id"]), *cells)
    return table


def _compensations(view: RunView) -> output.Table:
    done = sum(one["status"] == "done" for one in view.compensations)
    state = {None: "not asked for", "pending": "under way", "done": "done", "failed": "STUCK"}[view.compensation]
    title = f"undoing, newest first: {state}, {done} of {len(view.compensations)}"
    table = output.Table(title=title, title_justify="left")
    for name in ("step", "by", "status", "tries", "error"):
        table.add_column(name, overflow="fold")
    for one in view.compensations:
        error = str((one["error"] or {}).get("message", ""))
        status = "" if view.compensation is None else one["status"]
        table.add_row(_safe(one["step"]), _safe(one["handler"]), status, str(one["attempts"]), _safe(error))
    return table


def _dag_runs(view: RunView) -> output.Table:
    table = output.Table(title="DAG runs in Airflow, newest first", title_justify="left")
    for name in ("n", "DAG", "run id", "tries", "done", "failed", "last news"):
        table.add_column(name, overflow="fold")
    for one in view.dag_runs[:MAX_DAG_RUNS]:
        run_id = one.dag_run_id + (" (by a command, not in Airflow)" if one.is_by_hand else "")
        numbers = (str(one.steps_started), str(one.steps_completed), str(one.failures))
        table.add_row(str(one.n), _safe(one.dag_id), _safe(run_id), *numbers, _wib(one.last_at))
    return table


def _next(view: RunView) -> Iterator[str]:
    """What a person can do now."""
    command = "python -m everest workflow"
    if view.compensation == "failed":
        yield f"Undoing got stuck; when its reason is gone: {command} compensate {view.id}"
    if view.status == "failed" and view.compensation is None:
        yield f"When the reason is gone: {command} retry {view.id}"
        yield f"Not wanted any more: {command} cancel {view.id} --reason ..."
    elif view.status == "paused":
        yield f"Let it go on: {command} resume {view.id}"
    elif view.waiting and view.waiting.remaining and view.status == "waiting_for_signal":
        answers = {
            "signal": [f"signal {view.id} {view.waiting.remaining[0]} --payload '{{}}'"],
            "input": [f"input {view.id} --payload '{{...}}'"],
        }
        yes_no = [f"approve {view.id}", f"reject {view.id} --reason ..."]
        for answer in answers.get(view.waiting.kind, yes_no):
            yield f"Answer it: {command} {answer}"
    elif view.status not in ("completed", "cancelled", "failed"):
        yield "It goes on by itself."
    yield f"Its history: {command} timeline {view.id}; what each step got and returned: {command} trace {view.id}"


# ------------------------------------------------------------------------------------------------------- values


def _wib(instant: datetime | None) -> str:
    return output.wib(None if instant is None else instant.replace(tzinfo=None))


def _styled(status: str) -> str:
    return f"[{STYLES[status]}]{status}[/]" if status in STYLES else _safe(status)


def _safe(text: str) -> str:
    """Neither markup nor control characters of a row reach the terminal."""
    return escape(output.plain(text))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _short(text: str) -> str:
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text)} characters)"


def _pairs(detail: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {_short(_text(value))}" for name, value in detail.items())
