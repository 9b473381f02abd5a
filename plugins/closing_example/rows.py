"""The closing's tables, behind four functions: a test in memory replaces these and nothing else.

`tx` is `step.tx`: what is written on its connection commits with the step's record, exactly once.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

from everest.store.database import load_queries

_QUERIES = load_queries(Path(__file__).with_name("queries.sql"))


def active_warehouses(tx: Any) -> list[str]:
    return [row["gudang_kode"] for row in _QUERIES.active_warehouses(tx.conn)]


def open_documents(tx: Any, warehouse: str, first_day: date, next_month: date) -> int:
    """Stock counts of the month that are not in the books yet."""
    return int(_QUERIES.open_documents(tx.conn, gudang_kode=warehouse, first_day=first_day, next_month=next_month))


def movements(tx: Any, warehouse: str, first_day: date, next_month: date) -> int:
    """Rows of the stock card in the month."""
    return int(_QUERIES.movements(tx.conn, gudang_kode=warehouse, first_day=first_day, next_month=next_month))


def note(tx: Any, action: str, workflow_id: int, reason: str, detail: dict[str, Any]) -> None:
    """One line about what the closing did."""
    text = json.dumps(detail, ensure_ascii=False, default=str)
    _QUERIES.note(tx.conn, action=action, workflow_id=workflow_id, reason=reason, detail=text)
