"""Kesehatan: whether everything does its work, and what to do when something does not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from everest.audit.finding import kept
from everest.audit.invariants import BY_KEY
from everest.pages import broker, formats, store, telling, view
from everest.pages.access import Permission
from everest.pages.broker import Queues
from everest.pages.dead_letters import QUERIES
from everest.pages.documents import QUERIES as DOCUMENTS
from everest.pages.guard import GuardedRoute, needs
from everest.pages.settings import PageSettings

router = APIRouter(route_class=GuardedRoute)

PROCESSES = ("consumer", "relay", "reconciler")
LATE_BEAT = timedelta(seconds=45)
"""Each process tells every ten seconds that it is there."""
LATE_MESSAGE = timedelta(seconds=30)
"""The relay looks ten times a second."""
LATE_AUDIT = timedelta(hours=36)
"""It looks every night; one night may be missed."""
FINDINGS_SHOWN = 20
MANY_FAILURES = 5
"""Of a hundred that ended in a day, from which on the share of failures is worth a look; never less than this many."""

Verdict = Literal["good", "unsure", "bad"]


@dataclass(frozen=True)
class Check:
    """One line of the page. key: its name and, with `_do`, what to do, in the catalogue. told: reasons, each with
    what it is about, as `telling.html` takes them."""

    key: str
    verdict: Verdict
    values: dict[str, Any]
    told: tuple[tuple[str, Any], ...] = ()

    @property
    def shown(self) -> dict[str, str]:
        """The values as a person reads them."""
        return {name: one if isinstance(one, str) else formats.whole(one) for name, one in self.values.items()}


@router.get("/health")
@needs(Permission.READ)
def health(request: Request) -> Response:
    settings: PageSettings = request.app.state.settings
    now = datetime.now(UTC).replace(tzinfo=None)
    with store.transaction(request) as tx:
        beats = list(QUERIES.heartbeats(tx.conn, size=50))
        due = QUERIES.outbox_due(tx.conn)
        oldest = list(QUERIES.oldest_by_status(tx.conn))
        hour = _by_status(QUERIES.ended_since(tx.conn, since=now - timedelta(hours=1)))
        last_day = _by_status(QUERIES.ended_since(tx.conn, since=now - timedelta(days=1)))
        letters = QUERIES.count_letters(tx.conn)
        audits = list(QUERIES.last_audits(tx.conn, invariants=list(BY_KEY)))
        findings = list(QUERIES.standing_findings(tx.conn, size=FINDINGS_SHOWN))
        standing = QUERIES.count_standing(tx.conn)
        stuck = DOCUMENTS.count_stuck(tx.conn, stuck_before=now - settings.stuck_after)
    queues = broker.look(settings.broker)
    for audit in audits:
        audit["notes"] = _notes(audit["note"])
    for one in findings:
        one["told"] = kept(one["finding_key"], one["pesan"], telling.decoded(one["detail"]))
    for beat in beats:
        beat["facts"] = json.loads(beat["detail"] or "{}")
        beat["is_lost"] = _is_lost(beat)
    checks = [
        *(_process(name, beats) for name in PROCESSES),
        _queue(queues),
        _outbox(due, now),
        Check("stuck", "bad" if stuck else "good", {"n": stuck}),
        Check("letters", "unsure" if letters else "good", {"n": letters}),
        _failures(last_day),
        _audit(audits, standing, now, view.language_of(request)),
    ]
    order = {"bad": 0, "unsure": 1, "good": 2}
    return view.page(
        request,
        "health.html",
        checks=sorted(checks, key=lambda check: order[check.verdict]),
        worst=min((check.verdict for check in checks), key=lambda verdict: order[verdict]),
        beats=beats,
        queues=queues,
        oldest=oldest,
        audits=audits,
        findings=findings,
        standing=standing,
        hour=hour,
        last_day=last_day,
    )


def _is_lost(beat: dict[str, Any]) -> bool:
    """Nobody has seen it for too long, and it did not say that it stops. A heartbeat that is still to come is no sign
    of life: a clock that was ahead left it, and nobody has written since."""
    return bool(abs(beat["now"] - beat["seen_at"]) >= LATE_BEAT and beat["facts"].get("state") != "stopped")


def _process(name: str, beats: list[dict[str, Any]]) -> Check:
    """At least one of them is there and ready."""
    alive = [
        one for one in beats if one["name"] == name and not one["is_lost"] and one["facts"].get("state") != "stopped"
    ]
    if not alive:
        return Check(name, "bad", {"n": 0})
    # a program of an earlier version tells its reasons in English alone
    reasons = tuple(
        (one["instance"], reason)
        for one in alive
        for reason in one["facts"].get("told") or _english(one["facts"].get("reasons") or ())
    )
    is_ready = any(one["facts"].get("ready") for one in alive)
    return Check(name, "good" if is_ready else "bad", {"n": len(alive)}, () if is_ready else reasons[:5])


def _queue(queues: Queues) -> Check:
    """A number that the API did not tell, as it does right after the broker's start, is none, and not 0."""
    if queues.trouble is not None:
        is_bad = queues.trouble in ("silent", "absent", "down")
        return Check(f"broker_{queues.trouble}", "bad" if is_bad else "unsure", {})
    values = {"ready": queues.ready, "held": queues.held, "consumers": queues.consumers}
    return Check("queue", "good" if queues.consumers else "unsure" if queues.consumers is None else "bad", values)


