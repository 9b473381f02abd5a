"""Rows of every table whose texts hold a hostile name, and the addresses that show them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, get_args

from everest.pages import document_tabs, documents
from everest.reports.catalogue import REPORTS
from everest.settings import MysqlUrl
from everest.workflow.builder import workflow
from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be
from tests.pages.forms import SOUND
from tests.pages.hostile import LONG
from tests.pages.posted import walked
from tests.pages.routes import doors
from tests.pages.standing import failed, run
from tests.workflow.world import MysqlWorld

NAMES = {
    "markup, marks and a formula": '=HYPERLINK("http://evil")</td><script>alert(1)</script>" onload=alert(1) \u202egnp'
    ".exe\u2066\u200f a\0b\x1b[31m\x7f {{ 7 * 7 }}",
    "10,000 characters": "@\udcff\ud800😀" + "x" * LONG,
}

TEXTS = """
    so_headers_staging: nomer_nota dibuat_oleh diotorisasi_oleh
    so_details_staging: kode_barang lot satuan alasan
    rabbit_publish_shadow: nomer_nota error current_step payload dag_run_id
    transaksi: nomer_nota
    transaksi_values: kode_barang lot
    posting_sets: nomer_nota dag_run_id
    jurnal: nomer_nota keterangan
    kartu_stok: nomer_nota kode_barang lot sumber
    akun: nama
    gudang: nama
    kelompok_barang: kelompok
    workflow_runs: workflow version idempotency_key current_step group_key dag_run_id
    workflow_events: step branch
    workflow_steps: step branch
    workflow_signals: name correlation sent_by consumed_step
    workflow_compensations: step handler
    outbox: body last_error
    audit_findings: pesan diakui_oleh diakui_alasan
    audit_runs: note actor
    broken_letters: reason body origin dropped_by
    process_heartbeats: instance
