"""Pratinjau on the pages: the rows that would be posted, of documents in each state and of drafts; who may look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier, Event
from typing import Any

import pytest

from everest import approvals, preview
from everest.opname.amounts import format_rupiah
from everest.opname.workflow import REVERSE_OPNAME
from everest.pages import previews
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Document, Line
from tests.integration.cli.conftest import Everest, answer, everest
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be
from tests.pages.forms import COUNTED, LINES, NOT_COUNTED, kept
from tests.pages.posted import asked_back, walked

__all__ = ["everest"]


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    with closing(Walker(database)) as found:
        yield found


def rows_of(page: str, section: str) -> list[list[str]]:
    """The cells of a table, each as it is read."""
    found = re.search(rf'<section id="{section}">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", found[1], re.DOTALL) if found else []
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]*>", "", cell).strip() for cell in row] for row in cells]


def look(browser: Be, document: Document, who: str = "finance", query: str = "") -> str:
    answer = browser(who).get(f"/documents/{document.shadow_id}/preview{query}")
    assert answer.status_code == 200
    return str(answer.text)


def test_journal_stock_card_sums_and_balance_stand_there_before_anybody_posts(
    browser: Be, connection: Any, walker: Walker
) -> None:
    document = builders.document(connection)
    page = look(browser, document)

    assert "Akan diposting" in page and "Seimbang: debet = kredit = Rp 8.001,00" in page
    assert rows_of(page, "accounts") == [
        ["1010030030 Persediaan barang", "Rp 3.000,00", "Rp 5.001,00"],
        ["7010150 Laba selisih persediaan", "Rp 0,00", "Rp 3.000,00"],
        ["7020020 Rugi selisih persediaan", "Rp 5.001,00", "Rp 0,00"],
    ]
    assert walker.post(document.shadow_id) == "COMPLETED"
    assert [[row[0], row[1][:7].strip(), *row[3:]] for row in rows_of(page, "journal")] == [
        [str(urutan), akun[:7], *(format_rupiah(side) if side else "" for side in (debet, kredit))]
        for urutan, akun, debet, kredit in builders.journal_of(connection, document.nomer_nota)
    ]
    assert [(row[0], row[3], row[4], row[6]) for row in rows_of(page, "card")] == [
        ("BRG-A", "2", "–", "Rp 3.000,00"),
        ("BRG-B", "–", "2", "-Rp 5.001,00"),
    ]
    assert "Nilai stok masuk Rp 3.000,00, keluar Rp 5.001,00" in page
    posted = look(browser, document)
    assert "Sudah diposting" in posted and "0 baris akan berubah" in posted
    assert (rows_of(posted, "journal"), rows_of(posted, "card")) == (rows_of(page, "journal"), rows_of(page, "card"))


def test_what_waits_for_a_person_shows_why_and_what_a_yes_would_post(
    browser: Be, connection: Any, walker: Walker
) -> None:
    builders.limits(connection, batas_dokumen="0")
    document = builders.document(connection)
    assert walker.post(document.shadow_id) == "WAITING"
    assert f'href="/documents/{document.shadow_id}/preview"' in browser("finance").get("/approvals").text

    page = look(browser, document)
    assert "Perlu keputusan" in page and "melebihi batas dokumen" in page and len(rows_of(page, "journal")) == 4

    with walker.database.transaction() as tx:
        approvals.approve(tx, document.nomer_nota, "tono", "sudah dilihat")
    assert "Akan diposting" in look(browser, document)


def test_what_failed_shows_all_of_its_problems_and_what_it_posts_once_it_is_put_right(
    browser: Be, connection: Any, walker: Walker
) -> None:
    document = builders.document(connection, NOT_COUNTED, dibuat_oleh="warehouse")
    assert walker.post(document.shadow_id) == "FAILED"
    page = look(browser, document)
    assert "Akan ditolak" in page and "<b>Baris 2</b> <code>qty_fisik</code>" in page and rows_of(page, "journal") == []

    path = f"/documents/{document.shadow_id}"
    sent = browser("finance").submit(f"{path}/correct", pasted=COUNTED, decimal="id", reason="rak 3 sudah dihitung")
    assert sent.status_code == 303
    page = look(browser, document, "finance-2")
    assert "Akan diposting" in page and "seolah-olah orang lain mengotorisasinya" in page
    assert "Rp 8.001,00" in page, "what the other person is asked to authorise"

    number = re.findall(r'name="correction" value="([0-9]+)"', browser("finance-2").get(path).text)[0]
    assert browser("finance-2").submit(f"{path}/authorise", correction=number).status_code == 303
    page = look(browser, document, "finance-2")
    assert "Akan diposting" in page and "seolah-olah" not in page and "Rp 8.001,00" in page


def test_a_draft_is_previewed_as_if_somebody_else_authorised_it_now(
    browser: Be, connection: Any, walker: Walker
) -> None:
    builders.warehouse(connection)
    number = kept(browser, connection, pasted=LINES)
    assert f'href="/drafts/{number}/preview"' in browser("finance").get(f"/drafts/{number}").text
    page = browser("finance").get(f"/drafts/{number}/preview").text
    assert "Akan diposting" in page and "seolah-olah orang lain mengotorisasinya" in page
    assert browser("warehouse").get(f"/drafts/{number}/preview").status_code == 200, "one's own"
    assert browser("other-clerk").get(f"/drafts/{number}/preview").status_code == 404
    assert builders.rows(connection, "SELECT 1 FROM rabbit_publish_shadow") == []

    sent = browser("finance").submit(f"/drafts/{number}/authorise").headers["location"]
    shadow_id = int(re.findall(r"/documents/(\d+)", sent)[0])
    assert walker.post(shadow_id) == "COMPLETED"
    posted = browser("finance").get(f"/documents/{shadow_id}/preview").text
    for section in ("accounts", "journal", "card"):
        assert rows_of(page, section) == rows_of(posted, section) != []
    assert browser("finance").get(f"/drafts/{number}/preview").status_code == 404, "it is a draft no more"


def test_a_reversal_is_previewed_and_the_original_and_it_name_each_other(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    original = walked(database, connection, nomer_nota="SO-1")
    asked = asked_back(database, "SO-1")
    mirror = Document(0, asked.transaksi_id, asked.shadow_id, asked.nomer_nota)
    page = look(browser, mirror)
    assert "Akan diposting" in page and "membalik nota SO-1" in page
    posted = look(browser, original)
    assert [(row[0], *row[3:]) for row in rows_of(page, "journal")] == [
        (row[0], row[4], row[3]) for row in rows_of(posted, "journal")
    ]
    assert [(row[0], row[3], row[4]) for row in rows_of(page, "card")] == [
        (row[0], row[4], row[3]) for row in rows_of(posted, "card")
    ]
    with closing(Walker(database, definition=REVERSE_OPNAME)) as backwards:
        assert backwards.post(asked.shadow_id) == "COMPLETED"
    done = look(browser, mirror)
    assert "Sudah diposting" in done and rows_of(done, "journal") == rows_of(page, "journal")
    for one, other in ((original, asked.nomer_nota), (mirror, "SO-1")):
        assert f">{other}</a>" in browser("finance").get(f"/documents/{one.shadow_id}").text


def test_a_long_stock_card_is_shown_page_by_page_under_the_same_sums(
    browser: Be, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "CARDS_SHOWN", 2)
    document = builders.document(connection, [Line(f"BRG-{n}", "10", "11", "100") for n in range(5)])
    pages = [look(browser, document, query=query) for query in ("", "?skip=2", "?skip=4", "?skip=99")]
    shown = [[row[0] for row in rows_of(page, "card")] for page in pages]
    assert shown == [["BRG-0", "BRG-1"], ["BRG-2", "BRG-3"], ["BRG-4"], ["BRG-4"]]
    assert all("Nilai stok masuk Rp 500,00" in page and "Seimbang" in page for page in pages)
    assert "skip=2" in pages[0] and "skip=6" not in pages[2]


def test_whoever_sees_a_document_sees_its_preview_and_nobody_else(browser: Be, connection: Any) -> None:
    document = builders.document(connection, dibuat_oleh="warehouse")
    path = f"/documents/{document.shadow_id}"
    for who in ("analyst", "finance", "engineer", "warehouse"):
        assert f'href="{path}/preview"' in browser(who).get(path).text, who
        assert "Akan diposting" in browser(who).get(f"{path}/preview").text
    assert browser("other-clerk").get(f"{path}/preview").status_code == 404


@pytest.mark.parametrize("lines", [builders.EXAMPLE, NOT_COUNTED, (Line("A", "3", "3"),)])
def test_page_and_command_say_the_same(browser: Be, connection: Any, everest: Everest, lines: Any) -> None:
    document = builders.document(connection, lines)
    page = look(browser, document)
    told = answer(everest("preview", f"#{document.shadow_id}", "--json"))
    assert told["message"] in page
    assert [row["kode_barang"] for row in told["stock_card"]] == [row[0] for row in rows_of(page, "card")]
    assert [row["kode_akun"] for row in told["journal"]] == [row[1].split()[0] for row in rows_of(page, "journal")]
    assert all(problem["pesan"] in page for problem in told["problems"])


def test_two_previews_are_at_work_the_next_waits_its_turn_and_not_for_ever(
    browser: Be, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, original = f"/documents/{builders.document(connection).shadow_id}/preview", preview.preview
    both, go_on = Barrier(3), Event()

    def slow(*given: Any) -> Any:
        both.wait(30)
        assert go_on.wait(30)
        return original(*given)

    monkeypatch.setattr(preview, "preview", slow)
    with ThreadPoolExecutor(3) as pool:
        first = [pool.submit(browser("finance").get, path) for _ in range(2)]
        both.wait(30)
        monkeypatch.setattr(preview, "preview", original)
        monkeypatch.setattr(previews.TURNS, "wait_s", 0)
        turned_away = browser("finance").get(path)
        monkeypatch.setattr(previews.TURNS, "wait_s", 30)
        waiting = pool.submit(browser("finance").get, path)
        go_on.set()
        assert [one.result().status_code for one in (*first, waiting)] == [200] * 3

    assert (turned_away.status_code, "Terlalu banyak pratinjau" in turned_away.text) == (503, True)
    assert browser("finance").get(path).status_code == 200
