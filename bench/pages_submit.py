"""PAGES-submit: a count of 20,000 lines handed in on Kirim opname, by file or pasted, until its answer is shown.

Each one is another document, and is withdrawn again outside the measured time: what waits for authorisation is the same
before every run.
"""

from __future__ import annotations

import io
import re
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx
import xlsxwriter

from bench import documents
from bench.measure import Result, Run, percentile, spread
from bench.pages_data import Filled, number_of_lines
from everest.intake.submission import Line
from everest.settings import MysqlUrl
from everest.store import database as store

MUST_S, AIM_S = 1.0, 0.5
COLUMNS = ("kode_barang", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok")
Sent = tuple[dict[str, str], Mapping[str, Any] | None]
"""Fields and files of a form."""


@dataclass(frozen=True)
class Way:
    """One way to hand in lines. runs: at most so many; is_promised: judged, not only reported."""

    id: str
    what: str
    form: Callable[[tuple[Line, ...]], Sent]
    runs: int
    is_promised: bool


def submits(client: httpx.Client, token: str, url: MysqlUrl, filled: Filled, lines: int, runs: int) -> list[Result]:
    return [_measured(way, client, token, url, filled, lines, min(runs, way.runs)) for way in WAYS]


def _measured(
    way: Way, client: httpx.Client, token: str, url: MysqlUrl, filled: Filled, lines: int, runs: int
) -> Result:
    headers = {"x-person": "warehouse", "origin": str(client.base_url).rstrip("/")}
    seconds = []
    for number in range(runs + 1):
        fields, files = way.form(documents.lines(lines, 1_000 + number))
        fields |= {
            "token": token,
            "submit_token": f"bench-{way.id}-{number}",
            "nomer_nota": f"BENCH-{way.id}-{number}",
            "gudang_kode": documents.WAREHOUSES[0],
            "tanggal_opname": f"{filled.today:%Y-%m-%d}",
            "decimal": "en",
        }
        # Without a file, too, browsers send the form in parts.
        parts = files or {"file": ("", b"")}
        began = time.perf_counter()
        answer = client.post("/submit", data=fields, files=parts, headers=headers, follow_redirects=True)
        if number or runs == 1:
            seconds.append(time.perf_counter() - began)
        if answer.status_code != 200 or (found := re.search(r"new=(\d+)", str(answer.url))) is None:
            raise RuntimeError(f"the submit was answered with {answer.status_code}")
        with closing(store.connect(url)) as conn:
            if number_of_lines(conn, int(found[1])) != lines:
                raise RuntimeError(f"BENCH-{way.id}-{number} is not whole")
        away = client.post(
            f"/drafts/{found[1]}/withdraw", data={"token": token, "reason": "benchmark"}, headers=headers
        )
        if away.status_code != 303:
            raise RuntimeError(f"the draft was not withdrawn: {away.status_code}")
    p95 = percentile(seconds, 0.95)
    return Result(
        f"PAGES-{way.id}",
        f"{way.what} of {lines:,} lines on Kirim opname, until the answer is shown, p95 of {len(seconds)}",
        "s",
        "absolute",
        p95,
        None,
        p95,
        must=MUST_S if way.is_promised else None,
        aim=AIM_S if way.is_promised else None,
        runs=tuple(map(Run, seconds)),
        note=f"median {statistics.median(seconds):.3f} s ({spread(seconds)})",
    )


def _text(counted: tuple[Line, ...]) -> str:
    return "\n".join((";".join(COLUMNS), *(";".join(map(str, _cells(one))) for one in counted)))


def _cells(line: Line) -> list[Any]:
    return [getattr(line, name) for name in COLUMNS]


def _csv(counted: tuple[Line, ...]) -> Sent:
    return {}, {"file": ("hitung.csv", _text(counted).encode(), "text/csv")}


def _pasted(counted: tuple[Line, ...]) -> Sent:
    return {"pasted": _text(counted)}, None


def _xlsx(counted: tuple[Line, ...]) -> Sent:
    """Codes as text, numbers as a spreadsheet holds them."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, COLUMNS)
        for number, line in enumerate(counted, start=1):
            sheet.write_row(number, 0, _cells(line))
    return {}, {"file": ("hitung.xlsx", content.getvalue(), "application/octet-stream")}


WAYS = (
    Way("submit", "a CSV file", _csv, 20, True),
    Way("submit-paste", "rows pasted", _pasted, 20, True),
    Way("submit-xlsx", "a workbook", _xlsx, 5, True),
)
