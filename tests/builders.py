"""What tests put into the database, and what they read back: documents, movements, master data, the books.

A document is written the way the existing web application writes it: only the columns that posting-rules name, no
run and no outbox row. Every builder commits, because what is tested reads over another connection. The defaults give
a document that posts: authorised at level 2 a moment ago, its warehouse active, its month open (no row is open).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import MySQLdb.cursors

WIB = ZoneInfo("Asia/Jakarta")
PERSEDIAAN, LABA_SELISIH, RUGI_SELISIH = "1010030030", "7010150", "7020020"

# Far above what the table's own counter gives to our own submits within a test.
_foreign_transaksi_ids = itertools.count(940_001)


@dataclass(frozen=True)
class Line:
    """A counted line; quantities and cost as text, so that no test invents a float. None = NULL."""

    kode_barang: str | None = "BRG-A"
    qty_sistem: str | None = "10"
    qty_fisik: str | None = "12"
    harga_pokok: str | None = "1500.00"
    lot: str | None = None
    gudang_kode: str | None = None
    satuan: str | None = "PCS"
    alasan: str | None = None
    baris: int | None = None


# The example of posting-rules: surplus 3,000.00, shortage 5,001.00, one line without variance.
EXAMPLE = (
    Line("BRG-A", "10", "12", "1500.00"),
    Line("BRG-B", "7", "5", "2500.50"),
    Line("BRG-C", "3", "3", "100.00"),
)


@dataclass(frozen=True)
class Document:
    """A document as its sender knows it."""

    header_id: int
    transaksi_id: int
    shadow_id: int
    nomer_nota: str

    @property
    def message(self) -> dict[str, Any]:
        """What the existing publisher sends for it."""
        return {"transaksi_id": self.transaksi_id, "shadow_id": self.shadow_id, "nota": self.nomer_nota}


def document(
    conn: Any,
    lines: Sequence[Line] = EXAMPLE,
    *,
    nomer_nota: str | None = None,
    transaksi_id: int | None = None,
    gudang_kode: str = "GD-A",
    tanggal_opname: date | None = None,
    tanggal_posting: date | None = None,
    snapshot_at: datetime | None = None,
    otorisasi_level: int = 2,
    diotorisasi_oleh: str | None = "budi",
    diotorisasi_at: datetime | None = None,
    dibuat_oleh: str | None = "sari",
    publish_status: str = "PUBLISHED",
    with_warehouses: bool = True,
) -> Document:
    """Header, lines and shadow row. Instants are aware; with_warehouses adds those it names that are absent."""
    authorised = diotorisasi_at or datetime.now(UTC)
    snapshot = snapshot_at or authorised - timedelta(hours=1)
    transaksi_id = transaksi_id or next(_foreign_transaksi_ids)
    nomer_nota = nomer_nota or f"SO-{transaksi_id}"
    if with_warehouses:
        known = {row["gudang_kode"] for row in rows(conn, "SELECT gudang_kode FROM gudang")}
        for kode in {gudang_kode, *(line.gudang_kode for line in lines)} - {None, "", *known}:
            warehouse(conn, str(kode))
    header_id = insert(
        conn,
        "so_headers_staging",
        transaksi_id=transaksi_id,
        nomer_nota=nomer_nota,
        gudang_kode=gudang_kode,
        tanggal_opname=tanggal_opname or snapshot.astimezone(WIB).date(),
        tanggal_posting=tanggal_posting,
        snapshot_at=utc(snapshot),
        otorisasi_level=otorisasi_level,
        diotorisasi_oleh=diotorisasi_oleh,
        diotorisasi_at=utc(authorised),
        dibuat_oleh=dibuat_oleh,
    )
    write_lines(conn, header_id, lines)
    shadow_id = shadow_row(conn, transaksi_id, nomer_nota, publish_status=publish_status)
    conn.commit()
    return Document(header_id, transaksi_id, shadow_id, nomer_nota)


def write_lines(conn: Any, header_id: int, lines: Sequence[Line]) -> None:
    """Replaces the lines of a document: a correction by the existing application."""
    columns = (
        "baris",
        "kode_barang",
        "lot",
        "gudang_kode",
        "satuan",
        "qty_sistem",
        "qty_fisik",
        "harga_pokok",
        "alasan",
    )
    rows = [
        (header_id, line.baris or number, *(getattr(line, column) for column in columns[1:]))
        for number, line in enumerate(lines, start=1)
    ]
    with conn.cursor() as cursor:
        cursor.execute("DELETE FROM so_details_staging WHERE header_id = %s", (header_id,))
        cursor.executemany(
            f"INSERT INTO so_details_staging (header_id, {', '.join(columns)}) VALUES (%s{', %s' * len(columns)})", rows
        )
    conn.commit()


def shadow_row(conn: Any, transaksi_id: int | None, nomer_nota: str | None, **columns: Any) -> int:
    """A job as a foreign publisher writes it; `columns` for states that a test begins in."""
    values = {"publish_status": "PUBLISHED", "worker_status": "PENDING"} | columns
    payload = json.dumps({"transaksi_id": transaksi_id, "nota": nomer_nota})
    return insert(
        conn,
        "rabbit_publish_shadow",
        **{"transaksi_id": transaksi_id, "nomer_nota": nomer_nota, "payload": payload} | values,
    )


def warehouse(conn: Any, gudang_kode: str = "GD-A", aktif: bool = True) -> None:
    replace(conn, "gudang", gudang_kode=gudang_kode, nama=f"Gudang {gudang_kode}", aktif=int(aktif))


def account(conn: Any, kode_akun: str, aktif: bool = True) -> None:
    replace(conn, "akun", kode_akun=kode_akun, nama=f"Akun {kode_akun}", aktif=int(aktif))


def period(conn: Any, periode: str, status: str = "CLOSED") -> None:
    """periode: 'YYYY-MM'."""
    replace(conn, "periode_akuntansi", periode=periode, status=status)


def limits(conn: Any, gudang_kode: str = "*", batas_dokumen: str | None = None, batas_baris: str | None = None) -> None:
    replace(conn, "kebijakan_selisih", gudang_kode=gudang_kode, batas_dokumen=batas_dokumen, batas_baris=batas_baris)


def movement(
    conn: Any,
    kode_barang: str = "BRG-A",
    *,
    masuk: str = "0",
    keluar: str = "0",
    tanggal_wib: datetime,
    created_at: datetime,
    gudang_kode: str = "GD-A",
    lot: str = "",
    nomer_nota: str = "BELI-1",
    **columns: Any,
) -> int:
    """A stock movement of another module. tanggal_wib is naive WIB, created_at aware (when it was entered)."""
    return insert(
        conn,
        "kartu_stok",
        **{"kode_barang": kode_barang, "masuk": masuk, "keluar": keluar, "tanggal_wib": tanggal_wib}
        | {"created_at": utc(created_at), "gudang_kode": gudang_kode, "lot": lot, "nomer_nota": nomer_nota}
        | columns,
    )


@dataclass(frozen=True)
class Books:
    """The sums of everything that stands in the books. inventory: Σ debet - Σ kredit on the inventory account."""

    postings: int
    journal_rows: int
    debet: Decimal
    kredit: Decimal
    inventory: Decimal
    card_rows: int
    card_value: Decimal

    @property
    def agree(self) -> bool:
        """Balanced, and the general ledger moved by what the stock card moved."""
        return self.debet == self.kredit and self.inventory == self.card_value


NOTHING_POSTED = Books(0, 0, Decimal(0), Decimal(0), Decimal(0), 0, Decimal(0))


def books(conn: Any) -> Books:
    """Our own rows only (those with a posting)."""
    (journal,) = rows(
        conn,
        "SELECT COUNT(*) AS n, COALESCE(SUM(debet), 0) AS debet, COALESCE(SUM(kredit), 0) AS kredit,"
        " COALESCE(SUM(CASE WHEN kode_akun = %s THEN debet - kredit END), 0) AS inventory"
        " FROM jurnal WHERE posting_id IS NOT NULL",
        PERSEDIAAN,
    )
    (card,) = rows(
        conn, "SELECT COUNT(*) AS n, COALESCE(SUM(nilai), 0) AS nilai FROM kartu_stok WHERE posting_id IS NOT NULL"
    )
    (postings,) = rows(conn, "SELECT COUNT(*) AS n FROM posting_sets")
    return Books(
        postings["n"], journal["n"], journal["debet"], journal["kredit"], journal["inventory"], card["n"], card["nilai"]
    )


def journal_of(conn: Any, nomer_nota: str) -> list[tuple[int, str, Decimal, Decimal]]:
    """(urutan, kode_akun, debet, kredit) of what was posted for a nota."""
    found = rows(conn, "SELECT * FROM jurnal WHERE nomer_nota = %s AND posting_id IS NOT NULL ORDER BY id", nomer_nota)
    return [(row["urutan"], row["kode_akun"], row["debet"], row["kredit"]) for row in found]


def card_of(conn: Any, nomer_nota: str) -> list[tuple[str, Decimal, Decimal, Decimal]]:
    """(kode_barang, masuk, keluar, nilai) of what was posted for a nota."""
    found = rows(
        conn, "SELECT * FROM kartu_stok WHERE nomer_nota = %s AND posting_id IS NOT NULL ORDER BY id", nomer_nota
    )
    return [(row["kode_barang"], row["masuk"], row["keluar"], row["nilai"]) for row in found]


def shadow(conn: Any, shadow_id: int) -> dict[str, Any]:
    """The job as it stands now, whatever snapshot the connection held; `response` decoded."""
    (row,) = rows(conn, "SELECT * FROM rabbit_publish_shadow WHERE id = %s", shadow_id)
    return row | {"response": json.loads(row["response"]) if row["response"] else None}


def rows(conn: Any, sql: str, *parameters: Any) -> list[dict[str, Any]]:
    """Rows as they stand now: ends the transaction of `conn` before and after."""
    conn.commit()
    with conn.cursor(MySQLdb.cursors.DictCursor) as cursor:
        cursor.execute(sql, parameters or None)
        found = list(cursor.fetchall())
    conn.commit()
    return found


def insert(conn: Any, table: str, **values: Any) -> int:
    """One row; returns its id."""
    return _write(conn, "INSERT", table, values)


def replace(conn: Any, table: str, **values: Any) -> int:
    """One row of master data, in place of the one with the same key."""
    return _write(conn, "REPLACE", table, values)


def _write(conn: Any, verb: str, table: str, values: dict[str, Any]) -> int:
    marks = ", ".join(["%s"] * len(values))
    with conn.cursor() as cursor:
        cursor.execute(f"{verb} INTO `{table}` ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
        row_id = int(cursor.lastrowid or 0)
    conn.commit()
    return row_id


def utc(instant: datetime) -> datetime:
    """As the tables hold it: naive UTC."""
    return instant.astimezone(UTC).replace(tzinfo=None)
