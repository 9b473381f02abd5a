"""The files of one document, as its page offers them: lines, journal, stock card of exactly this accounting document.

Apart from the reports over the books, which ask by nota: several documents may carry one, and of those one is posted.
Whoever may see a document may have these, and nothing of its neighbours comes with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from everest.reports import columns as c
from everest.reports import variance
from everest.reports.shape import Column, Filters, Kind, ReportDefinition, Row, Source
from everest.reports.stream import streamed
from everest.store.database import load_queries

_STREAMS = load_queries("reports_document", streaming=True)

ONE = ("transaksi_id",)


def _rows_of(query: str) -> Callable[[Source, Filters], Iterator[Row]]:
    def rows(source: Source, filters: Filters) -> Iterator[Row]:
        cursor = getattr(_STREAMS, f"{query}_cursor")(source.conn, transaksi_id=filters.transaksi_id)
        yield from streamed(cursor)

    return rows


_ALL = (
    ReportDefinition(
        key="document-lines",
        title="Baris dokumen",
        description="The lines of one document with their variance and value: as posted, else as they would post now.",
        columns=variance.COLUMNS,
        accepts=ONE,
        needs_one_of=ONE,
        rows=variance.rows_of_document,
    ),
    ReportDefinition(
        key="document-journal",
        title="Jurnal dokumen",
        description="The general-ledger rows of one document.",
        columns=(
            c.POSTED_AT,
            c.NOTA,
            c.KIND,
            Column("urutan", "Urutan", "Order", Kind.INTEGER),
            Column("kode_akun", "Akun", "Account", Kind.CODE),
            Column("nama_akun", "Nama akun", "Account name", Kind.TEXT),
            Column("keterangan", "Keterangan", "Description", Kind.TEXT),
            Column("debet", "Debet", "Debit", Kind.MONEY, is_summed=True),
            Column("kredit", "Kredit", "Credit", Kind.MONEY, is_summed=True),
            c.POSTING,
            Column("jurnal_id", "Baris jurnal", "Journal row", Kind.INTEGER),
        ),
        accepts=ONE,
        needs_one_of=ONE,
        rows=_rows_of("journal_of_document"),
    ),
    ReportDefinition(
        key="document-card",
        title="Kartu stok dokumen",
        description="The stock movements of one document.",
        columns=(
            c.POSTED_AT,
            c.NOTA,
            c.ITEM,
            c.LOT,
            c.WAREHOUSE,
            c.MOVED_IN,
            c.MOVED_OUT,
            c.UNIT_COST,
            c.VALUE,
            c.POSTING,
            Column("kartu_stok_id", "Baris kartu", "Card row", Kind.INTEGER),
        ),
        accepts=ONE,
        needs_one_of=ONE,
        rows=_rows_of("stock_card_of_document"),
    ),
)

OF_A_DOCUMENT: Mapping[str, ReportDefinition] = {definition.key: definition for definition in _ALL}
