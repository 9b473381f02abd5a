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
        description="The lines of one document with their variance and value: as posted, else as they would post now.",
        columns=variance.COLUMNS,
        accepts=ONE,
        needs_one_of=ONE,
        rows=variance.rows_of_document,
    ),
    ReportDefinition(
        key="document-journal",
        description="The general-ledger rows of one document.",
        columns=(
            c.POSTED_AT,
            c.NOTA,
            c.KIND,
            Column.named("urutan", Kind.INTEGER),
            Column.named("kode_akun", Kind.CODE),
            Column.named("nama_akun", Kind.TEXT),
            Column.named("keterangan", Kind.TEXT),
            Column.named("debet", Kind.MONEY, is_summed=True),
            Column.named("kredit", Kind.MONEY, is_summed=True),
            c.POSTING,
            Column.named("jurnal_id", Kind.INTEGER),
        ),
        accepts=ONE,
        needs_one_of=ONE,
        rows=_rows_of("journal_of_document"),
    ),
    ReportDefinition(
        key="document-card",
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
            Column.named("kartu_stok_id", Kind.INTEGER),
        ),
        accepts=ONE,
        needs_one_of=ONE,
        rows=_rows_of("stock_card_of_document"),
    ),
)

OF_A_DOCUMENT: Mapping[str, ReportDefinition] = {definition.key: definition for definition in _ALL}
