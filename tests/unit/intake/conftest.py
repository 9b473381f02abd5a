"""A file of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.intake.reading import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str | bytes, name: str = "opname.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
