"""What people do on the pages: submit and authorise, replay and drop; each leaves its line in the audit log."""

from __future__ import annotations

import csv
import html
import io
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import openpyxl
import pytest

from everest.audit.invariants import BY_KEY
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be, Browser
from tests.pages.forms import HEADER, SOUND
from tests.pages.posted import csv_rows, xlsx_rows
from tests.pages.standing import HOSTILE, audited, failed

PAGES = "documents approvals dead-letters workflows health submit drafts reports"


def audit(conn: Any) -> list[tuple[str, str]]:
    conn.commit()
    return [
        (row["actor"], row["action"]) for row in builders.rows(conn, "SELECT actor, action FROM audit_log ORDER BY id")
    ]


def large(items: int) -> dict[str, Any]:
    """The upload of a file of so many distinct items."""
    rows = "".join(f"ITM-{n:05d};10;{10 + n % 3};1500\n" for n in range(items))
    return {"file": ("hitung.csv", f"kode_barang;qty_sistem;qty_fisik;harga_pokok\n{rows}".encode(), "text/csv")}


@pytest.fixture
def warehouse(connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()


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
def test_everything_wrong_is_told_in_place_and_nothing_is_stored(browser: Be, connection: Any) -> None:
    wrong = "kode_barang;qty_sistem;qty_fisik;harga_pokok\nA;10;;1500\nA;1;2;-5\n<script>x</script>;x;1;1\n"
    answer = browser("warehouse").submit("/submit", pasted=wrong, submit_token="one", **HEADER)
    assert answer.status_code == 422 and "bukan angka" in answer.text and "<script>x" not in answer.text
    sound_cells = wrong.rsplit("<script>", 1)[0]
    answer = browser("warehouse").submit("/submit", pasted=sound_cells, submit_token="one", **HEADER)
    assert answer.status_code == 422
    assert "qty_fisik" in answer.text and "harga_pokok" in answer.text and "kode_barang" in answer.text
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


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
def test_a_file_is_read_as_pasted_rows_are(browser: Be, connection: Any) -> None:
    files = {"file": ("hitung.csv", SOUND.encode(), "text/csv")}
    assert browser("warehouse").submit("/submit", files=files, submit_token="two", **HEADER).status_code == 303
    template = browser("warehouse").get("/submit/template.csv")
    again = {**HEADER, "nomer_nota": "SO-H2"}
    filled = template.content + b"00123;10;12;1500,00\r\nBRG-B;7;5;2500,50\r\n"
    files = {"file": ("opname.csv", filled, "text/csv")}
    assert browser("warehouse").submit("/submit", files=files, submit_token="three", **again).status_code == 303
    connection.commit()
    stored = builders.rows(connection, "SELECT kode_barang FROM so_details_staging ORDER BY id")
    assert [row["kode_barang"] for row in stored] == ["00123", "BRG-B", "00123", "BRG-B"]


TITLES = "kode_barang;qty_sistem;qty_fisik;harga_pokok;lot"


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{TITLES}\nA;10;12;1500;L1 ", id="a blank at the end of the last lot"),
        pytest.param(f"{TITLES}\nA;10;12;1500;L1\u00a0", id="one that does not break, either"),
        pytest.param("kode_barang\tqty_sistem\tqty_fisik\tharga_pokok\nC\t3\t3\t", id="a last cell that is blank"),
        pytest.param(f"\n\n{TITLES}\nA;10;12;1500;\nB;10;x;1500;\n", id="blank lines before the titles"),
        pytest.param(f"{TITLES}\nA;10;12;1500;\n\n\n", id="blank lines at the end"),
    ],
)
def test_pasted_rows_get_the_answer_that_the_same_bytes_get_as_a_file(browser: Be, connection: Any, text: str) -> None:
    clerk = browser("warehouse")
    pasted = clerk.submit("/submit", pasted=text, submit_token="one", **HEADER)
    file = {"file": ("hitung.csv", text.encode(), "text/csv")}
    sent = clerk.submit("/submit", files=file, submit_token="two", **{**HEADER, "nomer_nota": "SO-H2"})

    def said(answer: Any) -> list[str]:
        return re.findall(r"<td[^>]*>(.*?)</td>", answer.text)

    assert (pasted.status_code, said(pasted)) == (sent.status_code, said(sent))
    assert pasted.status_code == (422 if "L1" in text or "x" in text else 303), pasted.text
    stored = builders.rows(connection, "SELECT DISTINCT kode_barang, lot, harga_pokok FROM so_details_staging")
    assert len(stored) == (0 if pasted.status_code == 422 else 1), "both are the same document, or none"


def workbook(rows: list[list[Any]], template: bytes) -> bytes:
    """The template as somebody fills it in."""
    book = openpyxl.load_workbook(io.BytesIO(template))
    sheet: Any = book.active
    for row in rows:
        sheet.append(row)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


