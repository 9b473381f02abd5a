"""Dead letters, reports and health as people use them, pages that have nothing to show, and hostile names on those."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest

from everest.audit.invariants import BY_KEY
from everest.pages.words import catalogue
from everest.settings import MysqlUrl
from tests import builders
from tests.pages.conftest import Be
from tests.pages.posted import walked
from tests.pages.standing import HOSTILE, audit, audited, broken_letter, failed

PAGES = "documents approvals dead-letters workflows health submit drafts reports"


def test_dead_letters_are_replayed_and_dropped_with_a_reason(browser: Be, connection: Any) -> None:
    first, second = failed(connection), failed(connection)
    client = browser("finance")
    page = client.get("/dead-letters").text
    assert first.nomer_nota in page and second.nomer_nota in page
    assert client.submit("/dead-letters/drop", shadow_id=str(first.shadow_id)).status_code == 422
    assert client.submit("/dead-letters/replay").status_code == 422
    told = client.submit("/dead-letters/replay", shadow_id=[str(first.shadow_id), "x", "99999"], reason="r")
    assert told.status_code == 200 and first.nomer_nota in told.text
    client.submit("/dead-letters/drop", shadow_id=str(second.shadow_id), reason="tidak jadi")
    connection.commit()
    assert builders.shadow(connection, first.shadow_id)["worker_status"] == "PENDING"
    assert builders.shadow(connection, second.shadow_id)["worker_status"] == "CANCELLED"
    assert audit(connection) == [("finance", "rerun"), ("finance", "drop")]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text_on_the_other_pages_too(browser: Be, connection: Any, name: str) -> None:
    failed(connection, nomer_nota=name[:100])
    page = browser("engineer").get("/dead-letters").text
    assert "<script>alert" not in page and "<img" not in page and "\u202e" not in page


@pytest.mark.parametrize("language", ["id", "en"])
@pytest.mark.parametrize(
    "path",
    ["/", "/documents", "/approvals", "/dead-letters", "/workflows", "/health", "/submit", "/drafts", "/reports"],
)
def test_every_page_is_a_page_when_there_is_nothing(browser: Be, path: str, language: str) -> None:
    answer = browser("engineer").get(f"{path}?lang={language}")
    assert answer.status_code in (200, 303)


def test_a_page_behind_the_last_one_says_so_and_leads_back(browser: Be, connection: Any, database: MysqlUrl) -> None:
    """Of a list that became shorter nobody is told that there is nothing, or that all is well."""
    number = walked(database, connection).shadow_id
    places = [("/documents", "before=1"), ("/dead-letters", "before=1"), ("/workflows", "before=1")]
    places += [("/drafts", "after=9999999"), ("/approvals", "after=9999999999")]
    places += [(f"/documents/{number}", "tab=card&after=9999999")]
    places += [(f"/documents/{number}", f"tab={tab}&skip=9000") for tab in ("lines", "history")]
    client, told = browser("finance"), catalogue()
    for path, query in places:
        page = client.get(f"{path}?{query}").text
        (empty,) = re.findall(r'<p class="empty">(.*?)</p>', page)
        assert told["common.past_end"]["id"] in empty, (path, query)
        (link,) = re.findall(r'href="([^"]*)"', empty)
        assert told["common.past_end"]["id"] not in client.get(unescape(link)).text
    for query in ("search=tiada", "variance=1&search=tiada&skip=50"):
        assert told["common.no_match"]["id"] in client.get(f"/documents/{number}?tab=lines&{query}").text


@pytest.mark.parametrize(
    "key", ["variance", "documents", "warehouse", "item", "month", "reason", "journal", "stock-card"]
)
def test_every_report_is_shown_and_can_be_downloaded(browser: Be, key: str) -> None:
    client = browser("analyst")
    assert client.get(f"/reports?report={key}&gudang_kode=GD-A&since=2026-01-01&until=2026-12-31").status_code == 200
    assert client.get(f"/reports/{key}.csv?gudang_kode=GD-A").content.startswith(b"\xef\xbb\xbf")
    assert client.get(f"/reports/{key}.xlsx?gudang_kode=GD-A").content.startswith(b"PK")


def test_a_report_opens_with_the_last_months_and_all_of_it_is_asked_for(browser: Be) -> None:
    """In the address, so that what is seen can be shared; a nota needs no period."""
    client = browser("analyst")
    opened = client.get("/reports?report=documents&gudang_kode=GD-A")
    assert opened.status_code == 303 and re.search(
        r"report=documents&gudang_kode=GD-A&since=\d{4}-\d\d-01$", opened.headers["location"]
    )
    assert client.get(opened.headers["location"]).status_code == 200
    for query in ("since=", "since=2026-01-01", "until=2026-01-31", "report=documents&nomer_nota=SO-1", "report=trace"):
        assert client.get(f"/reports?{query}").status_code == 200, query


def test_the_health_page_shows_the_last_audit_and_what_stands(browser: Be, connection: Any) -> None:
    client = browser("analyst")
    assert "Buku belum pernah diperiksa" in client.get("/health").text
    audited(connection, "CLEAN", hours_ago=50)
    assert "terlambat" in client.get("/health").text
    audited(connection, "CLEAN")
    page = client.get("/health").text
    assert "terlambat" not in page and "posting_is_balanced" in page and "Ada temuan" not in page
    audited(connection, "RUNNING")
    assert client.get("/health").text.count("Benar") >= len(BY_KEY)
    audited(connection, "NOT_CHECKED", note="Airflow <b>tidak</b> menjawab")
    page = client.get("/health").text
    assert "Tidak terperiksa" in page and "<b>tidak</b>" not in page
    now = datetime.now(UTC).replace(tzinfo=None)
    builders.insert(
        connection, "audit_findings", invariant="posting_is_balanced", finding_key="k", pesan="posting 7 <i>x</i>",
        first_seen_at=now, last_seen_at=now, first_run_id=1, last_run_id=1,
    )  # fmt: skip
    connection.commit()
    page = client.get("/health").text
    assert "posting 7 &lt;i&gt;x" in page and "python -m everest audit" in page and "1 temuan" in page


def test_the_health_page_says_what_is_away_and_what_to_do(browser: Be, connection: Any) -> None:
    page = browser("engineer").get("/health").text
    assert "make logs P=consumer" in page and "make logs P=relay" in page and "make logs P=reconciler" in page


def test_a_broken_message_is_shown_as_text_and_dropped_with_a_reason_once(browser: Be, connection: Any) -> None:
    first, second = (
        broken_letter(connection, "<script>alert(1)</script>\\xff", "a"),
        broken_letter(connection, "lain", "b"),
    )
    finance = browser("finance")
    page = finance.get("/dead-letters").text
    assert (
        "<script>alert(1)" not in page
        and "&lt;script&gt;alert(1)" in page
        and "\\xff" in page
        and "not JSON" in page
        and "x / y" in page
    )
    assert ">4</strong>" in page, "copies are counted"
    assert f'name="letter_id" value="{first}"' in page
    assert browser("warehouse").get("/dead-letters").status_code == 403
    assert browser("warehouse").submit("/dead-letters/drop-broken", letter_id=str(first), reason="x").status_code == 403
    assert finance.submit("/dead-letters/drop-broken", letter_id=str(first)).status_code == 422
    assert finance.submit("/dead-letters/drop-broken", reason="x").status_code == 422
    assert audit(connection) == []
    for _ in range(2):
        done = finance.submit("/dead-letters/drop-broken", letter_id=[str(first), "99999"], reason="salah alamat")
        assert done.status_code == 200
    connection.commit()
    assert [(row["id"], row["dropped_by"]) for row in builders.rows(connection, "SELECT * FROM broken_letters")] == [
        (first, "finance"),
        (second, None),
    ]
    assert audit(connection) == [("finance", "drop_broken_letter")]
    page = finance.get("/dead-letters").text
    assert f'name="letter_id" value="{first}"' not in page and "sedang dibuang oleh finance" in page
