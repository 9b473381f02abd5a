"""What must hold when a chaos run has come to rest: the product's tables against a ledger in plain Python.

The ledger is told in the order in which the product posted, so it needs no guess about who came first: each posting
must be one that the rules allowed just then, and each failure one that the rules demand, or trouble that is owed to
the chaos and says so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from ingest_consumer.dead_letters import KEY_SHOWN
from tests.chaos import errands
from tests.chaos.world import Sent, World
from tests.integration.books.ledger import Paper, Reasons

OWED_TO_CHAOS = (503, 504)
"""Gave up after several recoveries, or ran out of time. A person runs such a document again."""
MARKED_BY_HAND = 499
FINAL = ("COMPLETED", "FAILED", "CANCELLED")
OPEN_RUNS = "SELECT id, workflow, status FROM workflow_runs WHERE id IN %s AND status NOT IN %s"


REVERSED = "-BALIK"
"""Between the nota that a reversal mirrors and the number of the reversal."""


def jobs(world: World) -> dict[int, dict[str, Any]]:
    """The shadow rows of this run, by id: those that somebody was told of, and whatever else bears its stamp."""
    found = world.rows(
        "SELECT id, transaksi_id, nomer_nota, worker_status, error_code, error, response, dag_run_id, n, workflow_id,"
        " current_step, dead_lettered_at FROM rabbit_publish_shadow WHERE id IN %s OR nomer_nota LIKE %s",
        (0, *world.shadow_ids()),
        _stamped(world),
    )
    return {row["id"]: row for row in found}


def _stamped(world: World) -> str:
    return f"{world.stamp}-%"


def take_in(world: World) -> list[str]:
    """Documents that were stored although nobody was told so (the commit came through, its answer did not) are judged
    as all others. To be called when nobody submits any more; returns what nobody can have sent, in sentences."""
    found = jobs(world)
    known = set(world.shadow_ids())
    strangers = []
    for row in (row for row in found.values() if row["id"] not in known):
        tried = world.tried.get(row["nomer_nota"]) or _mirrored(world, row["nomer_nota"])
        if tried is None:
            strangers.append(f"{name(row)} was sent by nobody")
        else:
            draft, paper = tried
            world.was_taken(Sent(draft, paper, row["id"], row["transaksi_id"]))
    return strangers


def _mirrored(world: World, nota: str) -> tuple[None, Paper] | None:
    """The reversal of a document of this run that is called so."""
    original = world.ledger.papers.get(nota.rpartition(REVERSED)[0])
    if original is None:
        return None
    return None, Paper(nota, original.gudang, world.began, world.began, [], reverses=original.nota)


def name(row: dict[str, Any]) -> str:
    return f"{row['nomer_nota'] or 'an errand'} (job #{row['id']})"


def to_run_again(world: World) -> list[Sent]:
    """What failed by the chaos alone."""
    found = jobs(world)
    codes = (*OWED_TO_CHAOS, MARKED_BY_HAND)
    return [
        one
        for one in world.sent
        if found[one.shadow_id]["worker_status"] == "FAILED" and found[one.shadow_id]["error_code"] in codes
    ]


def problems(world: World, trouble_is_over: bool) -> list[str]:
    """What does not hold, in sentences. trouble_is_over: what the chaos failed was run again, so nothing may be left of
    it."""
    wrong = take_in(world)
    found = jobs(world)
    wrong += _as_the_ledger_says(world, found, trouble_is_over)
    wrong += errands.problems(world)
    wrong += _letters(world, found)
    runs = tuple(row["workflow_id"] for row in found.values() if row["workflow_id"] is not None)
    for row in world.rows(OPEN_RUNS, runs, ("completed", "failed", "cancelled")) if runs else []:
        wrong.append(f"workflow {row['id']} ({row['workflow']}) is {row['status']} although its job has ended")
    return wrong


# --------------------------------------------------------------------------------------------------- documents


def _as_the_ledger_says(world: World, found: dict[int, dict[str, Any]], trouble_is_over: bool) -> list[str]:
    by_nota = {one.paper.nota: one for one in world.sent}
    by_job = {one.shadow_id: one for one in world.sent}
    ledger = world.ledger
    ledger.journal.clear()
    ledger.movements[:] = [one for one in ledger.movements if not one.is_opname]
    for paper in ledger.papers.values():
        paper.status = "PENDING"
    wrong: list[str] = []

    sets = world.rows(
        "SELECT id, nomer_nota, shadow_id, created_at FROM posting_sets WHERE nomer_nota LIKE %s ORDER BY id",
        _stamped(world),
    )
    for nota, times in Counter(row["nomer_nota"] for row in sets).items():
        if times > 1:
            wrong.append(f"{nota} was posted {times} times")
    for row in sets:
        if row["nomer_nota"] not in by_nota:
            wrong.append(f"{row['nomer_nota']} was posted, and sent by nobody")
            continue
        sent = by_job.get(row["shadow_id"], by_nota[row["nomer_nota"]])
        now = row["created_at"].replace(tzinfo=UTC)
        paper, verdict = sent.paper, ledger.verdict(sent.paper, now)
        paper.seen = paper.content
        paper.approved = verdict if isinstance(verdict, Reasons) and sent.is_approved else None
        ledger.post(paper, now)
        if paper.status != "COMPLETED":
            wrong.append(f"{paper.nota} was posted, but the ledger says {verdict} (approved: {sent.is_approved})")

    notas = Counter(one.paper.nota for one in world.sent)
    for sent in world.sent:
        row = found[sent.shadow_id]
        is_twin = notas[sent.paper.nota] > 1
        wrong += _ended(world, sent, row, sent.paper.status == "COMPLETED", is_twin, trouble_is_over)
    return wrong + _rows(world, by_nota)


def _ended(
    world: World, sent: Sent, row: dict[str, Any], is_posted: bool, is_twin: bool, trouble_is_over: bool
) -> list[str]:
    """Whether a document ended as it had to. is_twin: it was stored a second time under its nota, since the answer to
    the first commit was lost; one of the two is refused."""
    nota, status, code = sent.paper.nota, row["worker_status"], row["error_code"]
    said = f"{nota} (job #{sent.shadow_id}) is {status} {code or ''}: {row['error'] or ''}"
    if status not in FINAL:
        return [f"{said}; it has not ended"]
    if is_twin and is_posted and (status, code) == ("FAILED", 409) and row["error"]:
        return []
    if (status == "COMPLETED") != is_posted:
        return [f"{said}; posted: {is_posted}"]
    if status == "COMPLETED":
        return []
    if status != "FAILED" or not row["error"]:
        return [f"{said}; FAILED with a reason was due"]
    if code in OWED_TO_CHAOS or (code == MARKED_BY_HAND and sent.is_marked):
        return [f"{said}; it was run again, and fails still"] if trouble_is_over else []
    if code == 403 and sent.is_rejected:
        return []
    if code == 422 and sent.submission is not None and _is_ahead(world, sent):
        return []
    verdict = world.ledger.verdict(sent.paper, world.began)
    return [] if verdict == code else [f"{said}; the ledger says {verdict}"]


def _is_ahead(world: World, sent: Sent) -> bool:
    """Whether it was authorised by a clock of the database that was an hour ahead: once that is right again, the
    document comes from the future, and is refused by the rules. A smaller jump is within what they allow."""
    sql = "SELECT diotorisasi_at FROM so_headers_staging WHERE transaksi_id = %s AND nomer_nota = %s"
    stamped = [row["diotorisasi_at"] for row in world.rows(sql, sent.transaksi_id, sent.paper.nota)]
    return any(one.replace(tzinfo=UTC) > datetime.now(UTC) for one in stamped)


def _rows(world: World, notas: Iterable[str]) -> list[str]:
    """Journal, stock card and their sums, row by row; whatever stands there for the stamp, of nobody's nota too."""
    journal: dict[str, list[Any]] = {}
    sql = "SELECT nomer_nota, kode_akun, debet, kredit FROM jurnal WHERE nomer_nota LIKE %s"
    for row in world.rows(sql, _stamped(world)):
        journal.setdefault(row["nomer_nota"], []).append((row["kode_akun"], row["debet"], row["kredit"]))
    cards: dict[str, list[Any]] = {}
    stock: dict[tuple[str, str], Decimal] = {}
    for row in world.rows(
        "SELECT nomer_nota, kode_barang, gudang_kode, masuk - keluar AS n, nilai, sumber FROM kartu_stok"
        " WHERE kode_barang LIKE %s OR (nomer_nota LIKE %s AND sumber = 'OPNAME')",
        _stamped(world),
        _stamped(world),
    ):
        key = (row["kode_barang"], row["gudang_kode"])
        stock[key] = stock.get(key, Decimal(0)) + row["n"]
        if row["sumber"] == "OPNAME":
            cards.setdefault(row["nomer_nota"], []).append((*key, row["n"], row["nilai"]))
    wrong = []
    for nota in sorted({*notas, *journal, *cards}):
        due = sorted((row.account, row.debet, row.kredit) for row in world.ledger.journal.get(nota, []))
        if sorted(journal.get(nota, [])) != due:
            wrong.append(f"the journal of {nota} is {sorted(journal.get(nota, []))}, and not {due}")
        moved = sorted((*one.key, one.quantity, one.value) for one in world.ledger.movements if one.nota == nota)
        if sorted(cards.get(nota, [])) != moved:
            wrong.append(f"the stock card of {nota} is {sorted(cards.get(nota, []))}, and not {moved}")
    if {key: quantity for key, quantity in stock.items() if quantity} != world.ledger.stock():
        wrong.append("the stock by item and warehouse is not the ledger's")
    return wrong


