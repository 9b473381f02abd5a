"""What a page lists, as a file: the same rows with typed columns, written like any report. Headings are the page's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from starlette.exceptions import HTTPException

from everest.intake.cells import FileProblem
from everest.pages import telling, words
from everest.pages.words import Language
from everest.reports.shape import Column, Filters, Kind, Report, ReportDefinition, Row, wib_of_utc

MAX_ROWS = 10_000
"""Of a list in a file; a longer one asks for a filter."""


def bounded(rows: list[Any]) -> list[Any]:
    """Raises HTTPException 422 where the file would not be the whole list."""
    if len(rows) > MAX_ROWS:
        raise HTTPException(422, "too_many")
    return rows


def _column(name: str, text: str, kind: Kind, is_summed: bool = False) -> Column:
    return Column(name, words.text("id", text), words.text("en", text), kind, is_summed)


def _report(key: str, text: str, columns: tuple[Column, ...], rows: Iterator[Row]) -> Report:
    definition = ReportDefinition(key, words.text("en", text), columns, (), lambda source, filters: rows, titled=text)
    return Report(definition, Filters(), rows)


def documents(rows: Iterable[Mapping[str, Any]], language: Language) -> Report:
    """The list of documents; instants are WIB."""
    columns = (
        _column("nomer_nota", "documents.nota", Kind.CODE),
        _column("status", "documents.status", Kind.TEXT),
        _column("sejak_wib", "documents.since_wib", Kind.INSTANT),
        _column("gudang_kode", "documents.warehouse", Kind.CODE),
        _column("tanggal_opname", "documents.counted_on", Kind.DATE),
        _column("dibuat_oleh", "document.submitted_by", Kind.TEXT),
        _column("nilai", "documents.amount", Kind.MONEY, is_summed=True),
        _column("baris_selisih", "documents.lines", Kind.INTEGER),
        _column("kode", "documents.code", Kind.INTEGER),
        _column("keterangan", "documents.message", Kind.TEXT),
        _column("transaksi_id", "document.transaksi", Kind.INTEGER),
        _column("pekerjaan", "document.job", Kind.INTEGER),
    )
    told = (
        (
            row["nomer_nota"],
            row["worker_status"],
            wib_of_utc(row["worker_at"] or row["created_at"]),
            row["gudang_kode"],
            row["tanggal_opname"],
            row["dibuat_oleh"],
            row["nilai"],
            row["baris_selisih"],
            row["error_code"],
            telling.plain(language, row),
            row["transaksi_id"],
            row["shadow_id"],
        )
        for row in rows
    )
    return _report("documents", "documents.title", columns, told)


def problems(found: Iterable[Mapping[str, Any]], language: Language) -> Report:
    """Everything that is wrong with a document; no line: its header."""
    columns = (
        _column("baris", "document.line", Kind.INTEGER),
        _column("kolom", "document.column", Kind.CODE),
        _column("pesan", "document.what", Kind.TEXT),
    )
    told = ((_number(one.get("baris")), _text(one.get("kolom")), telling.plain(language, one)) for one in found)
    return _report("problems", "document.what", columns, told)


def file_problems(found: Iterable[FileProblem], language: Language) -> Report:
    """Everything that is wrong with what was sent on a form, with its place in the file."""
    columns = (
        _column("baris", "document.line", Kind.INTEGER),
        _column("baris_berkas", "submit.file_line", Kind.INTEGER),
        _column("kolom", "document.column", Kind.CODE),
        _column("pesan", "document.what", Kind.TEXT),
    )
    told = (
        (
            one.baris,
            one.file_line,
            one.kolom,
            telling.plain(language, words.said_of(one.pesan) or {"message": one.pesan}),
        )
        for one in found
    )
    return _report("problems", "document.what", columns, told)


def history(found: Iterable[Mapping[str, Any]], language: Language) -> Report:
    """What happened to a document, newest first; instants are WIB, words are the page's."""
    columns = (
        _column("waktu_wib", "history.at_wib", Kind.INSTANT),
        _column("siapa", "history.who", Kind.TEXT),
        _column("apa", "history.what", Kind.TEXT),
        _column("langkah", "history.step", Kind.TEXT),
        _column("run", "history.run", Kind.INTEGER),
        _column("alasan", "common.reason", Kind.TEXT),
    )
    told = (
        (
            wib_of_utc(one["at"]),
            one.get("actor"),
            _word(language, one["kind"], one["what"]),
            _word(language, "step", one["step"]) if one.get("step") else None,
            one.get("n"),
            one.get("reason"),
        )
        for one in found
    )
    return _report("history", "document.history", columns, told)


def _word(language: Language, section: str, value: str) -> str:
    key = f"{section}.{value}"
    return words.text(language, key) if words.has(key) else value


def letters(rows: Iterable[Mapping[str, Any]], language: Language) -> Report:
    """The dead letters; instants are WIB."""
    columns = (
        _column("nomer_nota", "documents.nota", Kind.CODE),
        _column("alur_kerja", "workflow.name", Kind.CODE),
        _column("sejak_wib", "documents.since_wib", Kind.INSTANT),
        _column("percobaan", "document.attempts", Kind.INTEGER),
        _column("kode", "documents.code", Kind.INTEGER),
        _column("alasan", "letters.reason", Kind.TEXT),
        _column("pekerjaan", "document.job", Kind.INTEGER),
    )
    told = (
        (
            row["nomer_nota"],
            row["workflow"],
            wib_of_utc(row["dead_lettered_at"] or row["worker_at"]),
            row["attempts"],
            row["error_code"],
            telling.plain(language, row),
            row["shadow_id"],
        )
        for row in rows
    )
    return _report("dead-letters", "nav.dead_letters", columns, told)


def broken_letters(rows: Iterable[Mapping[str, Any]], language: Language) -> Report:
    """The broken messages; instants are WIB, reasons are told in the page's language."""
    columns = (
        _column("surat", "letters.key", Kind.CODE),
        _column("sejak_wib", "documents.since_wib", Kind.INSTANT),
        _column("salinan", "letters.copies", Kind.INTEGER),
        _column("alasan", "letters.reason", Kind.TEXT),
        _column("asal", "letters.origin", Kind.TEXT),
        _column("pesan", "letters.message", Kind.TEXT),
        _column("byte", "letters.bytes", Kind.INTEGER),
        _column("dibuang_oleh", "letters.dropped_by", Kind.TEXT),
    )
    told = (
        (
            row["letter"],
            wib_of_utc(row["died_at"] or row["first_seen_at"]),
            row["copies"],
            telling.plain(language, telling.decoded(row["reason"])),
            row["origin"],
            row["body"],
            row["body_bytes"],
            row["dropped_by"],
        )
        for row in rows
    )
    return _report("broken-messages", "letters.broken_title", columns, told)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
