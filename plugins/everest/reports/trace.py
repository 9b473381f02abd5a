"""The trace: from any row of the books back to the document, its jobs, messages and runs, and forward to all its rows.

One report row per thing that was found, in the order of the story: document, job, message, run, posting, journal, card.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from everest import words
from everest.errors import DocumentMissing
from everest.opname.amounts import format_number, format_rupiah
from everest.opname.document import wib
from everest.reports.shape import Column, Filters, Kind, Row, Source, kind_of, wib_of_utc
from everest.reports.stream import streamed
from everest.store.database import load_queries
from everest.store.headers import header_of
from everest.words import say

_QUERIES = load_queries("reports_trace")
_STREAMS = load_queries("reports_trace", streaming=True)

COLUMNS = (
    Column.named("objek", Kind.TEXT),
    Column.named("nomor", Kind.CODE),
    Column.named("waktu_wib", Kind.INSTANT),
    Column.named("nomer_nota", Kind.CODE),
    Column.named("isi", Kind.TEXT),
    Column.named("debet", Kind.MONEY),
    Column.named("kredit", Kind.MONEY),
)


class _Target(NamedTuple):
    nomer_nota: str | None
    transaksi_id: int | None
    posting_id: int | None = None


def rows(source: Source, filters: Filters) -> Iterator[Row]:
    """Raises DocumentMissing for a row that does not exist."""
    target = _target(source, filters)
    wanted = {"nomer_nota": target.nomer_nota, "transaksi_id": target.transaksi_id}
    yield from _documents(source, wanted)
    jobs = list(_QUERIES.jobs(source.conn, **wanted))
    yield from _jobs(source, jobs)
    postings = list(_QUERIES.postings(source.conn, **wanted))
    for posting in postings:
        text = _parts(
            kind_of(posting["jenis"]),
            posting["membalik_id"] and say("id", "trace.reverses", posting=posting["membalik_id"]),
            posting["shadow_id"] and say("id", "trace.of_job", job=posting["shadow_id"]),
            posting["dag_run_id"] and say("id", "trace.in_run", run=posting["dag_run_id"]),
            say("id", "trace.differ", transaction=posting["transaksi_id"], n=posting["baris_selisih"]),
        )
        sides = posting["total_debet"], posting["total_kredit"]
        at = wib_of_utc(posting["created_at"])
        yield _row(say("id", "trace.posting"), posting["id"], at, posting["nomer_nota"], text, *sides)
    if target.nomer_nota is not None:
        for row in _QUERIES.journal_rows_without_posting(source.conn, nomer_nota=target.nomer_nota):
            about = {"account": row["kode_akun"], "source": row["sumber"] or "–", "text": row["keterangan"] or ""}
            text, sides = say("id", "trace.loose_is", **about), (row["debet"], row["kredit"])
            yield _row(say("id", "trace.loose"), row["id"], row["tanggal_wib"], row["nomer_nota"], text, *sides)
    if postings:
        yield from _books(source, [posting["id"] for posting in postings])


def _target(source: Source, filters: Filters) -> _Target:
    for name, query, number in (
        ("refused.journal_row", _QUERIES.nota_of_journal_row, filters.jurnal_id),
        ("refused.card_row", _QUERIES.nota_of_card_row, filters.kartu_stok_id),
        ("refused.posting", _QUERIES.nota_of_posting, filters.posting_id),
    ):
        if number is not None:
            found = query(source.conn, row_id=number)
            if found is None:
                raise DocumentMissing(say("en", "refused.no_row", name=say("en", name), number=number))
            if found["nomer_nota"] is None and found["transaksi_id"] is None:
                raise DocumentMissing(say("en", "refused.row_of_nothing", name=say("en", name), number=number))
            return _Target(**found)
    return _Target(filters.nomer_nota, None)


def _documents(source: Source, wanted: Mapping[str, Any]) -> Iterator[Row]:
    for row in _QUERIES.documents(source.conn, **wanted):
        header = header_of(row, source.settings.foreign_zone)
        text = say(
            "id",
            "trace.document_is",
            warehouse=header.gudang_kode,
            day=str(header.tanggal_opname),
            n=row["jumlah_baris"],
            who=header.dibuat_oleh or "–",
            by=header.diotorisasi_oleh or "–",
            level=header.otorisasi_level,
            at=f"{wib(header.snapshot_at):%Y-%m-%d %H:%M:%S}",
        )
        at = None if header.diotorisasi_at is None else wib(header.diotorisasi_at).replace(microsecond=0)
        yield _row(say("id", "trace.document"), header.header_id, at, header.nomer_nota, text)
    for row in _QUERIES.accounting_documents(source.conn, **wanted):
        warehouse = row["gudang_kode"] and say("id", "trace.warehouse", warehouse=row["gudang_kode"])
        about = _parts(kind_of(row["jenis"]), warehouse)
        yield _row(say("id", "trace.transaction"), row["id"], row["tanggal_wib"], row["nomer_nota"], about)


def _jobs(source: Source, jobs: list[Mapping[str, Any]]) -> Iterator[Row]:
    for job in jobs:
        why = words.heard(job["error"], json.loads(job["said"] or "null")) if job["error"] else ""
        text = _parts(
            _called("status", job["worker_status"]),
            job["transaksi_id"] and say("id", "trace.of_transaction", transaction=job["transaksi_id"]),
            job["dag_run_id"] and say("id", "trace.in_run", run=job["dag_run_id"]),
            why and job["error_code"] and say("id", "trace.failed", code=job["error_code"], why=why),
            why if not job["error_code"] else job["error_code"] if not why else "",
            job["dead_lettered_at"] and say("id", "trace.letter"),
        )
        yield _row(say("id", "trace.job"), job["id"], wib_of_utc(job["worker_at"]), job["nomer_nota"], text)
    shadow_ids = [job["id"] for job in jobs]
    if shadow_ids:
        for message in _QUERIES.messages(source.conn, shadow_ids=shadow_ids):
            state = (
                say("id", "trace.sent") if message["published_at"] else say("id", "trace.unsent", n=message["attempts"])
            )
            where = message["routing_key"] or message["exchange"]
            about = {"job": message["shadow_id"], "where": where, "state": state, "body": message["body"]}
            at = wib_of_utc(message["published_at"] or message["available_at"])
            yield _row(say("id", "trace.message"), message["id"], at, None, say("id", "trace.message_is", **about))
    workflow_ids = sorted({job["workflow_id"] for job in jobs if job["workflow_id"] is not None})
    if workflow_ids:
        for run in _QUERIES.runs(source.conn, workflow_ids=workflow_ids):
            about = {"workflow": run["workflow"], "version": run["version"], "run": run["dag_run_id"] or "–"}
            text = say("id", "trace.run_is", state=_called("run", run["status"]), **about)
            yield _row(say("id", "trace.run"), run["id"], wib_of_utc(run["created_at"]), None, text)
        for step in _QUERIES.steps(source.conn, workflow_ids=workflow_ids):
            about = {"workflow": step["workflow_id"], "step": step["step"], "n": step["n"], "attempt": step["attempt"]}
            text = say("id", "trace.step_is", state=_called("part", step["status"]), **about)
            yield _row(say("id", "trace.step"), step["id"], wib_of_utc(step["started_at"]), None, text)


def _called(section: str, value: str) -> str:
    """A status as pages call it; of another program's it is a text like any other."""
    key = f"{section}.{value}"
    return say("id", key) if words.has(key) else value


