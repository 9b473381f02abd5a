"""Every page with something in it, as people see it: by axe in both languages, light and dark, and on a phone.

One world has all of it: documents in each state, a reversal, a draft, a workflow that waits, letters, findings. A page
that has a route but no address here is missed. `make pictures` keeps what the browser shows.
"""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from fastapi import FastAPI

from closing_example.workflow import MONTHLY_CLOSING
from everest import bootstrap, reversal
from everest.audit.run import _kept
from everest.opname.workflow import REVERSE_OPNAME
from everest.pages import documents
from everest.pages.guard import GuardedRoute
from everest.settings import MysqlUrl
from everest.words import say
from everest.workflow.builder import workflow
from ingest_consumer.broken_letters import _kept as letters_kept
from ingest_consumer.errors import DecodeError
from ingest_consumer.message import decode
from ingest_consumer.vitals import HOLDS_UP, Vitals
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.conftest import Be
from tests.pages.eyes import PHONE, draw, looks, serious
from tests.pages.forms import SOUND
from tests.pages.posted import csv_rows
from tests.pages.standing import audited, failed
from tests.workflow.world import MysqlWorld, gives

__all__ = ["address", "chromium", "open_as"]

LONG = "SO-" + "PANJANG-" * 10
NOT_PAGES = ("/reports/document", "/", "/assets/{version}/{name}", "/documents/of/{transaksi_id}")
"""Redirects, and files."""


@pytest.fixture
def paths(database: MysqlUrl, connection: Any, browser: Be) -> list[str]:
    """The addresses of a world in which something stands on every page."""
    lines = [Line(f"BRG-{n:02d}", "10", str(n), f"{1500 + n}.55") for n in range(1, 21)]
    posted = builders.document(connection, lines=lines, nomer_nota="SO-DIPOSTING", dibuat_oleh="warehouse")
    undone = builders.document(connection, nomer_nota="SO-DIBALIK")
    refused = failed(connection, nomer_nota=LONG)
    builders.document(connection)
    connection.commit()
    with closing(Walker(database)) as walker, closing(Walker(database, definition=REVERSE_OPNAME)) as reverser:
        for one in (posted, undone):
            walker.dag_run(walker.claim(one.shadow_id))
        builders.limits(connection, batas_dokumen="1")
        waits = late(connection)
        walker.dag_run(walker.claim(waits.shadow_id))
        with closing(bootstrap.database(database)) as opened, opened.transaction() as tx:
            asked = reversal.request(tx, f"#{undone.shadow_id}", "finance", "salah gudang")
        reverser.dag_run(reverser.claim(asked.shadow_id))
    before = datetime.now(builders.WIB).replace(tzinfo=None) - timedelta(hours=3)
    builders.movement(connection, "BRG-01", masuk="4", tanggal_wib=before, created_at=datetime.now(UTC))
    world = MysqlWorld(database)
    world.know(MONTHLY_CLOSING)
    closes = world.begin(MONTHLY_CLOSING, {"bulan": "2026-08"})
    breaks = world.begin(
        workflow("anggaran").then(gives(a=1), name="a").then(gives(b=1), name="b").max_transitions(1).build()
    )
    world.close()
    header = {"gudang_kode": "GD-A", "tanggal_opname": "2026-08-31", "decimal": "id"}
    browser("warehouse").submit("/submit", pasted=SOUND, submit_token="a", nomer_nota="SO-DRAF", **header)
    (draft,) = builders.rows(connection, "SELECT transaksi_id FROM so_headers_staging WHERE nomer_nota = 'SO-DRAF'")
    audited(connection, "NOT_CHECKED", note=_kept([say("en", "audit_note.airflow_unknown")]))
    letter(connection, b'{"shadow_id": true}')
    letter(connection, b"halo \xff")
    now = datetime.now(UTC).replace(tzinfo=None)
    builders.insert(
        connection, "process_heartbeats", name="relay", instance="h:1", started_at=now, seen_at=now,
        detail=json.dumps(sick().detail()),
    )  # fmt: skip
    jobs = {one.shadow_id: builders.shadow(connection, one.shadow_id) for one in (posted, undone, refused, waits)}
    statuses = [row["worker_status"] for row in jobs.values()]
    assert statuses == ["COMPLETED", "COMPLETED", "FAILED", "WAITING"]
    tabs = [f"/documents/{posted.shadow_id}?tab={tab}" for tab in documents.TABS]
    reports = ("warehouse&since=", "variance&since=", "late-movements&since=", "trace&nomer_nota=SO-DIPOSTING")
    return [
        "/health",  # first: a heartbeat is alive for 45 seconds
        "/documents",
        *tabs,
        *(f"/documents/{one}" for one in (undone.shadow_id, refused.shadow_id, waits.shadow_id)),
        *(f"/documents/{refused.shadow_id}?tab={tab}" for tab in ("lines", "history")),
        f"/documents/{refused.shadow_id}/correct",
        f"/documents/{waits.shadow_id}/preview",
        f"/documents/{asked.shadow_id}",
        "/submit",
        "/drafts",
        f"/drafts/{draft['transaksi_id']}",
        f"/drafts/{draft['transaksi_id']}/preview",
        "/approvals",
        *(f"/reports?report={one}" for one in reports),
        "/dead-letters",
        "/workflows",
        f"/workflows/{closes}",
        f"/workflows/{breaks}",
        "/documents/999999999",
    ]


