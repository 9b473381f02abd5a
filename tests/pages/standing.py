"""What the pages find: documents that failed or wait, names that mean harm, an audit of last night."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from everest.audit.invariants import BY_KEY
from everest.settings import MysqlUrl
from tests import builders
from tests.integration.opname.walk import Walker

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=HYPERLINK(1)",
    "\u202egnp.exe",
    "{{ 7 * 7 }}",
    "' OR 1=1 --",
    "é" * 50,
]


def run(conn: Any, sql: str, *parameters: Any) -> None:
    with conn.cursor() as cursor:
        cursor.execute(sql, parameters)
    conn.commit()


def failed(conn: Any, **rest: Any) -> builders.Document:
    found = builders.document(conn, **rest)
    run(
        conn,
        "UPDATE rabbit_publish_shadow SET worker_status='FAILED', error_code=422, error='dokumen ditolak: 1 masalah',"
        ' response=\'{"status":"error","code":422,"message":"dokumen ditolak: 1 masalah",'
        '"errors":[{"baris":2,"kolom":"qty_fisik","pesan":"belum dihitung"}]}\', n=1,'
        " dag_id='opname_posting', dag_run_id='r1' WHERE id=%s",
        found.shadow_id,
    )
    return found


def waiting(conn: Any, database: MysqlUrl) -> builders.Document:
    """It stopped before its posting, because its value is above the limit."""
    builders.limits(conn, batas_dokumen="1")
    found = builders.document(conn)
    conn.commit()
    with closing(Walker(database)) as walker:
        walker.dag_run(walker.claim(found.shadow_id))
    assert builders.shadow(conn, found.shadow_id)["worker_status"] == "WAITING"
    return found


def audited(conn: Any, outcome: str, hours_ago: int = 1, note: str | None = None) -> None:
    for invariant in BY_KEY:
        builders.insert(
            conn,
            "audit_runs",
            invariant=invariant,
            actor="schedule",
            outcome=outcome,
            note=note,
            started_at=datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=hours_ago),
        )
    conn.commit()


def audit(conn: Any) -> list[tuple[str, str]]:
    conn.commit()
    return [
        (row["actor"], row["action"]) for row in builders.rows(conn, "SELECT actor, action FROM audit_log ORDER BY id")
    ]


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
