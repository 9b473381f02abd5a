"""Hostile names in every text that rows hold, on every page and in every file that there is: text everywhere.

The pages are those of the application, so a new one is in this test by being there; one whose address has a part that
is not known here fails it.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import openpyxl
import pytest

from everest.settings import MysqlUrl
from tests.pages.conftest import Be
from tests.pages.hostile import LONG, flaws
from tests.pages.poisoned import NAMES, addresses, filled, poison

FORMULA = ("=", "@", "+")


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_what_rows_hold_is_text_on_every_page_and_in_every_file(
    browser: Be, database: MysqlUrl, connection: Any, name: str
) -> None:
    places = filled(browser, database, connection)
    poison(connection, name)
    client = browser("engineer")
    opened: dict[str, int] = {}
    for route, path in addresses(places):
        if ".xlsx" in path and len(name) > LONG:
            continue  # a second time they take long, and tell nothing new
        answer = client.get(path)
        assert answer.status_code in (200, 303, 404, 409, 422), path
        opened[route] = opened.get(route, 0) + (answer.status_code in (200, 303))
        kind = answer.headers.get("content-type", "")
        if "html" in kind:
            assert flaws(answer.text) == [], path
        elif ".csv" in path and answer.status_code == 200:
            rows = csv.reader(io.StringIO(answer.content.decode("utf-8-sig")), delimiter=";")
            assert not [cell for row in rows for cell in row if cell.startswith(FORMULA)], path
        elif ".xlsx" in path and answer.status_code == 200:
            sheets = openpyxl.load_workbook(io.BytesIO(answer.content)).worksheets
            cells = [cell for sheet in sheets for row in sheet.iter_rows() for cell in row]
            assert not [cell for cell in cells if cell.data_type == "f" and name[1:8] in str(cell.value)], path
    never = {route for route, times in opened.items() if not times}
    assert opened and never <= {"/documents/of/{transaksi_id}", "/reports/document"}, (
        "only addresses that lead elsewhere"
    )
