"""From what a person types to the job it means, and what stands in the rows about it. SELECTs only.

A nota comes first: `12` is the nota 12 if there is one, else job 12. `#12` is always job 12.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from everest.errors import Conflict, DocumentMissing
from everest.store.database import Connection, load_queries
from everest.words import say

_QUERIES = load_queries("intake")
_SHADOW_ID = re.compile(r"#([1-9][0-9]{0,17})")

ENDED = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
"""Statuses in which nothing happens until a person acts."""


@dataclass(frozen=True)
class Job:
    """A job (shadow row), its document and its posting. Instants are naive UTC; amounts in rupiah.

    membalik_id, membalik_nota: the posting that this reversal reverses. dibalik_nota: the reversal of this document,
    on its way or (with dibalik_posting_id) posted. nota_posting_id: the posting of this nota, of whichever document.
    """

    shadow_id: int
    transaksi_id: int | None
    nomer_nota: str | None
    workflow_id: int | None
    publish_status: str
    published_at: datetime | None
    worker_status: str
    worker_at: datetime | None
    attempts: int
    current_step: str | None
    response: dict[str, Any] | None
    error_code: int | None
    error: str | None
    dag_id: str | None
    dag_run_id: str | None
    n: int | None
    dead_lettered_at: datetime | None
    created_at: datetime
    updated_at: datetime
    carrier_shadow_id: int | None
    workflow: str | None
    gudang_kode: str | None
    tanggal_opname: date | None
    diotorisasi_oleh: str | None
    dibuat_oleh: str | None
    jumlah_baris: int
    baris_dihapus_at: datetime | None
    posting_id: int | None
    total_debet: Decimal | None
    total_kredit: Decimal | None
    baris_selisih: int | None
    posted_at: datetime | None
    membalik_id: int | None
    membalik_nota: str | None
    dibalik_nota: str | None
    dibalik_posting_id: int | None
    nota_posting_id: int | None

    @property
    def has_ended(self) -> bool:
        return self.worker_status in ENDED

    @property
    def reason(self) -> str:
        """Why it stands where it stands, in one line."""
        return str((self.response or {}).get("message") or self.error or "")

    @property
    def problems(self) -> list[dict[str, Any]]:
        """What is wrong with it, or what a person has to decide about it."""
        answer = self.response or {}
        asked = answer.get("waiting")
        return errors_in(answer) or (errors_in(asked, "reasons") if isinstance(asked, dict) else [])

    @property
    def question(self) -> int | None:
        """The number of the question that a person has to answer before it goes on."""
        asked = (self.response or {}).get("waiting")
        if self.worker_status != "WAITING" or not isinstance(asked, dict) or "reasons" not in asked:
            return None
        return int(asked["sequence"])

    @property
    def asked_until(self) -> datetime | None:
        """Until when it waits for that answer, naive UTC."""
        asked = (self.response or {}).get("waiting")
        until = asked.get("until") if isinstance(asked, dict) else None
        until = until.get("$datetime") if isinstance(until, dict) else until
        try:
            found = datetime.fromisoformat(until) if isinstance(until, str) else None
        except ValueError:
            return None
        return found.astimezone(UTC).replace(tzinfo=None) if found and found.tzinfo else found

    def as_json(self) -> dict[str, Any]:
        """Every column by its name: money as text, instants as UTC."""
        return {name: _plain(value) for name, value in vars(self).items()}


def find_jobs(conn: Connection, target: str) -> list[Job]:
    """The jobs that `target` (a nota or a shadow id) means, one per document, oldest first. Raises DocumentMissing."""
    number = _SHADOW_ID.fullmatch(target)
    if number is None:
        jobs = one_per_document(_jobs(conn, [row["id"] for row in _QUERIES.ids_of_nota(conn, nomer_nota=target)]))
        if jobs:
            return jobs
        if _QUERIES.staged_without_job(conn, nomer_nota=target):
            raise DocumentMissing(say("en", "refused.not_announced", nota=target))
        number = _SHADOW_ID.fullmatch("#" + target)
    if number is not None:
        jobs = _jobs(conn, [int(number[1])])
        if jobs:
            return jobs
    if number is None:
        raise DocumentMissing(say("en", "refused.no_nota", nota=target))
    raise DocumentMissing(say("en", "refused.no_nota_and_no_job", nota=target, job=number[1]))


def find_job(conn: Connection, target: str, wanted: frozenset[str] = frozenset()) -> Job:
    """The one job that `target` means. Of several documents of one nota, the only one whose status is among `wanted`.
    Raises DocumentMissing, Conflict when it is not clear which one is meant."""
    jobs = find_jobs(conn, target)
    if len(jobs) > 1:
        fitting = [job for job in jobs if job.worker_status in wanted]
        if len(fitting) != 1:
            found = ", ".join(f"#{job.shadow_id} ({job.worker_status})" for job in jobs)
            raise Conflict(say("en", "refused.several_documents", nota=target, found=found))
        return fitting[0]
    return jobs[0]


def one_per_document(jobs: list[Job]) -> list[Job]:
    """Several senders may have announced one document: the carrier stands for all, else the newest."""
    chosen: dict[tuple[int | None, int | None], Job] = {}
    for job in jobs:
        key = (job.transaksi_id, job.workflow_id if job.transaksi_id is None else None)
        before = chosen.get(key)
        if before is None or before.shadow_id != before.carrier_shadow_id:
            chosen[key] = job
    return list(chosen.values())


def answer_in(response: str | None) -> dict[str, Any]:
    """What a job answers its sender. Other programs write there, too: what is no answer is an empty one."""
    try:
        found = json.loads(response or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def errors_in(answer: Mapping[str, Any], key: str = "errors") -> list[dict[str, Any]]:
    """The problems that an answer names, by line and column."""
    found = answer.get(key)
    return [error for error in found if isinstance(error, dict)] if isinstance(found, list) else []


def _jobs(conn: Connection, shadow_ids: list[int]) -> list[Job]:
    rows = _QUERIES.jobs(conn, shadow_ids=shadow_ids) if shadow_ids else ()
    return [Job(**{**row, "response": answer_in(row["response"]) or None}) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return value
