"""The documents that are measured: the same every time for the same seed, and stored by the product's own submit.

Every line has a variance unless a share is given: 20,000 lines are 20,000 rows in each of the two tables. A real count
has fewer; P2 reports those as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal

from everest.bootstrap import database
from everest.intake.submission import Authority, Line, Submission
from everest.intake.submit import Submitted, submit
from everest.settings import MysqlUrl
from everest.store import database as store

WAREHOUSES = ("BENCH-1", "BENCH-2", "BENCH-3", "BENCH-4")
APART = tuple(f"BENCH-W{number:02}" for number in range(1, 13))
"""For documents that share none: each has one of its own."""

AUTHORITY = Authority("bench", "bench-atasan", 2)
VARIANCE_SHARE = 1.0


def lines(
    count: int,
    seed: int,
    variance_share: float = VARIANCE_SHARE,
    prefix: str = "BRG",
    warehouses: Sequence[str] = WAREHOUSES,
) -> tuple[Line, ...]:
    """Counted lines over these warehouses, quantities with 4 decimals and costs with 6, as wide as real ones are."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        book = rng.randrange(0, 5_000_000)
        counted = book + (rng.randrange(1, 90_000) * rng.choice((-1, 1)) if rng.random() < variance_share else 0)
        made.append(
            Line(
                kode_barang=f"{prefix}-{number:06d}",
                gudang_kode=warehouses[number % len(warehouses)],
                satuan="PCS",
                qty_sistem=Decimal(book).scaleb(-4),
                qty_fisik=Decimal(max(counted, 0)).scaleb(-4),
                harga_pokok=Decimal(rng.randrange(1, 5_000_000_000)).scaleb(-6),
            )
        )
    return tuple(made)


def submission(nota: str, counted: Iterable[Line], token: str | None = "") -> Submission:
    """Counted now: no movement of an earlier document of the benchmark is newer than its snapshot. Of the warehouse of
    its first line.

    token: '' = the nota, None = none is sent.
    """
    counted = tuple(counted)
    return Submission(
        nomer_nota=nota,
        gudang_kode=counted[0].gudang_kode,
        tanggal_opname=date.today(),
        lines=counted,
        snapshot_at=datetime.now(UTC),
        submit_token=nota if token == "" else token,
    )


def store_document(url: MysqlUrl, document: Submission) -> Submitted:
    """By the web path, committed."""
    units = database(url)
    try:
        with units.transaction() as tx:
            stored = submit(tx, document, AUTHORITY)
    finally:
        units.close()
    if not isinstance(stored, Submitted):
        raise RuntimeError(f"{document.nomer_nota} was there already")
    return stored


def add_warehouses(url: MysqlUrl) -> None:
    with closing(store.connect(url)) as conn, store.transaction(conn), conn.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO gudang (gudang_kode, nama) VALUES (%s, 'Benchmark') ON DUPLICATE KEY UPDATE aktif = 1",
            [(code,) for code in (*WAREHOUSES, *APART)],
        )
