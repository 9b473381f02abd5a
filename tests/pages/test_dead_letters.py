"""Surat mati: each row is the letter of its job, the nota finds it, and no letter is lost between two pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from everest.pages.dead_letters import PAGE
from everest.pages.words import catalogue
from tests import builders
from tests.pages.conftest import Be
from tests.pages.posted import csv_rows
from tests.pages.standing import broken_letter, failed, run
from tests.pages.tables import table

NOTA, AGE, ATTEMPTS, REASON, MESSAGE = "Nota", "Umur", "Percobaan", "Alasan", "Pesan"


def form(page: str, name: str) -> str:
    found = re.search(rf'<form id="{name}"(.*?)</form>', page, re.DOTALL)
    return found[1] if found else ""


def letters(page: str) -> list[dict[str, str]]:
    parted = re.sub("<br>|</summary>", " ", form(page, "failed"))
    rows = table(parted)[0] if parted else []
    return [{name: " ".join(cell.split()) for name, cell in row.items()} for row in rows]


def link(page: str, text: str) -> str | None:
    found = re.search(rf'<a class="button"(?: rel="next")? href="([^"]*)">{text}</a>', page)
    return found[1].replace("&amp;", "&") if found else None


def dead(conn: Any, nota: str, **columns: Any) -> int:
    return builders.shadow_row(
        conn,
        None,
        nota,
        worker_status="FAILED",
        error_code=500,
        worker_at=datetime.now(UTC).replace(tzinfo=None),
        **columns,
    )


def test_a_row_has_age_attempts_reason_in_words_and_its_message(browser: Be, connection: Any) -> None:
    document = failed(connection, nomer_nota="SO-1")
    died = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=2, minutes=5)
    run(
        connection,
        "UPDATE rabbit_publish_shadow SET attempts = 3, dead_lettered_at = %s, worker_at = %s WHERE id = %s",
        died, died - timedelta(days=1), document.shadow_id,
    )  # fmt: skip
    (row,) = letters(browser("analyst").get("/dead-letters").text)
    assert row[NOTA] == "SO-1"
    assert row[AGE] == f"2 jam 5 mnt {died + timedelta(hours=7):%d-%m-%Y %H:%M:%S} WIB"
    assert row[ATTEMPTS] == "3"
    assert row[REASON] == "422 datanya salah dokumen ditolak: 1 masalah"
    assert f'"transaksi_id": {document.transaksi_id}' in row[MESSAGE] and '"SO-1"' in row[MESSAGE]
    page = browser("analyst").get("/dead-letters").text
    assert f'<a href="/documents/{document.shadow_id}">SO-1</a>' in page


def test_the_message_is_the_one_that_was_sent_last(browser: Be, connection: Any) -> None:
    document = failed(connection)
    for body in ('{"n": 1}', '{"n": 2}'):
        builders.insert(
            connection, "outbox", shadow_id=document.shadow_id, exchange="x", routing_key="x", body=body,
            available_at=datetime.now(UTC).replace(tzinfo=None),
        )  # fmt: skip
    (row,) = letters(browser("analyst").get("/dead-letters").text)
    assert row[MESSAGE] == 'lihat {"n": 2}'


def test_each_code_is_told_in_words_in_both_languages(browser: Be, connection: Any) -> None:
    words = {key.split(".")[1]: texts for key, texts in catalogue().items() if key.startswith("code.")}
    assert {"422", "423", "500", "503", "504"} <= set(words)
    jobs = {}
    for code in words:
        jobs[code] = failed(connection, nomer_nota=f"SO-{code}")
        run(connection, "UPDATE rabbit_publish_shadow SET error_code = %s WHERE id = %s", code, jobs[code].shadow_id)
    for language, column in (("id", REASON), ("en", "Reason")):
        rows = letters(browser("analyst").get(f"/dead-letters?lang={language}").text)
        told = {row[NOTA]: row[column] for row in rows}
        assert set(told) == {f"SO-{code}" for code in words}
        for code, texts in words.items():
            assert told[f"SO-{code}"].startswith(f"{code} {texts[language]} "), code


def test_a_nota_is_found_by_its_beginning_and_by_nothing_else(browser: Be, connection: Any) -> None:
    for nota in ("SO-2026-001", "SO-2026-002", "SO-2025-002", "SO-2_26"):
        dead(connection, nota)
    client = browser("finance")

    def found(query: str) -> list[str]:
        return [row[NOTA].removeprefix("#") for row in letters(client.get(f"/dead-letters?nota={query}").text)]

    everything = found("")
    assert len(everything) == 4
    for query, count in (("SO-2026", 2), ("SO-2026-002", 1), ("-002", 0), ("SO-2_", 1), ("%25", 0)):
        assert len(found(query)) == count, query
        file = client.get(f"/dead-letters.csv?nota={query}")
        assert len(csv_rows(file.content)) == count, query
    page = client.get("/dead-letters?nota=SO-9").text
    assert catalogue()["letters.empty_filtered"]["id"] in page and form(page, "failed") == ""
    page = client.get("/dead-letters?nota=SO-2026").text
    assert 'name="nota" value="SO-2026"' in page and "/dead-letters.csv?nota=SO-2026" in page


def test_letters_go_on_where_the_page_before_ended_under_the_same_filter(browser: Be, connection: Any) -> None:
    jobs = [dead(connection, f"SO-A{n:03d}" if n % 2 else f"SO-B{n:03d}") for n in range(2 * PAGE + 6)]
    client = browser("finance")
    for query, wanted in (("", jobs[::-1]), ("?nota=SO-A", jobs[1::2][::-1])):
        seen: list[int] = []
        path: str | None = f"/dead-letters{query}"
        pages = 0
        while path:
            page = client.get(path).text
            seen += [int(number) for number in re.findall(r'name="shadow_id" value="(\d+)"', page)]
            assert (link(page, "Terbaru") is not None) == (pages > 0)
            path, pages = link(page, "Lebih lama"), pages + 1
        assert seen == wanted
        assert pages == -(-len(wanted) // PAGE)
    assert f">{len(jobs)}</strong>" in client.get("/dead-letters").text


def test_broken_messages_go_on_where_the_page_before_ended(browser: Be, connection: Any) -> None:
    for n in range(PAGE + 2):
        builders.insert(
            connection, "broken_letters", digest=f"{n:064x}", reason="not JSON", body=f"pesan {n}", body_bytes=7,
            origin="x / y", copies=1, first_seen_at=datetime.now(UTC), last_seen_at=datetime.now(UTC),
        )  # fmt: skip
    numbers = [row["id"] for row in builders.rows(connection, "SELECT id FROM broken_letters ORDER BY id")]
    client = browser("finance")
    first = client.get("/dead-letters").text
    further = link(first, "Pesan rusak berikutnya")
    assert further is not None
    second = client.get(further.partition("#")[0]).text
    shown = [[int(one) for one in re.findall(r'name="letter_id" value="(\d+)"', page)] for page in (first, second)]
    assert shown == [numbers[:PAGE], numbers[PAGE:]]
    assert link(second, "Awal") == "/dead-letters#broken"
    assert link(second, "Pesan rusak berikutnya") is None


def test_who_may_not_act_reads_the_same_rows_without_boxes(browser: Be, connection: Any) -> None:
    failed(connection, nomer_nota="SO-1")
    broken_letter(connection, "pesan", "a")
    finance, analyst = (browser(who).get("/dead-letters").text for who in ("finance", "analyst"))
    assert [row[NOTA] for row in letters(analyst)] == ["SO-1"]
    assert 'type="checkbox"' in form(finance, "failed") and 'type="checkbox"' in form(finance, "unreadable")
    assert 'type="checkbox"' not in analyst and 'type="submit" class="danger"' not in analyst
