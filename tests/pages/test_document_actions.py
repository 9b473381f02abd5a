"""The buttons of a document: whoever is offered one is not refused; whoever would be refused is told why instead."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.builders import WIB
from tests.pages.conftest import Be
from tests.pages.posted import asked_back, taken_back, walked
from tests.pages.standing import failed, run

POSTS = {"reverse": "reverse", "rerun": "rerun", "preview": "preview"}


def offered(page: str, shadow_id: int) -> set[str]:
    """Names of the buttons in a page of a document."""
    found = set(re.findall(rf'action="/documents/{shadow_id}/(\w+)"', page))
    return found | ({"decide"} if f"/approvals/{shadow_id}/approve" in page else set())


def waiting(database: MysqlUrl, conn: Any, **header: Any) -> builders.Document:
    """A document that is worth more than its warehouse may post by itself."""
    builders.limits(conn, "GD-A", batas_dokumen="100")
    conn.commit()
    found: builders.Document = walked(database, conn, ends="WAITING", **header)
    return found


@pytest.mark.parametrize("who", ["finance", "finance-2", "engineer", "analyst"])
@pytest.mark.parametrize("is_own", [False, True])
def test_reversing_is_offered_to_whoever_may_do_it_and_to_nobody_else(
    browser: Be, connection: Any, database: MysqlUrl, who: str, is_own: bool
) -> None:
    """Who submitted it is written with other letters than the login."""
    document = walked(database, connection, dibuat_oleh="Finance " if is_own else "sari")
    client, address = browser(who), f"/documents/{document.shadow_id}"
    page = client.get(address).text
    answer = client.submit(f"{address}/reverse", reason="salah rak")
    assert ("reverse" in offered(page, document.shadow_id)) is (answer.status_code == 303)
    assert answer.status_code == (403 if who == "analyst" or (is_own and who == "finance") else 303)
    assert ("dokumen sendiri dibalik oleh orang lain" in page) is (is_own and who == "finance")


def test_whoever_corrected_the_lines_is_not_offered_the_reversal(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection)
    builders.insert(connection, "audit_log", actor="finance-2", action="replace", transaksi_id=document.transaksi_id)
    address = f"/documents/{document.shadow_id}"
    assert "reverse" not in offered(browser("finance-2").get(address).text, document.shadow_id)
    assert browser("finance-2").submit(f"{address}/reverse", reason="x").status_code == 403
    assert "reverse" in offered(browser("finance").get(address).text, document.shadow_id)


def test_in_a_closed_month_the_reversal_is_not_offered_and_the_reason_is_told(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection)
    month = f"{datetime.now(WIB):%Y-%m}"
    builders.period(connection, month)
    connection.commit()
    client, address = browser("finance"), f"/documents/{document.shadow_id}"
    page = client.get(address).text
    assert "reverse" not in offered(page, document.shadow_id) and f"periode {month} tutup" in page
    assert client.submit(f"{address}/reverse", reason="x").status_code == 423


@pytest.mark.parametrize("ends", ["on its way", "failed", "posted", "cancelled"])
def test_a_document_names_its_reversal_from_the_moment_it_is_asked_for_and_offers_no_second(
    browser: Be, connection: Any, database: MysqlUrl, ends: str
) -> None:
    document = walked(database, connection, nomer_nota="SO-1", dibuat_oleh="warehouse")
    asked = taken_back(database, "SO-1") if ends == "posted" else asked_back(database, "SO-1")
    if ends in ("failed", "cancelled"):
        status = {"failed": "FAILED", "cancelled": "CANCELLED"}[ends]
        run(connection, "UPDATE workflow_runs SET status=%s, error_code=500 WHERE id=%s", ends, asked.workflow_id)
        run(connection, "UPDATE rabbit_publish_shadow SET worker_status=%s WHERE id=%s", status, asked.shadow_id)
    client, address = browser("finance"), f"/documents/{document.shadow_id}"
    page = client.get(address).text
    answer = client.submit(f"{address}/reverse", reason="alasan lain")
    assert ("reverse" in offered(page, document.shadow_id)) is (answer.status_code == 303) is (ends == "cancelled")
    assert (asked.nomer_nota in page) is (ends != "cancelled")
    if ends in ("on its way", "failed"):
        assert f'href="/documents/{asked.shadow_id}">{asked.nomer_nota}</a>' in page
        clerk = browser("warehouse").get(address).text
        assert asked.nomer_nota in clerk and f'href="/documents/{asked.shadow_id}"' not in clerk
    back = client.get(f"/documents/{asked.shadow_id}").text
    assert f'/documents/of/{document.transaksi_id}">SO-1</a>' in back, "the reversal names what it reverses"


@pytest.mark.parametrize("who", ["finance", "finance-2", "analyst"])
def test_deciding_is_offered_to_whoever_may_and_to_nobody_else(
    browser: Be, connection: Any, database: MysqlUrl, who: str
) -> None:
    document = waiting(database, connection, dibuat_oleh="FINANCE")
    client, address = browser(who), f"/documents/{document.shadow_id}"
    page = client.get(address).text
    answer = client.submit(f"/approvals/{document.shadow_id}/approve", reason="benar", sequence="1")
    assert ("decide" in offered(page, document.shadow_id)) is (answer.status_code == 303) is (who == "finance-2")
    assert ("orang lain yang harus memutuskan" in page) is (who == "finance")
    after = browser("finance-2").get(address).text
    assert ("decide" in offered(after, document.shadow_id)) is (who != "finance-2")


def test_what_is_not_failed_is_not_run_again(browser: Be, connection: Any, database: MysqlUrl) -> None:
    broken, queued = failed(connection), builders.document(connection)
    posted = walked(database, connection)
    client = browser("finance")
    for document, is_offered in ((broken, True), (queued, False), (posted, False)):
        address = f"/documents/{document.shadow_id}"
        assert ("rerun" in offered(client.get(address).text, document.shadow_id)) is is_offered
        assert client.submit(f"{address}/rerun").status_code == (303 if is_offered else 409)


def test_the_log_of_a_posted_document_is_that_of_its_last_task_and_each_attempt_has_its_own(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    document = walked(database, connection)
    client, address = browser("engineer"), f"/documents/{document.shadow_id}"
    logs = re.findall(r'href="[^"]*/dags/opname_posting/runs/([^"/]+)/tasks/([^"/]+)"', client.get(address).text)
    assert len(logs) == 1 and logs[0][1].endswith("post_jurnal")
    history = client.get(f"{address}?tab=history").text
    assert re.findall(r'href="[^"]*/dags/opname_posting/runs/([^"/]+)/tasks/([^"/]+)"', history) == logs
    wrong = walked(database, connection, builders.Line("A", "1", None, "5"), ends="FAILED")
    history = client.get(f"/documents/{wrong.shadow_id}?tab=history").text
    (log,) = re.findall(r'href="[^"]*/dags/opname_posting/runs/([^"/]+)/tasks/([^"/]+)"', history)
    assert log[1].startswith("compute_variance")


def test_what_waits_leads_to_the_run_that_was_and_not_to_the_one_to_come(
    browser: Be, connection: Any, database: MysqlUrl
) -> None:
    """Airflow does not know the next one yet; neither the document's page nor its workflow's leads there."""
    job = builders.shadow(connection, waiting(database, connection).shadow_id)
    next_one, was = job["dag_run_id"], job["dag_run_id"].removesuffix("2") + "1"
    assert next_one != was
    for path in (f"/documents/{job['id']}", f"/workflows/{job['workflow_id']}"):
        page = browser("engineer").get(path).text
        assert f'/runs/{was}"' in page and f"/runs/{next_one}" not in page, path


def test_a_refresh_tells_that_somebody_asked_for_the_reversal(browser: Be, connection: Any, database: MysqlUrl) -> None:
    document = walked(database, connection, nomer_nota="SO-1")
    client, address = browser("finance"), f"/documents/{document.shadow_id}?tab=lines"
    stamp = client.get(address).headers["etag"]
    asked_back(database, "SO-1")
    assert client.get(address, headers={"if-none-match": stamp}).status_code == 200
