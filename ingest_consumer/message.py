"""The message: ids that say which row to look at. Decoding is strict where ids are concerned and lenient elsewhere.

A foreign publisher sends {"transaksi_id", "shadow_id", "nota"}; ours adds which workflow and which DAG run it
announces. What does not decode, or names a row that is another's, is dead-lettered with the reason found here; the
same functions tell `dead-letters list` why a letter lies there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ingest_consumer.errors import DecodeError, Reason
from ingest_consumer.shadow import MAX_RUN_ID_BYTES, OPNAME_POSTING, Shadow

MAX_BODY_BYTES = 64 * 1024
MAX_ID = 2**63 - 1
"""Ids are BIGINT."""
MAX_N = 2**31 - 1
NOTA_KEPT = 200
"""Of the message's nota, which every log line about it carries; a row's has up to 100 characters."""
DEPTH_MAX = 100
"""Objects and arrays in one another. Without a limit of ours it would be what is left of Python's stack, and the
consumer would take what `dead-letters` then calls broken."""
VERSION = 1

_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.~:+-]+", re.ASCII)
_MARKS = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
"""Where strings, objects and arrays begin and end, and what is escaped."""


@dataclass(frozen=True)
class Message:
    """A decoded body. `text` is the body as it came; `n` the DAG run it announces, 1 when a foreign one is silent."""

    text: str
    shadow_id: int
    transaksi_id: int | None
    nota: str | None
    workflow: str
    workflow_id: int | None
    dag_id: str | None
    dag_run_id: str | None
    n: int


def decode(body: bytes) -> Message:
    """Raises DecodeError with a sentence and the bytes. A null field counts as absent, unknown ones are ignored."""
    if len(body) > MAX_BODY_BYTES:
        raise DecodeError(
            Reason.of(
                "broken.size",
                f"body has {len(body)} bytes, the limit is {MAX_BODY_BYTES}",
                n=len(body),
                most=MAX_BODY_BYTES,
            ),
            body,
        )
    try:
        return _message(body)
    except _Wrong as wrong:
        raise DecodeError(wrong.reason, body) from None


def mismatch(message: Message, row: Shadow | None) -> Reason | None:
    """Why nothing can be done with the message and the shadow row it names: they do not belong together, or nobody
    knows what the row says. None when all is well.

    A workflow is known when the row is linked to a run of it; a row nobody linked yet can only be a document that
    another program sent, so there only opname_posting is known.
    """
    if row is None:
        return Reason.of("broken.no_row", f"shadow row {message.shadow_id} does not exist", job=message.shadow_id)
    if message.transaksi_id is not None and message.transaksi_id != row.transaksi_id:
        return _of_another(row.id, "transaksi_id", row.transaksi_id, message.transaksi_id)
    if message.workflow_id is not None and message.workflow_id != row.workflow_id:
        return _of_another(row.id, "workflow_id", row.workflow_id, message.workflow_id)
    if message.workflow != (row.workflow or OPNAME_POSTING):
        if row.workflow is None:
            words = f"unknown workflow {message.workflow!r}: shadow row {row.id} belongs to no run yet"
            return Reason.of("broken.unknown_workflow", words, name=_shown(message.workflow), job=row.id)
        words = f"unknown workflow {message.workflow!r}: shadow row {row.id} is a {row.workflow}"
        return Reason.of(
            "broken.other_workflow", words, name=_shown(message.workflow), job=row.id, workflow=_shown(row.workflow)
        )
    if row.meant_status is None:
        status = _shown(row.worker_status)
        words = f"shadow row {row.id} has the status {status}, which is none of ours"
        return Reason.of("broken.status", words, job=row.id, found=status)
    if row.dag_id is None and message.dag_id not in (None, OPNAME_POSTING):
        words = f"unknown DAG {message.dag_id!r}: shadow row {row.id} belongs to no run yet"
        return Reason.of("broken.unknown_dag", words, name=_shown(message.dag_id), job=row.id)
    return None


def _of_another(shadow_id: int, name: str, found: int | None, told: int) -> Reason:
    words = f"shadow row {shadow_id} is of {name} {found}, the message says {told}"
    return Reason.of("broken.other_number", words, job=shadow_id, name=name, found=found, told=told)


def announces_same_run(message: Message, row: Shadow) -> bool:
    """Whether the row stands at the DAG run the message announces. A row without any is at the foreign run 1."""
    if row.dag_run_id is None or message.dag_run_id is None:
        return message.n == (row.n or 1)
    return message.dag_run_id == row.dag_run_id


def known_ids(message: Message, row: Shadow | None) -> dict[str, Any]:
    """Of its job, for the log: the row's own, as far as it is this message's row."""
    said = {"shadow_id": message.shadow_id, "transaksi_id": message.transaksi_id, "nota": message.nota}
    if row is None or mismatch(message, row):
        return {**said, "dag_run_id": message.dag_run_id, "n": message.n}
    return {
        "shadow_id": row.id,
        "transaksi_id": row.transaksi_id,
        "nota": row.nomer_nota,
        "workflow_id": row.workflow_id,
        "dag_run_id": row.dag_run_id or message.dag_run_id,
        "n": row.n or message.n,
    }


class _Wrong(ValueError):
    def __init__(self, key: str, words: str, **values: Any) -> None:
        super().__init__(words)
        self.reason = Reason.of(f"broken.{key}", words, **values)


def _message(body: bytes) -> Message:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Wrong("not_utf8", f"not UTF-8 text (byte {error.start})", at=error.start) from None
    if _depth(text) > DEPTH_MAX:
        raise _Wrong("too_deep", "not JSON that we read: nested too deeply")
    try:
        fields = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except _Wrong:
        raise
    except ValueError as error:  # JSONDecodeError, and integers beyond Python's own limit
        raise _Wrong("not_json", f"not JSON: {error}", at=getattr(error, "pos", 0)) from None
    if not isinstance(fields, _Object):
        raise _Wrong("no_object", f"not a JSON object but {_kind(fields)}", kind=_json_kind(fields))
    if fields.twice is not None:
        raise _Wrong("twice", f"the key {_shown(fields.twice)} stands twice", name=_shown(fields.twice))

    version = fields.get("v")
    if version is not None and (type(version) is not int or version != VERSION):
        raise _Wrong(
            "version", f"unknown version {_shown(version)}, we read {VERSION}", found=_shown(version), ours=VERSION
        )
    workflow = _name(fields, "workflow") or OPNAME_POSTING
    shadow_id = _id(fields, "shadow_id", needed=True)
    transaksi_id = _id(fields, "transaksi_id", needed=workflow == OPNAME_POSTING)
    workflow_id = _id(fields, "workflow_id", needed=workflow != OPNAME_POSTING)
    assert shadow_id is not None
    n = fields.get("n")
    if n is not None and (type(n) is not int or not 1 <= n <= MAX_N):
        raise _Wrong("number", f"n is {_shown(n)}, must be a whole number from 1", name="n", found=_shown(n))
    nota = fields.get("nota")
    return Message(
        text=text,
        shadow_id=shadow_id,
        transaksi_id=transaksi_id,
        # informational only: the row decides, so a nota of any shape is no reason to refuse
        nota=nota if nota is None else nota[:NOTA_KEPT] if isinstance(nota, str) else _shown(nota),
        workflow=workflow,
        workflow_id=workflow_id,
        dag_id=_name(fields, "dag_id"),
        dag_run_id=_name(fields, "dag_run_id"),
        n=1 if n is None else n,
    )


def _depth(text: str) -> int:
    """How deep it goes, in one pass; of text that is no JSON, anything."""
    depth = deepest = 0
    is_in_string = False
    for mark in _MARKS.findall(text):
        if mark == '"':
            is_in_string = not is_in_string
        elif mark in "[{" and not is_in_string:
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}" and not is_in_string:
            depth -= 1
    return deepest


def _id(fields: dict[str, Any], key: str, *, needed: bool) -> int | None:
    """A positive BIGINT, as a number or as its digits (the web application sends both)."""
    value = fields.get(key)
    if value is None:
        if needed:
            raise _Wrong("missing", f"{key} is missing", name=key)
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if type(value) is not int:  # a bool is an int to isinstance, and True is no id
        raise _Wrong("number", f"{key} is {_shown(value)}, must be a whole number", name=key, found=_shown(value))
    if not 1 <= value <= MAX_ID:
        raise _Wrong("number", f"{key} is {_shown(value)}, must be from 1 to {MAX_ID}", name=key, found=_shown(value))
    return value


def _name(fields: dict[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value) > MAX_RUN_ID_BYTES:
        raise _Wrong(
            "name",
            f"{key} is {_shown(value)}, must be a name of letters, digits and _.~:+-",
            name=key,
            found=_shown(value),
        )
    return value


class _Object(dict[str, Any]):
    """A JSON object that remembers a key that stood twice. Only in the message itself is that a contradiction; extra
    fields are ignored, whatever is in them."""

    twice: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    fields = _Object(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        fields.twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return fields


def _no_constant(text: str) -> Any:
    raise _Wrong("no_number", f"not JSON: {text} is no number", found=text)


def _kind(value: Any) -> str:
    return {"array": "an array", "string": "a string", "boolean": "a boolean", "number": "a number"}.get(
        _json_kind(value), "null"
    )


def _json_kind(value: Any) -> str:
    """As JSON calls it; the pages' catalogue has words for it."""
    return {list: "array", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")


def _shown(value: Any) -> str:
    """The value for a log line: short, on one line, plain ASCII."""
    try:
        text = ascii(value)
    except ValueError:  # more digits than Python writes
        text = _kind(value)
    return text if len(text) <= 60 else text[:57] + "..."
