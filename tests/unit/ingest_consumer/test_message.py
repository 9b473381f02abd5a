"""The message: what decodes, what does not and why, and when a message and a row belong together."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_consumer.errors import DecodeError
from ingest_consumer.message import DEPTH_MAX, MAX_BODY_BYTES, MAX_ID, NOTA_KEPT, announces_same_run, decode, mismatch
from ingest_consumer.shadow import Shadow, outbox_body
from tests.broken_messages import broken_bodies


def row(**changes: Any) -> Shadow:
    fields: dict[str, Any] = {
        "id": 7,
        "transaksi_id": 1001,
        "nomer_nota": "X",
        "workflow_id": None,
        "publish_status": "PUBLISHED",
        "worker_status": "PENDING",
        "worker_at": None,
        "attempts": 0,
        "current_step": None,
        "response": None,
        "error_code": None,
        "error": None,
        "dag_id": None,
        "dag_run_id": None,
        "n": None,
        "dead_lettered_at": None,
        "handed_over_at": None,
        "created_at": datetime(2026, 8, 1),
        "workflow": None,
    }
    return Shadow(**(fields | changes))


def message(**fields: Any) -> Any:
    return decode(json.dumps({"transaksi_id": 1001, "shadow_id": 7} | fields).encode())


def why_refused(body: bytes, found: Shadow | None) -> str | None:
    try:
        return mismatch(decode(body), found)
    except DecodeError as error:
        return error.message if error.body == body else "the bytes were not kept"


def test_the_message_of_the_web_application_is_read_as_it_is() -> None:
    read = decode(b'{"transaksi_id":"1001","shadow_id":"7","nota":"X"}')

    assert (read.transaksi_id, read.shadow_id, read.nota) == (1001, 7, "X")
    assert (read.workflow, read.workflow_id, read.dag_run_id, read.n) == ("opname_posting", None, None, 1)


def test_our_own_message_survives_the_round_trip() -> None:
    body = outbox_body(
        shadow_id=7,
        workflow="opname_posting",
        workflow_id=3,
        dag_id="opname_posting",
        dag_run_id="opname_posting__1001__7__2",
        n=2,
        transaksi_id=1001,
        nota="SO/é-1",
    )
    read = decode(body.encode())

    assert (read.shadow_id, read.workflow_id, read.dag_run_id, read.n) == (7, 3, "opname_posting__1001__7__2", 2)
    assert (read.nota, read.text) == ("SO/é-1", body)


def test_a_run_that_no_workflow_row_stands_behind_yet_is_announced_with_a_null_workflow_id() -> None:
    body = outbox_body(
        shadow_id=7, workflow="opname_posting", workflow_id=None, dag_id="d", dag_run_id="r", n=2, transaksi_id=1001
    )
    assert decode(body.encode()).workflow_id is None


def test_another_workflow_needs_only_shadow_id_and_workflow_id() -> None:
    read = decode(b'{"v": 1, "workflow": "payroll", "shadow_id": 7, "workflow_id": 3}')
    assert (read.transaksi_id, read.workflow, read.workflow_id) == (None, "payroll", 3)


def test_unknown_extra_fields_are_ignored_whatever_they_hold() -> None:
    assert message(user="budi", lines=[{"a": 1.5}], total=None).shadow_id == 7


def test_of_a_nota_no_more_is_kept_than_a_log_line_should_hold() -> None:
    body = json.dumps({"transaksi_id": 1001, "shadow_id": 7, "nota": "\u202e" * 10_000})
    assert len(decode(body.encode()).nota or "") == NOTA_KEPT


@pytest.mark.parametrize("kind", ["[]", '{"a":}'])
def test_how_deep_a_message_may_go_is_the_same_wherever_it_is_read(kind: str) -> None:
    """It was what the stack left over: what the consumer took could be too deep for `dead-letters`."""

    def nested(depth: int) -> bytes:
        extra = kind[:-1] * (depth - 1) + "0" + kind[-1] * (depth - 1)
        return f'{{"transaksi_id": 1001, "shadow_id": 7, "shut": "\\"]]}}}}", "extra": {extra}}}'.encode()

    assert decode(nested(DEPTH_MAX)).shadow_id == 7
    for depth in (DEPTH_MAX + 1, 900, 10_000):
        with pytest.raises(DecodeError, match="nested too deeply"):
            decode(nested(depth))


def test_brackets_inside_a_text_are_no_depth() -> None:
    body = json.dumps({"transaksi_id": 1001, "shadow_id": 7, "nota": '"[{\\' * 1_000})
    assert decode(body.encode()).shadow_id == 7


@pytest.mark.parametrize("nota", [5, ["x"], {"a": 1}, "\ud800"])
def test_a_nota_of_any_shape_is_no_reason_to_refuse(nota: Any) -> None:
    assert message(nota=nota).shadow_id == 7


def test_the_largest_body_and_the_largest_id_are_taken() -> None:
    body = json.dumps({"transaksi_id": MAX_ID, "shadow_id": str(MAX_ID), "pad": ""})
    body = body.replace('""', '"' + "x" * (MAX_BODY_BYTES - len(body)) + '"')

    assert len(body) == MAX_BODY_BYTES
    assert decode(body.encode()).transaksi_id == MAX_ID
    with pytest.raises(DecodeError):
        decode(body.encode() + b" ")


@pytest.mark.parametrize(("body", "reason"), broken_bodies(7))
def test_a_broken_message_is_refused_with_its_reason(body: bytes, reason: str) -> None:
    found = why_refused(body, None if b"999999999" in body else row(transaksi_id=1))
    assert found is not None
    assert reason in found
    assert len(found) < 250
    assert "\n" not in found


@pytest.mark.parametrize(
    "text",
    [
        '{"transaksi_id": 1001, "shadow_id": 7, "n": 0}',
        '{"transaksi_id": 1001, "shadow_id": 7, "n": true}',
        '{"transaksi_id": 1001, "shadow_id": 7, "n": 2147483648}',
        '{"transaksi_id": 1001, "shadow_id": 7, "dag_run_id": "a b"}',
        '{"transaksi_id": 1001, "shadow_id": 7, "dag_id": ""}',
        '{"transaksi_id": 1001, "shadow_id": 7, "dag_id": "' + "x" * 200 + '"}',
        '{"transaksi_id": 1001, "shadow_id": 7, "workflow": 5}',
        '{"workflow": "payroll", "shadow_id": 7}',
        '{"transaksi_id": ' + "1" * 5000 + ', "shadow_id": 7}',
        "[" * 50_000,
    ],
)
def test_what_could_confuse_a_reader_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        decode(text.encode())


def test_what_stands_twice_within_an_extra_field_is_ignored_with_it() -> None:
    read = decode(
        b'{"a": {"b": 1, "b": 2}, "transaksi_id": 1001, "shadow_id": 7, "c": [{"shadow_id": 1, "shadow_id": 2}]}'
    )

    assert (read.transaksi_id, read.shadow_id) == (1001, 7)


@given(st.binary(max_size=200))
def test_no_bytes_whatsoever_raise_anything_but_a_decode_error(body: bytes) -> None:
    assert why_refused(body, row()) != ""


SCALARS = st.none() | st.booleans() | st.floats() | st.integers() | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_no_json_value_as_an_id_is_taken_unless_it_is_a_bigint(value: Any) -> None:
    try:
        taken = decode(json.dumps({"transaksi_id": value, "shadow_id": 7}).encode()).transaksi_id
    except DecodeError:
        return
    assert not isinstance(value, bool | float)
    assert taken == int(value)
    assert 1 <= int(value) <= MAX_ID


def test_a_message_belongs_to_a_row_of_the_same_document() -> None:
    assert mismatch(message(), row()) is None
    assert mismatch(message(workflow_id=3), row(workflow_id=3, workflow="opname_posting")) is None
    assert "is of workflow_id 3" in str(mismatch(message(workflow_id=4), row(workflow_id=3, workflow="opname_posting")))
    assert "is of workflow_id None" in str(mismatch(message(workflow_id=4), row()))


def test_a_workflow_is_known_when_the_row_is_linked_to_a_run_of_it() -> None:
    payroll = decode(b'{"workflow": "payroll", "workflow_id": 3, "shadow_id": 7}')

    assert mismatch(payroll, row(transaksi_id=None, workflow_id=3, workflow="payroll")) is None
    assert "unknown workflow 'payroll'" in str(mismatch(payroll, row(workflow_id=3, workflow="opname_posting")))
    assert "unknown workflow" in str(mismatch(message(), row(workflow_id=3, workflow="payroll")))
    assert "unknown DAG 'evil'" in str(mismatch(message(dag_id="evil"), row()))


def test_ownership_is_decided_by_the_run_id_and_only_without_one_by_n() -> None:
    announced = row(dag_run_id="opname_posting__1001__7__2", n=2)

    assert announces_same_run(message(dag_run_id="opname_posting__1001__7__2", n=2), announced)
    assert not announces_same_run(message(dag_run_id="opname_posting__1001__8__2", n=2), announced)
    assert announces_same_run(message(n=2), announced)
    assert not announces_same_run(message(), announced)
    assert announces_same_run(message(), row())
    assert not announces_same_run(message(n=2), row())
