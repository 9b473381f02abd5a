"""The variance report: counted lines with what they are worth, document by document.

Rows are read by primary key in batches, so that neither a document of 100,000 lines nor a year of documents is ever in
memory; what a document's hints need is read before its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from everest.opname.amounts import MONEY_CONTEXT, ZERO_MONEY, round_money
from everest.reports import columns as c
from everest.reports.shape import Filters, Row, Source
from everest.store.database import load_queries

_QUERIES = load_queries("reports")
_ROWS = load_queries("reports", as_tuples=True)

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
    postings = list(_QUERIES.postings(source.conn, **filters.as_parameters("since", "until", "nomer_nota")))
    for posting in postings:
        yield from _posted(source, filters, posting)
    if not postings and filters.nomer_nota is not None and filters.since is None and filters.until is None:
        document = _QUERIES.waiting_document(source.conn, nomer_nota=filters.nomer_nota)
        if document is not None:
            yield from _waiting(source, filters, document)


def _posted(source: Source, filters: Filters, posting: Mapping[str, Any]) -> Iterator[Row]:
    is_reversal = posting["jenis"] == REVERSAL
    hints: Mapping[int, str] = {}
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
        transaksi_id=posting["lines_of"],
        header_id=posting["header_id"],
    ):
        baris, kode, lot, gudang, satuan, sistem, fisik, selisih, harga, lebih, kurang, alasan = line
        if is_reversal:  # not a count: the original's lines the other way round
            sistem = fisik = None
            selisih, lebih, kurang = MONEY_CONTEXT.minus(selisih), kurang, lebih
        amounts = (lebih, kurang, MONEY_CONTEXT.subtract(lebih, kurang))
        said = hints.get(baris)
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
            said,
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
    for line in _batches(
        _ROWS.staged_lines,
        source,
        filters,
        header_id=document["header_id"],
        header_gudang=document["gudang_kode"],
    ):
        baris, kode, lot, gudang, satuan, sistem, fisik, harga, alasan = line
        selisih, *amounts = _computed(sistem, fisik, harga)
        yield [*head, baris, kode, lot, gudang, satuan, sistem, fisik, selisih, harga, *amounts, alasan, None, None]


def _batches(query: Any, source: Source, filters: Filters, **parameters: Any) -> Iterator[tuple[Any, ...]]:
    after = -(2**31)
    wanted = filters.as_parameters("gudang_kode", "kode_barang", "lot")
    while True:
        batch = list(query(source.conn, after=after, batch=LINES_PER_BATCH, **wanted, **parameters))
        yield from batch
        if len(batch) < LINES_PER_BATCH:
            return
        after = batch[-1][0]


def _computed(sistem: Decimal | None, fisik: Decimal | None, harga: Decimal | None) -> tuple[Decimal | None, ...]:
    """(variance, surplus, shortage, net): the arithmetic of `opname.variance`, for one line at a time."""
    if sistem is None or fisik is None:
        return None, None, None, None
    selisih = MONEY_CONTEXT.subtract(fisik, sistem)
    if not selisih:
        return selisih, ZERO_MONEY, ZERO_MONEY, ZERO_MONEY
    if harga is None:
        return selisih, None, None, None
    try:
        nilai = round_money(MONEY_CONTEXT.multiply(selisih, harga))
    except OverflowError:  # posting refuses such a line
        return selisih, None, None, None
    nilai = nilai if nilai else ZERO_MONEY
    return selisih, max(nilai, ZERO_MONEY), max(-nilai, ZERO_MONEY), nilai
