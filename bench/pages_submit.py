"""PAGES-submit: a count of 20,000 lines handed in on Kirim opname, by file or pasted, until its answer is shown.

Each one is another document, and is withdrawn again outside the measured time: what waits for authorisation is the same
before every run. PAGES-mistakes: the same with a mistake in each line, until the page has the first of them and says
how many there are, or the file has all.
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
from everest.pages.uploads import PROBLEMS_SHOWN
from everest.settings import MysqlUrl
from everest.store import database as store

MUST_S, AIM_S = 1.0, 0.5
COLUMNS = ("kode_barang", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok")
Sent = tuple[dict[str, str], Mapping[str, Any] | None]
"""Fields and files of a form."""
Row = list[Any]


@dataclass(frozen=True)
class Way:
    """One way to hand in lines. runs: at most so many; is_promised: judged, not only reported. mistake: what is done to
    the cells of each line. path: whom the form is sent to."""

    id: str
    what: str
    form: Callable[[list[Row]], Sent]
    runs: int
    is_promised: bool
    mistake: Callable[[Row], Row] | None = None
    path: str = "/submit"


def submits(client: httpx.Client, token: str, url: MysqlUrl, filled: Filled, lines: int, runs: int) -> list[Result]:
    return [_measured(way, client, token, url, filled, lines, min(runs, way.runs)) for way in WAYS]


def _measured(
    way: Way, client: httpx.Client, token: str, url: MysqlUrl, filled: Filled, lines: int, runs: int
) -> Result:
    headers = {"x-person": "warehouse", "origin": str(client.base_url).rstrip("/")}
    seconds = []
    for number in range(runs + 1):
        cells = [[getattr(line, name) for name in COLUMNS] for line in documents.lines(lines, 1_000 + number)]
        fields, files = way.form(cells if way.mistake is None else [way.mistake(row) for row in cells])
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
        answer = client.post(way.path, data=fields, files=parts, headers=headers, follow_redirects=True)
        if number or runs == 1:
            seconds.append(time.perf_counter() - began)
        if way.mistake is not None:
            _check_all_are_told(way, answer, lines)
            continue
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


def _check_all_are_told(way: Way, answer: httpx.Response, lines: int) -> None:
    """The page has the first ones and the number of all, the file has all."""
    if way.path == "/submit":
        told = answer.status_code == 422 and f"{lines:,}".replace(",", ".") in answer.text
        told = told and answer.text.count('class="text"') == min(lines, PROBLEMS_SHOWN)
    else:
        told = answer.status_code == 200 and answer.text.count("\n") == lines + 1
    if not told:
        raise RuntimeError(f"{way.id}: {lines} mistakes were answered with {answer.status_code}")


def _text(rows: list[Row]) -> str:
    return "\n".join((";".join(COLUMNS), *(";".join(map(str, row)) for row in rows)))


def _csv(rows: list[Row]) -> Sent:
    return {}, {"file": ("hitung.csv", _text(rows).encode(), "text/csv")}


def _pasted(rows: list[Row]) -> Sent:
    return {"pasted": _text(rows)}, None


def _xlsx(rows: list[Row]) -> Sent:
    """Codes as text, numbers as a spreadsheet holds them."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, COLUMNS)
        for number, row in enumerate(rows, start=1):
            sheet.write_row(number, 0, row)
    return {}, {"file": ("hitung.xlsx", content.getvalue(), "application/octet-stream")}


def _unread(row: Row) -> Row:
    return [*row[:3], "dua", row[4]]


def _negative(row: Row) -> Row:
    return [*row[:3], -row[3] - 1, row[4]]


WAYS = (
    Way("submit", "a CSV file", _csv, 20, True),
    Way("submit-paste", "rows pasted", _pasted, 20, True),
    Way("submit-xlsx", "a workbook", _xlsx, 5, True),
    Way("mistakes", "a CSV file without a number in any line", _csv, 20, True, _unread),
    Way("mistakes-paste", "the same rows pasted", _pasted, 20, True, _unread),
    Way("mistakes-xlsx", "the same rows as a workbook", _xlsx, 5, True, _unread),
    Way("mistakes-rules", "a CSV file whose every line is refused by a rule", _csv, 20, True, _negative),
    Way("mistakes-file", "all mistakes of the CSV file as a CSV file", _csv, 5, False, _unread, "/submit/problems.csv"),
)
