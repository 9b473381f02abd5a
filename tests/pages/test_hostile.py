"""Hostile input on every page that takes any: shown as text or refused with a sentence, never an error of ours."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import openpyxl
import pytest

from tests import builders
from tests.builders import Line
from tests.pages.conftest import Be
from tests.pages.forms import HEADER
from tests.pages.hostile import HOSTILE, flaws
from tests.pages.posted import csv_rows, xlsx_rows
from tests.pages.routes import ROUTES, address, doors
from tests.pages.standing import failed

MOST_BYTES = 60_000
"""Of an address: servers and clients stop at 64 KiB."""
NAMES = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE.keys())

# Every name that a page reads from its address; a test finds those that are missing here.
PARAMETERS = """
    status nota gudang since until min max stuck before tab sort skip search variance after lang done report
    gudang_kode kode_barang nomer_nota new workflow lot order flawed line alasan kelompok others parent runs
""".split()  # noqa: SIM905 - a list of this length is a paragraph

FIELDS = """
    reason name payload answer key step visit nomer_nota gudang_kode tanggal_opname tanggal_posting decimal pasted
    submit_token shadow_id question decision value signal nota
""".split()  # noqa: SIM905


def quoted(name: str) -> str:
    """As a browser that sends anything would; no longer than a server reads."""
    text = quote_from_bytes(name.encode("utf-8", "surrogatepass"), safe="")
    return text if len(text) <= MOST_BYTES else text[: MOST_BYTES // 12 * 12]


def queries(name: str, path: str) -> Iterator[str]:
    """All parameters, in as many addresses as it takes."""
    value = quoted(name)
    at_once = max(MOST_BYTES // (len(value) + 20), 1)
    wanted = [parameter for parameter in PARAMETERS if f"{parameter}=" not in path]
    for first in range(0, len(wanted), at_once):
        yield "&".join(f"{parameter}={value}" for parameter in wanted[first : first + at_once])


@NAMES
def test_every_address_takes_hostile_parameters(browser: Be, connection: Any, name: str) -> None:
    document = failed(connection)
    client = browser("engineer")
    paths = {route.path for method, route in doors() if method == "GET" and "{" not in route.path}
    one = f"/documents/{document.shadow_id}"
    paths |= {one, f"{one}?tab=lines", f"{one}?tab=card", f"{one}/preview", "/reports?report=variance&gudang_kode=GD-A"}
    for path in sorted(paths - {"/submit/template.csv"}):
        for query in queries(name, path):
            answer = client.get(path + ("&" if "?" in path else "?") + query)
            assert answer.status_code in (200, 303, 404, 422), path
            assert flaws(answer.text) == [], path


@NAMES
def test_every_form_takes_hostile_fields(browser: Be, connection: Any, name: str) -> None:
    """Whatever the form asks for, all of it is hostile."""
    document = failed(connection)
    fields = FIELDS
    sent = {field: name.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for field in fields}
    writing = [route for method, route in doors() if method == "POST"]
    assert writing
    for route in writing:
        for path in {address(route), route.path.replace("{shadow_id}", str(document.shadow_id))} - {""}:
            if "{" in path:
                continue
            answer = browser("engineer").submit(path, **sent)
            assert answer.status_code in (200, 303, 400, 403, 404, 409, 413, 422), path
            assert flaws(answer.text) == [], path


@NAMES
def test_addresses_that_are_none_are_not_found(browser: Be, name: str) -> None:
    client = browser("engineer")
    for route in ROUTES:
        path = re.sub(r"\{[^}]*\}", quoted(name)[:9_000].rsplit("%", 1)[0], route.path)  # type: ignore[attr-defined]
        if path != route.path:  # type: ignore[attr-defined]
            answer = client.get(path)
            assert answer.status_code in (404, 405, 422), path[:100]
            assert flaws(answer.text) == []


@NAMES
@pytest.mark.parametrize("kind", ["csv", "xlsx", "pasted"])
def test_a_hostile_file_is_refused_or_stored_exactly(browser: Be, connection: Any, kind: str, name: str) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()
    client = browser("warehouse")
    code = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if kind == "xlsx":
        code = re.sub(r"[\0-\x1f]", "?", code)  # no XML holds them
    row = [code, "10", "12", "1500"]
    text = io.StringIO()
    csv.writer(text, delimiter=";").writerows([["kode_barang", "qty_sistem", "qty_fisik", "harga_pokok"], row])
    if kind == "xlsx":
        book = openpyxl.Workbook()
        sheet: Any = book.active
        sheet.append(["kode_barang", "qty_sistem", "qty_fisik", "harga_pokok"])
        sheet.append([code, 10, 12, 1500])
        stream = io.BytesIO()
        book.save(stream)
        answer = client.submit(
            "/submit",
            files={"file": (f"{name[:50].encode('ascii', 'replace').decode()}.xlsx", stream.getvalue(), "x")},
            submit_token="t",
            **HEADER,
        )
    elif kind == "csv":
        answer = client.submit(
            "/submit", files={"file": ("a.csv", text.getvalue().encode(), "x")}, submit_token="t", **HEADER
        )
    else:
        answer = client.submit("/submit", pasted=text.getvalue(), submit_token="t", **HEADER)
    assert answer.status_code in (303, 422) and flaws(answer.text) == []
    connection.commit()
    stored = builders.rows(connection, "SELECT kode_barang FROM so_details_staging")
    assert bool(stored) == (answer.status_code == 303)
    if stored:
        assert stored[0]["kode_barang"] == row[0]
        assert all(flaws(client.get(path).text) == [] for path in ("/drafts", answer.headers["location"]))


@NAMES
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_file_may_be_called_anything(browser: Be, name: str, suffix: str) -> None:
    """Its name is asked for its ending and nothing else; what it holds is refused here."""
    called = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    files = {"file": (f"{called}.{suffix}", b"kode_barang\nA\n", "x")}
    answer = browser("warehouse").submit("/submit", files=files, submit_token="t", **HEADER)
    assert answer.status_code in (400, 422) and flaws(answer.text) == []
    assert called[:20] not in answer.text or called[:20] in "xxxxxxxxxxxxxxxxxxxx"


@NAMES
def test_a_download_has_one_plain_name(browser: Be, connection: Any, name: str) -> None:
    nota = name.encode("utf-8", "surrogatepass").decode("utf-8", "replace")[:100]
    document = failed(connection, nomer_nota=nota)
    client = browser("finance")
    for part in ("lines", "problems", "history"):
        for form in ("csv", "xlsx"):
            answer = client.get(f"/documents/{document.shadow_id}/{part}.{form}")
            assert answer.status_code == 200
            said = answer.headers.get_list("content-disposition")
            assert len(said) == 1
            assert re.fullmatch(rf'attachment; filename="{part}-?[A-Za-z0-9._-]*\.{form}"', said[0]), said


def test_marks_that_turn_the_direction_of_writing_stay_in_their_cell(browser: Be, connection: Any) -> None:
    """A file holds what is stored; the cells beside it are theirs."""
    nota, item = "SO-\u202egnp.exe\u2066", "BRG\u202e;1,5"
    document = failed(connection, nomer_nota=nota, lines=[Line(item, "10", "12", "1500")])
    client = browser("finance")
    for form, rows_of in (("csv", csv_rows), ("xlsx", xlsx_rows)):
        (row,) = rows_of(client.get(f"/documents.{form}").content)[:1]
        assert (row["Nota"], row["Status"], str(row["Nomor pekerjaan"])) == (nota, "FAILED", str(document.shadow_id))
        row = rows_of(client.get(f"/documents/{document.shadow_id}/lines.{form}").content)[0]
        assert row["Kode barang"] == item and str(row["Selisih"]).startswith("2")


def test_no_parameter_of_a_page_is_missing_above() -> None:
    from everest.pages import view

    source = "".join(file.read_text(encoding="utf-8") for file in view.HERE.glob("*.py"))
    read = set(re.findall(r"""params\.\w+\(request, "(\w+)\"""", source)) | set(
        re.findall(r"""query_params\.get\("(\w+)\"""", source)
    )
    assert read <= set(PARAMETERS)
