"""A failed document is corrected from its page: problems in place, old lines kept, another person lets it run again."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from everest.intake.files import Reading, read_file
from everest.pages import formats
from everest.pages.access import RoleMapping
from everest.pages.app import create_app
from everest.pages.settings import PageSettings
from everest.pages.words import catalogue
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.walk import Walker
from tests.pages.conftest import SECRET, Be, Browser, by_header
from tests.pages.forms import COUNTED, NOT_COUNTED
from tests.pages.posted import csv_rows

STILL_WRONG = "kode_barang;qty_sistem;qty_fisik;harga_pokok\n00123;10;12;1500,00\nBRG-B;7;;2500,50\n"


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    with closing(Walker(database)) as found:
        yield found


@pytest.fixture
def failed(connection: Any, walker: Walker) -> Document:
    document = builders.document(connection, NOT_COUNTED, dibuat_oleh="warehouse")
    connection.commit()
    assert run(walker, connection, document) == "FAILED"
    return document


def run(walker: Walker, connection: Any, document: Document) -> str:
    walker.dag_run(walker.claim(document.shadow_id))
    return str(builders.shadow(connection, document.shadow_id)["worker_status"])


def told(connection: Any) -> list[tuple[str, str, str | None]]:
    connection.commit()
    found = builders.rows(connection, "SELECT actor, action, reason FROM audit_log ORDER BY id")
    return [(row["actor"], row["action"], row["reason"]) for row in found]


def counted(connection: Any, document: Document) -> list[str | None]:
    connection.commit()
    sql = "SELECT qty_fisik FROM so_details_staging WHERE header_id = %s ORDER BY baris"
    return [
        None if row["qty_fisik"] is None else str(row["qty_fisik"])
        for row in builders.rows(connection, sql, document.header_id)
    ]


def test_h13_corrected_by_one_authorised_by_another_and_posted(
    browser: Be, connection: Any, walker: Walker, failed: Document
) -> None:
    """The form holds the lines as they stand; put right and sent, they wait for somebody else, whose one act authorises
    and runs it again."""
    path, one, other = f"/documents/{failed.shadow_id}", browser("finance"), browser("finance-2")
    form = one.get(f"{path}/correct")
    assert form.status_code == 200 and "BRG-B;7;;2.500,50;" in form.text
    (header,) = builders.rows(connection, "SELECT COALESCE(snapshot_at, created_at) AS at FROM so_headers_staging")
    assert f"Saldo buku dibekukan {formats.wib(header['at'])}, dan itu tetap berlaku" in form.text
    sent = one.submit(f"{path}/correct", pasted=COUNTED, decimal="id", reason="rak 3 sudah dihitung")
    assert (sent.status_code, sent.headers["location"]) == (303, f"{path}?done=corrected")
    assert counted(connection, failed) == ["12.0000", "5.0000"]
    assert builders.shadow(connection, failed.shadow_id)["worker_status"] == "FAILED"
    assert "rak 3 sudah dihitung" in other.get(path).text and 'data-open="authorise"' in other.get(path).text
    assert 'data-open="authorise"' not in one.get(path).text
    assert one.submit(f"{path}/authorise", correction=seen(other, path)).status_code == 403
    number = seen(other, path)
    assert other.submit(f"{path}/authorise", correction=number).status_code == 303
    assert other.submit(f"{path}/authorise", correction=number).status_code == 409
    assert builders.shadow(connection, failed.shadow_id)["worker_status"] == "PENDING"
    assert run(walker, connection, failed) == "COMPLETED"
    assert builders.books(connection).agree
    assert told(connection) == [
        ("finance", "replace", "rak 3 sudah dihitung"),
        ("finance-2", "authorise", None),
        ("finance-2", "rerun", "rak 3 sudah dihitung"),
    ]
    (header,) = builders.rows(connection, "SELECT * FROM so_headers_staging")
    assert (header["dibuat_oleh"], header["diotorisasi_oleh"], header["otorisasi_level"]) == (
        "warehouse",
        "finance-2",
        2,
    )
    kept = builders.rows(connection, "SELECT outcome FROM posting_attempts ORDER BY id")
    assert [row["outcome"] for row in kept] == ["FAILED", "REPLACED", "COMPLETED"]
    assert "finance-2" in other.get(f"{path}?tab=history").text


def test_all_problems_stand_in_the_form_and_nothing_is_stored(browser: Be, connection: Any, failed: Document) -> None:
    """Of the file first; of the rules of posting once the file is sound; and a reason has to be given."""
    path, one = f"/documents/{failed.shadow_id}/correct", browser("finance")
    for pasted, reason, words in (
        ("kode_barang;qty_sistem;qty_fisik;harga_pokok\nA;x;1;1\nB;1;y;1\n", "salah", ["qty_sistem", "qty_fisik"]),
        (STILL_WRONG, "salah", ["qty_fisik", STILL_WRONG.splitlines()[1]]),
        (COUNTED.replace("00123", "BRG-B"), "salah", ["baris 1", "baris 2"]),
        (COUNTED, "", ["Alasan wajib diisi"]),
        (f"nomer_nota;{COUNTED}".replace("\n0", "\nLAIN;0").replace("\nB", "\nLAIN;B"), "salah", ["LAIN"]),
    ):
        answer = one.submit(path, pasted=pasted, decimal="id", reason=reason)
        assert answer.status_code == 422
        assert [word for word in words if word not in answer.text] == []
    assert counted(connection, failed) == ["12.0000", None]
    assert told(connection) == []


def test_problems_of_a_correction_that_are_too_many_for_the_page_are_a_file(
    browser: Be, connection: Any, failed: Document
) -> None:
    path, one = f"/documents/{failed.shadow_id}/correct", browser("finance")
    wrong = COUNTED.splitlines()[0] + "\n" + "".join(f"BRG-{n};10;y;1500\n" for n in range(501))
    page = one.submit(path, pasted=wrong, decimal="id", reason="salah")
    assert page.status_code == 422 and f'formaction="{path}/problems.xlsx"' in page.text
    answer = one.submit(f"{path}/problems.csv", pasted=wrong, decimal="id", reason="")
    assert [(row["Baris"], row["Kolom"]) for row in csv_rows(answer.content)] == [
        (str(n), "qty_fisik") for n in range(1, 502)
    ]
    assert one.submit(f"{path}/problems.csv", pasted=COUNTED, decimal="id").status_code == 200
    assert counted(connection, failed) == ["12.0000", None] and told(connection) == []


def test_a_file_corrects_as_pasted_rows_do_and_may_change_the_header(
    browser: Be, connection: Any, failed: Document
) -> None:
    builders.warehouse(connection, "GD-B")
    connection.commit()
    path, one = f"/documents/{failed.shadow_id}", browser("finance")
    file = {"file": ("koreksi.csv", COUNTED.encode(), "text/csv")}
    answer = one.submit(f"{path}/correct", files=file, decimal="id", reason="gudang salah", gudang_kode="GD-B")
    assert answer.status_code == 303
    connection.commit()
    (header,) = builders.rows(connection, "SELECT * FROM so_headers_staging")
    assert (header["gudang_kode"], header["otorisasi_level"], header["diotorisasi_oleh"]) == ("GD-B", 1, None)


def test_a_file_stands_for_the_rows_that_the_form_began_with_and_not_for_rows_that_were_changed(
    browser: Be, connection: Any, failed: Document
) -> None:
    path, one = f"/documents/{failed.shadow_id}/correct", browser("finance")
    (began,) = re.findall(r'<textarea name="pasted".*?>\n(.*?)</textarea>', one.get(path).text, re.DOTALL)
    file = {"file": ("koreksi.csv", COUNTED.encode(), "text/csv")}
    changed = began.replace("BRG-B", "BRG-C")
    answer = one.submit(path, files=file, pasted=changed, decimal="id", reason="salah")
    assert answer.status_code == 422 and catalogue()["submit.both"]["id"] in answer.text
    assert changed in answer.text and told(connection) == []
    as_browsers_do = began.replace("\n", "\r\n")
    assert one.submit(path, files=file, pasted=as_browsers_do, decimal="id", reason="salah").status_code == 303
    assert counted(connection, failed) == ["12.0000", "5.0000"]


def test_what_was_corrected_and_not_authorised_can_be_run_and_is_refused_by_the_rules(
    browser: Be, connection: Any, walker: Walker, failed: Document
) -> None:
    path, one = f"/documents/{failed.shadow_id}", browser("finance")
    assert one.submit(f"{path}/correct", pasted=COUNTED, decimal="id", reason="hitung").status_code == 303
    assert one.submit(f"{path}/rerun").status_code == 303
    assert run(walker, connection, failed) == "FAILED"
    assert "otorisasi level 1 belum cukup" in one.get(path).text
    assert builders.rows(connection, "SELECT 1 FROM posting_sets") == []
    other = browser("finance-2")
    assert other.submit(f"{path}/authorise", correction=seen(other, path)).status_code == 303
    assert run(walker, connection, failed) == "COMPLETED"


def test_who_authorises_stands_behind_the_correction_they_saw_and_not_behind_a_later_one(
    browser: Be, connection: Any, failed: Document
) -> None:
    path, one, other = f"/documents/{failed.shadow_id}", browser("finance"), browser("finance-2")
    assert one.submit(f"{path}/correct", pasted=COUNTED, decimal="id", reason="rak 3").status_code == 303
    number = seen(other, path)
    changed = COUNTED.replace("00123;10;12", "00123;10;9000")
    assert one.submit(f"{path}/correct", pasted=changed, decimal="id", reason="rak 3").status_code == 303

    refused = other.submit(f"{path}/authorise", correction=number)

    assert (refused.status_code, "sudah berganti" in refused.text) == (409, True)
    assert other.submit(f"{path}/authorise").status_code == 409, "who has seen none stands behind none"
    assert builders.shadow(connection, failed.shadow_id)["worker_status"] == "FAILED"
    assert other.submit(f"{path}/authorise", correction=seen(other, path)).status_code == 303


def test_where_people_may_authorise_their_own_a_correction_runs_at_once(
    database: MysqlUrl, connection: Any, walker: Walker, failed: Document
) -> None:
    site = Settings(allow_self_approval=True)
    app: FastAPI = create_app(PageSettings(database, site, RoleMapping({}, {}), SECRET), by_header)
    path = f"/documents/{failed.shadow_id}/correct"
    answer = Browser(app, "finance").submit(path, pasted=COUNTED, decimal="id", reason="hitung")
    assert answer.headers["location"].endswith("done=corrected_rerun")
    assert run(walker, connection, failed) == "COMPLETED"


def test_only_what_failed_and_only_by_who_may(browser: Be, connection: Any, failed: Document) -> None:
    waiting = builders.document(connection)
    connection.commit()
    path = f"/documents/{failed.shadow_id}/correct"
    assert browser("finance").get(f"/documents/{waiting.shadow_id}/correct").status_code == 409
    assert browser("finance").submit(f"/documents/{waiting.shadow_id}/correct", pasted=COUNTED).status_code == 409
    assert browser("finance").submit(f"/documents/{failed.shadow_id}/authorise").status_code == 409
    assert browser("finance").get("/documents/999999/correct").status_code == 404
    for who in ("analyst", "warehouse"):
        assert browser(who).get(path).status_code == 403
        assert browser(who).submit(path, pasted=COUNTED, decimal="id", reason="x").status_code == 403


def test_the_lines_that_were_sent_come_back_unchanged(browser: Be, connection: Any, walker: Walker) -> None:
    """Downloaded, uploaded: codes with zeros, formulas and semicolons in front, and decimals to the last."""
    lines = [Line("=A1", "1234.5678", "0", "1000.000001", lot="a;b"), Line("'x", "-3", None, None, alasan='kata "ya"')]
    document = builders.document(connection, lines, dibuat_oleh="warehouse")
    connection.commit()
    assert run(walker, connection, document) == "FAILED"
    columns = "kode_barang, lot, gudang_kode, qty_sistem, qty_fisik, harga_pokok, satuan, alasan"
    sql = f"SELECT {columns} FROM so_details_staging WHERE header_id = %s ORDER BY baris"
    before = builders.rows(connection, sql, document.header_id)
    path, one = f"/documents/{document.shadow_id}", browser("finance")
    content = one.get(f"{path}/sent.csv").content
    found = read(content)
    assert [(line.kode_barang, line.lot, line.gudang_kode) for line in found] == [
        (row["kode_barang"], row["lot"] or "", row["gudang_kode"]) for row in before
    ]
    assert [(line.qty_sistem, line.qty_fisik, line.harga_pokok, line.alasan) for line in found] == [
        (row["qty_sistem"], row["qty_fisik"], row["harga_pokok"], row["alasan"]) for row in before
    ]
    assert browser("other-clerk").get(f"{path}/sent.csv").status_code == 404


def read(content: bytes) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".csv") as file:
        file.write(content)
        file.flush()
        header = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
        return read_file(Path(file.name), Reading(header, None, "id")).submission.lines


def seen(browser: Browser, path: str) -> str:
    """The correction that the page of a document shows to whoever may authorise it."""
    return re.findall(r'name="correction" value="([0-9]+)"', browser.get(path).text)[0]
