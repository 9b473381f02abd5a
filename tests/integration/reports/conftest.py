from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from everest import reports
from everest.reports import Filters, Report
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker

Read = Callable[..., tuple[list[dict[str, Any]], Report]]


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    walker = Walker(database)
    yield walker
    walker.close()


@pytest.fixture
def read(walker: Walker) -> Read:
    """Rows of a report by column name, and the report with its totals."""

    def read(key: str, **filters: Any) -> tuple[list[dict[str, Any]], Report]:
        with walker.database.transaction() as tx, reports.opened(tx, key, Filters(**filters)) as report:
            names = [column.name for column in report.columns]
            return [dict(zip(names, row, strict=True)) for row in report.rows()], report

    return read


@pytest.fixture
def post(walker: Walker, connection: Any) -> Callable[..., builders.Document]:
    """A document that is posted."""

    def post(*lines: builders.Line, **header: Any) -> builders.Document:
        document = builders.document(connection, lines or builders.EXAMPLE, **header)
        assert walker.post(document.shadow_id) == "COMPLETED", builders.shadow(connection, document.shadow_id)[
            "response"
        ]
        return document

    return post


def reverse(conn: Any, nota: str, new_nota: str, tanggal_wib: Any) -> int:
    """A reversal as the posting rules define it: sides exchanged, original amounts, card rows mirrored."""
    (original,) = builders.rows(conn, "SELECT * FROM posting_sets WHERE nomer_nota = %s AND jenis = 'POSTING'", nota)
    transaksi_id = int(original["transaksi_id"]) + 1_000_000  # builders count their own up from 940,001
    builders.insert(
        conn,
        "transaksi",
        id=transaksi_id,
        nomer_nota=new_nota,
        jenis="PEMBALIKAN",
        tanggal_wib=tanggal_wib,
        gudang_kode="GD-A",
    )
    posting_id = builders.insert(
        conn,
        "posting_sets",
        transaksi_id=transaksi_id,
        nomer_nota=new_nota,
        jenis="PEMBALIKAN",
        membalik_id=original["id"],
        input_hash="0" * 64,
        total_debet=original["total_debet"],
        total_kredit=original["total_kredit"],
        baris_selisih=original["baris_selisih"],
    )
    for row in builders.rows(conn, "SELECT * FROM jurnal WHERE posting_id = %s", original["id"]):
        mirrored = {"debet": row["kredit"], "kredit": row["debet"], "tanggal_wib": tanggal_wib}
        _copy(conn, "jurnal", row, posting_id, transaksi_id, new_nota, mirrored)
    for row in builders.rows(conn, "SELECT * FROM kartu_stok WHERE posting_id = %s", original["id"]):
        mirrored = {"masuk": row["keluar"], "keluar": row["masuk"], "nilai": -row["nilai"], "tanggal_wib": tanggal_wib}
        _copy(conn, "kartu_stok", row, posting_id, transaksi_id, new_nota, mirrored)
    return posting_id


def _copy(
    conn: Any, table: str, row: dict[str, Any], posting_id: int, transaksi_id: int, nota: str, other: dict[str, Any]
) -> None:
    own = {"posting_id": posting_id, "transaksi_id": transaksi_id, "nomer_nota": nota}
    kept = {name: value for name, value in row.items() if name not in ("id", "created_at")}
    builders.insert(conn, table, **kept | own | other)
