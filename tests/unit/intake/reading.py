"""A file as a test writes it, and what reading it comes to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from everest.intake.cells import FileProblem
from everest.intake.files import FileDocument, FileRefused, Reading, read_file

HEADER = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}

COLUMNS = "kode_barang,lot,gudang_kode,satuan,qty_sistem,qty_fisik,harga_pokok,alasan"

Write = Callable[..., Path]


def read(path: Path, header: dict[str, str | None] | None = None, **options: Any) -> FileDocument:
    return read_file(path, Reading(HEADER if header is None else header, **options))


def problems(path: Path, header: dict[str, str | None] | None = None, **options: Any) -> list[FileProblem]:
    with pytest.raises(FileRefused) as refused:
        read(path, header, **options)
    return list(refused.value.problems)


def places(found: list[FileProblem]) -> list[tuple[int | None, str, int | None]]:
    return [(problem.baris, problem.kolom, problem.file_line) for problem in found]
