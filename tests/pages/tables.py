"""Tables of a page, read as a person reads them."""

from __future__ import annotations

import html
import re
from decimal import Decimal


def amount(text: str) -> Decimal:
    return Decimal(text.replace("Rp", "").replace("\u00a0", "").replace(" ", "").replace(".", "").replace(",", "."))


def cells(page: str, part: str) -> list[list[str]]:
    body = re.search(rf"<{part}>(.*?)</{part}>", page, re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body[1], re.DOTALL) if body else []
    return [
        [
            html.unescape(re.sub(r"<[^>]*>", "", cell))
            for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)
        ]
        for row in rows
    ]


def table(page: str) -> tuple[list[dict[str, str]], dict[str, str]]:
    """The rows and the totals by heading."""
    (head,) = cells(page, "thead")
    totals = cells(page, "tfoot")
    return [dict(zip(head, row, strict=True)) for row in cells(page, "tbody")], dict(
        zip(head, totals[0], strict=True) if totals else {}
    )
