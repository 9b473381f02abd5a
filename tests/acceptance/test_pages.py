"""The pages in a real Chromium, inside Airflow's own frame, each person with their own login."""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import openpyxl
from playwright.sync_api import Frame, Page, expect

from tests import builders
from tests.acceptance.browsing import PATIENCE_MS, choose, follow, framed, opened, ours, say, token_of
from tests.acceptance.live import Live, until
from tests.pages.eyes import serious
from tests.pages.posted import csv_rows, xlsx_rows

CSV = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Row = tuple[Any, ...]


def csv_file(*rows: Row) -> Any:
    text = CSV + "".join(";".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
    return {"name": "hitung.csv", "mimeType": "text/csv", "buffer": text.encode()}


def workbook(template: bytes, *rows: Row) -> Any:
    """The empty sheet of the page, as somebody fills it in."""
    book = openpyxl.load_workbook(io.BytesIO(template))
    sheet = book.worksheets[0]
    titles = [str(cell.value) for cell in sheet[1]]
    for number, row in enumerate(rows, 2):
        for name, value in zip(CSV.strip().split(";"), row, strict=True):
            sheet.cell(number, titles.index(name) + 1, value)
    content = io.BytesIO()
    book.save(content)
    return {"name": "hitung.xlsx", "mimeType": KIND, "buffer": content.getvalue()}


def problems(frame: Frame, file: Any) -> list[list[str]]:
    """What the page says about a file that is chosen in its input: the cells of each row of its table."""
    frame.locator("[name=file]").set_input_files([file])
    frame.locator("form.upload button[type=submit]").click()
    told = frame.locator("#problems", has_text="disimpan")
    told.wait_for()
    found = [row.locator("td").all_inner_texts() for row in told.locator("tbody tr").all()]
    told.evaluate("(old) => old.remove()")  # the next answer shall bring its own
    return found


def test_a_count_goes_from_a_clerk_over_finance_into_the_books(live: Live, open_as: Callable[..., Any]) -> None:
    """All of it in Airflow's frame, reached by its menu. Everything that is wrong with a file is shown by line and cell
    and nothing is stored; the file that is put right becomes a draft. The clerk's list of documents stands open while
    finance authorise it, and shows it completed by itself; finance see the same, save its lines, and go on to the log
    of its task and to its run in Airflow itself."""
    mark = secrets.token_hex(4)
    nota = f"SO-HAL-{mark}"
    sound = ((mark, 10, 12, 1500), (f"{mark}-2", 7, 5, Decimal("2500.5")))
    faulty = ((mark, 10, None, 1500), (f"{mark}-2", 7, 5, -5), (mark, 1, 1, 1))
    with live.connection() as conn:
        builders.warehouse(conn, "GD-HAL")
    with open_as("warehouse") as page:
        frame = opened(page, "Kirim opname")
        frame.locator("[name=nomer_nota]").fill(nota)
        frame.locator("[name=gudang_kode]").select_option("GD-HAL")
        frame.locator("[name=tanggal_opname]").fill("2026-08-31")
        with page.expect_download() as began:
            frame.locator("a[href$='template.xlsx']").click()
        template = began.value.path().read_bytes()
        told = problems(frame, csv_file(*faulty))
        assert {(row[1], row[2]) for row in told} >= {("2", "qty_fisik"), ("3", "harga_pokok"), ("4", "kode_barang")}
        told = problems(frame, workbook(template, *faulty))
        assert {(row[2], row[3].partition(":")[0]) for row in told} >= {
            ("qty_fisik", "sel C2"),
            ("harga_pokok", "sel D3"),
            ("kode_barang", "sel A4"),
        }
        assert live.rows("SELECT 1 FROM so_headers_staging WHERE nomer_nota = %s", nota) == []
        frame.locator("[name=file]").set_input_files([workbook(template, *sound)])
        frame.locator("form.upload button[type=submit]").dblclick()
        expect(frame.locator("article", has_text=nota)).to_have_count(1)
        frame.locator("nav a[href$='/documents']").click()
        frame.locator("[name=nota]").fill(nota)
        frame.locator("form.filters button[type=submit]").click()
        frame.wait_for_url(f"**nota={nota}*")
        expect(frame.locator("#rows .empty")).to_be_visible()
        frame.evaluate("window.stays = true")
        with open_as("finance") as finance:
            authorised(live, finance, nota)
            expect(frame.locator("#rows tr", has_text=nota).locator(".badge.completed")).to_be_visible()
            assert frame.evaluate("window.stays"), "the page refreshed itself, and was not loaded again"
            looked_at(live, finance, nota, mark)


def authorised(live: Live, page: Page, nota: str) -> None:
    frame = opened(page, "Draf")
    frame.locator("article", has_text=nota).locator("h2 a").click()
    expect(frame.locator("#weighed")).to_contain_text("Rp")  # the money stands there before the name is given
    say(frame, "authorise")
    frame.wait_for_url("**/documents/*")
    expect(frame.locator("h1")).to_have_text(nota)
    (job,) = live.rows("SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = %s", nota)
    live.wait_for(job["id"], "COMPLETED", "FAILED")
    expect(frame.locator("#state .badge.completed")).to_be_visible(timeout=PATIENCE_MS)  # it refreshes by itself


def looked_at(live: Live, page: Page, nota: str, mark: str) -> None:
    """The document that finance authorised: in dark colours, its files, its journal, and its run in Airflow."""
    frame = ours(page)
    choose(page, "User", "Appearance", "Dark Mode")
    expect(frame.locator("html[data-theme=dark]")).to_be_attached()
    assert (serious(page), serious(frame)) == ([], [])  # of Airflow's page, and of ours in it
    with page.expect_download() as began:
        frame.locator("#state a[href$='lines.csv']").click()
    in_csv = csv_rows(began.value.path().read_bytes())
    with page.expect_download() as began:
        frame.locator("#state a[href$='lines.xlsx']").click()
    in_xlsx = xlsx_rows(began.value.path().read_bytes())
    assert (
        [row["Kode barang"] for row in in_csv]
        == [row["Kode barang"] or "" for row in in_xlsx]
        == [mark, f"{mark}-2", ""]
    )
    for name in ("Nilai lebih", "Nilai kurang"):
        assert [Decimal(row[name].replace(",", ".")) for row in in_csv] == [Decimal(str(row[name])) for row in in_xlsx]
    (job,) = live.rows("SELECT id, dag_run_id FROM rabbit_publish_shadow WHERE nomer_nota = %s", nota)
    frame.locator(".tabs a[href*=journal]").click()
    expect(frame.locator("tbody tr")).to_have_count(4)
    frame.locator(".tabs a").first.click()
    follow(page, frame, "a[data-airflow][href*='/tasks/']", f"{job['dag_run_id']}/taskInstances/post_jurnal/logs/")
    page.wait_for_url("**/tasks/post_jurnal*")  # the whole window, not the frame
    frame = framed(page, f"documents/{job['id']}")
    follow(page, frame, "a[data-airflow][href*='/runs/']:not([href*='/tasks/'])", f"/dagRuns/{job['dag_run_id']}($|/)")
    page.wait_for_url(f"**/dags/opname_posting/runs/{job['dag_run_id']}*")


def test_airflow_decides_who_somebody_is(live: Live) -> None:
    """Over HTTP, with the real login: nobody without one, nobody with a forged one, and each role at its own doors."""
    base = live.env["EVEREST_AIRFLOW_URL"] + "/everest"

    def status(path: str, token: str | None) -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(base + path, headers=headers, trust_env=False, timeout=30).status_code

    until("the pages", lambda: status("/documents", token_of(live, "finance")) == 200)
    assert status("/documents", None) == 401
    assert status("/documents", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.") == 401
    expected = {"analyst": (200, 200, 403), "finance": (200, 200, 200), "warehouse": (200, 403, 200)}
    for who, (documents, reports, submit) in expected.items():
        token = token_of(live, who)
        assert (status("/documents", token), status("/reports?since=", token), status("/submit", token)) == (
            documents,
            reports,
            submit,
        )