# ----------------------------------------------------------------------------------------------- dead letters


def _letters(world: World, found: dict[int, dict[str, Any]]) -> list[str]:
    """Each failure by a fault has its dead letter, and so has each message that was none."""
    letters = world.live.dead_letters()
    wrong = [f"the dead letter {one['letter']} has no reason" for one in letters if not one["reason"]]
    have = Counter(one["shadow_id"] for one in letters)
    for shadow_id, row in found.items():
        if row["worker_status"] == "FAILED" and row["error_code"] != 403 and not have[shadow_id]:
            wrong.append(f"{name(row)} is FAILED {row['error_code']} without a dead letter")
    broken = {one["letter"] for one in letters if one["standing"] == "broken"}
    for body in world.broken:
        if sha256(body).hexdigest()[:KEY_SHOWN] not in broken:
            wrong.append(f"the wrong message {body!r} left no dead letter")
    return wrong


# ------------------------------------------------------------------------------------------------------- audit


def audit(world: World) -> dict[str, set[str]]:
    """What `everest audit` finds, by invariant."""
    done = world.live.run("everest", "audit", "--json", check=False)
    assert done.returncode in (0, 1), f"the audit says {done.returncode}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    found = json.loads(done.stdout)["invariants"]
    return {one["key"]: {finding["pesan"] for finding in one["findings"]} for one in found}


def audit_problems(world: World, before: dict[str, set[str]]) -> list[str]:
    """Findings that were not there before the run."""
    now = audit(world)
    return [f"audit {key}: {pesan}" for key, all_of_it in now.items() for pesan in sorted(all_of_it - before[key])]
