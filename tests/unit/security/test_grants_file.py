"""sql/grants.sql forgets no table, no statement is without a program, and the promises about the books stand in it."""

from __future__ import annotations

import re

from everest.store.database import SQL_DIR
from tests.security.accounts import rights
from tests.security.programs import files, programs_of, statements

BOOKS = ("jurnal", "kartu_stok", "posting_sets", "transaksi", "transaksi_values", "jurnal_arsip", "kartu_stok_arsip")


def test_every_table_is_decided_about_and_no_right_is_on_a_table_that_is_gone() -> None:
    schema = (SQL_DIR / "schema.sql").read_text(encoding="utf-8")
    tables = set(re.findall(r"^CREATE (?:TABLE|VIEW) (\w+)", schema, re.MULTILINE))
    assert {right.table for right in rights()} == tables, "say in sql/grants.sql who may do what with it"


def test_every_statement_belongs_to_a_program() -> None:
    orphans = [f"{path.name}: {name}" for path in files() for name in statements(path) if not programs_of(path, name)]
    assert orphans == [], "say in tests/security/programs.py which program runs it"


def test_the_pages_change_no_books() -> None:
    """They may draw a number for a new document, and lock a posting to have it reversed (MySQL 8 wants UPDATE)."""
    found = {
        (right.table, right.verb, right.columns)
        for right in rights()
        if right.account == "everest_pages" and right.table in BOOKS and right.verb != "SELECT"
    }
    assert found == {
        ("transaksi", "INSERT", frozenset({"id", "nomer_nota", "jenis", "gudang_kode"})),
        ("posting_sets", "UPDATE", frozenset({"dag_run_id"})),
    }


def test_nobody_may_change_what_was_posted_or_noted() -> None:
    forbidden = {
        (right.account, right.table, right.verb)
        for right in rights()
        if (right.verb == "UPDATE" and right.table in ("jurnal", "kartu_stok", "posting_attempts"))
        or (right.verb == "UPDATE" and right.table == "posting_sets" and right.columns != {"dag_run_id"})
        or (right.verb == "DELETE" and right.table in ("posting_sets", "posting_attempts", "transaksi"))
        or (right.verb in ("UPDATE", "DELETE") and right.table in ("audit_log", "jurnal_arsip", "kartu_stok_arsip"))
    }
    assert forbidden == set()


def test_consumer_and_relay_have_no_right_on_any_document() -> None:
    theirs = {right.table for right in rights() if right.account in ("everest_consumer", "everest_relay")}
    assert theirs == {
        "audit_log",
        "broken_letters",
        "outbox",
        "process_heartbeats",
        "rabbit_publish_shadow",
        "workflow_compensations",
        "workflow_events",
        "workflow_runs",
    }
