"""`everest purge --lines-older-than`: lines of posted documents go by age, the books and what explains them stay."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest import bootstrap
from everest.settings import MysqlUrl, Settings
from everest.store import lines_purge
from everest.store.lines_purge import purge_lines
from ingest_consumer import shadow as jobs
from tests import builders
from tests.builders import Document, Line
from tests.integration.cli.conftest import HEADER, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker

DAY = timedelta(days=1)


def posted(walker: Walker, connection: Any, nota: str, *lines: Line, days_ago: int = 400) -> Document:
    document = builders.document(connection, lines or (Line(f"A-{nota}"), Line(f"B-{nota}")), nomer_nota=nota)
    assert walker.post(document.shadow_id) == "COMPLETED"
    with connection.cursor() as cursor:
        older = "UPDATE posting_sets SET created_at = created_at - INTERVAL %s DAY WHERE nomer_nota = %s"
        cursor.execute(older, (days_ago, nota))
    connection.commit()
    return document


def lines_left(connection: Any) -> dict[str, int]:
    found = builders.rows(
        connection,
        "SELECT h.nomer_nota, COUNT(d.id) AS baris FROM so_headers_staging h"
        " LEFT JOIN so_details_staging d ON d.header_id = h.id GROUP BY h.nomer_nota",
    )
    return {row["nomer_nota"]: row["baris"] for row in found}


def purge(database: MysqlUrl, dry_run: bool = False, days: int = 365) -> tuple[int, int]:
    opened = bootstrap.database(database, Settings())
    try:
        return purge_lines(opened.transaction, days * DAY, "budi", dry_run)
    finally:
        opened.close()


def test_only_lines_of_documents_posted_long_ago_go(database: MysqlUrl, walker: Walker, connection: Any) -> None:
    posted(walker, connection, "OLD")
    posted(walker, connection, "NEW", days_ago=300)
    builders.document(connection, nomer_nota="PENDING")
    failed = builders.document(connection, [Line("Z", "1", None)], nomer_nota="FAILED")
    assert walker.post(failed.shadow_id) == "FAILED"
    again = posted(walker, connection, "AGAIN")
    builders.shadow_row(connection, again.transaksi_id, "AGAIN")
    connection.commit()
    before = builders.books(connection)

    assert purge(database, dry_run=True) == (1, 2)
    assert lines_left(connection)["OLD"] == 2
    assert purge(database) == (1, 2)
    assert lines_left(connection) == {"OLD": 0, "NEW": 2, "PENDING": 3, "FAILED": 1, "AGAIN": 2}
    assert purge(database) == (0, 0)

    assert builders.books(connection) == before
    (told,) = builders.rows(connection, "SELECT * FROM audit_log WHERE action = 'purge'")
    assert (told["actor"], told["nomer_nota"]) == ("budi", "OLD")
    kept = builders.rows(connection, "SELECT nomer_nota FROM so_headers_staging WHERE baris_dihapus_at IS NOT NULL")
    assert [row["nomer_nota"] for row in kept] == ["OLD"]


def test_a_large_document_goes_in_pieces_and_one_that_was_interrupted_is_gone_on_with(
    database: MysqlUrl, walker: Walker, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    posted(walker, connection, "BESAR", *(Line(f"I{number}") for number in range(25)))
    monkeypatch.setattr(lines_purge, "LINES_PER_TRANSACTION", 10)
    real = lines_purge.QUERIES

    class Dying:
        calls = 0

        def __getattr__(self, name: str) -> Any:
            if name == "delete_lines":
                Dying.calls += 1
                if Dying.calls == 2:
                    raise KeyboardInterrupt
            return getattr(real, name)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(lines_purge, "QUERIES", Dying())
        purge(database)
    assert lines_left(connection) == {"BESAR": 15}
    assert purge(database) == (1, 15)
    assert lines_left(connection) == {"BESAR": 0}
    assert len(builders.rows(connection, "SELECT id FROM audit_log WHERE action = 'purge'")) == 1


def test_every_command_says_that_the_lines_were_purged_and_the_books_stand(
    database: MysqlUrl, walker: Walker, connection: Any, everest: Everest
) -> None:
    document = posted(walker, connection, "SO-7", *builders.EXAMPLE)
    books = builders.books(connection)
    assert purge(database) == (1, 3)
    today = (datetime.now(UTC) + timedelta(hours=7)).strftime("%Y-%m-%d")

    looked = answer(everest("preview", "SO-7", "--json"))
    assert (looked["outcome"], looked["code"], looked["rows_changed"]) == ("posted_already", 200, 0)
    assert f"baris dokumen dihapus pada {today} WIB" in looked["message"]
    assert len(looked["journal"]) == 4

    tried = answer(everest("attempts", "SO-7", "--json"))
    assert f"baris dokumen dihapus pada {today} WIB, buku tetap" in tried["rerun"]
    assert [one["outcome"] for one in tried["attempts"]] == ["COMPLETED"]

    assert "lines purged" in everest("status", "SO-7").output
    rerun = everest("rerun", "SO-7")
    assert (rerun.exit_code, "0 rows would change" in rerun.output) == (0, True)
    assert everest("post", "SO-7").exit_code == 0

    variance = answer(everest("report", "variance", "--nota", "SO-7", "--format", "json"))
    assert len(variance["rows"]) == 3
    assert everest("reverse", "SO-7", "--reason", "salah rak").exit_code == 0
    assert builders.books(connection) == books
    assert document.nomer_nota == "SO-7"


def test_another_job_of_a_purged_document_is_told_that_it_is_posted(
    database: MysqlUrl, walker: Walker, connection: Any
) -> None:
    document = posted(walker, connection, "SO-8")
    purge(database)
    again = builders.shadow_row(connection, document.transaksi_id, "SO-8")
    connection.commit()
    assert walker.post(again) == "COMPLETED"
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM workflow_runs")  # as an installation that purged its runs by hand
        foreign = "worker_status = 'PENDING', workflow_id = NULL, dag_run_id = NULL"
        cursor.execute(f"UPDATE rabbit_publish_shadow SET {foreign}")
    connection.commit()
    assert walker.post(again) == "COMPLETED"
    job = jobs.get(connection, again)
    assert job is not None
    assert "baris dokumen dihapus pada" in json.loads(job.response or "")["message"]
    assert builders.books(connection).postings == 1


def test_the_same_file_sent_again_is_a_conflict_that_says_why(
    database: MysqlUrl, walker: Walker, connection: Any, everest: Everest, write: WriteFile
) -> None:
    file = write()
    sent = answer(everest("submit", file, *HEADER, "--json"))
    assert walker.post(sent["shadow_id"]) == "COMPLETED"
    with connection.cursor() as cursor:
        cursor.execute("UPDATE posting_sets SET created_at = created_at - INTERVAL 400 DAY")
    connection.commit()
    result = everest("purge", "--lines-older-than", "365d")
    assert "3 lines of 1 document purged" in result.output
    again = everest("submit", file, *HEADER)
    assert (again.exit_code, "its lines were purged on" in again.output) == (3, True)


def test_young_lines_cannot_be_asked_for(everest: Everest, database: MysqlUrl) -> None:
    assert "at least 31d" in everest("purge", "--lines-older-than", "30d").output
    with pytest.raises(ValueError, match="31 days"):
        purge(database, days=30)
