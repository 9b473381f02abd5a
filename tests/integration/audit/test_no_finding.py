"""What is no finding, and what an audit does not know: said, never passed over."""

from __future__ import annotations

from dataclasses import replace

from tests import builders
from tests.integration.audit.planting import (
    close_month,
    month_of,
    movement_entered_late,
    movement_that_committed_while_the_count_was_posted,
    open_month,
)
from tests.integration.audit.world import LONG_AGO, Books


def test_what_is_quick_enough_is_no_finding(books: Books) -> None:
    document = books.document()
    books.walker.claim(document.shadow_id)
    books.airflow.runs[builders.shadow(books.conn, document.shadow_id)["dag_run_id"]] = None
    books.document()

    assert books.audit_all() == {}


def test_a_message_that_is_to_go_out_next_week_is_not_overdue(books: Books) -> None:
    document = books.document()
    books.run(f"UPDATE rabbit_publish_shadow SET worker_at = {LONG_AGO} WHERE id = %s", document.shadow_id)
    books.run(
        "INSERT INTO outbox (shadow_id, exchange, routing_key, body, available_at)"
        " VALUES (%s, 'everest.jobs.x', 'job.process', '{}', UTC_TIMESTAMP(6) + INTERVAL 7 DAY)",
        document.shadow_id,
    )

    assert books.audit_all() == {}


def test_a_late_movement_that_a_person_approved_and_one_against_a_reversed_posting_are_no_findings(
    books: Books,
) -> None:
    movement_that_committed_while_the_count_was_posted(books)
    (posting,) = builders.rows(books.conn, "SELECT * FROM posting_sets")
    columns = {"actor": "dewi", "action": "approve", "transaksi_id": posting["transaksi_id"]}
    builders.insert(books.conn, "audit_log", **columns)
    movement_entered_late(books)
    (newest,) = builders.rows(books.conn, "SELECT nomer_nota FROM posting_sets ORDER BY id DESC LIMIT 1")
    books.reverse(newest["nomer_nota"])

    assert books.audit_all() == {}


def test_a_refusal_by_a_person_needs_no_dead_letter(books: Books) -> None:
    document = books.fail(with_letter=False)
    books.run("UPDATE rabbit_publish_shadow SET error_code = 403 WHERE id = %s", document.shadow_id)

    assert books.audit_all() == {}


def test_a_letter_on_its_way_counts(books: Books) -> None:
    books.fail()
    books.letters = 0
    books.run(
        "INSERT INTO outbox (exchange, routing_key, body, available_at)"
        " VALUES ('everest.jobs.dlx', 'job.process', '{}', UTC_TIMESTAMP(6))"
    )

    assert books.audit_all() == {}


def test_a_job_that_ends_while_airflow_is_asked_is_no_finding(books: Books) -> None:
    document = books.at_work()
    run_id = builders.shadow(books.conn, document.shadow_id)["dag_run_id"]
    books.airflow.runs[run_id] = "success"
    books.airflow.on_call = lambda run_id: books.run(
        "UPDATE rabbit_publish_shadow SET worker_status = 'CANCELLED', worker_at = UTC_TIMESTAMP(6) WHERE id = %s",
        document.shadow_id,
    )

    assert books.audit_all() == {}


def test_postings_before_a_closing_and_after_an_opening_are_no_findings(books: Books) -> None:
    month = month_of(books.post().nomer_nota, books)
    close_month(books, month)
    open_month(books, month)
    books.post()
    close_month(books, month)

    assert books.audit_all() == {}


def test_a_month_that_another_program_closed_is_named_because_nobody_knows_since_when(books: Books) -> None:
    builders.period(books.conn, "2026-01")
    builders.period(books.conn, "2026-2")

    report = books.audit("closed_month_stays_closed")

    assert (report.outcome, report.notes) == (
        "CLEAN",
        (
            "no month and so closes nothing, a month is written like 2026-08: '2026-2'",
            "closed by another program, since when is not known: 2026-01",
        ),
    )


def test_an_airflow_that_cannot_be_asked_is_said_and_never_passes(books: Books) -> None:
    books.at_work()
    books.airflow.is_away = True

    broken = books.audit_all()

    assert list(broken) == ["processing_has_live_run"]
    assert broken["processing_has_live_run"].outcome == "NOT_CHECKED"
    assert "503" in (broken["processing_has_live_run"].not_checked or "")
    (row,) = builders.rows(books.conn, "SELECT * FROM audit_runs WHERE outcome <> 'CLEAN'")
    assert (row["outcome"], row["found"]) == ("NOT_CHECKED", 0)


def test_a_site_that_names_no_airflow_is_told_so(books: Books) -> None:
    books.auditor = replace(books.auditor, airflow=None)

    assert books.audit("processing_has_live_run").outcome == "NOT_CHECKED"


def test_letters_that_cannot_be_counted_are_a_note_and_the_marks_are_looked_at(books: Books) -> None:
    document = books.fail(with_letter=False)
    books.auditor = replace(books.auditor, count_letters=None)

    report = books.audit("failure_has_dead_letter")

    assert document.nomer_nota in report.findings[0].pesan
    assert "EVEREST_RABBIT_MANAGEMENT_URL" in report.notes[0]
