"""Whatever comes in as a message or a file is taken or refused by a typed error, and never ends in another traceback.

Bounded and derandomised: the same examples on every run. Inputs are pure noise, and sound ones with a part broken.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everest.intake.files import FileDocument, FileFormat, FileRefused, Reading, read_file
from ingest_consumer.errors import DecodeError
from ingest_consumer.message import Message, decode

EXAMPLES = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
HEADER = {"nomer_nota": "SO-1", "gudang_kode": "GD-A", "tanggal_opname": "2026-08-31"}
CSV = b'kode_barang,qty_sistem,qty_fisik,harga_pokok,lot\r\nBRG-A,10,12,1500.00,L1\n"B""RG",7,5,2500.50,\n'
JSON = json.dumps({**HEADER, "baris": [{"kode_barang": "A", "qty_sistem": "1", "qty_fisik": "2", "harga_pokok": "3"}]})
MESSAGE = (
    b'{"v":1,"workflow":"opname_posting","workflow_id":7,"dag_id":"opname_posting","dag_run_id":"a__1__2__1","n":1,'
)
MESSAGE += b'"transaksi_id":1,"shadow_id":2,"nota":"SO-1"}'

KEYS = ("v", "n", "shadow_id", "transaksi_id", "workflow_id", "dag_id", "dag_run_id", "workflow", "nota", "x")
LINE_KEYS = ("baris", "lines", "kode_barang", "qty_sistem", "qty_fisik", "harga_pokok", "lot", *HEADER)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**30, max_value=10**40)
    | st.floats()
    | st.text(max_size=40)
    | st.sampled_from(
        ["1e999999", "-0", "NaN", "１２", "1.000", "1,5", "2026-02-30", "=1+1", "\0", "\ud800", "9" * 400]
    )
)


def json_of(keys: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """JSON of any shape that likes our own keys."""
    named = st.sampled_from(keys) | st.text(max_size=8)
    values = st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(named, inner, max_size=8), max_leaves=20
    )
    return values.map(lambda value: json.dumps(value).encode())


@st.composite
def broken(draw: st.DrawFn, sound: bytes) -> bytes:
    """A sound input with a few bytes changed, taken out or put in."""
    data = bytearray(sound)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(("change", "remove", "insert", "repeat"))):
            case "change" if at < len(data):
                data[at] = draw(st.integers(0, 255))
            case "remove":
                del data[at : at + draw(st.integers(1, 20))]
            case "insert":
                data[at:at] = draw(
                    st.binary(max_size=12) | st.sampled_from([b'"', b"\r", b"\0", b"\xef\xbb\xbf", b"[" * 2000])
                )
            case _:
                data[at:at] = data[: draw(st.integers(0, 30))]
    return bytes(data)


@EXAMPLES
@given(st.binary(max_size=300) | json_of(KEYS) | broken(MESSAGE))
def test_a_message_is_read_or_refused(body: bytes) -> None:
    try:
        message = decode(body)
    except DecodeError:
        return
    assert isinstance(message, Message)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def read(folder: Path, content: bytes, file_format: FileFormat, **options: Any) -> None:
    file = folder / f"count.{file_format}"
    file.write_bytes(content)
    try:
        found: FileDocument | FileRefused = read_file(file, Reading(header=HEADER, file_format=file_format, **options))
    except FileRefused as refused:
        found = refused
    if isinstance(found, FileRefused):
        assert found.problems and all(str(problem) for problem in found.problems), (
            "a refusal without a reason helps nobody"
        )
    else:
        assert found.submission.lines


@EXAMPLES
@given(
    st.binary(max_size=300) | broken(CSV),
    st.sampled_from([None, "en", "id"]),
    st.sampled_from([None, ",", ";", "\t"]),
)
def test_a_csv_file_is_read_or_refused_with_reasons(
    folder: Path, content: bytes, decimal: Any, delimiter: str | None
) -> None:
    read(folder, content, "csv", decimal=decimal, delimiter=delimiter)


@EXAMPLES
@given(st.binary(max_size=300) | json_of(LINE_KEYS) | broken(JSON.encode()), st.sampled_from([None, "en", "id"]))
def test_a_json_file_is_read_or_refused_with_reasons(folder: Path, content: bytes, decimal: Any) -> None:
    read(folder, content, "json", decimal=decimal)
