"""What posting said of a document, on English pages: no Indonesian sentence of ours, whichever page shows it."""

from __future__ import annotations

import json
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be
from tests.pages.forms import LINES, kept
from tests.pages.posted import taken_back, walked, xlsx_rows
from tests.pages.standing import failed, run, waiting
from tests.unit.words import foreign

WRONG = (
    Line("BRG-A", "10", None, "1500"),
    Line("BRG-A", None, "5", None),
    Line("BRG-B ", "7", "-5", "-2500.50"),
    Line("BRG-C", "3", "4", "0", gudang_kode="GD-ZZ"),
    Line("BRG-D", "3", "4", None, lot=" L"),
)


def read(browser: Be, path: str) -> str:
    """What stands on an English page, which says nothing else of ours; the texts of a journal are what is posted."""
    answer = browser("finance").get(path + ("&" if "?" in path else "?") + "lang=en")
    assert answer.status_code == 200, (path, answer.status_code)
    main = re.search(r"<main.*</main>", answer.text, re.DOTALL)
    assert main is not None
    found = re.sub(r'<td data-label="Text" class="text"><span lang="id">[^<]*</span></td>', "", main[0])
    assert foreign("en", found) == [], (path, foreign("en", found))
    assert not re.search(r'<(?:span|p|li) lang="id">', found), path
    return found


def test_a_document_that_failed_is_told_in_english_on_every_page_of_it(
    browser: Be, database: MysqlUrl, connection: Any
) -> None:
    later = datetime.now(UTC) + timedelta(days=2)
    builders.warehouse(connection, "GD-ZZ", aktif=0)
    document = walked(
        database, connection, *WRONG, ends="FAILED", otorisasi_level=1, diotorisasi_oleh=" ", snapshot_at=later,
        with_warehouses=False, gudang_kode="GD-NONE",
    )  # fmt: skip
    path = f"/documents/{document.shadow_id}"
    summary = read(browser, path)
    for words in (
        "document refused, problems:", "authorisation level 1 is not enough", "is in the future", "is not active",
        "not counted: the counted quantity is empty", "stands on line 1 and also on 2", "begins or ends with a space",
        "negative cost", "warehouse of the document", "is not known",
    ):  # fmt: skip
        assert words in summary, words
    for tab in ("?tab=lines", "?tab=lines&flawed=1", "?tab=history", "/preview"):
        read(browser, path + tab)
    assert "document refused, problems:" in read(browser, "/documents")
    rows = xlsx_rows(browser("finance").get(f"{path}/problems.xlsx?lang=en").content)
    assert rows and foreign("en", json.dumps(rows)) == []
    stored = builders.shadow(connection, document.shadow_id)["response"]
    assert "belum dihitung" in json.dumps(stored["errors"]), "other programs read Indonesian, as before"
    assert foreign("id", re.sub("&#39;", "'", browser("finance").get(f"{path}?lang=id").text)) == []


def test_a_document_that_waits_is_told_in_english_where_it_is_decided(
    browser: Be, database: MysqlUrl, connection: Any
) -> None:
    document = waiting(connection, database)
    path = f"/documents/{document.shadow_id}"
    for page in (path, f"{path}/preview", "/approvals"):
        assert "exceeds the limit of a document" in read(browser, page), page
    assert "waits for an approval: the sum of variances exceeds the limit of a document" in read(browser, path)
    answer = browser("finance").submit(f"/approvals/{document.shadow_id}/reject", sequence=1, reason="count again")
    assert answer.status_code == 303, answer.text
    connection.commit()
    with closing(Walker(database)) as walker:
        walker.post(document.shadow_id)
    assert "rejected by finance at" in read(browser, path) and "count again" in read(browser, f"{path}?tab=history")


def test_what_was_posted_or_reversed_says_so_in_english(browser: Be, database: MysqlUrl, connection: Any) -> None:
    document = walked(database, connection, Line("BRG-A", "10", "120", "5"), Line("BRG-B", "-3", "1", "5"))
    path = f"/documents/{document.shadow_id}"
    page = read(browser, path)
    assert "posted: lines that differ: 2" in page
    assert "perhaps another unit" in page and "negative stock in the books" in page
    assert "running it again changes 0 rows" in read(browser, f"{path}?tab=history")
    rows = xlsx_rows(browser("finance").get(f"{path}/lines.xlsx?lang=en").content)
    assert "perhaps another unit" in json.dumps(rows, default=str)
    indonesian = xlsx_rows(browser("finance").get(f"{path}/lines.xlsx?lang=id").content)
    assert "satuan mungkin tertukar" in json.dumps(indonesian, default=str)
    back = taken_back(database, document.nomer_nota)
    assert f"reversed nota {document.nomer_nota}" in read(browser, f"/documents/{back.shadow_id}")


def test_a_draft_says_in_english_what_posting_would_object_to(browser: Be, connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    number = kept(browser, connection, pasted=LINES)
    run(connection, "UPDATE gudang SET aktif=0 WHERE gudang_kode='GD-A'")
    page = read(browser, f"/drafts/{number}")
    assert "is not active" in page
    assert "is not active" in read(browser, f"/drafts/{number}/preview")


@pytest.mark.parametrize("said", [None, {"key": "no.such", "values": {}}, {"key": "rule.level", "values": {}}, "x"])
def test_a_row_of_an_earlier_release_still_shows_what_it_says_and_in_which_language(
    browser: Be, connection: Any, said: Any
) -> None:
    document = failed(connection)
    error = {"baris": None, "kolom": "qty_fisik", "pesan": "belum <b>dihitung</b>"} | ({"said": said} if said else {})
    answer = json.dumps({"status": "error", "code": 422, "message": "dokumen ditolak: 1 masalah", "errors": [error]})
    run(connection, "UPDATE rabbit_publish_shadow SET response=%s WHERE id=%s", answer, document.shadow_id)
    builders.insert(
        connection, "posting_attempts", transaksi_id=document.transaksi_id, n=1, outcome="FAILED",
        problems=json.dumps([error]),
    )  # fmt: skip
    connection.commit()
    for tab in ("", "?tab=history"):
        page = browser("analyst").get(f"/documents/{document.shadow_id}{tab}{'&' if tab else '?'}lang=en").text
        assert '<span lang="id">belum &lt;b&gt;dihitung&lt;/b&gt;</span>' in page
