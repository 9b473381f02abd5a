"""The variance report: counted lines with what they are worth, document by document.

Rows are read by primary key in batches, so that neither a document of 100,000 lines nor a year of documents is ever in
memory; what a document's hints need is read before its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from everest.opname.amounts import MONEY_CONTEXT
from everest.opname.document import wib
from everest.opname.hints import by_line
from everest.reports import columns as c
from everest.reports import smells
from everest.reports.arithmetic import computed
from everest.reports.shape import Filters, Row, Source
from everest.store.database import load_queries

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
LINES_PER_BATCH = 5_000
REVERSAL = "PEMBALIKAN"
NOT_POSTED = "BELUM DIPOSTING"


def rows(source: Source, filters: Filters) -> Iterator[Row]:
    """The lines of every posting of the range; of a nota without a posting, those of its newest document."""
    # Some hundred bytes per posting: years of them fit into memory, their lines would not.
    wanted = filters.as_parameters("since", "until", "gudang_kode", "kode_barang", "lot", "nomer_nota")
    postings = list(_QUERIES.postings(source.conn, **wanted))
    for posting in postings:
        yield from _posted(source, filters, posting)
    if not postings and filters.nomer_nota is not None and filters.since is None and filters.until is None:
        document = _QUERIES.waiting_document(source.conn, nomer_nota=filters.nomer_nota)
        if document is not None:
            yield from _waiting(source, filters, document)


def rows_of_document(source: Source, filters: Filters) -> Iterator[Row]:
    """The lines of exactly one document, also where another one was posted under its nota: as it is posted, else as it
    stands."""
    posting = _DOCUMENT.posting_of_document(source.conn, transaksi_id=filters.transaksi_id)
    if posting is not None:
        yield from _posted(source, replace(filters, nomer_nota=posting["nomer_nota"]), posting)
        return
    document = _DOCUMENT.document_as_sent(source.conn, transaksi_id=filters.transaksi_id)
    if document is not None:
        yield from _waiting(source, filters, document)


def _posted(source: Source, filters: Filters, posting: Mapping[str, Any]) -> Iterator[Row]:
    said: Mapping[int, str] = {}
    if posting["jenis"] != REVERSAL:  # nobody counted for a reversal
        only_this = filters.nomer_nota is not None  # looking around costs a pass over every neighbour
        said = by_line(smells.posted_hints(source.conn, posting["transaksi_id"], posting["tanggal_wib"], only_this))
    head = (
        posting["tanggal_wib"],
        posting["nomer_nota"],
        posting["jenis"],
        posting["membalik"],
        posting["gudang_kode"],
        posting["tanggal_opname"],
        posting["diotorisasi_oleh"],
    )
    for line in _batches(
        _ROWS.posted_lines,
        source,
        filters,
        transaksi_id=posting["transaksi_id"],
        header_id=posting["header_id"],
    ):
        baris, kode, lot, gudang, satuan, sistem, fisik, selisih, harga, lebih, kurang, alasan = line
        amounts = (lebih, kurang, MONEY_CONTEXT.subtract(lebih, kurang))
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
            posting["id"],
        ]


def _waiting(source: Source, filters: Filters, document: Mapping[str, Any]) -> Iterator[Row]:
    """What a document that is not posted would post as it stands; a line without its numbers has no value yet."""
    status = f"{NOT_POSTED} ({document['worker_status'] or 'belum dikirim'})"
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
        _ROWS.staged_lines,
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


def _batches(query: Any, source: Source, filters: Filters, **parameters: Any) -> Iterator[tuple[Any, ...]]:
    after = -(2**31)
    wanted = filters.as_parameters("gudang_kode", "kode_barang", "lot")
    while True:
        batch = list(query(source.conn, after=after, batch=LINES_PER_BATCH, **wanted, **parameters))
        yield from batch
        if len(batch) < LINES_PER_BATCH:
            return
        after = batch[-1][0]
