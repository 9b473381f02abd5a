"""Documents that wait for a person, on the command line: the list, the answers, the exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everest.cli import output
from tests import builders
from tests.builders import Document
from tests.integration.cli.conftest import Everest, answer
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)


def surprising(connection: Any, **header: Any) -> Document:
    builders.movement(
        connection, masuk="4", nomer_nota="BELI-77", sumber="BELI", tanggal_wib=datetime(2026, 3, 10, 8),
        created_at=NOON + timedelta(hours=1),
    )  # fmt: skip
    times = {"diotorisasi_at": NOON + timedelta(hours=3), "snapshot_at": NOON}
    return builders.document(connection, nomer_nota="SO-7", **times, **header)


@pytest.fixture
def waiting(everest: Everest, walker: Walker, connection: Any) -> Document:
    document = surprising(connection)
    assert walker.post(document.shadow_id) == "WAITING"
    return document


def test_the_list_says_what_waits_why_and_what_to_type(everest: Everest, waiting: Document) -> None:
    people, programs = everest("approvals"), answer(everest("approvals", "--json"))

    for words in ("SO-7", "8.001,00", "BELI-77", "submitted by sari", "not to be decided by sari", "approve SO-7"):
        assert words in people.stdout
    (one,) = programs["pending"]
    assert (one["nomer_nota"], one["sequence"], one["details"]["mutasi"][0]["masuk"]) == ("SO-7", 1, "4.0000")


def test_a_raised_limit_decides_nothing_and_the_list_says_so(everest: Everest, walker: Walker, connection: Any) -> None:
    builders.limits(connection, "GD-A", batas_dokumen="8000.99")
    document = builders.document(connection, nomer_nota="SO-8")
    assert walker.post(document.shadow_id) == "WAITING"
    assert "higher by now" not in everest("approvals").stdout

    builders.limits(connection, "GD-A", batas_dokumen="9000.00")
    builders.limits(connection, "*", batas_dokumen="1.00")

    listed = everest("approvals").stdout
    assert "the limits are higher by now (document Rp 9.000,00, line no limit), which decides nothing" in listed
    (one,) = answer(everest("approvals", "--json"))["pending"]
    assert (one["batas_dokumen_kini"], one["batas_baris_kini"]) == ("9000.00", None)
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "WAITING"
    builders.limits(connection, "GD-A", batas_dokumen="8000.98")
    assert "higher by now" not in everest("approvals").stdout, "lowered: it waits anyway"


def test_nothing_waits(everest: Everest) -> None:
    assert "No document waits" in everest("approvals").stdout


def test_status_shows_the_reasons_and_both_answers(everest: Everest, waiting: Document) -> None:
    shown = everest("status", "SO-7").stdout

    assert "WAITING" in shown and "menunggu persetujuan: 1 baris dengan mutasi terlambat" in shown
    assert "baris 1, qty_sistem: mutasi terlambat" in shown
    assert f"approve '#{waiting.shadow_id}' --question 1" in shown


def test_approve_lets_it_post(everest: Everest, walker: Walker, connection: Any, waiting: Document) -> None:
    done = everest("approve", "SO-7", "--reason", "cocok", "--question", "1")

    assert done.exit_code == 0
    assert f"SO-7 (job #{waiting.shadow_id}) is approved by {output.operator()}" in done.stdout
    assert walker.post(waiting.shadow_id) == "COMPLETED"
    assert f"disetujui oleh {output.operator()}: cocok" in everest("status", "SO-7").stdout
    again = everest("approve", "SO-7", "--reason", "cocok", "--json")
    assert (again.exit_code, answer(again)["code"]) == (3, 409)


def test_reject_refuses_it_and_rerun_asks_again(
    everest: Everest, walker: Walker, connection: Any, waiting: Document
) -> None:
    assert answer(everest("reject", "SO-7", "--reason", "rak B-2", "--json"))["outcome"] == "rejected"
    assert walker.post(waiting.shadow_id) == "FAILED"
    shown = everest("status", "SO-7").stdout
    assert "ditolak oleh" in shown and "none: a person refused it" in shown

    assert everest("rerun", "SO-7").exit_code == 0
    assert walker.post(waiting.shadow_id) == "WAITING"


def test_a_wrong_answer_is_told_with_its_exit_code(everest: Everest, waiting: Document) -> None:
    assert everest("approve", "SO-7").exit_code == 2, "a reason is needed"
    assert everest("approve", "SO-7", "--reason", " ").exit_code == 1
    assert everest("approve", "SO-8", "--reason", "x").exit_code == 4
    late = everest("reject", "SO-7", "--reason", "x", "--question", "9", "--json")
    assert (late.exit_code, answer(late)["code"]) == (3, 409)
    assert "is another one by now" in answer(late)["message"]


def test_nobody_approves_what_they_submitted(everest: Everest, walker: Walker, connection: Any) -> None:
    document = surprising(connection, dibuat_oleh=output.operator())
    assert walker.post(document.shadow_id) == "WAITING"

    refused = everest("approve", "SO-7", "--reason", "ok", "--json")
    generic = everest("workflow", "approve", f"opname_posting:{document.transaksi_id}", "--json")

    assert (refused.exit_code, answer(refused)["code"]) == (3, 403)
    assert (generic.exit_code, answer(generic)["code"]) == (3, 403)


def test_post_without_airflow_answers_for_a_document_that_has_to_wait_and_posts_it_once_approved(
    everest: Everest, connection: Any
) -> None:
    document = surprising(connection)

    first, second = everest("post", "SO-7", "--json"), everest("post", "SO-7", "--json")

    for one in (first, second):
        assert (one.exit_code, answer(one)["status"], answer(one)["code"]) == (3, "waiting", 202)
        assert "menunggu persetujuan" in answer(one)["message"]
        assert "BELI-77" in answer(one)["waiting"]["reasons"][0]["pesan"]
    assert "BELI-77" in everest("post", "SO-7").stderr
    assert everest("approve", "SO-7", "--reason", "cocok").exit_code == 0
    done = everest("post", "SO-7", "--json")
    assert (done.exit_code, answer(done)["status"]) == (0, "success")
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "COMPLETED"


def let_the_time_pass(connection: Any, document: Document) -> None:
    """Fifteen days later, as the rows see it; then the relay finds the timer due."""
    (run,) = builders.rows(connection, "SELECT id, waiting FROM workflow_runs")
    waiting = json.loads(run["waiting"])
    earlier = datetime.fromisoformat(waiting["until"]["$datetime"]) - timedelta(days=15)
    waiting["until"]["$datetime"] = earlier.isoformat()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workflow_runs SET waiting = %s WHERE id = %s", (json.dumps(waiting), run["id"]))
        cursor.execute(
            "UPDATE rabbit_publish_shadow SET worker_status = 'PENDING' WHERE id = %s", (document.shadow_id,)
        )
    connection.commit()


@pytest.mark.parametrize("no", ["rejected", "too late"])
def test_post_of_a_document_that_was_refused_asks_again(
    everest: Everest, walker: Walker, connection: Any, waiting: Document, no: str
) -> None:
    """As a rerun does: the answer was about that time."""
    if no == "rejected":
        everest("reject", "SO-7", "--reason", "rak B-2")
    else:
        let_the_time_pass(connection, waiting)
    assert walker.post(waiting.shadow_id) == "FAILED"
    assert builders.shadow(connection, waiting.shadow_id)["error_code"] == 403

    asked = everest("post", "SO-7", "--json")

    assert (asked.exit_code, answer(asked)["status"], answer(asked)["code"]) == (3, "waiting", 202)
    assert everest("approve", "SO-7", "--reason", "cocok", "--question", "2").exit_code == 0
    assert answer(everest("post", "SO-7", "--json"))["status"] == "success"


def test_the_workflow_views_show_the_question(everest: Everest, waiting: Document) -> None:
    run = f"opname_posting:{waiting.transaksi_id}"
    shown, programs = everest("workflow", "show", run), answer(everest("workflow", "show", run, "--json"))

    assert "BELI-77" in shown.stdout and "not to be answered by sari" in shown.stdout
    assert programs["waiting"]["kind"] == "decision"
    assert "asked" in everest("workflow", "timeline", run).stdout
    listed = json.loads(everest("workflow", "list", "--json").stdout)
    assert "decision" in json.dumps(listed)
