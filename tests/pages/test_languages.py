"""Whoever reads English reads no Indonesian sentence of ours, and the reverse: files, refusals, findings."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import product
from typing import Any

import openpyxl
import pytest

from everest.audit.finding import SECTION, kept
from everest.audit.invariants import BY_KEY
from everest.settings import MysqlUrl
from everest.words import LANGUAGES, catalogue
from tests import builders
from tests.pages import standing
from tests.pages.conftest import Be
from tests.pages.forms import HEADER, NOT_COUNTED, SOUND
from tests.pages.forms import kept as draft_of
from tests.pages.posted import taken_back, walked
from tests.pages.routes import doors
from tests.pages.standing import failed
from tests.unit.words import foreign

WRONG = (
    "kode_barang;qty_sistem;qty_fisik;harga_pokok;lot;alasan;tanggal_opname;otorisasi_level\n"
    "00123;x;12;1500,00;;a\x07b;31-8-2026;2\n"
    ";7;;2500,50;;;2026-08-30;\n"
    "A;1,00001;1;1;;;;;;\n"
    "A;1\n"
    f"A;{'9' * 30};1;1;{'l' * 65};;;\n"
    'B;1;1;"1" x;;;;\n'
)
BY_THE_RULES = "kode_barang;qty_sistem;qty_fisik;harga_pokok;gudang_kode\nA;-1;;0;\nA;1;1;;GD-Z\n A;1;1;1;\n"
NEXT_YEAR = "kode_barang;qty_sistem;qty_fisik;harga_pokok;snapshot_at\nA;1;1;1;2098-01-01 00:00 WIB\n"
THEIRS = ("expected after",)
"""Words of Python's own inside of a sentence of ours; they are marked as the English they are."""


