"""A count on Kirim opname: a draft that another person authorises, once, however often it is sent."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be, Browser
from tests.pages.forms import HEADER, SOUND
from tests.pages.standing import audit, failed


def large(items: int) -> dict[str, Any]:
    """The upload of a file of so many distinct items."""
    rows = "".join(f"ITM-{n:05d};10;{10 + n % 3};1500\n" for n in range(items))
    return {"file": ("hitung.csv", f"kode_barang;qty_sistem;qty_fisik;harga_pokok\n{rows}".encode(), "text/csv")}


@pytest.mark.usefixtures("warehouse")
def test_a_count_waits_for_another_person_and_then_goes_to_posting(browser: Be, connection: Any) -> None:
    clerk = browser("warehouse")
    sent = clerk.submit("/submit", pasted=SOUND, submit_token="one", **HEADER)
    assert sent.status_code == 303
    assert builders.rows(connection, "SELECT 1 FROM rabbit_publish_shadow") == []
    connection.commit()
    draft = builders.rows(connection, "SELECT * FROM so_headers_staging")[0]
    assert (draft["otorisasi_level"], draft["dibuat_oleh"], draft["diotorisasi_oleh"]) == (1, "warehouse", None)
    assert "SO-H1" in browser("finance").get("/drafts").text
    assert "00123" in browser("finance").get(f"/drafts/{draft['transaksi_id']}").text
    done = browser("finance").submit(f"/drafts/{draft['transaksi_id']}/authorise")
    assert done.status_code == 303 and done.headers["location"].startswith("/documents/")
    connection.commit()
    after = builders.rows(connection, "SELECT * FROM so_headers_staging")[0]
    assert (after["otorisasi_level"], after["diotorisasi_oleh"]) == (2, "finance")
    assert [row["transaksi_id"] for row in builders.rows(connection, "SELECT * FROM rabbit_publish_shadow")] == [
        draft["transaksi_id"]
    ]
    assert audit(connection) == [("warehouse", "draft"), ("finance", "authorise")]
    again = browser("finance-2").submit(f"/drafts/{draft['transaksi_id']}/authorise")
    assert again.status_code == 409


@pytest.mark.usefixtures("warehouse")
def test_nobody_authorises_what_they_submitted(browser: Be, connection: Any) -> None:
    client = browser("finance")
    client.submit("/submit", pasted=SOUND, submit_token="one", **HEADER)
    number = builders.rows(connection, "SELECT transaksi_id FROM so_headers_staging")[0]["transaksi_id"]
    assert client.submit(f"/drafts/{number}/authorise").status_code == 403
    assert browser("finance-2").submit(f"/drafts/{number}/authorise").status_code == 303


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize("items", [1_372, 3_000, 5_000])
def test_h01_a_large_count_goes_through_the_form_into_the_books_line_by_line(
    browser: Be, connection: Any, database: MysqlUrl, items: int
) -> None:
    """Every third item is as the books say; the others have a surplus of 1 or 2."""
    assert browser("warehouse").submit("/submit", files=large(items), submit_token="one", **HEADER).status_code == 303
    (draft,) = builders.rows(connection, "SELECT transaksi_id FROM so_headers_staging")
    assert browser("finance").submit(f"/drafts/{draft['transaksi_id']}/authorise").status_code == 303
    (job,) = builders.rows(connection, "SELECT id, worker_status FROM rabbit_publish_shadow")

    with closing(Walker(database)) as walker:
        ticket = walker.claim(job["id"])
        statuses = [job["worker_status"], builders.shadow(connection, job["id"])["worker_status"]]
        walker.dag_run(ticket)

    statuses.append(builders.shadow(connection, job["id"])["worker_status"])
    assert statuses == ["PENDING", "PROCESSING", "COMPLETED"]
    card = builders.card_of(connection, "SO-H1")
    assert [row[0] for row in card] == [f"ITM-{n:05d}" for n in range(items) if n % 3]
    assert builders.books(connection).agree
    assert builders.books(connection).debet == sum(n % 3 for n in range(items)) * 1500


@pytest.mark.usefixtures("warehouse")
def test_h30_h31_a_double_click_is_one_draft(browser: Be, connection: Any) -> None:
    client = browser("warehouse")
    answers = [client.submit("/submit", pasted=SOUND, submit_token="one", **HEADER) for _ in range(3)]
    assert {answer.headers["location"] for answer in answers} == {answers[0].headers["location"]}
    assert len(builders.rows(connection, "SELECT 1 FROM so_headers_staging")) == 1


@pytest.mark.usefixtures("warehouse")
def test_h30_h31_five_posts_of_ten_thousand_lines_at_once_are_one_draft_and_one_job(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    ready = threading.Barrier(5)

    def post(client: Browser) -> tuple[int, str]:
        ready.wait(timeout=30)
        answer = client.submit("/submit", files=large(10_000), submit_token="one", **HEADER)
        return answer.status_code, answer.headers["location"]

    with ThreadPoolExecutor(5) as pool:
        answers = set(pool.map(post, [browser("warehouse") for _ in range(5)]))

    (draft,) = builders.rows(connection, "SELECT transaksi_id FROM so_headers_staging")
    assert answers == {(303, f"/drafts?new={draft['transaksi_id']}&done=kept")}
    assert builders.rows(connection, "SELECT COUNT(*) AS n FROM so_details_staging") == [{"n": 10_000}]
    ready.reset()

    def authorise(client: Browser) -> int:
        ready.wait(timeout=30)
        return int(client.submit(f"/drafts/{draft['transaksi_id']}/authorise").status_code)

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(authorise, [browser("finance") for _ in range(5)])) == [303, 409, 409, 409, 409]
    (job,) = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow")
    assert builders.rows(connection, "SELECT COUNT(*) AS n FROM outbox") == [{"n": 1}]
    with closing(Walker(database)) as walker:
        assert walker.post(job["id"]) == "COMPLETED"
    assert builders.books(connection).postings == 1


@pytest.mark.usefixtures("warehouse")
def test_a_nota_that_is_posted_meanwhile_is_refused_where_it_is_sent_and_where_it_is_authorised(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    clerk, finance = browser("warehouse"), browser("finance")
    first, second = (
        re.findall(
            r"new=(\d+)", clerk.submit("/submit", pasted=rows, submit_token=token, **HEADER).headers["location"]
        )[0]
        for rows, token in ((SOUND, "one"), (SOUND.replace("12", "13"), "two"))
    )
    job = re.findall(r"/documents/(\d+)", finance.submit(f"/drafts/{first}/authorise").headers["location"])[0]
    with closing(Walker(database)) as walker:
        assert walker.post(int(job)) == "COMPLETED"

    late = finance.submit(f"/drafts/{second}/authorise")
    third = clerk.submit("/submit", pasted=SOUND, submit_token="three", **HEADER)
    again = clerk.submit("/submit", pasted=SOUND, submit_token="one", **HEADER)

    assert (late.status_code, "nota SO-H1 sudah diposting (posting 1, transaksi 1)" in late.text) == (409, True)
    assert (third.status_code, "nota sudah diposting (posting 1, transaksi 1)" in third.text) == (422, True)
    assert (again.status_code, f"new={first}" in again.headers["location"]) == (303, True)
    assert len(builders.rows(connection, "SELECT id FROM rabbit_publish_shadow")) == 1
    assert clerk.submit(f"/drafts/{second}/withdraw", reason="sudah diposting").status_code == 303


@pytest.mark.usefixtures("warehouse")
def test_a_draft_is_withdrawn_by_its_sender_and_never_posted(browser: Be, connection: Any) -> None:
    browser("warehouse").submit("/submit", pasted=SOUND, submit_token="one", **HEADER)
    number = builders.rows(connection, "SELECT transaksi_id FROM so_headers_staging")[0]["transaksi_id"]
    assert browser("other-clerk").submit(f"/drafts/{number}/withdraw", reason="x").status_code == 404
    assert browser("other-clerk").get(f"/drafts/{number}").status_code == 404
    assert browser("warehouse").submit(f"/drafts/{number}/withdraw", reason="salah gudang").status_code == 303
    assert browser("finance").submit(f"/drafts/{number}/authorise").status_code == 409
    assert "SO-H1" not in browser("finance").get("/drafts").text


def test_the_other_language_of_an_answer_to_a_form_is_a_page(browser: Be, connection: Any) -> None:
    """Without a script: the address of a form opens nothing."""
    failed(connection)
    client = browser("finance")
    for path, place in (
        ("/dead-letters/replay", "/dead-letters"), ("/dead-letters/drop", "/dead-letters"),
        ("/approvals/77/approve", "/approvals"),
        ("/workflows/77/input", "/workflows/77"), ("/documents/77/correct/problems.csv", "/documents/77/correct"),
    ):  # fmt: skip
        page = client.submit(path).text
        assert re.findall(r'<a lang="en" href="([^"]*)"', page) == [f"{place}?lang=en"], path
    page = browser("warehouse").submit("/submit", pasted="x", **HEADER).text
    assert 'href="/submit?lang=en"' in page
