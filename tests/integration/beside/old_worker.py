"""A stand-in for the worker that this product replaces: takes jobs from the same queue and posts into the same tables.

It knows nothing of posting sets, outbox or workflows. Every statement commits by itself, so one that is killed leaves
halves behind; its session has the empty sql_mode of its time. It posts by the same rules of accounting, so that what
both have posted can be held against one ledger. Several of it run beside each other, each one message at a time.

`--without-rule`: as it was before anybody ran beside it. With the rule (decision 0043) it first takes the job.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
import pymysql

TAKE = """
UPDATE rabbit_publish_shadow s
LEFT JOIN rabbit_publish_shadow o ON o.transaksi_id = s.transaksi_id AND o.dag_run_id IS NOT NULL
SET s.worker_status = 'PROCESSING', s.worker_at = UTC_TIMESTAMP()
WHERE s.id = %s AND s.worker_status = 'PENDING' AND s.dag_run_id IS NULL AND o.id IS NULL
"""
"""The rule, word for word as docs/existing-installations.md has it. o: another job of the same document."""

PUT_BACK_PAUSE_S = 0.2
CENT = Decimal("0.01")
PERSEDIAAN, LABA, RUGI = "1010030030", "7010150", "7020020"


class OldWorker:
    def __init__(self, amqp_url: str, mysql_url: str, follows_rule: bool, pause_s: float) -> None:
        parts = urlsplit(mysql_url)
        self.db = pymysql.connect(
            host=parts.hostname or "",
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=parts.path[1:],
            autocommit=True,
            sql_mode="",
        )
        self.connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
        self.channel = self.connection.channel()
        self.follows_rule, self.pause_s = follows_rule, pause_s
        self.is_stopping = False
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: Any) -> None:
        """After the document it is at work on."""
        self.is_stopping = True

    def run(self) -> None:
        self.channel.basic_qos(prefetch_count=1)
        self.channel.basic_consume("everest.jobs.q", self.receive)
        print("ready", flush=True)
        while not self.is_stopping:
            self.connection.process_data_events(time_limit=0.1)  # type: ignore[arg-type]

    def receive(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        job = json.loads(body)
        shadow_id, transaksi_id = int(job["shadow_id"]), job.get("transaksi_id")
        if self.follows_rule and not self.do(TAKE, shadow_id):
            if self.all("SELECT id FROM rabbit_publish_shadow WHERE id = %s AND worker_status = 'PENDING'", shadow_id):
                time.sleep(PUT_BACK_PAUSE_S)
                channel.basic_nack(method.delivery_tag, requeue=True)  # the new one's to do
            else:
                channel.basic_ack(method.delivery_tag)
            return
        if not self.follows_rule:
            self.do("UPDATE rabbit_publish_shadow SET worker_status = 'PROCESSING' WHERE id = %s", shadow_id)
        print(f"posting {job.get('nota')}", flush=True)
        self.post(shadow_id, transaksi_id)
        channel.basic_ack(method.delivery_tag)

    def post(self, shadow_id: int, transaksi_id: Any) -> None:
        headers = self.all(
            "SELECT id, nomer_nota, gudang_kode, diotorisasi_at + INTERVAL 7 HOUR FROM so_headers_staging"
            " WHERE transaksi_id = %s",
            transaksi_id,
        )
        ((header_id, nota, gudang, tanggal),) = headers
        lines = self.all(
            "SELECT baris, kode_barang, qty_sistem, qty_fisik, harga_pokok FROM so_details_staging"
            " WHERE header_id = %s ORDER BY baris",
            header_id,
        )
        self.do(
            "REPLACE INTO transaksi (id, nomer_nota, jenis, tanggal_wib, gudang_kode)"
            " VALUES (%s, %s, 'OPNAME', %s, %s)",
            transaksi_id,
            nota,
            tanggal,
            gudang,
        )
        moved = []
        for _, kode, sistem, fisik, harga in lines:
            selisih = fisik - sistem
            if selisih:
                moved.append((kode, selisih, harga, (selisih * harga).quantize(CENT, ROUND_HALF_UP)))
        lebih = sum((nilai for *_, nilai in moved if nilai > 0), Decimal(0))
        kurang = -sum((nilai for *_, nilai in moved if nilai < 0), Decimal(0))
        sides = [(PERSEDIAAN, lebih, 0), (LABA, 0, lebih), (RUGI, kurang, 0), (PERSEDIAAN, 0, kurang)]
        for akun, debet, kredit in sides:
            if debet or kredit:
                self.do(
                    "INSERT INTO jurnal (transaksi_id, nomer_nota, tanggal_wib, kode_akun, keterangan, debet, kredit)"
                    " VALUES (%s, %s, %s, %s, 'Stock opname', %s, %s)",
                    transaksi_id,
                    nota,
                    tanggal,
                    akun,
                    debet,
                    kredit,
                )
                time.sleep(self.pause_s)
        with self.db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO kartu_stok (transaksi_id, nomer_nota, kode_barang, gudang_kode, tanggal_wib, masuk,"
                " keluar, harga_pokok, nilai) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (transaksi_id, nota, kode, gudang, tanggal, max(selisih, 0), max(-selisih, 0), harga, nilai)
                    for kode, selisih, harga, nilai in moved
                ],
            )
        self.do(
            "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED', response = %s WHERE id = %s",
            json.dumps({"status": "success", "code": 200, "message": "OK"}),
            shadow_id,
        )

    def do(self, sql: str, *values: Any) -> int:
        with self.db.cursor() as cursor:
            return int(cursor.execute(sql, values))

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.db.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("amqp_url")
    parser.add_argument("mysql_url")
    parser.add_argument("--without-rule", action="store_true")
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two rows of the journal")
    given = parser.parse_args()
    OldWorker(given.amqp_url, given.mysql_url, not given.without_rule, given.pause).run()
