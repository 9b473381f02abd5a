"""Riwayat of a document: each change of its status, each step and each act of a person, in order, with its time in WIB
and in words; and the attempts that ended."""

from __future__ import annotations

import html
import re
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be
from tests.pages.forms import kept
from tests.pages.standing import run

STORY = """
    warehouse menyimpan draf
    diterima Run ke-1
    finance mengotorisasi
    langkah dimulai: Hitung selisih Run ke-1
    gagal: Hitung selisih Run ke-1
    dijalankan lagi: Hitung selisih Run ke-2
    finance menjalankan lagi: gudang dibuka
    langkah dimulai: Hitung selisih Run ke-2 (2)
    meminta keputusan: Hitung selisih Run ke-2 (2)
    menunggu: Hitung selisih Run ke-3
    engineer menyetujui: cocok
    dijawab: Hitung selisih Run ke-3
    dilanjutkan: Hitung selisih Run ke-3
    langkah dimulai: Hitung selisih Run ke-3 (3)
    langkah selesai: Hitung selisih Run ke-3 (3)
    langkah dimulai: Periksa sisa nota Run ke-3
    langkah selesai: Periksa sisa nota Run ke-3
    langkah dimulai: Posting jurnal Run ke-3
    langkah selesai: Posting jurnal Run ke-3
    alur kerja selesai Run ke-3
"""
"""A draft, authorised; refused, because its warehouse was closed; run again; asked about; approved; posted."""
IN_ENGLISH = {
    "warehouse menyimpan draf": "warehouse kept a draft",
    "finance mengotorisasi": "finance authorised",
    "finance menjalankan lagi: gudang dibuka": "finance ran it again: gudang dibuka",
    "engineer menyetujui: cocok": "engineer approved: cocok",
}


def texts(part: str, tag: str) -> list[str]:
    found = re.findall(rf"<{tag}[ >].*?</{tag}>", part, re.DOTALL)
    return [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", one)).split()) for one in found]


def split(line: str) -> tuple[str, str]:
    """When, and what."""
    time, _, what = line.partition(" WIB ")
    return time, what


@pytest.fixture
def job(browser: Be, connection: Any, database: MysqlUrl) -> dict[str, Any]:
    builders.warehouse(connection, "GD-A")
    connection.commit()
    draft = kept(browser, connection)
    assert browser("finance").submit(f"/drafts/{draft}/authorise").status_code == 303
    connection.commit()
    (found,) = builders.rows(connection, "SELECT id, transaksi_id, workflow_id FROM rabbit_publish_shadow")
    run(connection, "UPDATE gudang SET aktif = 0")
    with closing(Walker(database)) as walker:
        assert walker.post(found["id"]) == "FAILED"
        run(connection, "UPDATE gudang SET aktif = 1")
        builders.limits(connection, batas_dokumen="1")
        connection.commit()
        again = browser("finance").submit(f"/documents/{found['id']}/rerun", reason="gudang dibuka")
        assert again.status_code == 303 and walker.post(found["id"]) == "WAITING"
        sequence = re.findall(r'name="sequence" value="(\d+)"', browser("engineer").get("/approvals").text)[0]
        path = f"/approvals/{found['id']}/approve"
        assert browser("engineer").submit(path, reason="cocok", sequence=sequence).status_code == 303
        assert walker.post(found["id"]) == "COMPLETED"
    connection.commit()
    return found


def test_each_event_and_act_stands_in_its_place_with_its_time_in_wib(
    browser: Be, connection: Any, job: dict[str, Any]
) -> None:
    page = browser("analyst").get(f"/documents/{job['id']}?tab=history").text
    timeline = page[page.index('class="timeline"') : page.index("</ol>")]
    told = [split(line) for line in reversed(texts(timeline, "li"))]
    assert [what for _, what in told] == [line.strip() for line in STORY.strip().splitlines()]
    rows = builders.rows(
        connection,
        "SELECT created_at FROM workflow_events WHERE workflow_id = %s UNION ALL"
        " SELECT created_at FROM audit_log WHERE transaksi_id = %s ORDER BY created_at",
        job["workflow_id"], job["transaksi_id"],
    )  # fmt: skip
    times = [row["created_at"] for row in rows]
    assert [time for time, _ in told] == [f"{time + timedelta(hours=7):%d-%m-%Y %H:%M:%S}" for time in times]
    stamps = re.findall(r'<time datetime="([^"]+)"', timeline)
    assert stamps == [f"{time:%Y-%m-%dT%H:%M:%S}+00:00" for time in reversed(times)]


@pytest.mark.parametrize("language", ["id", "en"])
def test_the_attempts_say_who_asked_for_them_in_the_language_of_the_page(
    browser: Be, job: dict[str, Any], language: str
) -> None:
    page = browser("analyst").get(f"/documents/{job['id']}?tab=history&lang={language}").text
    attempts = page[page.index("</ol>") :]
    titles = {"id": ["Percobaan 2: selesai 200", "Percobaan 1: gagal 422"],
              "en": ["Attempt 2: completed 200", "Attempt 1: failed 422"]}  # fmt: skip
    assert texts(attempts, "h3") == titles[language]
    asked = [[split(line)[1].removeprefix("· ")] for line in texts(attempts, "p") if " WIB " in line]
    wanted = [
        ["finance menjalankan lagi: gudang dibuka · engineer menyetujui: cocok"],
        ["warehouse menyimpan draf · finance mengotorisasi"],
    ]
    if language == "en":
        wanted = [[" · ".join(IN_ENGLISH[one] for one in line.split(" · "))] for (line,) in wanted]
    assert asked == wanted
