"""A person with files: what is typed, from a file with mistakes to the books, through outbox, queue and Airflow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import builders
from tests.acceptance.counting import item
from tests.acceptance.live import Live, until

TITLES = "kode_barang,qty_sistem,qty_fisik,harga_pokok\n"


@pytest.fixture
def nota(live: Live) -> str:
    with live.connection() as conn:
        builders.warehouse(conn, "GD-BERKAS")
    return f"SO-{item()}"


def header(nota: str) -> tuple[str, ...]:
    return "--nota", nota, "--gudang", "GD-BERKAS", "--tanggal-opname", "2026-08-31"


def status(live: Live, nota: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(live.run("everest", "status", nota, "--json").stdout)
    return answer


def assert_posted_as_example(live: Live, nota: str) -> None:
    """Once, with a surplus of 3,000.00 and a shortage of 5,001.00."""
    (posting,) = live.postings(nota)
    assert (str(posting["total_debet"]), posting["baris_selisih"]) == ("8001.00", 2)
    assert live.books_agree([nota])
    assert status(live, nota)["posting_id"] == posting["id"]


def test_a_file_with_mistakes_is_refused_then_corrected_submitted_and_followed_to_the_books(
    live: Live, nota: str, tmp_path: Path
) -> None:
    first, second, file = item(), item(), tmp_path / "opname.csv"
    file.write_text(f"{TITLES}{first},10,12,1.500\n{second},7,5 ,2500.50\n {item()},3,x,1\n")

    refused = live.run("everest", "submit", str(file), *header(nota), "--json", check=False)
    found = [(error["baris"], error["kolom"], error["file_line"]) for error in json.loads(refused.stdout)["errors"]]
    assert refused.returncode == 1
    assert found == [(1, "harga_pokok", 2), (3, "kode_barang", 4), (3, "qty_fisik", 4)]
    assert live.rows("SELECT id FROM so_headers_staging WHERE nomer_nota = %s", nota) == []

    file.write_text(f"{TITLES}{first},10,12,1.500\n{second},7,5,2.500,50\n".replace("2.500,50", '"2.500,50"'))
    checked = live.run("everest", "submit", str(file), *header(nota), "--decimal", "id", "--check")
    assert "nothing to object to" in checked.stdout
    submitted = live.run("everest", "submit", str(file), *header(nota), "--decimal", "id")
    again = live.run("everest", "submit", str(file), *header(nota), "--decimal", "id")
    assert submitted.stdout.startswith(f"Submitted {nota} as job #")
    assert again.stdout.startswith(f"Already submitted: {nota} is job #")

    watched = live.run("everest", "status", nota, "--watch")
    assert "COMPLETED" in watched.stdout
    assert_posted_as_example(live, nota)
    assert status(live, nota)["publish_status"] == "PUBLISHED"


def test_a_document_that_posting_refused_is_replaced_and_rerun_in_one_command_and_followed_to_the_books(
    live: Live, nota: str, tmp_path: Path
) -> None:
    first, second, file = item(), item(), tmp_path / "opname.csv"
    file.write_text(f"{TITLES}{first},10,12,1500\n{second},7,,2500.50\n")
    live.run("everest", "submit", str(file), *header(nota))

    refused = live.run("everest", "status", nota, "--watch", check=False)
    assert refused.returncode == 1
    assert "baris 2, qty_fisik: belum dihitung" in refused.stdout
    job = status(live, nota)
    until("its dead letter", lambda: live.dead_letters(job["shadow_id"]), every=1)
    assert live.postings(nota) == []

    file.write_text(f"{TITLES}{first},10,12,1500\n{second},7,5,2500.50\n")
    replaced = live.run("everest", "submit", str(file), "--nota", nota, "--replace", "--rerun", "--reason", "dihitung")
    assert "It runs again as" in replaced.stdout

    watched = live.run("everest", "status", nota, "--watch")
    assert "COMPLETED" in watched.stdout
    assert_posted_as_example(live, nota)
    live.run("ingest_consumer", "dead-letters", "settle")
    assert live.dead_letters(job["shadow_id"]) == []
    attempts = live.rows(
        "SELECT n, outcome, replaced_lines FROM posting_attempts WHERE transaksi_id = %s ORDER BY id",
        job["transaksi_id"],
    )
    kept = [json.loads(attempt["replaced_lines"]) for attempt in attempts if attempt["replaced_lines"]]
    assert [line["qty_fisik"] for line in kept[0]] == ["12.0000", None]
    assert [attempt["outcome"] for attempt in attempts][-1] == "COMPLETED"
