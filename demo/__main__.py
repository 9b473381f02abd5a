"""`python -m demo`, run by `make demo` with the variables of .local/stack.env. Exit code 0: all is as expected."""

from __future__ import annotations

import csv
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

from demo import report, web_application
from demo.documents import PreparedSet, Sample
from demo.follow import Followed, follow
from everest import bootstrap
from everest.cli.output import console, operator
from everest.errors import DatabaseError, EverestError
from everest.intake.submission import Authority, Line, Submission
from everest.intake.submit import submit_document
from everest.opname.document import WIB
from everest.settings import mysql_url
from everest.store.database import SQL_DIR
from everest.store.migrations import split
from everest.store.unit_of_work import Database
from ingest_consumer import exits
from ingest_consumer.broker import BROKER_ERRORS

ROOT = Path(__file__).resolve().parents[1]
SEED = SQL_DIR / "seed" / "demo.sql"
PATIENCE_S = 240
"""For all documents; on two cores they take about 30 s."""

NEEDED = ("EVEREST_MYSQL_URL", "EVEREST_AMQP_URL")


def main() -> int:
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        return _stop(f"{', '.join(missing)} not set; use `make demo`, or `source .local/stack.env` first")
    database = bootstrap.database()
    try:
        return _run(database)
    except DatabaseError as error:
        return _stop(f"{error.message}; {exits.advice(mysql_url().host)}")
    except EverestError as error:
        return _stop(error.message)
    except BROKER_ERRORS as error:
        return _stop(exits.server_down("broker", os.environ["EVEREST_AMQP_URL"], error))
    except KeyboardInterrupt:
        print("\ndemo: interrupted; what was sent goes on, `python -m everest status NOTA` shows it", file=sys.stderr)
        return exits.INTERRUPTED
    finally:
        database.close()


def _run(database: Database) -> int:
    prepared = _prepare(database)
    others = (prepared.surprising, prepared.mistaken, prepared.repeated)
    documents = [Followed(sample) for sample in (*prepared.submitted, *others)]
    mixed, (surprising, mistaken, repeated) = documents[0], documents[-3:]
    for document in documents[:-3]:
        document.shadow_id = _submit(database, document.sample)
    web_application.enter(database, prepared.late_receipt)
    for document in (surprising, mistaken):
        document.shadow_id = web_application.send(database, os.environ, document.sample.submission)

    def send_repeated() -> None:
        if repeated.shadow_id is None and mixed.seen and mixed.seen.worker_status == "COMPLETED":
            # Unchecked, as the web application sends: `submit` would refuse it before it is stored.
            repeated.shadow_id = web_application.send(database, os.environ, repeated.sample.submission)

    follow(database, documents, PATIENCE_S, send_repeated)
    report.print_documents(documents)
    wrong = [f"{document.sample.title}: {surprise}" for document in documents for surprise in document.surprises]
    wrong += report.check_books(database, documents)
    wrong += report.check_dead_letters(database, documents)
    report.print_next(os.environ, mistaken, surprising, _write_corrected(prepared.corrected))
    for sentence in wrong:
        console().print(f"[red]✗[/] {sentence}")
    if wrong:
        console().print("Not everything is as expected. `make status` and `make logs` show the processes.")
    return 1 if wrong else 0


def _prepare(database: Database) -> PreparedSet:
    """Master data, and documents whose snapshot is the database's own now."""
    with database.transaction() as tx:
        with tx.conn.cursor() as cursor:
            for statement, _ in split(SEED.read_text(encoding="utf-8"), SEED.name):
                cursor.execute(statement)
        now = tx.now.astimezone(UTC)
    return PreparedSet(f"{now.astimezone(WIB):%y%m%d-%H%M%S}", now.astimezone(WIB).date(), now)


def _submit(database: Database, sample: Sample) -> int | None:
    authority = Authority(submitted_by=operator(), authorised_by="demo-budi", level=2)
    return submit_document(database.transaction, sample.submission, authority).shadow_id


def _write_corrected(submission: Submission) -> Path:
    """The file with which the failed document can be put right, below .local like everything the stack leaves."""
    path = ROOT / ".local" / "demo" / f"{submission.nomer_nota}-corrected.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Line._fields)
        writer.writerows([_cells(line) for line in submission.lines])
    return Path(os.path.relpath(path))


def _cells(line: Line) -> Sequence[str]:
    return ["" if value is None else str(value) for value in line]


def _stop(sentence: str) -> int:
    print(f"demo: {sentence}", file=sys.stderr)
    return exits.NOT_READY


if __name__ == "__main__":
    ArgumentParser(
        "make demo", description="Eight documents from submission to the books; nothing to choose."
    ).parse_args()
    sys.exit(main())
