"""`everest purge`: sent messages go by age, and nothing that is to be sent or run again."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from everest import bootstrap
from everest.settings import MysqlUrl, Settings
from everest.store import outbox_purge
from everest.store.outbox_purge import purge_outbox
from tests import builders

DAY = timedelta(days=1)


def message(conn: Any, status: str | None, days: int | None) -> int:
    """An outbox row of a job in this status, published so many days ago (None: not yet)."""
    with conn.cursor() as cursor:
        shadow_id = None
        if status is not None:
            cursor.execute("INSERT INTO rabbit_publish_shadow (transaksi_id, worker_status) VALUES (1, %s)", (status,))
            shadow_id = cursor.lastrowid
        cursor.execute(
            "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at, published_at) VALUES"
            " (%s, 'x', 'k', '{}', UTC_TIMESTAMP(6) - INTERVAL 99 DAY, UTC_TIMESTAMP(6) - INTERVAL %s DAY)",
            (shadow_id, days),
        )
        made = int(cursor.lastrowid)
    conn.commit()
    return made


def left(conn: Any) -> set[int]:
    found = {row["id"] for row in builders.rows(conn, "SELECT id FROM outbox")}
    conn.commit()
    return found


def run(database: MysqlUrl, dry_run: bool = False, days: int = 30) -> int:
    opened = bootstrap.database(database, Settings())
    try:
        return purge_outbox(opened.transaction, days * DAY, "budi", dry_run)
    finally:
        opened.close()


def test_only_old_messages_of_jobs_that_are_done_go_and_the_jobs_stay(database: MysqlUrl, connection: Any) -> None:
    gone = {message(connection, status, 31) for status in ("COMPLETED", "CANCELLED", None)}
    kept = {message(connection, status, 31) for status in ("PENDING", "PROCESSING", "WAITING", "FAILED")}
    kept |= {message(connection, "COMPLETED", 29), message(connection, "COMPLETED", None)}

    assert run(database, dry_run=True) == 3
    assert left(connection) == gone | kept
    assert builders.rows(connection, "SELECT 1 FROM audit_log") == []
    assert run(database) == 3
    assert left(connection) == kept
    assert run(database) == 0
    connection.commit()
    assert len(builders.rows(connection, "SELECT id FROM rabbit_publish_shadow")) == 8
    (line,) = builders.rows(connection, "SELECT actor, after_value FROM audit_log WHERE action = 'purge'")
    assert (line["actor"], json.loads(line["after_value"])["outbox"]) == ("budi", 3)


def test_many_go_in_small_transactions(database: MysqlUrl, connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_purge, "MESSAGES_PER_TRANSACTION", 2)
    for _ in range(5):
        message(connection, "COMPLETED", 31)
    assert run(database) == 5
    assert left(connection) == set()
    assert len(builders.rows(connection, "SELECT 1 FROM audit_log WHERE action = 'purge'")) == 3


def test_nothing_younger_than_a_day_can_be_purged(database: MysqlUrl) -> None:
    with pytest.raises(ValueError, match="at least 1 day"):
        purge_outbox(lambda: pytest.fail("not even opened"), timedelta(hours=23), "budi")


def test_the_command_counts_and_purges(everest: Any, connection: Any) -> None:
    message(connection, "COMPLETED", 100)
    assert json.loads(everest("purge", "--dry-run", "--json").stdout)["messages"] == 1
    assert everest("purge").stdout == "1 message and 0 workflows purged\n"
    assert left(connection) == set()
    assert everest("purge", "--older-than", "3h").exit_code == 2