@pytest.fixture(autouse=True)
def warehouse(connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()


def main_of(page: str) -> str:
    """The page without its menu, which names the other language in that."""
    found = re.search(r"<main.*</main>", page, re.DOTALL)
    assert found
    return found[0]


def only(language: str, page: str) -> None:
    """Asserts that the page says nothing in the other language, and marks nothing as said in it."""
    main = main_of(page)
    assert foreign(language, main) == []  # type: ignore[arg-type]
    other = "en" if language == "id" else "id"
    marked = re.findall(rf'<span lang="{other}">[^<]*', main)
    assert [one for one in marked if not any(words in one for words in THEIRS)] == []


def test_h02a_what_is_wrong_with_a_paste_is_said_in_the_language_of_the_page(browser: Be) -> None:
    for language, pasted in product(LANGUAGES, (WRONG, BY_THE_RULES, "a;b,c\n", "", "lot\n1\n")):
        sent = browser("warehouse").submit(f"/submit?lang={language}", pasted=pasted, submit_token="one", **HEADER)
        assert sent.status_code == 422 and 'id="problems"' in sent.text
        only(language, sent.text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_wrong_with_a_cell_of_a_workbook_is_said_in_the_language_of_the_page(
    browser: Be, language: str, tmp_path: Any
) -> None:
    book: Any = openpyxl.Workbook()
    for row in (
        ("kode_barang", "qty_sistem", "qty_fisik", "harga_pokok"),
        (123, "=1+1", True, "x"),
        ("A", datetime(2026, 8, 31), 0.1234567890123456, 1, 5),
    ):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    file = {"file": ("a.xlsx", (tmp_path / "a.xlsx").read_bytes(), "application/octet-stream")}
    sent = browser("warehouse").submit(f"/submit?lang={language}", files=file, submit_token="one", **HEADER)
    assert sent.status_code == 422
    assert ("sel B2: " in sent.text, "cell B2: " in sent.text) == (language == "id", language == "en")
    only(language, sent.text)


def test_what_is_wrong_with_a_correction_is_said_in_the_language_of_the_page(browser: Be, connection: Any) -> None:
    document = failed(connection, lines=NOT_COUNTED)
    path = f"/documents/{document.shadow_id}/correct"
    for language, pasted in product(LANGUAGES, (WRONG, BY_THE_RULES, NEXT_YEAR)):
        fields = {"pasted": pasted, "decimal": "id", "reason": "salah rak"}
        sent = browser("finance").submit(f"{path}?lang={language}", **fields)
        assert sent.status_code == 422 and 'id="problems"' in sent.text
        only(language, sent.text)


FIELDS = {
    "reason": "salah rak",
    "pasted": WRONG,
    "sequence": "1",
    "name": "approval",
    "payload": "{}",
    "decimal": "id",
    "submit_token": "one",
}
ACTIONS = sorted(route.path for method, route in doors() if method == "POST")


def test_why_an_action_is_refused_is_said_in_the_language_of_the_page(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """Each action, on a document that was posted, on its run, on a draft of the person's own, and on what is not
    there. Reversing the posted one would be right; its own submitter may not."""
    posted = walked(database, connection, dibuat_oleh="engineer")
    job = builders.shadow(connection, posted.shadow_id)
    draft = draft_of(browser, connection, "engineer", SOUND, nomer_nota="SO-DRAF")
    own = {"shadow_id": posted.shadow_id, "run_id": job["workflow_id"], "transaksi_id": draft}
    others = ({**own, "transaksi_id": posted.transaksi_id}, dict.fromkeys(own, 987_654))
    refused = []
    for path, numbers, language in product(ACTIONS, (own, *others), LANGUAGES):
        chosen = {"shadow_id": str(numbers["shadow_id"]), "letter_id": str(numbers["shadow_id"])}
        fields = {**HEADER, **FIELDS, **(chosen if path.startswith("/dead-letters") else {})}
        fields |= {"reason": ""} if path.endswith("/withdraw") else {}
        address = path.format(**numbers, form="csv")
        answer = browser("engineer").submit(f"{address}?lang={language}", **fields)
        assert answer.status_code in (200, 403, 404, 409, 422), (path, answer.text)
        if answer.headers["content-type"].startswith("text/csv"):
            assert foreign(language, answer.text) == []  # type: ignore[arg-type]
        else:
            only(language, answer.text)
        refused.append(path)
    assert set(refused) == set(ACTIONS) and len(ACTIONS) > 20


REASONS = {
    "/documents/{shadow_id}/reverse": (
        "dokumen sendiri dibalik oleh orang lain",
        "document is reversed by somebody else",
    ),
    "/documents/{shadow_id}/rerun": ("hanya yang gagal bisa dijalankan lagi", "only a failed one can be run again"),
    "/approvals/{shadow_id}/approve": ("tidak menunggu keputusan", "waits for no decision"),
    "/approvals/{shadow_id}/reject": ("tidak menunggu keputusan", "waits for no decision"),
    "/drafts/{transaksi_id}/authorise": ("orang lain yang harus mengotorisasinya", "somebody else has to authorise it"),
    "/drafts/{transaksi_id}/withdraw": ("alasan wajib diisi", "a reason has to be given"),
    "/documents/{shadow_id}/authorise": ("tidak menunggu otorisasi lagi", "waits for no authorisation any more"),
}


def test_each_refusal_says_what_it_says(browser: Be, connection: Any, database: MysqlUrl) -> None:
    """So that the test above is not one of pages that say nothing."""
    posted = walked(database, connection, dibuat_oleh="engineer")
    draft = draft_of(browser, connection, "engineer", SOUND, nomer_nota="SO-DRAF")
    for path, sentences in REASONS.items():
        address = path.format(shadow_id=posted.shadow_id, transaksi_id=draft)
        fields = {"reason": "" if "withdraw" in path else "salah rak", "sequence": "1"}
        for language, sentence in zip(LANGUAGES, sentences, strict=True):
            answer = browser("engineer").submit(f"{address}?lang={language}", **fields)
            assert answer.status_code in (403, 409, 422) and sentence in answer.text, (path, answer.text)


def test_why_a_button_is_not_there_is_said_in_the_language_of_the_page(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    builders.limits(connection, "GD-A", batas_dokumen="100")
    connection.commit()
    waiting = walked(database, connection, ends="WAITING", dibuat_oleh="finance")
    told = {one: browser("finance").get(f"/documents/{waiting.shadow_id}?lang={one}").text for one in LANGUAGES}
    assert "finance tidak boleh memutuskan ini" in told["id"] and "finance may not decide this" in told["en"]
    assert "tidak boleh memutuskan ini" not in told["en"]


def column(name: str) -> str | None:
    return None if name == "lot" else f"{name}-7"


def test_what_the_audit_found_is_read_in_either_language(browser: Be, connection: Any) -> None:
    """From the row alone: its sentence, the name of its statement, and its columns, of which one may be NULL."""
    now, told = datetime.now(UTC).replace(tzinfo=None), []
    for key, template in ((key, texts) for key, texts in catalogue().items() if key.startswith(f"{SECTION}.")):
        detail = {name: column(name) for name in re.findall(r"\{(\w+)\}", template["id"])}
        shown = {name: value or "-" for name, value in detail.items()}
        told.append({one: template[one].format(**shown) for one in LANGUAGES})
        builders.insert(
            connection, "audit_findings", invariant=next(iter(BY_KEY)), finding_key=f"{key.partition('.')[2]}:1",
            pesan=told[-1]["id"], detail=json.dumps(detail), first_seen_at=now, last_seen_at=now, first_run_id=1,
            last_run_id=1, diakui_oleh="rina", diakui_at=now, diakui_alasan="sudah tahu",
        )  # fmt: skip
    connection.commit()
    known = {"id": "[diakui oleh rina: sudah tahu]", "en": "[acknowledged by rina: sudah tahu]"}
    for language in LANGUAGES:
        page = browser("analyst").get(f"/health?lang={language}").text
        assert [one[language] for one in told if one[language] not in page] == []
        assert page.count(known[language]) == len(told) > 10
        assert foreign(language, main_of(page)) == []


def test_a_finding_of_another_version_stands_as_it_was_said(browser: Be, connection: Any) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    builders.insert(
        connection, "audit_findings", invariant=next(iter(BY_KEY)), finding_key="unbalanced:1", pesan="apa adanya",
        detail=json.dumps({"posting_id": "7"}), first_seen_at=now, last_seen_at=now, first_run_id=1, last_run_id=1,
    )  # fmt: skip
    connection.commit()
    assert '<span lang="id">apa adanya</span>' in browser("analyst").get("/health?lang=en").text
    assert kept("unbalanced:1", "apa adanya", {})["key"] == f"{SECTION}.unbalanced"


@pytest.mark.parametrize("said", [None, {"key": "refused.document", "values": {"n": 1}}])
def test_why_a_document_was_dropped_is_read_in_either_language(
    browser: Be, connection: Any, said: dict[str, Any] | None
) -> None:
    """With the failure before, as far as its answer says what tells it."""
    document = standing.failed(connection)
    if said is not None:
        standing.run(
            connection,
            "UPDATE rabbit_publish_shadow SET response = JSON_SET(response, '$.said', JSON_EXTRACT(%s, '$'))",
            json.dumps(said),
        )
    dropped = browser("finance").submit("/dead-letters/drop", shadow_id=str(document.shadow_id), reason="dobel")
    assert dropped.status_code == 200
    told = {one: browser("finance").get(f"/documents/{document.shadow_id}?lang={one}").text for one in LANGUAGES}
    assert "Dibatalkan oleh finance: dobel. Kesalahan sebelumnya: dokumen ditolak: 1 masalah" in told["id"]
    why = "the document is refused; problems: 1" if said else '<span lang="id">dokumen ditolak: 1 masalah</span>'
    assert f"Cancelled by finance: dobel. The failure before: {why}" in told["en"]
    connection.commit()
    row = builders.shadow(connection, document.shadow_id)
    assert row["error"] == "Dibatalkan oleh finance: dobel. Kesalahan sebelumnya: dokumen ditolak: 1 masalah"


def test_a_trace_and_the_kinds_of_postings_are_read_in_either_language(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """On the page and in the file: a count and its reversal, their jobs, runs and steps, and all rows of the books. The
    file has days as programs write them, the page as everywhere."""
    walked(database, connection, nomer_nota="SO-1")
    taken_back(database, "SO-1")
    waits = failed(connection, nomer_nota="SO-2")
    told = {"id": "ditolak: 1 masalah", "en": "is refused; problems: 1"}
    standing.run(
        connection,
        "UPDATE rabbit_publish_shadow SET response = %s WHERE id = %s",
        json.dumps({"said": {"key": "refused.document", "values": {"n": 1}}}), waits.shadow_id,
    )  # fmt: skip
    kinds = {
        "id": ("Posting", "Pembalikan", "Hitung selisih".lower()),
        "en": ("Posting", "Reversal", "compute variance"),
    }
    analyst = browser("analyst")
    for language in LANGUAGES:
        trace = analyst.get(f"/reports?report=trace&nomer_nota=SO-1&lang={language}").text
        only(language, trace)
        assert not re.findall(r"20\d\d-\d\d-\d\d|COMPLETED|PEMBALIKAN|POSTING,", re.sub("<[^>]*>", "", main_of(trace)))
        assert [one for one in kinds[language] if one not in trace] == []
        assert told[language] in analyst.get(f"/reports?report=trace&nomer_nota=SO-2&lang={language}").text
        lines = analyst.get(f"/reports?report=variance&since=&lang={language}").text
        assert f"<td>{kinds[language][1]}</td>" in re.sub(' (?:class|data-label)="[^"]*"', "", lines)
        unposted = analyst.get(f"/reports?report=variance&nomer_nota=SO-2&lang={language}").text
        assert {"id": "BELUM DIPOSTING (gagal)", "en": "NOT POSTED (failed)"}[language] in unposted
        file = analyst.get(f"/reports/trace.csv?nomer_nota=SO-1&lang={language}").text
        assert foreign(language, file) == [] and {"id": "kartu stok", "en": "stock card"}[language] in file
        kept = analyst.get(f"/reports/variance.csv?since=&lang={language}").text
        assert ("PEMBALIKAN" in kept, "Reversal" in kept) == (language == "id", language == "en")


REPORTS_REFUSED = {
    "/reports?report=journal&nomer_nota=SO-TIDAK-ADA": (
        "Tidak ada nota SO-TIDAK-ADA.",
        "There is no nota SO-TIDAK-ADA.",
    ),
    "/reports/journal.csv?nomer_nota=SO-TIDAK-ADA": ("tidak ada nota SO-TIDAK-ADA", "there is no nota SO-TIDAK-ADA"),
    "/reports/trace.csv?since=2026-01-01": ("memerlukan salah satu dari", "needs one of"),
    "/reports/journal.csv?since=2026-02-01&until=2026-01-01": ("rentangnya kosong", "the range is empty"),
}


@pytest.mark.parametrize("path", REPORTS_REFUSED)
def test_why_there_is_no_report_is_said_in_the_language_of_the_page(browser: Be, path: str) -> None:
    for language, sentence in zip(LANGUAGES, REPORTS_REFUSED[path], strict=True):
        answer = browser("analyst").get(f"{path}&lang={language}")
        assert sentence in answer.text, (answer.status_code, answer.text[-600:])
        only(language, answer.text)
