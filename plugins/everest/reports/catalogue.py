"""Every report there is: its columns, its rules in Indonesian, and where its rows come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from everest.collector import no_collection
from everest.errors import DocumentMissing
from everest.reports import columns as c
from everest.reports import late, trace, variance
from everest.reports.document import OF_A_DOCUMENT
from everest.reports.shape import EVERY_ROW, Column, Filters, Kind, Report, ReportDefinition, ReportRefused, Row, Source
from everest.reports.stream import streamed, wib_entered
from everest.store.database import load_queries, snapshot
from everest.store.unit_of_work import UnitOfWork
from everest.words import say

_QUERIES = load_queries("reports")
_ROWS = load_queries("reports", as_tuples=True)
_STREAMS = load_queries("reports", streaming=True)

RANGE = ("since", "until")
JOURNAL = (*RANGE, "gudang_kode", "kode_akun", "nomer_nota")
LINES = (*RANGE, "gudang_kode", "kode_barang", "lot", "nomer_nota")
VARIANCE = (*LINES, "kelompok", "alasan")
A_YEAR = 366
"""Days, of whatever year. What has to sort all lines of a period, or its movements, is shown so much of at once
(decision 0063)."""


def _rows_of(
    query: str, names: tuple[str, ...], whole: tuple[int, ...], is_limited: bool = False
) -> Callable[[Source, Filters], Iterator[Row]]:
    """The rows of one statement; `whole`: places of counts, which come as decimals from a SUM. is_limited: there may be
    many, and the statement takes how many are wanted."""

    def rows(source: Source, filters: Filters) -> Iterator[Row]:
        limit = {"at_most": source.at_most} if is_limited else {}
        cursor = getattr(_STREAMS, f"{query}_cursor")(source.conn, **_parameters(source, filters, names), **limit)
        for found in streamed(cursor):
            row = list(found)
            for place in whole:
                row[place] = None if row[place] is None else int(row[place])
            yield row

    return rows


def _totals_of(query: str, names: tuple[str, ...]) -> Callable[[Source, Filters], Any]:
    """The one row of a statement that adds up what another one shows."""

    def totals(source: Source, filters: Filters) -> Any:
        (found,) = getattr(_ROWS, query)(source.conn, **_parameters(source, filters, names))
        return found

    return totals


def _parameters(source: Source, filters: Filters, names: tuple[str, ...]) -> dict[str, Any]:
    """The bound parameters of a query; a nota stands for its accounting documents, to which an index leads."""
    return filters.as_parameters(*(name for name in names if name != "nomer_nota")) | source.of_nota


def _variance_totals(source: Source, filters: Filters) -> Any:
    """None for a nota that is not posted: its lines are valued as they are read."""
    found = _totals_of("variance_totals", VARIANCE)(source, filters)
    return found if found[0] or filters.nomer_nota is None else None


def _stock_card(source: Source, filters: Filters) -> Iterator[Row]:
    wanted = filters.as_parameters(*RANGE, "gudang_kode", "kode_barang", "lot") | {"at_most": source.at_most}
    if filters.nomer_nota is None:
        cursor = _STREAMS.stock_card_cursor(source.conn, **wanted)
    else:
        cursor = _STREAMS.stock_card_of_nota_cursor(source.conn, **wanted, nomer_nota=filters.nomer_nota)
    for *card, posting_id, created_at, number in streamed(cursor):
        is_ours = posting_id is not None
        yield [*card, posting_id, wib_entered(created_at, is_ours, source.settings), number]


def _stock_card_totals(source: Source, filters: Filters) -> Any:
    (found,) = _ROWS.stock_card_totals(source.conn, **filters.as_parameters(*LINES))
    return found


_ALL = (
    ReportDefinition(
        key="variance",
        description="The lines of posted documents with their variance and value, and hints about what looks like a"
        " mistake in counting. With --nota also of a document that is not posted yet, as it would post now.",
        columns=variance.COLUMNS,
        accepts=VARIANCE,
        rows=variance.rows,
        totals=_variance_totals,
        notes=("reversals", "not_posted", "as_posted", "guesses"),
    ),
    ReportDefinition(
        key="documents",
        description="One row per posting: its lines, its surplus and its shortage.",
        columns=(
            c.POSTED_AT,
            c.NOTA,
            c.KIND,
            c.REVERSES,
            c.REVERSED_BY,
            c.DOCUMENT_WAREHOUSE,
            c.POSTING,
            c.LINES,
            c.VARIANCE_LINES,
            *c.AMOUNTS,
        ),
        accepts=LINES,
        rows=_rows_of("documents", LINES, whole=(7, 8), is_limited=True),
        totals=_totals_of("documents_totals", LINES),
        notes=("reversals",),
    ),
    ReportDefinition(
        key="warehouse",
        description="Surplus and shortage per warehouse of the counted line (which may differ from the document's),"
        " and the share of documents without variance there.",
        columns=(
            c.WAREHOUSE,
            c.WAREHOUSE_NAME,
            c.POSTINGS,
            c.DOCUMENTS,
            c.MATCHING,
            c.MATCHING_PERCENT,
            c.VARIANCE_LINES,
            *c.AMOUNTS,
        ),
        accepts=LINES,
        rows=_rows_of("by_warehouse", LINES, whole=(2, 3, 4, 6)),
        notes=("reversals", "matching"),
    ),
    ReportDefinition(
        key="group",
        description="Surplus and shortage per item group, as table kelompok_barang says it now.",
        columns=(
            c.GROUP,
            Column.named("jumlah_barang", Kind.INTEGER),
            c.POSTINGS,
            c.VARIANCE_LINES,
            *c.AMOUNTS,
        ),
        accepts=LINES,
        rows=_rows_of("by_group", LINES, whole=(1, 2, 3)),
        longest_days=A_YEAR,
        notes=("reversals", "no_group"),
    ),
    ReportDefinition(
        key="item",
        description="Surplus and shortage per item, in quantity and value, over all its lots and warehouses.",
        columns=(
            c.ITEM,
            Column.named("jumlah_gudang", Kind.INTEGER),
            c.POSTINGS,
            c.VARIANCE_LINES,
            Column.named("qty_lebih", Kind.QUANTITY),
            Column.named("qty_kurang", Kind.QUANTITY),
            Column.named("qty_bersih", Kind.QUANTITY),
            *c.AMOUNTS,
        ),
        accepts=LINES,
        rows=_rows_of("by_item", LINES, whole=(1, 2, 3)),
        longest_days=A_YEAR,
        notes=("reversals", "units_differ"),
    ),
    ReportDefinition(
        key="month",
        description="Surplus and shortage per accounting month (WIB, by posting instant), and the share of documents"
        " without variance.",
        columns=(
            Column.named("bulan", Kind.CODE),
            Column.named("jumlah_posting", Kind.INTEGER, is_summed=True),
            Column.named("jumlah_dokumen", Kind.INTEGER, is_summed=True),
            Column.named("dokumen_cocok", Kind.INTEGER, is_summed=True),
            c.MATCHING_PERCENT,
            c.VARIANCE_LINES,
            *c.AMOUNTS,
        ),
        accepts=LINES,
        rows=_rows_of("by_month", LINES, whole=(1, 2, 3, 5)),
        notes=("reversals", "matching"),
    ),
    ReportDefinition(
        key="reason",
        description="Surplus and shortage per reason (alasan) that the counters gave for a line.",
        columns=(c.REASON, c.POSTINGS, c.VARIANCE_LINES, *c.AMOUNTS),
        accepts=LINES,
        rows=_rows_of("by_reason", LINES, whole=(1, 2)),
        longest_days=A_YEAR,
        notes=("reversals", "no_reason"),
    ),
    ReportDefinition(
        key="journal",
        description="The general-ledger rows of postings and reversals. --gudang is the document's warehouse.",
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
            c.DOCUMENT_WAREHOUSE,
            c.POSTING,
            Column.named("jurnal_id", Kind.INTEGER),
        ),
        accepts=JOURNAL,
        rows=_rows_of("journal", JOURNAL, whole=(), is_limited=True),
        totals=_totals_of("journal_totals", JOURNAL),
        notes=("ours_only",),
    ),
    ReportDefinition(
        key="stock-card",
        description="The movements of stock, ours and other modules', with the running balance of each card (item, lot,"
        " warehouse). The balance counts everything before --from, too.",
        columns=(
            Column.named("tanggal_wib", Kind.INSTANT, text="tanggal_mutasi_wib"),
            c.ITEM,
            c.LOT,
            c.WAREHOUSE,
            c.NOTA,
            c.SOURCE_NAME,
            c.MOVED_IN,
            c.MOVED_OUT,
            Column.named("saldo", Kind.QUANTITY),
            c.UNIT_COST,
            c.VALUE,
            c.POSTING,
            c.ENTERED_AT,
            Column.named("kartu_stok_id", Kind.INTEGER),
        ),
        accepts=LINES,
        rows=_stock_card,
        totals=_stock_card_totals,
        needs_one_of=("kode_barang", "gudang_kode", "nomer_nota"),
        notes=("balance",),
    ),
    ReportDefinition(
        key="late-movements",
        description="Movements of other modules that were entered after the snapshot of a posted count and are dated at"
        " or before it: the count did not know them. Listed by the nota they put in doubt.",
        columns=late.COLUMNS,
        accepts=LINES,
        rows=late.rows,
        longest_days=A_YEAR,
        notes=("late", "late_standing"),
    ),
    ReportDefinition(
        key="trace",
        description="From a journal row, a card row, a posting or a nota to everything that belongs to it: document,"
        " jobs, messages, workflow and Airflow run, posting, journal and card rows.",
        columns=trace.COLUMNS,
        accepts=("nomer_nota", "jurnal_id", "kartu_stok_id", "posting_id"),
        rows=trace.rows,
        needs_one_of=("nomer_nota", "jurnal_id", "kartu_stok_id", "posting_id"),
    ),
)

REPORTS: Mapping[str, ReportDefinition] = {definition.key: definition for definition in _ALL}


@contextmanager
def opened(tx: UnitOfWork, key: str, filters: Filters | None = None, at_most: int = EVERY_ROW) -> Iterator[Report]:
    """A report whose rows are all of one moment. The transaction of `tx` must not have written anything: it is ended,
    and the connection is busy until the report is closed. at_most: how many rows somebody will look at.

    Raises ReportRefused for an unknown report or a filter that does not fit, DocumentMissing for an unknown nota.
    """
    definition = REPORTS.get(key) or OF_A_DOCUMENT.get(key)
    if definition is None:
        raise ReportRefused(say("en", "refused.no_report", name=key, names=", ".join(REPORTS)))
    filters = filters or Filters()
    definition.check(filters)
    _QUERIES.room_for_groups(tx.conn)
    with no_collection(), snapshot(tx.conn):
        nota = filters.nomer_nota
        if nota is not None and not _QUERIES.document_exists(tx.conn, nomer_nota=nota):
            raise DocumentMissing(say("en", "refused.no_nota", nota=nota))
        postings = None
        if nota is not None:
            postings = [row["transaksi_id"] for row in _QUERIES.postings_of_nota(tx.conn, nomer_nota=nota)]
        where = Source(tx.conn, tx.settings, tx.now, at_most, postings)
        source: Any = definition.rows(where, filters)
        try:
            yield Report(definition, filters, source, whole=lambda: definition.totals(where, filters))
        finally:
            source.close()
