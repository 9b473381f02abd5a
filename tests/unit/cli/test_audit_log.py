"""An entry of the audit log in words."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from everest.audit_log import Entry
from everest.cli.audit_log import _line

HASH = sha256(b"evidence").hexdigest()
REASONS = [{"baris": 3, "kolom": "qty_fisik", "pesan": "mutasi terlambat", "said": {"key": "k", "values": {"n": 1}}}]


def said(before: dict[str, object] | None, after: dict[str, object]) -> str:
    entry = Entry(7, datetime(2026, 8, 31, 2, 0), "ani", "approve", 1, "SO-1", 4, 2, "sudah dicek", before, after)
    return _line(entry).partition("\n      ")[2]


def test_an_answer_says_what_was_decided_and_of_its_evidence_only_the_beginning() -> None:
    about = {"step": "post_jurnal", "sequence": 1, "evidence": HASH, "reasons": REASONS}

    assert said(None, about) == (
        f"step post_jurnal, question 1, evidence {HASH[:8]}, to decide baris 3, qty_fisik: mutasi terlambat"
    )


def test_no_value_is_shown_as_a_program_writes_it() -> None:
    values = {"nota": ["SO-1", "SO-2"], "is_forced": True, "limits": {"worker_status": "FAILED", "n": 2}, "gone": []}

    told = said({"worker_status": "FAILED", "diotorisasi_oleh": None}, {**values, "diotorisasi_oleh": "ani"})

    assert told == (
        "nota SO-1; SO-2, is forced yes, limits status FAILED, DAG run number 2, gone none, authorised by none → ani"
    )
