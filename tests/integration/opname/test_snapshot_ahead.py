"""Snapshots from the future, by whichever clock or zone: refused, also once that hour has come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest.settings import MysqlUrl, Settings
from ingest_consumer import by_hand
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.integration.opname.written import MOMENT, set_header


def test_a_snapshot_in_the_future_is_refused_because_nothing_would_ever_look_stale(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, snapshot_at=datetime.now(UTC) + timedelta(hours=7))

    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert [(error["baris"], error["kolom"]) for error in row["response"]["errors"]] == [(None, "snapshot_at")]
    assert "masa depan" in row["error"]


def hours_pass(connection: Any, *, since_announced: timedelta) -> None:
    """The document was written and announced so long ago."""
    with connection.cursor() as cursor:
        for table in ("so_headers_staging", "rabbit_publish_shadow"):
            back = since_announced.total_seconds()
            cursor.execute(f"UPDATE {table} SET created_at = created_at - INTERVAL %s SECOND", (back,))
    connection.commit()


@pytest.mark.parametrize("column", ["snapshot_at", "diotorisasi_at"])
@pytest.mark.parametrize("corrected", ["nothing", "a line"])
def test_what_was_refused_as_in_the_future_is_refused_again_when_that_hour_has_come(
    walker: Walker, connection: Any, column: str, corrected: str
) -> None:
    """The application writes WIB and says it is UTC. Seven hours later the instant is past, and no truer."""
    now = datetime.now(UTC)
    instants = {"snapshot_at": now - timedelta(hours=1), "diotorisasi_at": now} | {column: now + timedelta(seconds=62)}
    document = builders.document(connection, **instants)
    assert walker.post(document.shadow_id) == "FAILED"
    # Instead of waiting: what the attempt refused has come meanwhile.
    told = f"REPLACE(problems, '{instants[column].astimezone(builders.WIB):{MOMENT}}', '{{}}')"
    past = now - timedelta(minutes=2)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE posting_attempts SET problems = {told.format(f'{past.astimezone(builders.WIB):{MOMENT}}')}"
        )
    set_header(connection, document.header_id, column, str(builders.utc(past)))
    if corrected == "a line":
        builders.write_lines(connection, document.header_id, [Line("A")])

    by_hand.rerun(connection, document.shadow_id, "budi")
    connection.commit()
    assert walker.post(document.shadow_id) == "FAILED"

    row = builders.shadow(connection, document.shadow_id)
    assert (row["error_code"], [one["kolom"] for one in row["response"]["errors"]]) == (422, [column])
    assert "masa depan ketika dokumen ini pertama diperiksa" in row["response"]["errors"][0]["pesan"]
    assert builders.books(connection) == builders.NOTHING_POSTED

    set_header(connection, document.header_id, column, str(builders.utc(past - timedelta(minutes=1))))
    by_hand.rerun(connection, document.shadow_id, "budi")
    connection.commit()
    assert walker.post(document.shadow_id) == "COMPLETED", "another instant was never refused"


def test_a_snapshot_behind_the_announcement_is_refused_however_late_the_document_is_run(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, snapshot_at=datetime.now(UTC) - timedelta(hours=1))
    hours_pass(connection, since_announced=timedelta(hours=8))

    assert walker.post(document.shadow_id) == "FAILED"

    (error,) = builders.shadow(connection, document.shadow_id)["response"]["errors"]
    assert (error["kolom"], "ketika dokumen ini dikirim" in error["pesan"]) == ("snapshot_at", True)


@pytest.mark.parametrize(
    ("code", "outcome"), [(503, "FAILED"), (504, "FAILED"), (499, "FAILED"), (500, "FAILED"), (409, "COMPLETED")]
)
def test_an_attempt_that_ended_for_no_reason_of_the_document_makes_its_snapshot_no_truer(
    walker: Walker, connection: Any, code: int, outcome: str
) -> None:
    """Whoever was told of a conflict may have counted again since; whom nobody told anything has corrected nothing."""
    document = builders.document(connection, snapshot_at=datetime.now(UTC) - timedelta(hours=1))
    attempt = {"transaksi_id": document.transaksi_id, "n": 1, "outcome": "FAILED", "code": code}
    builders.insert(connection, "posting_attempts", **attempt, problems='[{"baris": null, "kolom": "", "pesan": "x"}]')
    hours_pass(connection, since_announced=timedelta(hours=8))

    assert walker.post(document.shadow_id) == outcome


@pytest.mark.parametrize("zone", ["UTC", "Asia/Jakarta"])
def test_an_announcement_whose_zone_is_not_known_for_sure_accuses_nobody(
    database: MysqlUrl, connection: Any, zone: str
) -> None:
    """created_at has the zone of the session that wrote the row, or that of the program."""
    walker = Walker(database, Settings(foreign_zone=ZoneInfo(zone)))
    now = datetime.now(ZoneInfo(zone)).replace(tzinfo=UTC)
    document = builders.document(connection, diotorisasi_at=now, snapshot_at=now - timedelta(minutes=5))

    assert walker.post(document.shadow_id) == "COMPLETED"
    walker.close()


def test_a_document_that_is_counted_again_after_a_refusal_may_be_younger_than_its_announcement(
    walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("A", qty_fisik=None)])
    hours_pass(connection, since_announced=timedelta(hours=8))
    set_header(connection, document.header_id, "snapshot_at", str(builders.utc(datetime.now(UTC) - timedelta(hours=9))))
    assert walker.post(document.shadow_id) == "FAILED"

    builders.write_lines(connection, document.header_id, [Line("A")])
    set_header(connection, document.header_id, "snapshot_at", str(builders.utc(datetime.now(UTC))))
    by_hand.rerun(connection, document.shadow_id, "budi")
    connection.commit()

    assert walker.post(document.shadow_id) == "COMPLETED"
