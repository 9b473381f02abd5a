"""What can be wrong with a workflow, found when it is built and not when it runs at night: `builder.build` asks here.

Every answer is a sentence; the builder puts the step's name before it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from everest.workflow import codec, fields
from everest.workflow import definition as d
from everest.workflow.definition import Definition, Options, Step

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")
_VERSION = re.compile(r"[A-Za-z0-9._-]{1,40}")
MAX_SIGNAL_NAME = 100
"""Characters; its column."""


def problems(definition: Definition) -> list[str]:
    """Everything that is wrong with a definition, the workflow's own first."""
    found = [*_of_workflow(definition), *_of_options(definition.options)]
    earlier: dict[str, int] = {}
    cased: dict[str, str] = {}
    for position, step in enumerate(definition.steps):
        of_step = [*_of_any_step(step, earlier), *_of_case(step, cased), *_of_step(step, earlier)]
        found += [f"step {position + 1} {step.name!r}: {problem}" for problem in of_step]
        earlier[step.name] = position
        cased.setdefault(step.name.casefold(), step.name)
    return found or list(_of_children(definition))


# ---------------------------------------------------------------------------------------------- the workflow


def _of_workflow(definition: Definition) -> Iterator[str]:
    if not _NAME.fullmatch(definition.name):
        yield f"workflow name {definition.name!r} must be letters, digits and underscores, at most 80"
    if definition.dag_id != definition.name and not _NAME.fullmatch(definition.dag_id):
        yield f"dag_id {definition.dag_id!r} must be letters, digits and underscores, at most 80"
    if not _VERSION.fullmatch(definition.version):
        yield f"version {definition.version!r} must be letters, digits, dots, hyphens and underscores, at most 40"
    if not definition.steps:
        yield "a workflow needs at least one step"


def _of_options(options: Options) -> Iterator[str]:
    for name, least in (
        ("max_attempts", 1),
        ("prune_state_after", 0),
        ("max_transitions", 1),
        ("max_for_each_items", 1),
        ("max_state_bytes", 1),
        ("max_started_workflows", 1),
    ):
        value = getattr(options, name)
        if value is None and name != "max_attempts":
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            yield f"{name} is {value!r}, must be a whole number"
        elif value < least:
            yield f"{name} is {value}, must be at least {least}"
    if options.priority not in d.PRIORITY_WEIGHT:
        yield f"priority {options.priority!r} is none of {', '.join(d.PRIORITY_WEIGHT)}"
    if options.tasks not in ("per_step", "fused"):
        yield f"tasks {options.tasks!r} is neither per_step nor fused"
    if options.queue is not None and not options.queue:
        yield "the queue has no name"
    if options.must_complete_within is not None and options.must_complete_within <= timedelta(0):
        yield "must_complete_within must be above zero"
    if options.on_deadline is not None and options.must_complete_within is None:
        yield "on_deadline needs must_complete_within"
    for what, handler, arguments in (
        ("on_cancel", options.on_cancel, ("state", "step")),
        ("on_deadline", options.on_deadline, ("state", "step")),
        ("on_failure", options.on_failure, ("state", "step", "error")),
    ):
        if handler is not None:
            yield from _of_handler(handler, what, arguments)


def _of_children(definition: Definition) -> Iterator[str]:
    """A DAG and a key belong to a name; two definitions that share one would take each other's runs."""
    known: dict[str, Definition] = {definition.dag_id: definition}
    for child in definition.children():
        before = known.setdefault(child.dag_id, child)
        if before is not child and before.definition_hash != child.definition_hash:
            yield f"two different workflows in it have the dag_id {child.dag_id!r}"


# -------------------------------------------------------------------------------------------------- any step


def _of_any_step(step: Step, earlier: Mapping[str, int]) -> Iterator[str]:
    if not _NAME.fullmatch(step.name):
        yield "give it a name of letters, digits and underscores, at most 80"
    if step.name in earlier:
        yield "the name is taken by an earlier step"
    if step.timeout is not None and not isinstance(step.timeout, timedelta):
        yield f"the timeout is {step.timeout!r}, must be a timedelta"
    elif step.timeout is not None and step.timeout <= timedelta(0):
        yield "the timeout must be above zero"
    if step.compensate_with is not None:
        yield from _of_handler(step.compensate_with, "compensate_with")
    for name in ("items_key", "result_key", "payload_key", "state_key"):
        key = getattr(step, name, None)
        if key is not None and (not isinstance(key, str) or not key):
            yield f"{name} is {key!r}, must be the name of a key"
        elif key is not None and key.startswith("_"):
            yield f"{name} {key!r} begins with _, which is never part of the public state"
    if getattr(step, "on_timeout", None) is not None:
        if step.timeout is None:
            yield "on_timeout needs a timeout"
        yield from _of_value(getattr(step, "on_timeout", None), "on_timeout", must_be_object=True)


def _of_case(step: Step, cased: Mapping[str, str]) -> Iterator[str]:
    """Names are kept in columns that do not tell A from a: two such steps would find each other's nested run."""
    before = cased.get(step.name.casefold(), step.name)
    if before != step.name:
        yield f"the name differs only in its capitals from that of the earlier step {before!r}"


def _of_handler(handler: Any, what: str = "the handler", arguments: Iterable[str] = ("state", "step")) -> list[str]:
    if not callable(handler):
        return [f"{what} is not callable"]
    names = tuple(arguments)
    try:
        inspect.signature(handler).bind(*names)
    except TypeError:
        return [f"{what} must take ({', '.join(names)})"]
    except ValueError:
        return []  # a builtin that does not say
    return []


