"""Reports as files: written by `everest.reports`, handed over from a file that vanishes by itself."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from typing import IO, Literal

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from everest import reports
from everest.pages import store
from everest.pages.words import Language
from everest.reports.csv_file import write_csv
from everest.reports.xlsx_file import write_xlsx

Format = Literal["csv", "xlsx"]
TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
IN_MEMORY_BYTES = 8 * 1024 * 1024
PIECE_BYTES = 256 * 1024


def download(
    request: Request, key: str, filters: reports.Filters, form: Format, language: Language, name: str | None = None
) -> Response:
    """The whole report as one file. name: what it is called, without its form; by its filters if not given."""
    name = name or "-".join(filter(None, [key, filters.nomer_nota, str(filters.since or ""), str(filters.until or "")]))
    with store.transaction(request) as tx, reports.opened(tx, key, filters) as report:
        return as_file(report, form, language, name)


def as_file(report: reports.Report, form: Format, language: Language, name: str) -> Response:
    """It is complete before the first byte leaves: a file that stops in the middle would look like a shorter report."""
    file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES)  # noqa: SIM115 - closed by `_pieces`
    try:
        if form == "csv":
            write_csv(report, file, language)  # type: ignore[arg-type]
        else:
            write_xlsx(report, file, language)  # type: ignore[arg-type]
        size = file.tell() if form == "csv" else file.seek(0, 2)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    headers = {"Content-Disposition": f'attachment; filename="{safe_name(name)}.{form}"', "Content-Length": str(size)}
    return StreamingResponse(_pieces(file), media_type=TYPES[form], headers=headers)


def safe_name(text: str) -> str:
    """A nota may hold anything; the name of a file may not."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._")[:80] or "laporan"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece
