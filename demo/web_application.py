"""The existing web application, played by the demo: it writes its rows unchecked and publishes the message itself.

It is a program of its own, so it speaks AMQP here; ours do that in ingest_consumer alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, timedelta

import pika

from demo.documents import LateReceipt
from everest.intake.submission import Submission
from everest.opname.document import WIB
from everest.store.database import last_insert_id, load_queries
from everest.store.unit_of_work import Database
from ingest_consumer import broker
from ingest_consumer.shadow import JOBS_EXCHANGE, ROUTING_KEY

_QUERIES = load_queries("demo")
HEARTBEAT_S = 30


def send(database: Database, env: Mapping[str, str], submission: Submission) -> int:
    """Staging and shadow rows, then a bare message: {"transaksi_id", "shadow_id", "nota"}. Returns the shadow id."""
    transaksi_id, shadow_id = write_rows(database, submission)
    # As a PHP program would: the ids as text, nothing but what it knows.
    body = json.dumps({"transaksi_id": str(transaksi_id), "shadow_id": str(shadow_id), "nota": submission.nomer_nota})
    with closing(broker.connect(env["EVEREST_AMQP_URL"], "demo: the web application", HEARTBEAT_S)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish(
            JOBS_EXCHANGE, ROUTING_KEY, body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True
        )
    return shadow_id


def enter(database: Database, receipt: LateReceipt) -> None:
    """Another module's stock movement, entered now."""
    dated = (receipt.before - timedelta(days=1)).astimezone(WIB).replace(tzinfo=None)
    with database.transaction() as tx:
        _QUERIES.web_movement(
            tx.conn,
            nomer_nota=receipt.nota,
            kode_barang=receipt.kode_barang,
            gudang_kode=receipt.gudang_kode,
            tanggal_wib=dated,
            masuk=receipt.masuk,
        )


def write_rows(database: Database, submission: Submission) -> tuple[int, int]:
    """The rows alone: (transaksi_id, shadow_id)."""
    nota = submission.nomer_nota
    with database.transaction() as tx:
        conn = tx.conn
        _QUERIES.web_transaksi(conn, nomer_nota=nota, gudang_kode=submission.gudang_kode)
        transaksi_id = last_insert_id(conn)
        snapshot = submission.snapshot_at
        _QUERIES.web_header(
            conn,
            transaksi_id=transaksi_id,
            nomer_nota=nota,
            gudang_kode=submission.gudang_kode,
            tanggal_opname=submission.tanggal_opname,
            snapshot_at=snapshot and snapshot.astimezone(UTC).replace(tzinfo=None),
            otorisasi_level=2,
            diotorisasi_oleh="web-budi",
            dibuat_oleh="web-sari",
        )
        header_id = last_insert_id(conn)
        lines = [
            {
                "header_id": header_id,
                "baris": baris,
                "kode_barang": line.kode_barang,
                "gudang_kode": line.gudang_kode,
                "satuan": line.satuan,
                "qty_sistem": line.qty_sistem,
                "qty_fisik": line.qty_fisik,
                "harga_pokok": line.harga_pokok,
            }
            for baris, line in enumerate(submission.lines, start=1)
        ]
        _QUERIES.web_line(conn, lines)
        payload = json.dumps({"transaksi_id": transaksi_id, "nota": nota})
        _QUERIES.web_shadow(conn, transaksi_id=transaksi_id, nomer_nota=nota, payload=payload)
        shadow_id = last_insert_id(conn)
    return transaksi_id, shadow_id
