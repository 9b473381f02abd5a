"""A report as JSON, for programs: quantities and amounts as text, so that no reader makes a float of them."""

from __future__ import annotations

import io
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any, BinaryIO

from everest.reports.shape import Report


def write_json(report: Report, stream: BinaryIO) -> None:
    """One object: key, title, filters, columns, rows (objects, one per line), row_count, totals. Instants are WIB."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
    try:
        names = [column.name for column in report.columns]
        columns = [
            {"name": one.name, "heading": one.heading, "heading_en": one.heading_en, "kind": one.kind.value}
            for one in report.columns
        ]
        head = {
            "report": report.key,
            "title": report.title,
            "filters": {name: plain(value) for name, value in report.filters.given.items()},
            "columns": columns,
        }
        text.write(json.dumps(head, ensure_ascii=False)[:-1] + ', "rows": [')
        separator = "\n"
        for row in report.rows():
            values = dict(zip(names, map(plain, row), strict=True))
            text.write(separator + json.dumps(values, ensure_ascii=False))
            separator = ",\n"
        totals = {name: plain(value) for name, value in report.totals.items()}
        tail = {"row_count": report.row_count, "totals": totals}
        text.write("\n], " + json.dumps(tail, ensure_ascii=False)[1:] + "\n")
        text.flush()
    finally:
        text.detach()


def plain(value: Any) -> Any:
    """A value as JSON holds it without loss."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}+07:00"
    if isinstance(value, date):
        return value.isoformat()
    return value
