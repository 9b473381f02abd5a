"""Counted lines as a form brings them, a file or pasted rows: what Kirim opname and a correction have in common.

A large file takes seconds of CPU and many megabytes while it is read and judged, a hostile one more: no more than two
are at work, the others wait their turn (`turns`), and whoever waits too long gets their form back as they sent it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from everest.intake.cells import FileProblem
from everest.intake.files import FORMATS, FileDocument, Reading, read_file
from everest.pages import downloads, lists, view
from everest.pages.guard import form
from everest.pages.turns import Turns

DECIMALS = ("id", "en")
SUFFIXES = tuple(FORMATS)
PROBLEMS_SHOWN = 500
"""On the page; the others are in a file."""
PIECE = 1024 * 1024
TURNS = Turns(at_once=2, wait_s=30)
"""Of reading an upload and judging it."""


def given_in(request: Request, *names: str) -> dict[str, str]:
    """The text fields of the form, '' for one that did not come. What was pasted stays as it is: a blank at its edge is
    a cell, or part of a code."""
    given = {name: str(form(request).get(name, "")) for name in (*names, "decimal", "pasted")}
    return {name: text if name == "pasted" else text.strip() for name, text in given.items()}


def has_file(request: Request) -> bool:
    upload = form(request).get("file")
    return isinstance(upload, UploadFile) and bool(upload.filename)


def read_upload(
    request: Request, given: Mapping[str, str], header: Mapping[str, str | None], is_correction: bool = False
) -> FileDocument:
    """The upload, else what was pasted. header: fields given beside the lines. Raises FileRefused, FileUnreadable."""
    upload: Any = form(request).get("file")
    is_upload = has_file(request)
    suffix = Path(upload.filename).suffix.lower() if is_upload else ".csv"
    decimal: Any = given["decimal"] if given["decimal"] in DECIMALS else None
    with tempfile.NamedTemporaryFile(suffix=suffix if suffix in SUFFIXES else ".csv") as file:
        if is_upload:
            while piece := upload.file.read(PIECE):
                file.write(piece)
        else:
            file.write(given["pasted"].encode("utf-8", "surrogatepass"))
        file.flush()
        return read_file(Path(file.name), Reading(header, None, decimal, is_correction=is_correction))


def problems_file(request: Request, found: list[FileProblem], as_form: downloads.Format, name: str) -> Response:
    """All of them, in the reader's language."""
    language = view.language_of(request)
    return downloads.as_file(lists.file_problems(found, language), as_form, language, f"problems-{name}")