def _parts(*parts: Any) -> str:
    """Those that there are, behind each other."""
    return say("id", "trace.parts", parts=[part for part in parts if part])


def _books(source: Source, posting_ids: list[int]) -> Iterator[Row]:
    for row in _QUERIES.archived_rows(source.conn, posting_ids=posting_ids):
        about = {"posting": row["oleh_posting_id"], "account": row["kode_akun"], "why": row["alasan"]}
        at, sides = wib_of_utc(row["diarsipkan_at"]), (row["debet"], row["kredit"])
        text = say("id", "trace.archived_is", **about)
        yield _row(say("id", "trace.archived"), row["id"], at, row["nomer_nota"], text, *sides)
    for row in _QUERIES.journal_rows(source.conn, posting_ids=posting_ids):
        about = {"posting": row["posting_id"], "n": row["urutan"], "account": row["kode_akun"]}
        text, sides = (
            say("id", "trace.journal_is", text=row["keterangan"] or "", **about),
            (row["debet"], row["kredit"]),
        )
        yield _row(say("id", "trace.journal"), row["id"], row["tanggal_wib"], row["nomer_nota"], text, *sides)
    card = say("id", "trace.card")
    for number, posting_id, nota, kode, lot, gudang, tanggal, masuk, keluar, nilai in streamed(
        _STREAMS.card_rows_cursor(source.conn, posting_ids=posting_ids)
    ):
        key = "trace.came" if masuk else "trace.went"
        about = {"posting": posting_id, "item": kode, "lot": lot or "–", "warehouse": gudang}
        about |= {"quantity": format_number(masuk or keluar), "amount": "–" if nilai is None else format_rupiah(nilai)}
        yield _row(card, number, tanggal, nota, say("id", key, **about))


def _row(
    what: str,
    number: int,
    at: datetime | None,
    nota: str | None,
    text: str,
    debet: Decimal | None = None,
    kredit: Decimal | None = None,
) -> Row:
    return [what, str(number), at, nota, text, debet, kredit]
