"""The trace: from any row of the books back to the document, its jobs, messages and runs, and forward to all its rows.

One report row per thing that was found, in the order of the story: document, job, message, run, posting, journal, card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from everest import words
from everest.errors import DocumentMissing
from everest.opname.amounts import format_number, format_rupiah
from everest.opname.document import wib
from everest.reports.shape import Column, Filters, Kind, Row, Source, wib_of_utc
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
        reverses = f", membalik posting {posting['membalik_id']}" if posting["membalik_id"] else ""
        job = f", pekerjaan #{posting['shadow_id']}" if posting["shadow_id"] else ""
        text = f"{posting['jenis']}{reverses}{job}, DAG run {posting['dag_run_id'] or '-'}"
        text += f", transaksi {posting['transaksi_id']}, {posting['baris_selisih']} baris selisih"
        sides = posting["total_debet"], posting["total_kredit"]
        yield _row("posting", posting["id"], wib_of_utc(posting["created_at"]), posting["nomer_nota"], text, *sides)
    if target.nomer_nota is not None:
        for row in _QUERIES.journal_rows_without_posting(source.conn, nomer_nota=target.nomer_nota):
            text = f"akun {row['kode_akun']}, sumber {row['sumber'] or '-'}: {row['keterangan'] or ''}"
            yield _row(
                "jurnal tanpa posting",
                row["id"],
                row["tanggal_wib"],
                row["nomer_nota"],
                text,
                row["debet"],
                row["kredit"],
            )
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
        text = (
            f"gudang {header.gudang_kode}, opname {header.tanggal_opname}, {row['jumlah_baris']} baris, dibuat oleh"
            f" {header.dibuat_oleh or '-'}, diotorisasi oleh {header.diotorisasi_oleh or '-'} (tingkat"
            f" {header.otorisasi_level}), snapshot {wib(header.snapshot_at):%Y-%m-%d %H:%M:%S} WIB"
        )
        at = None if header.diotorisasi_at is None else wib(header.diotorisasi_at).replace(microsecond=0)
        yield _row("dokumen", header.header_id, at, header.nomer_nota, text)
    for row in _QUERIES.accounting_documents(source.conn, **wanted):
        text = f"{row['jenis']}, gudang {row['gudang_kode'] or '-'}"
        yield _row("transaksi", row["id"], row["tanggal_wib"], row["nomer_nota"], text)


def _jobs(source: Source, jobs: list[Mapping[str, Any]]) -> Iterator[Row]:
    for job in jobs:
        text = f"{job['worker_status']}, transaksi {job['transaksi_id']}, DAG run {job['dag_run_id'] or '-'}"
        if job["error_code"] or job["error"]:
            text += f", {job['error_code'] or ''} {job['error'] or ''}".rstrip()
        if job["dead_lettered_at"]:
            text += ", ada surat mati"
        yield _row("pekerjaan", job["id"], wib_of_utc(job["worker_at"]), job["nomer_nota"], text)
    shadow_ids = [job["id"] for job in jobs]
    if shadow_ids:
        for message in _QUERIES.messages(source.conn, shadow_ids=shadow_ids):
            state = "terkirim" if message["published_at"] else f"belum terkirim ({message['attempts']} kali dicoba)"
            where = message["routing_key"] or message["exchange"]
            text = f"pekerjaan #{message['shadow_id']}, {where}, {state}: {message['body']}"
            at = wib_of_utc(message["published_at"] or message["available_at"])
            yield _row("pesan", message["id"], at, None, text)
    workflow_ids = sorted({job["workflow_id"] for job in jobs if job["workflow_id"] is not None})
    if workflow_ids:
        for run in _QUERIES.runs(source.conn, workflow_ids=workflow_ids):
            status = _called("run", run["status"])
            text = f"{run['workflow']} versi {run['version']}: {status}, DAG run {run['dag_run_id']}"
            yield _row("alur kerja", run["id"], wib_of_utc(run["created_at"]), None, text)
        for step in _QUERIES.steps(source.conn, workflow_ids=workflow_ids):
            text = f"alur kerja {step['workflow_id']}, {step['step']}: {_called('part', step['status'])}"
            text += f", DAG run ke-{step['n']}, percobaan {step['attempt']}"
            yield _row("langkah", step["id"], wib_of_utc(step["started_at"]), None, text)


def _called(section: str, value: str) -> str:
    """A status in the language of the trace, which is Indonesian for everybody."""
    key = f"{section}.{value}"
    return words.text("id", key).lower() if words.has(key) else value


def _books(source: Source, posting_ids: list[int]) -> Iterator[Row]:
    for row in _QUERIES.archived_rows(source.conn, posting_ids=posting_ids):
        text = f"diganti oleh posting {row['oleh_posting_id']}: akun {row['kode_akun']}, {row['alasan']}"
        at = wib_of_utc(row["diarsipkan_at"])
        yield _row("jurnal arsip", row["id"], at, row["nomer_nota"], text, row["debet"], row["kredit"])
    for row in _QUERIES.journal_rows(source.conn, posting_ids=posting_ids):
        text = (
            f"posting {row['posting_id']}, urutan {row['urutan']}, akun {row['kode_akun']}: {row['keterangan'] or ''}"
        )
        yield _row("jurnal", row["id"], row["tanggal_wib"], row["nomer_nota"], text, row["debet"], row["kredit"])
    for number, posting_id, nota, kode, lot, gudang, tanggal, masuk, keluar, nilai in streamed(
        _STREAMS.card_rows_cursor(source.conn, posting_ids=posting_ids)
    ):
        moved = f"masuk {format_number(masuk)}" if masuk else f"keluar {format_number(keluar)}"
        value = "-" if nilai is None else format_rupiah(nilai)
        text = f"posting {posting_id}, barang {kode}, lot {lot or '-'}, gudang {gudang}: {moved}, nilai {value}"
        yield _row("kartu stok", number, tanggal, nota, text)


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
