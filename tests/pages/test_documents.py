"""The list of documents and one document, on rows as the steps and the existing web application leave them."""

from __future__ import annotations

from typing import Any

import pytest

from everest.pages import documents
from tests import builders
from tests.pages.conftest import Be
from tests.pages.standing import HOSTILE, failed, run


def test_the_list_shows_the_newest_first_and_counts_by_status(browser: Be, connection: Any) -> None:
    first, second = builders.document(connection), failed(connection)
    page = browser("analyst").get("/documents").text
    assert page.index(second.nomer_nota) < page.index(first.nomer_nota)
    assert "dokumen ditolak: 1 masalah" in page
    assert browser("analyst").get("/documents?status=FAILED").text.count(first.nomer_nota) == 0


@pytest.mark.parametrize(
    ("query", "is_found"),
    [
        ("nota=SO-FIND", True),
        ("nota=FIND", False),
        ("nota=SO_FIND", False),
        ("gudang=GD-Z", True),
        ("gudang=GD-A", False),
        ("status=PENDING", True),
        ("status=COMPLETED", False),
        ("since=2026-08-31&until=2026-08-31", True),
        ("until=2026-08-30", False),
        ("min=8.001", True),
        ("min=8001,01", False),
        ("max=8,001.00", True),
        ("max=Rp 8.000", False),
        ("stuck=1", False),
        ("status=nonsense&since=soon&min=x&before=y", True),
    ],
)
def test_filters_find_what_fits_and_ignore_what_makes_no_sense(
    browser: Be, connection: Any, query: str, is_found: bool
) -> None:
    from datetime import date

    builders.document(connection, nomer_nota="SO-FIND-1", gudang_kode="GD-Z", tanggal_opname=date(2026, 8, 31))
    assert ("SO-FIND-1" in browser("finance").get(f"/documents?{query}").text) is is_found


def test_a_reversal_is_found_by_its_warehouse_though_it_has_no_lines_of_its_own(browser: Be, connection: Any) -> None:
    shadow_id = builders.shadow_row(connection, 777_777, "SO-BALIK")
    run(
        connection,
        "INSERT INTO transaksi (id, nomer_nota, jenis, gudang_kode) VALUES (777777, 'SO-BALIK', 'PEMBALIKAN', 'GD-Q')",
    )
    client = browser("analyst")
    assert f"/documents/{shadow_id}" in client.get("/documents?gudang=GD-Q").text
    assert f"/documents/{shadow_id}" not in client.get("/documents?gudang=GD-A").text


def test_paging_goes_on_where_the_page_before_ended(browser: Be, connection: Any) -> None:
    documents = [builders.document(connection, with_warehouses=False) for _ in range(53)]
    client = browser("analyst")
    page = client.get("/documents").text
    assert documents[-1].nomer_nota in page and documents[2].nomer_nota not in page
    older = client.get(f"/documents?before={documents[3].shadow_id}").text
    assert all(one.nomer_nota in older for one in documents[:3]) and documents[3].nomer_nota not in older


def test_warehouse_staff_see_what_they_submitted_and_nothing_else(browser: Be, connection: Any) -> None:
    own = builders.document(connection, dibuat_oleh="warehouse")
    other = builders.document(connection, dibuat_oleh="other-clerk")
    page = browser("warehouse").get("/documents").text
    assert own.nomer_nota in page and other.nomer_nota not in page
    assert browser("warehouse").get(f"/documents/{own.shadow_id}").status_code == 200
    assert browser("warehouse").get(f"/documents/{other.shadow_id}").status_code == 404
    assert browser("warehouse").get(f"/documents/of/{other.transaksi_id}").status_code == 404


def test_what_failed_is_told_by_line_and_column_and_can_be_run_again(browser: Be, connection: Any) -> None:
    document = failed(connection)
    page = browser("finance").get(f"/documents/{document.shadow_id}").text
    assert "qty_fisik" in page and "belum dihitung" in page
    answer = browser("finance").submit(f"/documents/{document.shadow_id}/rerun", reason="harga sudah diperbaiki")
    assert answer.status_code == 303 and answer.headers["location"].startswith(f"/documents/{document.shadow_id}?")
    row = builders.rows(
        connection, "SELECT worker_status, n FROM rabbit_publish_shadow WHERE id=%s", document.shadow_id
    )[0]
    assert (row["worker_status"], row["n"]) == ("PENDING", 2)
    audit = builders.rows(connection, "SELECT actor, action, reason FROM audit_log")[0]
    assert (audit["actor"], audit["action"], audit["reason"]) == ("finance", "rerun", "harga sudah diperbaiki")


def test_a_document_says_which_lines_deserve_a_second_look(browser: Be, connection: Any) -> None:
    lines = [builders.Line("BRG-A", "10", "120"), builders.Line("BRG-B", "-3", "1"), builders.Line("BRG-C", "3", "3")]
    document = builders.document(connection, lines=lines)
    page = browser("analyst").get(f"/documents/{document.shadow_id}").text
    assert "satuan mungkin tertukar" in page and "stok sistem negatif" in page
    agreed = builders.document(connection, lines=[builders.Line("BRG-C", "3", "3")])
    assert "Patut dilihat lagi" not in browser("analyst").get(f"/documents/{agreed.shadow_id}").text


