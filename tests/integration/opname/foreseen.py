"""A walker that looks before it leaps: the preview of a document, and then what its steps really did with it."""

from __future__ import annotations

from typing import Any

from everest.errors import Conflict, DocumentMissing
from everest.opname.stock_card import CardRow
from everest.preview import Outcome, Preview, preview
from tests import builders
from tests.integration.opname.walk import Walker

SETTLED = {Outcome.POSTS, Outcome.POSTED_ALREADY}
OUR_BUG = 500


class Foresight(Walker):
    """Every document that it posts whole, with nobody in between, must end as its preview said: with the same rows, or
    for the same problems, or with the same question."""

    def post(self, shadow_id: int, *before: Any) -> str:
        if before or self._is_another_job(shadow_id):
            return super().post(shadow_id, *before)
        with self.database.snapshot() as tx:
            try:
                told = preview(tx, f"#{shadow_id}")
            except (Conflict, DocumentMissing):
                return super().post(shadow_id)
        status = super().post(shadow_id)
        compare(told, self._conn, shadow_id)
        return status

    def _is_another_job(self, shadow_id: int) -> bool:
        """A further job of a document follows what became of the first one; a preview is of the document."""
        others = (
            "SELECT 1 FROM rabbit_publish_shadow a JOIN rabbit_publish_shadow b USING (transaksi_id) WHERE a.id = %s"
        )
        return len(builders.rows(self._conn, others, shadow_id)) > 1


def compare(told: Preview, conn: Any, shadow_id: int) -> None:
    """What a preview said, and what stands in the rows of its job now."""
    row = builders.shadow(conn, shadow_id)
    if row["worker_status"] == "COMPLETED":
        assert told.outcome in SETTLED, told
        assert stored(conn, told.transaksi_id) == foreseen(told)
        if told.outcome is Outcome.POSTS:
            assert f"akan {row['response']['message']}" == told.message
            assert row["response"]["total_debet"] == str(told.total_debet)
            assert row["response"]["baris_selisih"] == len(told.stock_card)
    elif row["worker_status"] == "FAILED" and row["error_code"] < OUR_BUG:
        assert (told.outcome, told.code) == (Outcome.REFUSED, row["error_code"]), told
        problems, recorded = [one.as_json() for one in told.problems], row["response"]["errors"]
        if len(recorded) < len(problems):  # a row holds so many, and says how many more there were
            problems, recorded = problems[: len(recorded) - 1], recorded[:-1]
        assert problems == recorded
    elif row["worker_status"] == "WAITING":
        assert (told.outcome, told.message) == (Outcome.NEEDS_DECISION, row["response"]["message"])
        assert [one.as_json() for one in told.reasons] == row["response"]["waiting"]["reasons"]


def foreseen(told: Preview) -> Any:
    journal = [(row.urutan, row.kode_akun, row.keterangan, row.debet, row.kredit) for row in told.journal]
    dated = {told.tanggal_wib} if told.journal or told.stock_card else set()
    return journal, [tuple(row) for row in told.stock_card], dated


def stored(conn: Any, transaksi_id: int) -> Any:
    """Journal, stock card and their dates, as they stand for the posting of a document."""
    of_posting = "posting_id IN (SELECT id FROM posting_sets WHERE transaksi_id = %s) ORDER BY id"
    journal = builders.rows(conn, f"SELECT * FROM jurnal WHERE {of_posting}", transaksi_id)
    card = builders.rows(conn, f"SELECT * FROM kartu_stok WHERE {of_posting}", transaksi_id)
    return (
        [tuple(row[name] for name in ("urutan", "kode_akun", "keterangan", "debet", "kredit")) for row in journal],
        [tuple(row[name] for name in CardRow._fields) for row in card],
        {row["tanggal_wib"] for row in (*journal, *card)},
    )