def late(conn: Any) -> builders.Document:
    """A movement dated before its count was entered after it."""
    now = datetime.now(UTC)
    snapshot = now - timedelta(hours=2)
    lines = [Line("BRG-TELAT", "10", "12", "1500")]
    found = builders.document(conn, lines, nomer_nota="SO-TUNGGU", snapshot_at=snapshot, diotorisasi_at=now)
    dated = (snapshot - timedelta(hours=1)).astimezone(builders.WIB).replace(tzinfo=None)
    builders.movement(conn, "BRG-TELAT", masuk="4", tanggal_wib=dated, created_at=now)
    return found


def letter(conn: Any, body: bytes) -> None:
    """A broken message, as the relay shows it."""
    try:
        decode(body)
    except DecodeError as error:
        columns = {"digest": sha256(body).hexdigest(), "reason": letters_kept(error.message), "origin": "(default) / x"}
        now = datetime.now(UTC).replace(tzinfo=None)
        text = body.decode("utf-8", "backslashreplace")
        builders.insert(
            conn, "broken_letters", body=text, body_bytes=len(body), copies=1, first_seen_at=now, last_seen_at=now,
            **columns,
        )  # fmt: skip
    conn.commit()


def sick() -> Vitals:
    """A process that has everything that a process can have."""
    found = Vitals("relay")
    found.know(state="active")
    for kind in HOLDS_UP:
        found.trouble("relay", kind, "")
    return found


def test_no_page_bars_anybody_and_each_fits_a_phone(open_as: Open, app: FastAPI, paths: list[str]) -> None:
    """Indonesian at a desk in light colours, English on a phone in dark ones."""
    assert missed(app, paths) == []
    wrong: dict[str, Any] = {}
    with open_as("finance") as page:
        for path in paths:
            page.goto(path)
            draw(page, path)
            for label, found in looks(page):
                if found:
                    wrong[f"{path} {label}"] = found
    assert not wrong, wrong


def test_a_reversal_says_nothing_of_a_count_and_hints_name_lines_in_the_right_number(
    browser: Be, paths: list[str], connection: Any
) -> None:
    numbers = {
        row["nomer_nota"]: row["id"]
        for row in builders.rows(connection, "SELECT id, nomer_nota FROM rabbit_publish_shadow")
    }
    count = browser("finance").get(f"/documents/{numbers['SO-DIBALIK']}?lang=en").text
    undone = browser("finance").get(f"/documents/{numbers['SO-DIBALIK-BALIK']}?lang=en").text
    for title in ("Counted on", "Submitted by", "Authorised by", "Book quantities frozen"):
        assert f"<dt>{title}</dt>" in count and f"<dt>{title}</dt>" not in undone
    assert "<dt>Lines</dt>" not in undone and "<dt>Reverses</dt>" in undone
    assert "<b>Lines 1, 2</b>: " in count
    waits = browser("finance").get(f"/documents/{numbers['SO-TUNGGU']}?lang=en").text
    assert "· <span>Current step: Compute variance" in waits


def missed(app: FastAPI, paths: list[str]) -> list[str]:
    """Pages that can be opened, and are not looked at."""
    routes = [route for route in app.routes if isinstance(route, GuardedRoute) and "GET" in (route.methods or ())]
    bare = [path.partition("?")[0] for path in paths]
    return [
        route.path
        for route in routes
        if route.path not in NOT_PAGES
        and not route.path.endswith((".{form}", ".csv"))
        and not any(route.path_regex.fullmatch(path) for path in bare)
    ]


def test_what_is_shown_after_a_form_bars_nobody_either(open_as: Open, paths: list[str], connection: Any) -> None:
    """An open dialog, what is wrong with a file, what became of dead letters and of a broken message."""
    (refused,) = builders.rows(connection, "SELECT id FROM rabbit_publish_shadow WHERE nomer_nota = %s", LONG)
    with open_as("finance", viewport=PHONE) as page:
        page.goto(f"/documents/{refused['id']}")
        page.locator("[data-open=rerun]").click()
        assert serious(page) == []
        page.goto("/submit")
        page.locator("[name=nomer_nota]").fill("SO-SALAH")
        page.locator("[name=gudang_kode]").select_option("GD-A")
        page.locator("[name=tanggal_opname]").fill("2026-08-31")
        page.locator("[name=pasted]").fill("kode_barang;qty_sistem;qty_fisik;harga_pokok\nA;10;;1500\n")
        page.locator("form.upload button[type=submit]").click()
        page.locator("#problems").wait_for()
        assert serious(page) == []
        page.goto("/dead-letters")
        page.locator("#failed button.primary").click()
        page.locator("#failed .unsent").wait_for()
        assert serious(page) == []
        page.locator("input[name=shadow_id]").first.check()
        page.locator("#failed button.primary").click()
        page.locator("main td .badge").wait_for()
        assert serious(page) == []
        page.goto("/dead-letters")
        link = page.locator("a[href$='/broken.csv']").get_attribute("href")
        (first, _) = csv_rows(page.request.get(str(link)).body())  # the browser's own would not say who is logged in
        assert first["Alasan"] == "shadow_id berisi True, harus bilangan bulat mulai dari 1"
        page.locator("#unreadable input[name=letter_id]").first.check()
        page.locator("#unreadable [name=reason]").fill("salah alamat")
        page.locator("#unreadable button.danger").click()
        page.locator("main td .badge").wait_for()
        assert serious(page) == []
        page.goto("/dead-letters")
        page.locator("#unreadable", has_text="sedang dibuang oleh finance").wait_for()
        assert page.locator("#unreadable input[name=letter_id]").count() == 1