def test_the_history_says_what_changed_from_one_attempt_to_the_next(browser: Be, connection: Any) -> None:
    document = failed(connection)
    problems = '[{"baris": 1, "kolom": "qty_fisik", "pesan": "belum dihitung"}]'
    old = '[{"baris": 1, "kode_barang": "BRG-LAMA", "lot": "", "qty_sistem": "10.0000", "qty_fisik": null}]'
    for n, outcome, told, replaced in ((1, "FAILED", problems, None), (1, "REPLACED", None, old)):
        builders.insert(
            connection, "posting_attempts", transaksi_id=document.transaksi_id, n=n, outcome=outcome, problems=told,
            replaced_lines=replaced,
        )  # fmt: skip
    connection.commit()
    page = browser("analyst").get(f"/documents/{document.shadow_id}?tab=history").text
    assert "Percobaan 1" in page and "belum dihitung" in page
    assert "belum dicoba" in page and "BRG-LAMA" in page and "BRG-A" in page


def test_a_second_rerun_is_a_conflict_and_changes_nothing(browser: Be, connection: Any) -> None:
    document = failed(connection)
    client = browser("finance")
    assert client.submit(f"/documents/{document.shadow_id}/rerun").status_code == 303
    again = client.submit(f"/documents/{document.shadow_id}/rerun")
    assert again.status_code == 409 and "antre; hanya yang gagal bisa dijalankan lagi" in again.text
    assert len(builders.rows(connection, "SELECT 1 FROM outbox")) == 1


def test_an_analyst_is_shown_no_button(browser: Be, connection: Any) -> None:
    document = failed(connection)
    page = browser("analyst").get(f"/documents/{document.shadow_id}").text
    assert '<form method="post"' not in page


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_shown_as_text_everywhere(browser: Be, connection: Any, name: str) -> None:
    line = builders.Line(kode_barang=name[:64], alasan=name, lot=name[:64])
    document = failed(
        connection, lines=[line], nomer_nota=name[:100], dibuat_oleh=name[:100], diotorisasi_oleh=name[:100]
    )
    run(
        connection,
        "UPDATE rabbit_publish_shadow SET response=JSON_OBJECT('message', %s, 'errors',"
        " JSON_ARRAY(JSON_OBJECT('baris', 1, 'kolom', %s, 'pesan', %s))), current_step=%s WHERE id=%s",
        name, name, name, name, document.shadow_id,
    )  # fmt: skip
    client = browser("engineer")
    for path in ("", "?tab=lines", "?tab=lines&search=%25", "?tab=journal", "?tab=card", "?tab=history"):
        page = client.get(f"/documents/{document.shadow_id}{path}").text
        assert name not in page or name.isalnum() or name.startswith(("=", "{")), path
        assert "<script>alert" not in page and "<img" not in page and "\u202e" not in page and ">49<" not in page
    page = client.get("/documents").text
    assert "<script>alert" not in page and "<img" not in page and "\u202e" not in page


def test_a_search_is_a_search_and_no_pattern(browser: Be, connection: Any) -> None:
    lines = [builders.Line(kode_barang="A_1"), builders.Line(kode_barang="AB1"), builders.Line(kode_barang="A%")]
    document = builders.document(connection, lines=lines)
    page = browser("analyst").get(f"/documents/{document.shadow_id}?tab=lines&search=A_").text
    assert "A_1" in page and "AB1" not in page


@pytest.mark.parametrize("tab", ["summary", "lines", "journal", "card", "history", "nonsense"])
@pytest.mark.parametrize("language", ["id", "en"])
def test_every_part_of_a_document_without_anything_in_it_is_a_page(
    browser: Be, connection: Any, tab: str, language: str
) -> None:
    """A job whose document was never stored, or not yet: 404 documents look like that."""
    shadow_id = builders.shadow_row(connection, 999_999, "SO-KOSONG")
    connection.commit()
    answer = browser("engineer").get(f"/documents/{shadow_id}?tab={tab}&lang={language}")
    assert answer.status_code == 200 and "SO-KOSONG" in answer.text


def test_jobs_of_other_modules_are_not_documents(browser: Be, connection: Any) -> None:
    run(connection, "INSERT INTO rabbit_publish_shadow (id, worker_status) VALUES (77, 'FAILED')")
    assert browser("engineer").get("/documents/77").status_code == 404
    assert "documents/77" not in browser("engineer").get("/documents").text


@pytest.mark.parametrize(
    "path", ["/documents/0", "/documents/99999999999999999999", "/documents/x", "/nothing", "/docs"]
)
def test_what_does_not_exist_is_not_found(browser: Be, path: str) -> None:
    assert browser("engineer").get(path).status_code in (404, 422)


def test_the_language_is_remembered(browser: Be) -> None:
    client = browser("analyst")
    assert '<html lang="id">' in client.get("/documents").text
    assert '<html lang="en">' in client.get("/documents?lang=en").text
    assert '<html lang="en">' in client.get("/documents").text


def test_a_refresh_of_a_document_that_nobody_touched_is_no_work(
    browser: Be, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says only that what is shown is still true, to the same person in the same language."""
    found = failed(connection)
    client, path = browser("finance"), f"/documents/{found.shadow_id}"
    monkeypatch.setattr(documents, "_minute", lambda: 1)
    stamp = client.get(path).headers["etag"]
    again = client.get(path, headers={"if-none-match": stamp})
    assert (again.status_code, again.text) == (304, "") and again.headers["x-as-of"].endswith("WIB")
    assert client.get(f"{path}?lang=en", headers={"if-none-match": stamp}).status_code == 200
    assert browser("analyst").get(path, headers={"if-none-match": stamp}).status_code == 200
    run(connection, "UPDATE rabbit_publish_shadow SET attempts = attempts + 1 WHERE id = %s", found.shadow_id)
    assert browser("finance").get(path, headers={"if-none-match": stamp}).status_code == 200
    run(connection, "UPDATE rabbit_publish_shadow SET worker_status = 'PROCESSING' WHERE id = %s", found.shadow_id)
    assert "etag" not in client.get(path).headers