def _of_value(value: Any, what: str, must_be_object: bool = False) -> list[str]:
    """Of a value that is compared with or merged into the state."""
    if must_be_object and not isinstance(value, Mapping):
        return [f"{what} is {value!r}, must be a dict"]
    try:
        codec.dumps(dict(value) if must_be_object else value)
    except (TypeError, ValueError) as error:
        return [f"{what} cannot be stored: {error}"]
    return []


# ------------------------------------------------------------------------------------------------- by its type


def _of_step(step: Step, earlier: Mapping[str, int]) -> list[str]:
    match step:
        case d.Then():
            return _of_handler(step.handler)
        case d.Parallel():
            return list(_of_parallel(step))
        case d.ForEach():
            return list(_of_for_each(step))
        case d.StartWorkflows() | d.RunWorkflow():
            is_built = isinstance(step.workflow, Definition)
            return [] if is_built else ["the workflow must be a built definition; call build() on it"]
        case d.Repeat():
            return list(_of_repeat(step, earlier))
        case d.Delay():
            return ["a delay cannot be negative"] if step.duration < timedelta(0) else []
        case d.WaitForSignals():
            return list(_of_signals(step))
        case d.WaitForWorkflows():
            return list(_of_workflows(step))
        case d.Stream():
            return list(_of_stream(step))
        case _:
            return [f"unknown step type {type(step).__name__}"]


def _of_parallel(step: d.Parallel) -> Iterator[str]:
    if not step.branches:
        yield "a parallel group needs at least one branch"
    names = [branch.name for branch in step.branches]
    for branch in step.branches:
        if not _NAME.fullmatch(branch.name):
            yield f"branch {branch.name!r}: give it a name of letters, digits and underscores, at most 80"
        yield from _of_handler(branch.handler, f"the handler of branch {branch.name!r}")
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"branch {name!r} stands there twice"
    if step.on_conflict not in ("fail", "last"):
        yield f"on_conflict {step.on_conflict!r} is neither fail nor last"


def _of_for_each(step: d.ForEach) -> Iterator[str]:
    yield from _of_handler(step.handler)
    yield from _of_mode(step.mode, step.quorum, ("all", "first_success", "quorum"))
    if isinstance(step.concurrency, bool) or not isinstance(step.concurrency, int) or step.concurrency < 1:
        yield f"concurrency is {step.concurrency!r}, must be at least 1"
    if step.reducer is not None:
        yield from _of_handler(step.reducer, "the reducer")


def _of_mode(mode: str, quorum: int | None, allowed: tuple[str, ...]) -> Iterator[str]:
    if mode not in allowed:
        yield f"mode {mode!r} is none of {', '.join(allowed)}"
    elif mode == "quorum" and (isinstance(quorum, bool) or not isinstance(quorum, int) or quorum < 1):
        yield "mode quorum needs a quorum of at least 1"
    elif mode != "quorum" and quorum is not None:
        yield f"a quorum is given, but the mode is {mode}"


def _of_repeat(step: d.Repeat, earlier: Mapping[str, int]) -> Iterator[str]:
    if step.target not in earlier:
        yield f"its target {step.target!r} is no earlier step"
    if (step.state_key is None) == (step.condition is None):
        yield "give exactly one of state_key and condition"
    if step.condition is not None:
        yield from _of_handler(step.condition, "the condition", ("state",))
    yield from _of_value(step.expected, "expected")
    limit = step.max_iterations
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        yield f"max_iterations is {limit!r}, must be at least 1"


def _of_signals(step: d.WaitForSignals) -> Iterator[str]:
    if not step.names or not all(isinstance(name, str) and name for name in step.names):
        yield "it waits for no signal"
    elif len(set(step.names)) != len(step.names):
        yield "it names a signal twice"
    if any(isinstance(name, str) and len(name) > MAX_SIGNAL_NAME for name in step.names):
        yield f"a signal's name has at most {MAX_SIGNAL_NAME} characters"
    if step.mode not in ("all", "any"):
        yield f"mode {step.mode!r} is neither all nor any"
    if step.match_payload is not None:
        yield from _of_value(step.match_payload, "match_payload", must_be_object=True)
    yield from fields.problems(step.fields)


def _of_workflows(step: d.WaitForWorkflows) -> Iterator[str]:
    yield from _of_mode(step.mode, step.quorum, ("all", "any", "quorum"))
    source: Any = step.source
    if isinstance(source, str):
        if not source:
            yield "it waits for no workflow"
        return
    ids = source if isinstance(source, tuple) else (source,)
    if not ids:
        yield "it waits for no workflow"
    elif any(isinstance(one, bool) or not isinstance(one, int) for one in ids):
        yield f"{source!r} is neither a workflow id, nor a list of them, nor a key of the state"
    elif step.mode == "quorum" and isinstance(step.quorum, int) and step.quorum > len(set(ids)):
        yield f"a quorum of {step.quorum} of {len(set(ids))} workflows"


def _of_stream(step: d.Stream) -> Iterator[str]:
    handler: Callable[..., Any] = step.handler
    wrong = _of_handler(handler, arguments=("state", "step", "chunks"))
    yield from wrong
    if not wrong and not inspect.isgeneratorfunction(inspect.unwrap(handler)):
        yield "the handler of a stream must be a generator"
    yield from _of_handler(step.on_complete, "on_complete", ("chunks", "state"))
