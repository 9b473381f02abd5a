"""Kesehatan: each number is the one of its rows, or of the broker; what is red says what to do next."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from everest.audit.invariants import BY_KEY
from everest.pages import health
from everest.pages.settings import Broker
from everest.pages.words import catalogue
from ingest_consumer.shadow import DEAD_LETTER_QUEUE as LETTERS
from ingest_consumer.shadow import JOBS_QUEUE as JOBS
from tests import builders
from tests.fake_management import PASSWORD, USER, FakeManagement
from tests.pages.conftest import Be
from tests.pages.standing import audited, failed, run

GOOD, UNSURE, BAD = "Baik", "Perhatikan", "Bermasalah"
Told = dict[str, tuple[str, str, str]]
"""Of each check by the first word of its key: verdict, what it says, and what to do ("" if nothing)."""


@pytest.fixture
def management(app: FastAPI) -> Iterator[FakeManagement]:
    """The API that the pages ask; it knows both queues."""
    with closing(FakeManagement()) as found:
        found.queues[f"%2F/{JOBS}"] = {"messages_ready": 1234, "messages_unacknowledged": 3, "consumers": 2}
        found.queues[f"%2F/{LETTERS}"] = {"messages": 17}
        asks(app, Broker(found.url, USER, PASSWORD))
        yield found


def asks(app: FastAPI, broker: Broker) -> None:
    app.state.settings = replace(app.state.settings, broker=broker)


def now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def bare(markup: str) -> str:
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup))).strip()


def told(browser: Be, language: str = "id") -> Told:
    page = browser("analyst").get(f"/health?lang={language}").text
    names = {
        texts[language]: re.split("[._]", key)[1] for key, texts in catalogue().items() if key.startswith("check.")
    }
    found: Told = {}
    rows = re.search(r'<ul class="checks">(.*?)</ul>', page, re.DOTALL)
    assert rows
    for row in re.findall(r"<li class=(.*?)</li>", rows[1], re.DOTALL):
        verdict = bare(re.findall(r'<span class="badge[^>]*>(.*?)</span>', row)[0])
        name, says = re.findall(r"<b>(.*?)</b> <span>(.*?)</span>", row, re.DOTALL)[0]
        found[names[bare(name)]] = verdict, bare(says), bare(" ".join(re.findall(r"<p>(.*?)</p>", row, re.DOTALL)))
    return found


def cards(browser: Be, path: str = "/health") -> dict[str, tuple[str, str]]:
    """The number of each card, and the small print below it."""
    page = browser("analyst").get(path).text
    found = re.findall(
        r"<li><(?:div|a)[^>]*>\s*<span[^>]*>(.*?)</span>\s*<strong>(.*?)</strong>(.*?)</(?:div|a)>", page, re.DOTALL
    )
    assert found
    return {bare(name): (bare(number), bare(rest)) for name, number, rest in found}


def beat(conn: Any, name: str, seen_ago: timedelta = timedelta(), **detail: Any) -> None:
    builders.insert(
        conn, "process_heartbeats", name=name, instance=f"{name}:{len(detail)}:{seen_ago}", started_at=now(),
        seen_at=now() - seen_ago, detail=json.dumps({"state": "active", "ready": True, **detail}),
    )  # fmt: skip


def ended(conn: Any, status: str, count: int, ago: timedelta = timedelta(minutes=1)) -> None:
    for _ in range(count):
        builders.shadow_row(
            conn, None, None, worker_status=status, worker_at=now() - ago,
            error_code={"FAILED": 403, "CANCELLED": 499}.get(status),
        )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- the broker


def test_the_queue_is_told_with_its_depth_and_its_consumers(
    browser: Be, connection: Any, management: FakeManagement
) -> None:
    assert told(browser)["queue"] == (GOOD, "1.234 menunggu, 3 dikerjakan, 2 pekerja", "")
    numbers = cards(browser)
    assert numbers["Pesan di antrean"] == ("1.234", "3 sedang dikerjakan")
    assert numbers["Pekerja di antrean"] == ("2", "")
    assert numbers["Surat di antrean mati"] == ("17", "")


def test_a_queue_that_nobody_reads_is_red(browser: Be, connection: Any, management: FakeManagement) -> None:
    management.queues[f"%2F/{JOBS}"]["consumers"] = 0
    verdict, says, do = told(browser)["queue"]
    assert (verdict, says) == (BAD, "1.234 menunggu, 3 dikerjakan, 0 pekerja")
    assert "consumer mati" in do


def test_a_number_that_the_broker_does_not_tell_is_not_called_0(
    browser: Be, connection: Any, management: FakeManagement
) -> None:
    """As it does in the first seconds after its start."""
    management.queues[f"%2F/{JOBS}"] = {"name": JOBS}
    management.queues[f"%2F/{LETTERS}"] = {"name": LETTERS}
    assert told(browser)["queue"][:2] == (UNSURE, "– menunggu, – dikerjakan, – pekerja")
    assert cards(browser)["Surat di antrean mati"] == ("–", "")


def gone(fake: FakeManagement, app: FastAPI) -> None:
    fake.close()


def answers_500(fake: FakeManagement, app: FastAPI) -> None:
    fake.status = 500


def wrong_password(fake: FakeManagement, app: FastAPI) -> None:
    asks(app, Broker(fake.url, USER, "another"))


def other_vhost(fake: FakeManagement, app: FastAPI) -> None:
    asks(app, Broker(fake.url, USER, PASSWORD, "elsewhere"))


def dead_process(fake: FakeManagement, app: FastAPI) -> None:
    fake.queues[f"%2F/{JOBS}"] |= {"state": "down", "messages_ready": 0}


def no_setting(fake: FakeManagement, app: FastAPI) -> None:
    app.state.settings = replace(app.state.settings, broker=None)


@pytest.mark.parametrize(
    ("happens", "key", "verdict", "says", "do"),
    [
        (gone, "broker_silent", BAD, "tidak menjawab", "kiriman tetap diterima"),
        (answers_500, "broker_silent", BAD, "tidak menjawab", "EVEREST_RABBIT_MANAGEMENT_URL"),
        (wrong_password, "broker_refused", UNSURE, "menolak akun", "EVEREST_RABBIT_MANAGEMENT_USER"),
        (other_vhost, "broker_absent", BAD, "tidak ada di sana", "vhost"),
        (dead_process, "broker_down", BAD, "rusak", "docs/operations.md"),
        (no_setting, "broker_unknown", UNSURE, "tidak ditanya", "EVEREST_RABBIT_MANAGEMENT_URL"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_a_management_api_without_numbers_is_told_as_what_it_is(
    browser: Be, connection: Any, app: FastAPI, management: FakeManagement,
    happens: Callable[[FakeManagement, FastAPI], None], key: str, verdict: str, says: str, do: str,
) -> None:  # fmt: skip
    """No page breaks or waits for it, and no number stands where none is known."""
    happens(management, app)
    page = browser("analyst").get("/health").text
    row = re.search(r"<b>RabbitMQ</b> <span>(.*?)</span>\s*<p>(.*?)</p>", page, re.DOTALL)
    assert row and says in row[1] and do in row[2]
    assert html.escape(catalogue()[f"check.{key}_do"]["id"], quote=False) in html.unescape(row[2])
    assert re.search(
        rf'<span class="badge {"bad" if verdict == BAD else "unsure"}">{verdict}</span>\s*<div><b>RabbitMQ', page
    )
    assert "Pesan di antrean" not in page and "Surat di antrean mati" not in page
    letters = cards(browser, "/dead-letters")
    assert letters["Surat di antrean mati"] == ("–", "")


# ---------------------------------------------------------------------------------------------------- the rows


def test_throughput_and_the_rate_of_failures_are_those_of_the_last_hour_and_day(browser: Be, connection: Any) -> None:
    """Five of a hundred are as many as one may meet; the sixth is worth a look."""
    ended(connection, "COMPLETED", 40)
    ended(connection, "COMPLETED", 53, timedelta(hours=5))
    ended(connection, "CANCELLED", 2, timedelta(hours=5))
    ended(connection, "FAILED", 1)
    ended(connection, "FAILED", 4, timedelta(hours=5))
    ended(connection, "FAILED", 30, timedelta(hours=25))
    ended(connection, "COMPLETED", 30, timedelta(hours=25))
    numbers = cards(browser)
    assert numbers["Selesai satu jam terakhir"] == ("40", "1 gagal")
    assert numbers["Selesai 24 jam terakhir"] == ("93", "5 gagal")
    assert told(browser)["failures"] == (GOOD, "5 dari 100 (5,00%)", "")
    ended(connection, "FAILED", 1)
    verdict, says, do = told(browser)["failures"]
    assert (verdict, says) == (UNSURE, "6 dari 101 (5,94%)")
    assert "Surat mati" in do


def test_a_few_failures_of_a_few_documents_are_no_alarm(browser: Be, connection: Any) -> None:
    assert told(browser)["failures"][:2] == (GOOD, "0 dari 0 (–)")
    ended(connection, "FAILED", health.MANY_FAILURES - 1)
    assert told(browser)["failures"][:2] == (GOOD, "4 dari 4 (100,00%)")


def test_the_oldest_document_of_each_status_has_its_age_and_the_list_shows_as_many(
    browser: Be, connection: Any
) -> None:
    """A workflow of another module is no document."""
    ages = {"PENDING": timedelta(minutes=7), "PROCESSING": timedelta(hours=3, minutes=1), "WAITING": timedelta(days=2)}
    for status, age in ages.items():
        for one in (age, age / 2):
            document = builders.document(connection)
            run(
                connection,
                "UPDATE rabbit_publish_shadow SET worker_status = %s, worker_at = %s, created_at = %s WHERE id = %s",
                status,
                None if status == "PENDING" else now() - one,
                now() - (one if status == "PENDING" else timedelta(days=9)),
                document.shadow_id,
            )
        builders.shadow_row(connection, None, None, worker_status=status, worker_at=now() - timedelta(days=30))
    numbers, listed = cards(browser), cards(browser, "/documents")
    assert {name: numbers[name] for name in ("Antre", "Diproses", "Menunggu")} == {
        "Antre": ("2", "terlama 7 mnt"),
        "Diproses": ("2", "terlama 3 jam 1 mnt"),
        "Menunggu": ("2", "terlama 2 hr 0 jam"),
    }
    assert {name: listed[name][0] for name in ("Antre", "Diproses", "Menunggu")} == dict.fromkeys(
        ("Antre", "Diproses", "Menunggu"), "2"
    )


def test_a_message_that_should_have_left_is_red_and_one_that_is_new_or_not_due_is_not(
    browser: Be, connection: Any
) -> None:
    document = builders.document(connection)

    def message(available: timedelta, **rest: Any) -> None:
        builders.insert(
            connection,
            "outbox",
            shadow_id=document.shadow_id,
            exchange="x",
            routing_key="x",
            body="{}",
            available_at=now() + available,
            **rest,
        )

    message(timedelta(hours=1))
    message(timedelta(hours=-1), published_at=now())
    assert told(browser)["outbox"] == (GOOD, "0 menunggu", "")
    message(timedelta(seconds=-5))
    assert told(browser)["outbox"] == (GOOD, "1 menunggu", "")
    message(-health.LATE_MESSAGE - timedelta(seconds=5))
    verdict, says, do = told(browser)["outbox"]
    assert (verdict, says) == (BAD, "2 menunggu")
    assert "last_error" in do


def test_stuck_documents_and_dead_letters_are_counted_and_lead_to_their_pages(browser: Be, connection: Any) -> None:
    assert told(browser)["stuck"] == (GOOD, "0 tanpa kabar", "")
    assert told(browser)["letters"] == (GOOD, "0 gagal karena kesalahan", "")
    for ago in (5, 16, 600):
        document = builders.document(connection)
        run(
            connection,
            "UPDATE rabbit_publish_shadow SET worker_status = 'PROCESSING', worker_at = %s WHERE id = %s",
            now() - timedelta(minutes=ago), document.shadow_id,
        )  # fmt: skip
    for _ in range(3):
        failed(connection)
    rejected = failed(connection)  # a person's refusal is no fault
    run(connection, "UPDATE rabbit_publish_shadow SET error_code = 403 WHERE id = %s", rejected.shadow_id)
    found = told(browser)
    assert found["stuck"][:2] == (BAD, "2 tanpa kabar")
    assert "kartu Macet" in found["stuck"][2]
    assert found["letters"][:2] == (UNSURE, "3 gagal karena kesalahan")
    assert "Buka Surat mati" in found["letters"][2]
    assert cards(browser, "/documents")["Macet"][0] == "2"
    assert cards(browser, "/dead-letters")["Gagal karena kesalahan"][0] == "3"


# ------------------------------------------------------------------------------------------------- the processes


def test_who_lives_who_is_late_and_who_is_not_ready_is_told(browser: Be, connection: Any) -> None:
    """One that is there and ready is enough; a stopped or lost one is none."""
    beat(connection, "consumer")
    beat(connection, "consumer", state="standby", ready=True)
    beat(connection, "relay", health.LATE_BEAT + timedelta(seconds=5))
    beat(connection, "relay", state="stopped")
    reason = {
        "message": "x",
        "key": "vitals.broker",
        "values": {"who": "main", "why": {"message": "gone", "lang": "en"}},
    }
    beat(connection, "reconciler", ready=False, told=[reason])
    found = told(browser)
    assert found["consumer"] == (GOOD, "2 hidup", "")
    assert found["relay"][:2] == (BAD, "0 hidup")
    assert "make logs P=relay" in found["relay"][2]
    assert found["reconciler"][:2] == (BAD, "1 hidup")
    assert "make logs P=reconciler" in found["reconciler"][2] and "gone" in found["reconciler"][2]
    page = browser("analyst").get("/health").text
    badges = re.findall(
        r'<tr><th scope="row">(\w+) <small>[^<]*</small></th><td[^>]*><span class="badge (\w+)">(.*?)</span>(.*?)</td>',
        page,
    )
    assert sorted((name, kind, word, rest.strip()) for name, kind, word, rest in badges) == [
        ("consumer", "good", "bekerja", ""),
        ("consumer", "good", "cadangan", ""),
        ("reconciler", "unsure", "bekerja", "belum siap"),
        ("relay", "bad", "tanpa kabar", ""),
        ("relay", "still", "berhenti", ""),
    ]


def test_a_heartbeat_from_the_future_is_no_sign_of_life(browser: Be, connection: Any) -> None:
    beat(connection, "relay", -timedelta(hours=1))
    assert told(browser)["relay"][:2] == (BAD, "0 hidup")


# ------------------------------------------------------------------------------------------------------ the audit


def test_the_last_audit_is_told_with_what_it_looked_at_and_when(browser: Be, connection: Any) -> None:
    everything = len(BY_KEY)
    verdict, says, do = told(browser)["audit"]
    assert (verdict, says) == (
        UNSURE,
        f"terlambat: 0 dari {everything} aturan pernah diperiksa, tidak semuanya dalam 36 jam terakhir",
    )
    assert "ledger_audit" in do
    audited(connection, "CLEAN", hours_ago=3)
    assert told(browser)["audit"] == (GOOD, f"0 temuan, {everything} dari {everything} aturan sudah diperiksa", "")
    assert browser("analyst").get("/health").text.count("(3 jam 0 mnt)") == everything
    seen = {"first_seen_at": now(), "last_seen_at": now(), "first_run_id": 1, "last_run_id": 1}
    for n in range(2):
        builders.insert(
            connection,
            "audit_findings",
            invariant="posting_is_balanced",
            finding_key=str(n),
            pesan=f"posting {n}",
            **seen,
        )
    run(connection, "UPDATE audit_runs SET outcome = 'FINDINGS', found = 2 WHERE invariant = 'posting_is_balanced'")
    verdict, says, do = told(browser)["audit"]
    assert (verdict, says) == (BAD, f"2 temuan, {everything} dari {everything} aturan sudah diperiksa")
    assert "python -m everest audit" in do and BY_KEY["posting_is_balanced"].remedy_id in do
    run(connection, "UPDATE audit_findings SET diakui_oleh = 'rina', diakui_alasan = 'dikoreksi'")
    assert told(browser)["audit"][:2] == (GOOD, f"0 temuan, {everything} dari {everything} aturan sudah diperiksa")


# ------------------------------------------------------------------------------------------------------- together


def test_what_is_red_stands_first_and_the_page_says_the_worst_of_it(
    browser: Be, connection: Any, management: FakeManagement
) -> None:
    def verdict() -> tuple[str, list[str]]:
        page = browser("analyst").get("/health").text
        top = re.search(r'id="verdict".*?<span class="badge \w+">(.*?)</span>', page, re.DOTALL)
        assert top
        return top[1], [one[0] for one in told(browser).values()]

    worst, order = verdict()
    assert worst == BAD and order == sorted(order, key=[BAD, UNSURE, GOOD].index)
    for name in health.PROCESSES:
        beat(connection, name)
    assert verdict()[0] == UNSURE  # the books were never audited
    audited(connection, "CLEAN")
    assert verdict() == (GOOD, [GOOD] * len(order))


def test_everything_that_is_not_well_says_what_to_do_in_both_languages(browser: Be, connection: Any) -> None:
    for language in ("id", "en"):
        found = told(browser, language)
        assert found
        for key, (verdict, _, do) in found.items():
            is_well = verdict == catalogue()["health.good"][language]
            assert is_well == (do == ""), key
            if not is_well:
                known = [
                    texts[language] for name, texts in catalogue().items() if re.match(rf"check\.{key}.*_do$", name)
                ]
                assert any(one in do for one in known), key
