"""The bars of a page, and what the rows behind each of them add up to."""

from __future__ import annotations

import html
import re
from decimal import Decimal

from tests.pages.conftest import Browser
from tests.pages.tables import amount, table

BAR = re.compile(
    r'xlink:href="([^"]*)"[^>]*><title>(.*?), (?:lebih|kurang|surplus|shortage): (-?Rp [0-9.,]+)</title>', re.DOTALL
)


def drawn_bars(page: str) -> list[tuple[str, str, str]]:
    """Address, label and amount of each bar of a page; of the two drawings, which hold the same."""
    for_desks, _, for_phones = page.partition(' class="narrow"')
    assert BAR.findall(for_desks) == BAR.findall(for_phones)
    return BAR.findall(for_desks)


def compare(client: Browser, key: str, filters: str, language: str) -> None:
    """The bars of a chart with the lines that they lead to, and with the totals of its table."""
    surplus, shortage = {"id": ("Nilai lebih", "Nilai kurang"), "en": ("Surplus value", "Shortage value")}[language]
    differing = {"id": "Baris selisih", "en": "Lines with variance"}[language]
    page = client.get(f"/reports?report={key}&{filters}&lang={language}").text
    groups, totals = table(page)
    bars = drawn_bars(page)
    assert bars
    drawn = {surplus: Decimal(0), shortage: Decimal(0)}
    for address, _, told in bars:
        value = amount(told)
        side = surplus if value > 0 else shortage
        behind = client.get(html.unescape(address))
        assert behind.status_code == 200
        rows, sums = table(behind.text)
        assert amount(sums[side]) == abs(value) == sum(amount(row[side]) for row in rows)
        drawn[side] += abs(value)
        same = [row for row in groups if (amount(row[surplus]), amount(row[shortage])) == (
            amount(sums[surplus]), amount(sums[shortage]))]  # fmt: skip
        selisih = {"id": "Selisih", "en": "Variance"}[language]
        assert any(int(row[differing]) == len([one for one in rows if amount(one[selisih])]) for row in same)
        if key == "reason":
            assert all(amount(one[selisih]) for one in rows), "lines that agree have nothing to explain"
    assert {name: amount(totals[name]) for name in drawn} == drawn
