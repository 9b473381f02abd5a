"""The demo's documents become what the demo says they become; its books check finds what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from demo import report, web_application
from demo.documents import PreparedSet
from demo.follow import Followed, look
from everest import bootstrap
from everest.intake.replace import replace
from everest.intake.submission import Authority
from everest.intake.submit import submit_document
from everest.settings import MysqlUrl
from everest.store.database import SQL_DIR
from everest.store.migrations import split
from everest.store.unit_of_work import Database
from tests.builders import rows
from tests.integration.opname.walk import Walker

BUDI = Authority("sari", "budi", 2)


@pytest.fixture
def db(database: MysqlUrl, connection: Any) -> Iterator[Database]:
    for _ in range(2):  # the seed may be loaded again and again
        for statement, _ in split((SQL_DIR / "seed" / "demo.sql").read_text(), "demo.sql"):
            rows(connection, statement)
    db = bootstrap.database(database)
    yield db
    db.close()


@pytest.fixture
def prepared() -> PreparedSet:
    now = datetime.now(UTC)
    return PreparedSet("1", now.date(), now)


def test_every_document_of_the_demo_ends_as_the_demo_expects(
    db: Database, prepared: PreparedSet, walker: Walker, connection: Any
) -> None:
    others = (prepared.repeated, prepared.mistaken, prepared.surprising)
    documents = [Followed(sample) for sample in (*prepared.submitted, *others)]
    for document in documents[:-2]:
        document.shadow_id = submit_document(db.transaction, document.sample.submission, BUDI).shadow_id
    web_application.enter(db, prepared.late_receipt)
    for document in documents[-2:]:
        _, document.shadow_id = web_application.write_rows(db, document.sample.submission)

    for document in documents:
        assert document.shadow_id is not None
        walker.post(document.shadow_id)
    look(db, documents)

    assert [(document.sample.title, document.surprises) for document in documents] == [
        (document.sample.title, []) for document in documents
    ]
    assert all(document.is_settled for document in documents)
    assert documents[-1].seen is not None
    assert prepared.late_receipt.nota in documents[-1].seen.reasons[0]["pesan"]
    assert report.check_books(db, documents) == []


def test_what_the_demo_does_not_know_is_refused() -> None:
    asked = subprocess.run([sys.executable, "-m", "demo", "--lines", "9"], capture_output=True, text=True, check=False)

    assert (asked.returncode, "unrecognized arguments: --lines 9" in asked.stderr) == (2, True)


def test_the_corrected_document_of_the_demo_posts(db: Database, prepared: PreparedSet, walker: Walker) -> None:
    _, shadow_id = web_application.write_rows(db, prepared.mistaken.submission)
    assert walker.post(shadow_id) == "FAILED"
    with db.transaction() as tx:
        replace(tx, prepared.corrected, BUDI, rerun=True)

    assert walker.post(shadow_id) == "COMPLETED"


def test_books_that_are_wrong_are_reported(
    db: Database, prepared: PreparedSet, walker: Walker, connection: Any
) -> None:
    document = Followed(prepared.mixed)
    document.shadow_id = submit_document(db.transaction, document.sample.submission, BUDI).shadow_id
    assert document.shadow_id is not None
    walker.post(document.shadow_id)

    rows(connection, "UPDATE jurnal SET debet = debet + 1 WHERE urutan = 1")
    rows(connection, "UPDATE kartu_stok SET nilai = nilai + 5 WHERE nilai < 0")

    found = report.check_books(db, [document])
    assert len(found) == 2
    assert "debit 8002.00, credit 8001.00" in found[0]
    assert "stock card by -1996.00" in found[1]