"""
"""Columns that hold what people and other programs wrote."""


def filled(browser: Be, database: MysqlUrl, conn: Any) -> dict[str, list[str]]:
    """A world that has a row of every kind; what stands for each part of an address."""
    posted = walked(database, conn, nomer_nota="SO-POSTED")
    refused = failed(conn)
    conn.commit()
    builders.limits(conn, batas_dokumen="1")
    asks = walked(database, conn, Line("BRG-TANYA", "10", "12", "1500"), ends="WAITING")
    header = {"gudang_kode": "GD-A", "tanggal_opname": "2026-08-31", "decimal": "id"}
    browser("warehouse").submit("/submit", pasted=SOUND, submit_token="t", nomer_nota="SO-DRAFT", **header)
    (draft,) = builders.rows(conn, "SELECT transaksi_id FROM so_headers_staging WHERE nomer_nota = 'SO-DRAFT'")
    with closing(MysqlWorld(database)) as world:
        closes = world.begin(workflow("asks").wait_for_approval("boss").build())
        fails = world.begin(workflow("waits").wait_for_signal("go").build())
        world.signal(fails, "late", {"x": 1})
    now = datetime.now(UTC).replace(tzinfo=None)
    seen = {"first_seen_at": now, "last_seen_at": now}
    builders.insert(conn, "kelompok_barang", kode_barang="BRG-A", kelompok="x")
    builders.insert(
        conn, "broken_letters", digest="a" * 64, reason="x", body="x", body_bytes=1, origin="x", copies=1, **seen
    )
    builders.insert(
        conn, "audit_findings", invariant="posting_is_balanced", finding_key="k", pesan="x", first_run_id=1,
        last_run_id=1, diakui_oleh="x", diakui_alasan="x", **seen,
    )  # fmt: skip
    builders.insert(
        conn, "audit_runs", invariant="posting_is_balanced", actor="x", outcome="NOT_CHECKED", note="x", started_at=now
    )
    builders.insert(conn, "process_heartbeats", name="relay", instance="x", started_at=now, seen_at=now, detail="{}")
    conn.commit()
    return {
        "shadow_id": [str(one.shadow_id) for one in (posted, refused, asks)],
        "transaksi_id": [str(draft["transaksi_id"])],
        "run_id": [str(closes), str(fails)],
        "part": list(get_args(documents.Part)),
        "key": list(REPORTS),
        "form": ["csv", "xlsx"],
    }


def poison(conn: Any, name: str, is_decidable: bool = False) -> None:
    """As another program may have written it: as much as each column takes, and in what JSON holds. is_decidable: what
    a question hangs by stays, so that it has its buttons."""
    text = name.encode("utf-8", "replace").decode()
    for line in TEXTS.strip().splitlines():
        table, _, columns = line.strip().partition(": ")
        if is_decidable and table == "workflow_runs":
            continue
        for column in columns.split():
            (found,) = builders.rows(
                conn, "SELECT CHARACTER_MAXIMUM_LENGTH AS most FROM information_schema.COLUMNS WHERE"
                " TABLE_SCHEMA = DATABASE() AND TABLE_NAME = %s AND COLUMN_NAME = %s", table, column,
            )  # fmt: skip
            run(conn, f"UPDATE IGNORE {table} SET {column} = LEFT(%s, %s)", text, min(found["most"], LONG))
    for job in builders.rows(conn, "SELECT id FROM rabbit_publish_shadow"):  # the log takes new rows only
        builders.insert(
            conn, "audit_log", actor=text[:100], action=text[:50], nomer_nota=text[:100], reason=text[:500],
            shadow_id=job["id"],
        )  # fmt: skip
    told = json.dumps(
        {"message": text, "code": text, "said": {"key": "engine.gave_up", "values": {"n": text, "why": text}}}
    )
    run(conn, "UPDATE workflow_runs SET error = %s, payload = JSON_OBJECT(%s, %s)", told, text[:90], text)
    run(conn, "UPDATE workflow_steps SET error = %s", told)
    run(conn, "UPDATE workflow_signals SET payload = JSON_OBJECT(%s, %s)", text[:90], text)
    run(conn, "UPDATE workflow_runs SET waiting = JSON_SET(waiting, '$.message', %s, '$.not_by', JSON_ARRAY(%s),"
              " '$.reasons', JSON_ARRAY(JSON_OBJECT('baris', 1, 'pesan', %s))) WHERE waiting IS NOT NULL",
        text, text, text)  # fmt: skip
    if not is_decidable:
        run(conn, "UPDATE workflow_runs SET waiting = JSON_SET(waiting, '$.names', JSON_ARRAY(%s))"
                  " WHERE waiting IS NOT NULL", text)  # fmt: skip
    problem = json.dumps({**json.loads(told), "errors": [{"baris": 1, "kolom": text, "pesan": text}]})
    run(conn, "UPDATE rabbit_publish_shadow SET response = %s", problem)
    facts = json.dumps(
        {
            "state": text,
            "ready": False,
            "told": [{"message": text, "key": "vitals.late", "values": {"who": text, "seconds": text}}],
        }
    )
    run(conn, "UPDATE process_heartbeats SET detail = %s", facts)


def addresses(places: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Every page, file and tab of the application, after the path of its route."""
    for method, route in doors():
        if method != "GET" or route.path.startswith("/assets"):
            continue
        parts = re.findall(r"\{(\w+)\}", route.path)
        for values in itertools.product(*(places[part] for part in parts)):
            path = route.path.format(**dict(zip(parts, values, strict=True)))
            if route.path == "/reports":
                yield from ((route.path, f"{path}?report={key}&since=&kode_barang=&nomer_nota=") for key in REPORTS)
                yield from (
                    (route.path, f"{path}?report={key}&gudang_kode=GD-A&since=") for key in ("variance", "stock-card")
                )
            elif route.path == "/documents/{shadow_id}":
                yield from ((route.path, f"{path}?tab={tab}") for tab in document_tabs.TABS)
            elif route.path == "/reports/{key}.{form}":
                yield route.path, f"{path}?since=&gudang_kode=GD-A"
            else:
                yield route.path, path
