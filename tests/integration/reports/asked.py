"""Reports of postings, as a test asks for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from everest import reports
from tests import builders

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB

Post = Callable[..., builders.Document]

Reverse = Callable[[str], str]


def amounts(report: reports.Report) -> tuple[Any, ...]:
    return tuple(report.totals[name] for name in ("nilai_lebih", "nilai_kurang", "nilai_bersih"))