def _outbox(due: dict[str, Any], now: datetime) -> Check:
    is_late = due["oldest_at"] is not None and now - due["oldest_at"] > LATE_MESSAGE
    return Check("outbox", "bad" if is_late else "good", {"n": due["n"]})


def _failures(ended: dict[str, int]) -> Check:
    failed, all_of_them = ended.get("FAILED", 0), sum(ended.values())
    is_much = failed >= MANY_FAILURES and failed * 100 > MANY_FAILURES * all_of_them
    rate = (Decimal(100) * failed / all_of_them).quantize(Decimal("0.01")) if all_of_them else None
    values = {"failed": failed, "all": all_of_them, "percent": formats.percent(rate)}
    return Check("failures", "unsure" if is_much else "good", values)


def _audit(audits: list[dict[str, Any]], standing: int, now: datetime, language: str) -> Check:
    """Findings stand until an audit does not find them any more; what somebody acknowledged is no news. No news of the
    books is no good news."""
    values = {"n": standing, "looked": len(audits), "all": len(BY_KEY)}
    broken = [one["invariant"] for one in audits if _is_broken(one)]
    if standing or broken:
        told = ((BY_KEY[key].remedy_id if language == "id" else BY_KEY[key].remedy) for key in broken)
        return Check("audit", "bad", values, tuple(zip(broken, told, strict=True)))
    fresh = [one for one in audits if now - one["started_at"] < LATE_AUDIT]
    if len(fresh) < len(BY_KEY):
        return Check("audit_late", "unsure", values)
    notes = tuple((one["invariant"], note) for one in fresh if one["outcome"] == "NOT_CHECKED" for note in one["notes"])
    return Check("audit_partly", "unsure", values, notes[:5]) if notes else Check("audit", "good", values)


def _notes(note: str | None) -> list[Any]:
    """What an audit left out, as `telling.html` takes it; of an earlier version one English text."""
    try:
        found = json.loads(note or "[]")
    except ValueError:
        found = None
    return found if isinstance(found, list) else _english([note])


def _english(texts: Iterable[Any]) -> list[Any]:
    return [{"message": str(one), "lang": "en"} for one in texts]


def _is_broken(audit: dict[str, Any]) -> bool:
    return bool(audit["outcome"] == "FINDINGS" and audit["found"] > audit["acknowledged"])


def _by_status(rows: Any) -> dict[str, int]:
    return {row["worker_status"]: int(row["n"]) for row in rows}
