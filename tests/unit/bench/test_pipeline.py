"""How the benchmark learns when a job was acknowledged: from the consumer's own log."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import bursts, documents
from bench.pipeline import ConsumerLog

ACKED = "2026-12-01 23:22:{second:02},909 INFO    worker 1: acked: shadow row {row} is COMPLETED\n"


def test_the_last_acknowledgement_of_ours_counts_and_older_lines_do_not(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text(ACKED.format(second=1, row=7))
    watched = ConsumerLog(log)
    with log.open("a") as file:
        file.write(ACKED.format(second=12, row=8) + ACKED.format(second=10, row=7) + ACKED.format(second=59, row=99))

    last = watched.acked({7, 8})

    assert last.tzinfo is UTC
    assert last == datetime(2026, 12, 1, 23, 22, 12, 909_000).astimezone(UTC)


def test_a_refused_document_ends_the_benchmark_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text("")
    watched = ConsumerLog(log)
    log.write_text("2026-12-01 23:18:21,903 WARNING worker 3: dead-lettered: shadow row 8 is FAILED: gudang tutup\n")

    with pytest.raises(RuntimeError, match="gudang tutup"):
        watched.acked({8})


def test_a_log_that_the_manager_began_anew_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "consumer.log"
    log.write_text("an old line\n" * 100)
    watched = ConsumerLog(log)
    log.write_text(ACKED.format(second=3, row=5))

    assert watched.acked({5}).second == 3


def test_the_same_seed_is_the_same_document_and_the_share_of_variances_is_kept() -> None:
    every, half = documents.lines(400, seed=1), documents.lines(400, seed=1, variance_share=0.5)

    assert documents.lines(400, seed=1) == every
    assert len({line.kode_barang for line in every}) == 400
    assert all(line.qty_sistem != line.qty_fisik for line in every)
    assert 120 < sum(line.qty_sistem != line.qty_fisik for line in half) < 280


def test_documents_apart_share_no_warehouse_and_are_of_the_one_that_was_counted() -> None:
    ones = [documents.submission("N", documents.lines(5, seed=1, warehouses=(where,))) for where in documents.APART]
    shared = documents.submission("N", documents.lines(5, seed=1))

    assert [{line.gudang_kode for line in one.lines} for one in ones] == [{where} for where in documents.APART]
    assert [one.gudang_kode for one in ones] == list(documents.APART)
    assert (shared.gudang_kode, {line.gudang_kode for line in shared.lines}) == ("BENCH-1", set(documents.WAREHOUSES))


def test_large_documents_are_judged_once_and_reported_in_every_other_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, bool]] = []

    def send(count: int, lines: int = 5, dag: str = "opname_posting", apart: bool = False) -> float:
        if lines == bursts.DOCUMENT_LINES:
            taken.append((dag, apart))
        return 2.0 if dag == bursts.FUSED_DAG else 3.0 if apart else 4.0

    core = SimpleNamespace(
        post=lambda lines: None, load_rows=lambda: 20_000, load=lambda: SimpleNamespace(seconds=0.1), close=lambda: None
    )
    monkeypatch.setattr(bursts, "Core", lambda server: core)
    monkeypatch.setattr(bursts, "with_dags", lambda *_: nullcontext())
    monkeypatch.setattr(bursts, "Pipeline", lambda *_: SimpleNamespace(documents=send))
    nothing: Any = None

    large, fused, apart = bursts.p13(nothing, nothing, nothing, smoke=False)

    assert [(one.id, one.must, one.value) for one in (large, fused, apart)] == [
        ("P13", 0.3, 30_000.0),
        ("P13-fused", None, 60_000.0),
        ("P13-warehouses", None, 40_000.0),
    ]
    assert fused.note.startswith("2.00 times P13")
    assert apart.note.startswith("1.33 times P13")
    assert taken[:3] == [("opname_posting", False), (bursts.FUSED_DAG, False), ("opname_posting", True)]
    assert taken[3] == (bursts.FUSED_DAG, False), "each is first in turn"
    assert len(taken) == 3 * bursts.PAIRS
