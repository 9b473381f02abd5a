"""What people fill into the forms."""

from __future__ import annotations

import re
from typing import Any

from tests.builders import Line
from tests.pages.conftest import Be

HEADER = {"nomer_nota": "SO-H1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31", "decimal": "id"}

SOUND = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n00123;10;12;1500,00\nBRG-B;7;5;2500,50\n"

NOT_COUNTED = [Line("00123", "10", "12", "1500"), Line("BRG-B", "7", None, "2500.50")]

COUNTED = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n00123;10;12;1500,00\nBRG-B;7;5;2500,50\n"

LINES = (
    "kode_barang;lot;qty_sistem;qty_fisik;harga_pokok\n"
    "BRG-A;;10;12;1500,55\nBRG-B;L1;7;5;2500,005\nBRG-C;;3;3;99\nBRG-D;;0;1;4000000\n"
)


def kept(browser: Be, connection: Any, who: str = "warehouse", pasted: str = LINES, **header: Any) -> int:
    """A draft that somebody has just sent."""
    sent = browser(who).submit("/submit", pasted=pasted, submit_token=repr(header), **{**HEADER, **header})
    assert sent.status_code == 303, sent.text
    connection.commit()
    return int(re.findall(r"new=(\d+)", sent.headers["location"])[0])


TITLES = "kode_barang;qty_sistem;qty_fisik;harga_pokok;lot"
