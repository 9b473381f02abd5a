"""Looking once, and planting what an audit should find."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from everest import periods
from tests import builders
from tests.builders import Line
from tests.integration.audit.world import Books


def month_of(nota: str, books: Books) -> str:
    (row,) = builders.rows(books.conn, "SELECT MIN(tanggal_wib) AS dated FROM jurnal WHERE nomer_nota = %s", nota)
    return f"{row['dated']:%Y-%m}"


def close_month(books: Books, month: str) -> None:
    with books.walker.database.transaction() as tx:
        assert periods.close(tx, month, "dewi", "tutup buku").is_changed


def open_month(books: Books, month: str) -> None:
    with books.walker.database.transaction() as tx:
        assert periods.open(tx, month, "dewi", "koreksi").is_changed


def movement_entered_late(books: Books) -> str:
    """H13: a receipt of this morning, entered after the count of it was posted."""
    snapshot = datetime.now(UTC) - timedelta(hours=1)
    document = books.post(Line("TELAT"), snapshot_at=snapshot)
    dated = (snapshot - timedelta(hours=2)).astimezone(builders.WIB).replace(tzinfo=None)
    later = datetime.now(UTC) + timedelta(seconds=1)
    builders.movement(books.conn, "TELAT", masuk="4", tanggal_wib=dated, created_at=later)
    return f"nota {document.nomer_nota}: barang TELAT"


def movement_that_committed_while_the_count_was_posted(books: Books) -> str:
    """Entered between snapshot and posting, and yet the posting did not see it: nobody approved it."""
    snapshot = datetime.now(UTC) - timedelta(hours=1)
    document = books.post(Line("SELIP"), snapshot_at=snapshot)
    dated = (snapshot - timedelta(hours=2)).astimezone(builders.WIB).replace(tzinfo=None)
    builders.movement(books.conn, "SELIP", masuk="4", tanggal_wib=dated, created_at=snapshot + timedelta(minutes=1))
    return f"nota {document.nomer_nota}: barang SELIP"
