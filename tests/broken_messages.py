"""Thirty bodies that are no message of ours, each with words of the reason that must be given for it.

`{shadow}` stands for the id of a shadow row that exists and belongs to transaksi_id 1; it must never be touched.
"""

from __future__ import annotations

BROKEN: list[tuple[bytes, str]] = [
    (b"", "not JSON"),
    (b"hello", "not JSON"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}', "not JSON"),
    (b"\x00\xff\xfe\x80 binary", "not UTF-8"),
    ('{"transaksi_id": 1, "shadow_id": {shadow}}'.encode("utf-16"), "not UTF-8"),
    (b"[1, {shadow}]", "not a JSON object but an array"),
    (b'"1"', "not a JSON object but a string"),
    (b"7", "not a JSON object but a number"),
    (b"null", "not a JSON object but null"),
    (b"true", "not a JSON object but a boolean"),
    (b"{}", "shadow_id is missing"),
    (b'{"transaksi_id": 1}', "shadow_id is missing"),
    (b'{"shadow_id": {shadow}}', "transaksi_id is missing"),
    (b'{"transaksi_id": null, "shadow_id": {shadow}}', "transaksi_id is missing"),
    (b'{"transaksi_id": 1.0, "shadow_id": {shadow}}', "transaksi_id is 1.0"),
    (b'{"transaksi_id": 1, "shadow_id": true}', "shadow_id is True"),
    (b'{"transaksi_id": -1, "shadow_id": {shadow}}', "transaksi_id is -1"),
    (b'{"transaksi_id": 0, "shadow_id": {shadow}}', "transaksi_id is 0"),
    (b'{"transaksi_id": 9223372036854775808, "shadow_id": {shadow}}', "must be from 1 to 9223372036854775807"),
    (b'{"transaksi_id": "satu", "shadow_id": {shadow}}', "transaksi_id is 'satu'"),
    (b'{"transaksi_id": " 1 ", "shadow_id": {shadow}}', "transaksi_id is ' 1 '"),
    ('{"transaksi_id": "١", "shadow_id": {shadow}}'.encode(), "must be a whole number"),
    (b'{"transaksi_id": [1], "shadow_id": {shadow}}', "transaksi_id is [1]"),
    (b'{"transaksi_id": NaN, "shadow_id": {shadow}}', "NaN is no number"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}, "shadow_id": 2}', "stands twice"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}, "v": 2}', "unknown version 2"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}, "v": true}', "unknown version True"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}, "workflow": "payroll", "workflow_id": 9}', "workflow_id"),
    (b'{"transaksi_id": 1, "shadow_id": 999999999}', "does not exist"),
    (b'{"transaksi_id": 2, "shadow_id": {shadow}}', "is of transaksi_id 1"),
    (b'{"transaksi_id": 1, "shadow_id": {shadow}, "nota": "' + b"x" * 1_000_000 + b'"}', "the limit is 65536"),
]


def broken_bodies(shadow_id: int) -> list[tuple[bytes, str]]:
    return [(body.replace(b"{shadow}", str(shadow_id).encode()), reason) for body, reason in BROKEN]
