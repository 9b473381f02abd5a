"""`everest purge --steps-older-than`: how a document got there goes by age; that it got there stays."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from everest import bootstrap
from everest.settings import MysqlUrl, Settings
from everest.store import steps_purge
from everest.store.steps_purge import purge_steps
from tests import builders
from tests.builders import Document, Line
from tests.integration.cli.conftest import Everest
from tests.integration.opname.walk import Walker

DAY = timedelta(days=1)
KEPT = ("workflow_runs", "rabbit_publish_shadow", "posting_attempts", "posting_sets")


def ended(walker: Walker, connection: Any, nota: str, days_ago: int, qty: str | None = "1") -> Document:
    document = builders.document(connection, [Line(f"A-{nota}", "1", qty)], nomer_nota=nota)
    walker.post(document.shadow_id)
    with connection.cursor() as cursor:
        older = "UPDATE workflow_runs SET finished_at = finished_at - INTERVAL %s DAY WHERE carrier_shadow_id = %s"
        cursor.execute(older, (days_ago, document.shadow_id))
    connection.commit()
    return document


def steps(connection: Any) -> dict[str, tuple[int, int]]:
    """Steps and events by nota."""
    found = builders.rows(
        connection,
        "SELECT s.nomer_nota, (SELECT COUNT(*) FROM workflow_steps k WHERE k.workflow_id = s.workflow_id) AS steps,"
        " (SELECT COUNT(*) FROM workflow_events e WHERE e.workflow_id = s.workflow_id) AS events"
        " FROM rabbit_publish_shadow s",
    )
    return {row["nomer_nota"]: (row["steps"], row["events"]) for row in found}


def purge(database: MysqlUrl, dry_run: bool = False) -> int:
    opened = bootstrap.database(database, Settings())
    try:
        return purge_steps(opened.transaction, 365 * DAY, "budi", dry_run)
    finally:
        opened.close()


def test_only_steps_of_documents_that_ended_long_ago_go_and_what_they_led_to_stays(
    database: MysqlUrl, walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps_purge, "RUNS_PER_TRANSACTION", 1)
    old = ended(walker, connection, "OLD", 400)
    ended(walker, connection, "OLDER", 4000)
    ended(walker, connection, "NEW", 300)
    ended(walker, connection, "FAILED", 400, qty=None)
    before, books = steps(connection), builders.books(connection)
    rows = {table: builders.rows(connection, f"SELECT * FROM {table}") for table in KEPT}
    assert all(count > 0 for pair in before.values() for count in pair)

    assert purge(database, dry_run=True) == 2
    assert steps(connection) == before
    assert purge(database) == 2
    assert purge(database) == 0

    assert steps(connection) == {**before, "OLD": (0, 0), "OLDER": (0, 0)}
    assert builders.books(connection) == books
    assert {table: builders.rows(connection, f"SELECT * FROM {table}") for table in KEPT} == rows
    told = builders.rows(connection, "SELECT actor FROM audit_log WHERE action = 'purge'")
    assert [row["actor"] for row in told] == ["budi", "budi"]
    again = builders.shadow_row(connection, old.transaksi_id, "OLD")  # the same document is sent once more
    connection.commit()
    assert walker.post(again) == "COMPLETED"
    assert builders.books(connection) == books


def test_the_command_and_what_it_then_still_says_of_the_document(
    everest: Everest, walker: Walker, connection: Any
) -> None:
    ended(walker, connection, "OLD", 400)
    assert everest("purge", "--steps-older-than", "30d").exit_code == 2
    done = everest("purge", "--steps-older-than", "365d", "--json")
    assert (done.exit_code, json.loads(done.output)["steps_of_documents"]) == (0, 1)
    for command in ("status", "attempts", "rerun"):
        assert everest(command, "OLD").exit_code == 0, command
