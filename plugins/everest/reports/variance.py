"""The variance report: counted lines with what they are worth, document by document.

Postings are read in pages along their instants, lines by primary key in batches, small documents together and large
ones in parts: neither a document of 100,000 lines nor a year of documents is ever in memory, and a screen of small
documents needs a handful of statements. What the hints need is read before the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from everest.opname.amounts import MONEY_CONTEXT
from everest.opname.document import wib
from everest.opname.hints import by_line
from everest.reports import columns as c
from everest.reports import smells
from everest.reports.arithmetic import computed
from everest.reports.shape import Filters, Row, Source
from everest.store.book_reader import every_row
from everest.store.database import load_queries
from everest.words import say

_QUERIES = load_queries("reports")
_ROWS = load_queries("reports", as_tuples=True)
_DOCUMENT = load_queries("reports_document")

COLUMNS = (
    c.POSTED_AT,
    c.NOTA,
    c.KIND,
    c.REVERSES,
    c.DOCUMENT_WAREHOUSE,
    c.COUNT_DAY,
    c.AUTHORISED_BY,
    c.LINE,
    c.ITEM,
    c.LOT,
    c.WAREHOUSE,
    c.UNIT,
    c.BOOKS,
    c.COUNTED,
    c.VARIANCE,
    c.UNIT_COST,
    *c.AMOUNTS,
    c.REASON,
    c.HINTS,
    c.POSTING,
)
LINES = ("gudang_kode", "kode_barang", "lot", "kelompok", "alasan")
"""Filters of a line."""
LINES_PER_BATCH = 5_000
POSTINGS_PER_PAGE = 500
BEFORE_ALL = datetime(1000, 1, 1)
BEFORE_FIRST = -(2**31)
Posting = Mapping[str, Any]
REVERSAL = "PEMBALIKAN"


def rows(source: Source, filters: Filters) -> Iterator[Row]:
    """The lines of every posting of the range; of a nota without a posting, those of its newest document."""
    is_empty = True
    for posting_group in _groups(_postings(source, filters), min(LINES_PER_BATCH, source.at_most)):
        is_empty = False
        yield from _posted(source, filters, posting_group)
    if is_empty and filters.nomer_nota is not None and filters.since is None and filters.until is None:
        document = _QUERIES.waiting_document(source.conn, nomer_nota=filters.nomer_nota)
        if document is not None:
            yield from _waiting(source, filters, document)


def rows_of_document(source: Source, filters: Filters) -> Iterator[Row]:
    """The lines of exactly one document, also where another one was posted under its nota: as it is posted, else as it
    stands."""
    posting = _DOCUMENT.posting_of_document(source.conn, transaksi_id=filters.transaksi_id)
    if posting is not None:
        yield from _posted(source, filters, [posting])
        return
    document = _DOCUMENT.document_as_sent(source.conn, transaksi_id=filters.transaksi_id)
    if document is not None:
        yield from _waiting(source, filters, document)


def _postings(source: Source, filters: Filters) -> Iterator[Posting]:
    """By their instant, a page at a time: years of them are many, and a screen shows the first."""
    after_wib, after_id = BEFORE_ALL, 0
    size = min(POSTINGS_PER_PAGE, source.at_most)
    wanted = filters.as_parameters("since", "until", *LINES) | source.of_nota
    while True:
        page = list(_QUERIES.postings(source.conn, after_wib=after_wib, after_id=after_id, size=size, **wanted))
        yield from page
        if len(page) < size:
            return
        after_wib, after_id = page[-1]["tanggal_wib"], page[-1]["transaksi_id"]


def _groups(postings: Iterator[Posting], most_lines: int) -> Iterator[list[Posting]]:
    """Neighbours that have no more than so many lines together, or a single one: their lines are read at once, so that
    a report of small documents does not ask for each of them."""
    group: list[Posting] = []
    lines = 0
    for posting in postings:
        if group and lines + posting["jumlah_baris"] > most_lines:
            yield group
            group, lines = [], 0
        group.append(posting)
        lines += posting["jumlah_baris"]
    if group:
        yield group


def _posted(source: Source, filters: Filters, group: list[Posting]) -> Iterator[Row]:
    said = _said(source, filters, group)
    heads = {posting["transaksi_id"]: _head(posting) for posting in group}
    wanted = {"transaksi_ids": list(heads)}
    if len(group) == 1:
        lines = _batches(_ROWS.posted_lines_cursor, source, filters, place_of_line=1, **wanted)
    else:
        most = sum(posting["jumlah_baris"] for posting in group)
        found = every_row(
            _ROWS.posted_lines_cursor(
                source.conn, after=BEFORE_FIRST, batch=most, **filters.as_parameters(*LINES), **wanted
            )
        )
        order = {number: place for place, number in enumerate(heads)}
        lines = iter(sorted(found, key=lambda line: order[line[0]]))  # stable: a document's lines stay in order
    ids = {posting["transaksi_id"]: posting["id"] for posting in group}
    for number, baris, kode, lot, gudang, satuan, sistem, fisik, selisih, harga, lebih, kurang, alasan in lines:
        yield [
            *heads[number],
            baris,
            kode,
            lot,
            gudang,
            satuan,
            sistem,
            fisik,
            selisih,
            harga,
            lebih,
            kurang,
            MONEY_CONTEXT.subtract(lebih, kurang),
            alasan,
            said[number].get(baris) if number in said else None,
            ids[number],
        ]


def _said(source: Source, filters: Filters, group: list[Posting]) -> dict[int, dict[int, str]]:
    """Hints by document and line; nobody counted for a reversal."""
    counts = [posting for posting in group if posting["jenis"] != REVERSAL]
    if filters.nomer_nota is None and filters.transaksi_id is None:
        found = smells.hints_of_postings(source.conn, [posting["transaksi_id"] for posting in counts])
    else:  # looking around costs a pass over every neighbour
        found = {
            one["transaksi_id"]: smells.posted_hints(source.conn, one["transaksi_id"], one["tanggal_wib"], True)
            for one in counts
        }
    return {number: by_line(hints) for number, hints in found.items()}


def _head(posting: Posting) -> tuple[Any, ...]:
    return (
        posting["tanggal_wib"],
        posting["nomer_nota"],
        posting["jenis"],
        posting["membalik"],
        posting["gudang_kode"],
        posting["tanggal_opname"],
        posting["diotorisasi_oleh"],
    )


def _waiting(source: Source, filters: Filters, document: Mapping[str, Any]) -> Iterator[Row]:
    """What a document that is not posted would post as it stands; a line without its numbers has no value yet."""
    status = say("id", "kind.not_posted", status=document["worker_status"] or say("id", "kind.not_sent"))
    head = (
        None,
        document["nomer_nota"],
        status,
        None,
        document["gudang_kode"],
        document["tanggal_opname"],
        document["diotorisasi_oleh"],
    )
    said = by_line(
        smells.staged_hints(
            source.conn, document["header_id"], document["gudang_kode"], document["transaksi_id"], wib(source.now)
        )
    )
    for line in _batches(
        _ROWS.staged_lines_cursor,
        source,
        filters,
        header_id=document["header_id"],
        header_gudang=document["gudang_kode"],
    ):
        baris, kode, lot, gudang, satuan, sistem, fisik, harga, alasan = line
        selisih, *amounts = computed(sistem, fisik, harga)
        yield [
            *head,
            baris,
            kode,
            lot,
            gudang,
            satuan,
            sistem,
            fisik,
            selisih,
            harga,
            *amounts,
            alasan,
            said.get(baris),
            None,
        ]


def _batches(
    query: Any, source: Source, filters: Filters, place_of_line: int = 0, **parameters: Any
) -> Iterator[tuple[Any, ...]]:
    """The lines of one document, some thousand at a time. place_of_line: where its number stands in a row."""
    after = BEFORE_FIRST
    size = min(LINES_PER_BATCH, source.at_most)
    wanted = filters.as_parameters(*LINES)
    while True:
        batch = every_row(query(source.conn, after=after, batch=size, **wanted, **parameters))
        yield from batch
        if len(batch) < size:
            return
        after = batch[-1][place_of_line]
