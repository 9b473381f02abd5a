"""`everest reverse`, and what status, post and rerun say of a reversal."""

from __future__ import annotations

from typing import Any

import pytest

from everest.cli import output
from tests import builders
from tests.builders import rows
from tests.integration.cli.conftest import HEADER, Everest, WriteFile, answer
from tests.integration.opname.walk import Walker


@pytest.fixture
def posted(everest: Everest, write: WriteFile, walker: Walker) -> str:
    submitted = answer(everest("submit", write(), *HEADER, "--json"))
    assert walker.post(submitted["shadow_id"]) == "COMPLETED"
    return "SO-1"


@pytest.fixture
def as_somebody_else(posted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document was sent by the account that runs the tests; its reversal is asked for by another one."""
    monkeypatch.setattr(output, "operator", lambda: "dewi")


def test_a_reversal_is_asked_for_posted_by_hand_and_shown_on_both_documents(
    everest: Everest, posted: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = everest("reverse", posted, "--reason", "salah rak")
    monkeypatch.setattr(output, "operator", lambda: "dewi")
    first = everest("reverse", posted, "--reason", "salah rak")
    second = answer(everest("reverse", posted, "--reason", "salah rak", "--json"))
    other = everest("reverse", posted, "--reason", "lain", "--json")
    on_its_way = everest("status", posted)
    looked = answer(everest("preview", "SO-1-BALIK", "--json"))
    done = everest("post", "SO-1-BALIK", "--json")
    late = everest("reverse", posted, "--reason", "salah rak")

    assert (own.exit_code, "one's own document is reversed by somebody else" in own.stderr) == (3, True)
    assert first.exit_code == 0
    assert "Reversal SO-1-BALIK of SO-1 is on its way, as job #2" in first.stdout
    assert (second["already_requested"], second["shadow_id"], second["nomer_nota"]) == (True, 2, "SO-1-BALIK")
    assert (other.exit_code, answer(other)["code"]) == (3, 409)
    assert "SO-1-BALIK (on its way)" in on_its_way.stdout
    assert (looked["outcome"], looked["rows_changed"], looked["total_debet"]) == ("posts", 7, "8001.00")
    assert (done.exit_code, answer(done)["membalik_nota"]) == (0, "SO-1")
    posting = f"posting {answer(done)['posting_id']}"
    assert (late.exit_code, f"reversed by SO-1-BALIK ({posting})" in late.stderr) == (3, True)
    assert f"SO-1-BALIK ({posting})" in everest("status", posted).stdout
    shown = answer(everest("status", "SO-1-BALIK", "--json"))
    assert (shown["membalik_nota"], shown["dibuat_oleh"], shown["gudang_kode"]) == ("SO-1", "dewi", "GD-A")
    assert (shown["worker_status"], shown["workflow"]) == ("COMPLETED", "opname_reversal")
    assert answer(everest("status", posted, "--json"))["dibalik_posting_id"] == answer(done)["posting_id"]
    assert everest("post", "SO-1-BALIK").exit_code == 0, "posted already is a success again"
    assert "0 rows would change" in everest("rerun", "SO-1-BALIK").stdout
    assert "0 rows would change" in everest("rerun", posted).stdout
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM workflow_runs WHERE workflow = 'opname_reversal'")  # purged after a year
    connection.commit()
    assert answer(everest("status", "SO-1-BALIK", "--json"))["membalik_nota"] == "SO-1"
    assert answer(everest("preview", "SO-1-BALIK", "--json"))["outcome"] == "posted_already"
    assert everest("reverse", "SO-1-BALIK", "--reason", "x").exit_code == 3
    assert builders.books(connection).agree


@pytest.mark.usefixtures("as_somebody_else")
def test_a_failed_reversal_is_run_again_like_any_document(everest: Everest, posted: str, connection: Any) -> None:
    assert everest("reverse", posted, "--reason", "salah rak").exit_code == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT DATE_FORMAT(UTC_TIMESTAMP() + INTERVAL 7 HOUR, '%Y-%m')")
        (month,) = cursor.fetchone()
    builders.period(connection, month)
    failed = everest("post", "SO-1-BALIK", "--json")
    told = everest("status", "SO-1-BALIK").stdout
    refused = everest("reverse", posted, "--reason", "salah rak")
    builders.period(connection, month, "OPEN")
    again = everest("rerun", "SO-1-BALIK")
    done = everest("post", "SO-1-BALIK")

    assert (failed.exit_code, answer(failed)["code"]) == (1, 423)
    assert "python -m everest rerun '#2'" in told
    assert "--replace" not in told, "a reversal has no lines to correct"
    assert (refused.exit_code, "run that job again" in refused.stderr) == (3, True)
    assert "(job #2) runs again. Follow it:" in again.stdout
    assert (done.exit_code, len(rows(connection, "SELECT id FROM posting_sets"))) == (0, 2)


@pytest.mark.usefixtures("as_somebody_else")
def test_a_reversed_nota_is_refused_by_check_and_a_reversal_cannot_be_replaced(
    everest: Everest, write: WriteFile, posted: str
) -> None:
    everest("reverse", posted, "--reason", "salah rak")
    everest("post", "SO-1-BALIK")

    check = answer(everest("submit", write(), *HEADER, "--snapshot-at", "2026-08-30 10:00 WIB", "--check", "--json"))
    replaced = everest("submit", write(), "--nota", "SO-1-BALIK", "--replace")
    of_a_reversal = everest("reverse", "SO-1-BALIK", "--reason", "x")
    nothing = everest("reverse", "SO-9", "--reason", "x")

    assert any("dibalik oleh SO-1-BALIK); pakai nota baru" in error["pesan"] for error in check["errors"])
    assert (replaced.exit_code, of_a_reversal.exit_code, nothing.exit_code) == (4, 3, 4)
