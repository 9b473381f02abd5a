"""Journal and stock card on a document's page: what stands there stands in the books, row by row, to the cent."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from everest.pages.document_tabs import LINES_PER_PAGE
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be, Browser
from tests.pages.posted import taken_back, walked
from tests.pages.tables import amount, cells, table

OTHER = Line("BRG-X", "1", "4", "10.10")


def number(text: str) -> Decimal:
    return amount(text) if text not in ("", "–") else Decimal(0)


def journal(client: Browser, shadow_id: int) -> tuple[list[tuple[int, str, Decimal, Decimal]], tuple[Decimal, Decimal]]:
    """Its rows as `builders.journal_of` has them, and the totals below."""
    page = client.get(f"/documents/{shadow_id}?tab=journal").text
    (head,) = cells(page, "thead")
    rows = [dict(zip(head, row, strict=True)) for row in cells(page, "tbody")]
    foot = re.search(r"<tfoot>(.*?)</tfoot>", page, re.DOTALL)
    assert foot
    debit, credit = (number(one) for one in re.findall(r"<td[^>]*>(.*?)</td>", foot[1], re.DOTALL))
    found = [(int(row["No."]), row["Akun"].split()[0], number(row["Debet"]), number(row["Kredit"])) for row in rows]
    return found, (debit, credit)


def test_the_journal_is_that_of_the_books_with_the_names_of_its_accounts(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    walked(database, connection, OTHER, nomer_nota="SO-OTHER")
    document = walked(database, connection, nomer_nota="SO-1")
    taken = taken_back(database, "SO-1")
    client = browser("analyst")
    for one in (document, taken):
        rows, totals = journal(client, one.shadow_id)
        assert rows == builders.journal_of(connection, one.nomer_nota) and len(rows) == 4
        assert totals == (Decimal("8001.00"), Decimal("8001.00"))
    page = client.get(f"/documents/{document.shadow_id}?tab=journal").text
    assert "Persediaan barang" in page and "Laba selisih persediaan" in page and "Rugi selisih persediaan" in page


def card(page: str) -> list[tuple[str, Decimal, Decimal, Decimal]]:
    """Its rows as `builders.card_of` has them."""
    rows = table(page)[0] if "<thead>" in page else []
    return [(row["Kode barang"], number(row["Masuk"]), number(row["Keluar"]), number(row["Nilai"])) for row in rows]


def test_the_stock_card_is_that_of_the_books_page_after_page(browser: Be, connection: Any, database: MysqlUrl) -> None:
    """Lines without a variance move nothing; each movement stands on one page, and they add up to the journal."""
    lines = [
        Line(f"BRG-{n:03d}", "1000", str(1000 + (n % 3 - 1) * n), f"{n}.333333", lot=f"L{n}")
        for n in range(1, 3 * LINES_PER_PAGE - 8)
    ]
    document = walked(database, connection, *lines, nomer_nota="SO-PANJANG")
    walked(database, connection, OTHER, nomer_nota="SO-OTHER")
    wanted = builders.card_of(connection, "SO-PANJANG")
    assert LINES_PER_PAGE < len(wanted) < 2 * LINES_PER_PAGE
    client = browser("analyst")
    first = client.get(f"/documents/{document.shadow_id}?tab=card").text
    assert ">Awal</a>" not in first
    further = re.search(r'rel="next" href="([^"]*)"', first)
    assert further
    second = client.get(further[1].replace("&amp;", "&")).text
    assert 'rel="next"' not in second and ">Awal</a>" in second
    assert card(first) == wanted[:LINES_PER_PAGE]
    assert card(second) == wanted[LINES_PER_PAGE:]
    value = sum((row[3] for row in card(first) + card(second)), Decimal(0))
    rows, _ = journal(client, document.shadow_id)
    assert value == sum(
        (debit - credit for _, account, debit, credit in rows if account == builders.PERSEDIAAN), Decimal(0)
    )
    back = re.search(r'href="([^"]*)">Awal</a>', second)
    assert back and card(client.get(back[1].replace("&amp;", "&")).text) == card(first)


def test_a_place_that_is_none_shows_the_card_from_its_beginning_or_nothing_of_others(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection, nomer_nota="SO-1")
    walked(database, connection, OTHER, nomer_nota="SO-OTHER")
    wanted = builders.card_of(connection, "SO-1")
    client = browser("analyst")
    for after in ("", "0", "x", "-1"):
        assert card(client.get(f"/documents/{document.shadow_id}?tab=card&after={after}").text) == wanted
    (last,) = builders.rows(connection, "SELECT MAX(id) AS id FROM kartu_stok WHERE nomer_nota = 'SO-1'")
    for after in (last["id"], 2**63 - 1):
        assert card(client.get(f"/documents/{document.shadow_id}?tab=card&after={after}").text) == []
