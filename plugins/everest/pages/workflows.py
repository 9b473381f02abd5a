"""Alur kerja: every workflow, one of them with all that is known of it, and what may be done to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everest import bootstrap
from everest.errors import Conflict, DocumentMissing
from everest.pages import params, questions, store, view
from everest.pages.access import Permission
from everest.pages.approvals import sequence_of
from everest.pages.guard import GuardedRoute, form, needs, person
from everest.store import workflow_dag_runs, workflow_lists, workflow_steps, workflow_views
from everest.store.unit_of_work import UnitOfWork
from everest.words import say
from everest.workflow import codec, control, deployment
from everest.workflow.definition import Definition, WaitForSignals
from everest.workflow.fields import Flaw, read

router = APIRouter(route_class=GuardedRoute)

STATUSES = ("running", "waiting_for_signal", "waiting_for_workflows", "paused", "failed", "completed", "cancelled")
EVENTS = 100
SIGNALS = 100
MAX_PAYLOAD = 64 * 1024
MAX_REASON = 500

Act = Callable[[UnitOfWork, Definition | None, int, str], Any]


@router.get("/workflows")
@needs(Permission.READ)
def workflows(request: Request) -> Response:
    status = params.choice(request, "status", STATUSES)
    before = params.number(request, "before", params.THE_END)
    with store.transaction(request) as tx:
        found = workflow_lists.page_of_runs(
            tx.conn,
            status=status,
            workflow=params.text(request, "workflow"),
            before_id=before,
            size=workflow_lists.PAGE + 1,
            parent_id=params.number(request, "parent", 0) or None,
        )
    return view.page(
        request,
        "workflows.html",
        rows=found[: workflow_lists.PAGE],
        older=found[workflow_lists.PAGE - 1].id if len(found) > workflow_lists.PAGE else None,
        is_first=before == params.THE_END,
        statuses=STATUSES,
        names=sorted(bootstrap.definitions()),
        query=request.query_params,
    )


@router.get("/workflows/{run_id}")
@needs(Permission.READ)
def workflow(request: Request, run_id: int) -> Response:
    return _page(request, run_id)


def _page(
    request: Request, run_id: int, flaws: Mapping[str, Flaw] | None = None, given: Mapping[str, str] | None = None
) -> Response:
    """flaws, given: what was entered and is wrong, by field."""
    after = params.number(request, "after", 0)
    with store.transaction(request) as tx:
        before_n = params.number(request, "runs", workflow_dag_runs.EVERY_N)
        found = workflow_views.status(tx.conn, run_id, bootstrap.deployed, before_n)
        if found is None:
            raise HTTPException(404, "missing")
        question = questions.of_run(tx, run_id)
        known = bootstrap.deployed(found.workflow, found.version, found.definition_hash)
        steps = workflow_steps.steps(tx.conn, run_id, known)
        signals = workflow_steps.signals(tx.conn, run_id, SIGNALS + 1)
        events = workflow_lists.timeline(tx.conn, run_id, after_id=after, size=EVENTS + 1) or []
    return view.page(
        request,
        "workflow.html",
        422 if flaws else 200,
        flaws=flaws,
        given=given,
        run=found,
        question=question,
        steps=steps,
        signals=signals[:SIGNALS],
        more_signals=len(signals) > SIGNALS,
        signal_names=_signal_names(known),
        older_runs=found.dag_runs[-1].n if len(found.dag_runs) >= workflow_dag_runs.MAX_DAG_RUNS else None,
        newer_runs=before_n < workflow_dag_runs.EVERY_N,
        events=events[:EVENTS],
        more=events[EVENTS - 1].id if len(events) > EVENTS else None,
        after=after,
        is_final=found.status in ("completed", "cancelled"),
    )


@router.post("/workflows/{run_id}/pause")
@needs(Permission.CONTROL)
def pause(request: Request, run_id: int) -> Response:
    reason = _reason(request)
    return _act(request, run_id, "paused", lambda tx, known, run, who: control.pause(tx, known, run, who, reason))


@router.post("/workflows/{run_id}/resume")
@needs(Permission.CONTROL)
def resume(request: Request, run_id: int) -> Response:
    return _act(request, run_id, "resumed", lambda tx, known, run, who: control.resume(tx, _needed(known), run, who))


@router.post("/workflows/{run_id}/retry")
@needs(Permission.CONTROL)
def retry(request: Request, run_id: int) -> Response:
    reason = _reason(request)
    return _act(request, run_id, "retried", lambda tx, known, run, who: control.retry(tx, known, run, who, reason))


@router.post("/workflows/{run_id}/cancel")
@needs(Permission.CONTROL)
def cancel(request: Request, run_id: int) -> Response:
    """Ends it and what is nested in it; what it did is undone by the reconciler, newest first."""
    reason = _reason(request)
    if reason is None:
        raise HTTPException(422, "reason")
    return _act(request, run_id, "cancelled", lambda tx, known, run, who: control.cancel(tx, known, run, who, reason))


@router.post("/workflows/{run_id}/compensate")
@needs(Permission.CONTROL)
def compensate(request: Request, run_id: int) -> Response:
    """A compensation that failed is due again."""
    return _act(request, run_id, "compensated", lambda tx, known, run, who: control.compensate(tx, known, run, who))


@router.post("/workflows/{run_id}/signal")
@needs(Permission.CONTROL)
def signal(request: Request, run_id: int) -> Response:
    name = str(form(request).get("name", "")).strip()[:100]
    if not name:
        raise HTTPException(422, "signal_name")
    correlation = str(form(request).get("correlation", "")).strip()[:150] or None
    payload = _payload(request)

    def send(tx: UnitOfWork, known: Definition | None, run: int, who: str) -> None:
        control.signal(tx, _needed(known), run, name, payload, correlation, who)

    return _act(request, run_id, "signalled", send)


@router.post("/workflows/{run_id}/approve")
@needs(Permission.ACT)
def approve(request: Request, run_id: int) -> Response:
    reason, payload, sequence = _reason(request), _payload(request), sequence_of(request)

    def say(tx: UnitOfWork, known: Definition | None, run: int, who: str) -> None:
        control.approve(tx, _needed(known), run, who, reason, payload, sequence)

    return _act(request, run_id, "approved", say)


@router.post("/workflows/{run_id}/reject")
@needs(Permission.ACT)
def reject(request: Request, run_id: int) -> Response:
    reason, payload, sequence = _reason(request), _payload(request), sequence_of(request)
    if reason is None:
        raise HTTPException(422, "reason")

    def say(tx: UnitOfWork, known: Definition | None, run: int, who: str) -> None:
        control.reject(tx, _needed(known), run, who, reason, payload, sequence)

    return _act(request, run_id, "rejected", say)


@router.post("/workflows/{run_id}/input")
@needs(Permission.ACT)
def give_input(request: Request, run_id: int) -> Response:
    """Declared fields are read and judged one by one, else the answer is a JSON object."""
    sequence = sequence_of(request)
    with store.transaction(request) as tx:
        asked = questions.of_run(tx, run_id)
    if asked is not None and asked.fields:
        given = {field.name: str(form(request).get(f"field.{field.name}", "")) for field in asked.fields}
        payload, flaws = read(asked.fields, given)
        if flaws:
            return _page(request, run_id, flaws, given)
    else:
        payload = _payload(request)

    def say(tx: UnitOfWork, known: Definition | None, run: int, who: str) -> None:
        control.submit_input(tx, _needed(known), run, who, payload, sequence)

    return _act(request, run_id, "given", say)


def _act(request: Request, run_id: int, done: str, action: Act) -> Response:
    """One control function in one transaction. Looks for the run without a lock: `control` takes its locks itself."""
    with store.transaction(request) as tx:
        run = tx.runs.get(run_id)
        if run is None:
            raise DocumentMissing(say("id", "engine.missing", run=run_id))
        action(tx, deployment.of_run(bootstrap.deployed, run), run_id, person(request).name)
    return view.back(request, f"/workflows/{run_id}", done)


def _signal_names(definition: Definition | None) -> list[str]:
    """Of the plain signals that its waits can use: nobody reads any other."""
    waits = () if definition is None else definition.steps
    names = [name for one in waits if isinstance(one, WaitForSignals) and one.kind == "signal" for name in one.names]
    return list(dict.fromkeys(names))


def _needed(definition: Definition | None) -> Definition:
    if definition is None:
        raise Conflict(say("id", "engine.not_deployed"))
    return definition


def _reason(request: Request) -> str | None:
    return str(form(request).get("reason", "")).strip()[:MAX_REASON] or None


def _payload(request: Request) -> dict[str, Any]:
    """A JSON object, a number with a point in it exact; nothing is an empty one. Raises HTTPException 422."""
    text = str(form(request).get("payload", "")).strip()
    if not text:
        return {}
    try:
        exact = json.loads(text, parse_float=lambda number: {"$decimal": number}, parse_constant=_refuse)
        found = codec.loads(json.dumps(exact)) if len(text) <= MAX_PAYLOAD else None
    except (ValueError, ArithmeticError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(422, "payload")
    return found


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")
