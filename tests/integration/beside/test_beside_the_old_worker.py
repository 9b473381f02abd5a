"""The old worker and ours on one queue and the same tables: beside each other, switched over, and back (decision 0043).

Whoever posts a document, the books end with it exactly once.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from everest.cli.main import main
from everest.settings import MysqlUrl
from ingest_consumer import by_hand
from ingest_consumer.settings import Settings
from tests import builders
from tests.builders import Line
from tests.integration.beside.conftest import OldWorker, Site
from tests.integration.beside.ledger import ledger
from tests.integration.beside.old_worker import TAKE
from tests.integration.opname.walk import Walker
from tests.queue_rig import PATIENCE_S, ROOT, Running, Vhost, environment, until

Old = Callable[..., OldWorker]
GUIDE = ROOT / "docs" / "existing-installations.md"


@pytest.fixture
def walker(database: MysqlUrl) -> Any:
    walker = Walker(database)
    yield walker
    walker.close()


def everest(settings: Settings, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str]:
    monkeypatch.setenv("EVEREST_MYSQL_URL", environment(settings)["EVEREST_MYSQL_URL"])
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.output


def test_both_at_once_post_every_document_of_a_backlog_exactly_once(
    site: Site, vhost: Vhost, running: Running, settings: Settings, tasks: None, old_worker: Old, reconciler: Path
) -> None:
    """Every message comes twice but one, which is lost, and our connections are cut again and again: the broker then
    gives what we hold to whoever reads next, the old worker included."""
    documents = [site.submit() for _ in range(60)]
    site.publish([*documents[1:], *documents[1:]])
    for _ in range(2):
        old_worker()
    running.relay(settings)
    running.consumer(settings, workers=2)
    for share in (10, 20, 30, 40):
        until(lambda share=share: site.statuses().count("COMPLETED") >= share, f"{share} posted")
        vhost.cut_connections("everest worker")

    until(site.all_completed, "every document completed")
    assert vhost.finished() == []
    assert site.books() == ledger(documents)
    assert site.posted_by_old() | site.posted_by_new() == {one.nomer_nota for one in documents}
    assert site.posted_by_old().isdisjoint(site.posted_by_new())
    assert site.posted_by_old(), "the old worker had a share"
    assert site.posted_by_new(), "and so had ours"
    sent_again = re.findall(
        r"action=sent-again .*?shadow_id=(\d+)|shadow_id=(\d+).*?action=sent-again", reconciler.read_text()
    )
    assert str(documents[0].shadow_id) in {one or other for one, other in sent_again}


def test_switched_over_in_the_middle_of_a_backlog_with_an_old_worker_killed_and_back_again(
    site: Site,
    vhost: Vhost,
    running: Running,
    settings: Settings,
    tasks: None,
    old_worker: Old,
    reconciler: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = [site.submit() for _ in range(30)]
    site.publish(documents)

    # The old workers stop, one of them in the middle of a document.
    one, other = old_worker("--pause", "0.2"), old_worker()
    until(lambda: site.statuses().count("COMPLETED") >= 5 and one.is_posting(), "some posted")
    other.process.send_signal(signal.SIGTERM)
    one.kill()
    other.process.wait()
    begun = builders.rows(
        site.connection,
        "SELECT nomer_nota FROM rabbit_publish_shadow WHERE worker_status = 'PROCESSING' AND dag_run_id IS NULL",
    )
    assert begun, "killed in the middle of a document"

    # Ours takes the rest of the queue. What the old ones had begun is theirs, until a person says that they are dead:
    # the reconciler, which is there all the time, does not.
    running.relay(settings)
    running.consumer(settings, workers=2)
    left = len(begun)
    until(lambda: site.statuses().count("COMPLETED") == 30 - left, "the rest of the backlog")
    until(lambda: vhost.depth("everest.jobs.q") == 0, "the queue is empty")
    assert site.statuses().count("PROCESSING") == left
    for row in begun:
        code, said = everest(settings, monkeypatch, "post", row["nomer_nota"])
        assert (code, "another program is at work on the document" in said) == (3, True)
        assert everest(settings, monkeypatch, "post", row["nomer_nota"], "--take-over")[0] == 0
    assert site.all_completed()
    assert site.books() == ledger(documents), "halves of the killed worker were archived and replaced"
    assert site.posted_by_old(), "and what it had finished stands"
    assert {row["nomer_nota"] for row in begun} <= site.posted_by_new()

    # Back: ours leaves what nobody has begun, and ends what it began.
    running.stop()
    bad = site.submit([Line("Z", "1", None)])
    site.publish([bad])
    running.consumer(settings, workers=1)
    until(lambda: "FAILED" in site.statuses(), "ours refuses a document")
    running.stop()
    running.relay(settings)
    running.consumer(settings, workers=1, takes_foreign_jobs=False)
    new = [site.submit() for _ in range(10)]
    site.publish(new)
    back = old_worker()
    until(lambda: site.statuses().count("COMPLETED") == 40, "the old worker posts again")
    assert {document.nomer_nota for document in new} <= site.posted_by_old()

    builders.write_lines(
        site.connection, bad.header_id, [Line("A31", "10", "12", "1500.00"), Line("B31", "7", "5", "31.505")]
    )
    assert everest(settings, monkeypatch, "rerun", bad.nomer_nota)[0] == 0
    until(site.all_completed, "the rerun document completed")
    assert bad.nomer_nota in site.posted_by_new(), "a document that ours has begun ends with ours"
    assert site.books() == ledger([*documents, *new, bad])
    assert back.process.poll() is None


def test_an_old_worker_that_cannot_take_the_rule_in_works_in_turns(
    site: Site, vhost: Vhost, running: Running, settings: Settings, tasks: None, old_worker: Old
) -> None:
    """One of them at a time reads the queue, and whoever is stopped ends its document first: a message that ours gave
    back would be a document that the old one posts again, because it looks at nothing."""
    documents = [site.submit() for _ in range(24)]
    site.publish(documents)
    for share in (8, 24):
        old = old_worker("--without-rule")
        until(lambda share=share: site.statuses().count("COMPLETED") >= share - 4, "the old worker's turn")
        old.process.send_signal(signal.SIGTERM)
        old.process.wait()
        running.consumer(settings, workers=2, stop_wait=timedelta(seconds=PATIENCE_S))
        until(lambda share=share: site.statuses().count("COMPLETED") >= share, "our turn")
        running.stop()
        assert "PROCESSING" not in site.statuses()

    assert site.all_completed()
    assert site.books() == ledger(documents)


def test_a_second_job_of_a_document_that_the_old_worker_is_at_work_on_is_refused_and_settled_afterwards(
    walker: Walker, connection: Any
) -> None:
    """The web application sometimes writes two jobs for one document (H30), and each system may take one of them."""
    document = builders.document(connection)
    second = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)
    connection.commit()
    with connection.cursor() as cursor:
        assert cursor.execute(TAKE, (document.shadow_id,)) == 1
    connection.commit()

    assert walker.post(second) == "FAILED"
    refused = builders.shadow(connection, second)
    assert (refused["error_code"], "sedang dikerjakan sistem lama" in refused["error"]) == (409, True)
    assert builders.books(connection) == builders.NOTHING_POSTED

    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED' WHERE id = %s", (document.shadow_id,)
        )
    connection.commit()
    with walker.database.transaction() as tx:
        by_hand.rerun(tx.conn, second, "dewi")
    assert walker.post(second) == "COMPLETED"
    assert "sudah diposting oleh sistem lama" in builders.shadow(connection, second)["response"]["message"]
    assert builders.books(connection) == builders.NOTHING_POSTED


def test_the_old_worker_takes_no_job_of_a_document_that_ours_has_begun(walker: Walker, connection: Any) -> None:
    document = builders.document(connection)
    second = builders.shadow_row(connection, document.transaksi_id, document.nomer_nota)
    connection.commit()
    walker.claim(document.shadow_id)
    for shadow_id in (document.shadow_id, second):
        with connection.cursor() as cursor:
            assert cursor.execute(TAKE, (shadow_id,)) == 0
        connection.commit()


def test_a_job_of_before_us_is_taken_when_its_message_comes_and_its_failure_has_its_letter(
    site: Site, vhost: Vhost, running: Running, settings: Settings, tasks: None
) -> None:
    """The mark that it stood there before us (decision 0044) keeps only the reconciler away from it."""
    document = site.submit([Line("Z", "1", None)])
    with site.connection.cursor() as cursor:
        cursor.execute("UPDATE rabbit_publish_shadow SET dead_lettered_at = '1970-01-01'")
    site.connection.commit()
    site.publish([document])
    running.consumer(settings)

    (letter,) = vhost.finished()
    assert json.loads(letter) == document.message
    job = builders.shadow(site.connection, document.shadow_id)
    assert (job["worker_status"], job["error_code"], job["dead_lettered_at"].year > 1970) == ("FAILED", 422, True)


def test_the_guide_has_the_statement_that_is_tested() -> None:
    words = re.sub(r"\s+", " ", TAKE.replace("%s", "?")).strip()
    assert words in re.sub(r"\s+", " ", Path(GUIDE).read_text(encoding="utf-8"))