@pytest.mark.usefixtures("warehouse")
def test_a_filled_in_workbook_becomes_a_draft(browser: Be, connection: Any) -> None:
    client = browser("warehouse")
    content = workbook(
        [["00123", 10, 12, 1500], ["BRG-B", 7, 5.5, 2500.5]], client.get("/submit/template.xlsx").content
    )
    files = {"file": ("Hitung.XLSX", content, "application/octet-stream")}
    assert client.submit("/submit", files=files, submit_token="two", **HEADER).status_code == 303
    connection.commit()
    stored = builders.rows(connection, "SELECT kode_barang, qty_fisik FROM so_details_staging ORDER BY baris")
    assert [(row["kode_barang"], str(row["qty_fisik"])) for row in stored] == [
        ("00123", "12.0000"),
        ("BRG-B", "5.5000"),
    ]


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[123, 10, 12, 1500], ["B", "=1+1", 5, 1]], ["sel A2: ", "sel B3: ", "rumus"]),
        ([["A", 10, 12, 1500], ["B", 1, 2, -5]], ["sel D3: "]),
    ],
    ids=["what stands in the cells", "what the rules of posting say"],
)
def test_problems_of_a_workbook_are_told_by_cell_and_nothing_is_stored(
    browser: Be, connection: Any, rows: list[list[Any]], told: list[str]
) -> None:
    client = browser("warehouse")
    files = {"file": ("a.xlsx", workbook(rows, client.get("/submit/template.xlsx").content), "x")}
    answer = client.submit("/submit", files=files, submit_token="two", **HEADER)
    assert answer.status_code == 422 and [one for one in told if one not in answer.text] == []
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize("language", ["id", "en"])
def test_problems_that_are_too_many_for_a_page_are_a_file_and_nothing_is_stored(
    browser: Be, connection: Any, language: str
) -> None:
    """20,000 rows with two of them each: all are in the file, in the order and in the words of the page."""
    wrong = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n" + "".join(f"BRG-{n};x;y;1500\n" for n in range(20_000))
    client = browser("warehouse")
    client.cookies.set("everest_language", language)
    page = client.submit("/submit", pasted=wrong, submit_token="two", **HEADER)
    assert page.status_code == 422 and page.text.count("<code>qty_") == 500
    assert ("39.500" in page.text) and 'formaction="/submit/problems.csv"' in page.text
    found: list[tuple[Any, ...]]
    for form, rows_of in (("csv", csv_rows), ("xlsx", xlsx_rows)):
        answer = client.submit(f"/submit/problems.{form}", pasted=wrong, submit_token="two", **HEADER)
        assert answer.status_code == 200
        assert answer.headers["content-disposition"] == f'attachment; filename="problems-SO-H1.{form}"'
        content = answer.content
        if form == "csv" and language == "en":  # read as Excel with English settings does
            rows = csv.reader(io.StringIO(content.decode("utf-8-sig")))
            found = [tuple(row) for row in rows][1:]
        else:
            found = [tuple(row.values()) for row in rows_of(content)]
        assert len(found) == 40_000
        assert [str(one) for one in found[-1][:3]] == ["20000", "20001", "qty_fisik"]
        assert {str(one[2]) for one in found} == {"qty_sistem", "qty_fisik"}
        assert str(found[0][3]) in html.unescape(page.text)
    for table in ("so_headers_staging", "so_details_staging", "audit_log"):
        assert builders.rows(connection, f"SELECT 1 FROM {table}") == []


@pytest.mark.usefixtures("warehouse")
def test_a_file_of_problems_is_asked_for_with_what_has_none_or_cannot_be_read(browser: Be, connection: Any) -> None:
    client = browser("warehouse")
    answer = client.submit("/submit/problems.csv", pasted=SOUND, submit_token="one", **HEADER)
    assert answer.status_code == 200 and csv_rows(answer.content) == []
    files = {"file": ("a.csv", b"PK\x03\x04", "x")}
    answer = client.submit("/submit/problems.csv", files=files, submit_token="one", **HEADER)
    assert answer.status_code in (200, 422) and "Traceback" not in answer.text
    assert client.submit("/submit/problems.exe", pasted=SOUND, **HEADER).status_code == 404
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


@pytest.mark.usefixtures("warehouse")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xlsx", b"kode_barang\nA\n"),
        ("a.xlsx", b"PK\x03\x04broken"),
        ("a.xls", b"\xd0\xcf\x11\xe0"),
        ("a.csv", b"PK\x03\x04"),
    ],
)
def test_a_file_that_is_no_workbook_is_refused_with_a_sentence(
    browser: Be, connection: Any, name: str, content: bytes
) -> None:
    answer = browser("warehouse").submit("/submit", files={"file": (name, content, "x")}, submit_token="t", **HEADER)
    assert answer.status_code == 422 and ("simpan" in answer.text or ".xlsx" in answer.text)
    assert builders.rows(connection, "SELECT 1 FROM so_headers_staging") == []


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


def broken_letter(conn: Any, body: str, digest: str) -> int:
    with conn.cursor() as cursor:
        cursor.execute(
            "INSERT INTO broken_letters (digest, reason, body, body_bytes, origin, copies, first_seen_at, last_seen_at)"
            " VALUES (%s, 'not JSON', %s, 9, 'x / y', 2, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
            (digest * 64, body),
        )
        number = int(cursor.lastrowid)
    conn.commit()
    return number


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
