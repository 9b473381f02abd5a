"""What must hold of the books, one object per invariant. Adding one is a statement in audit.sql and an entry here."""

from __future__ import annotations

from dataclasses import dataclass

from everest.audit import jobs, months, movements
from everest.audit.finding import ITEMS, JOBS, JOURNAL, POSTINGS, STOCK_CARD, Check, walked


@dataclass(frozen=True)
class Invariant:
    """key: its name everywhere (task, command, tables). sentence: what must hold. means, remedy: what a finding says,
    and what to do about it; remedy_id: the same in Indonesian, for the pages."""

    key: str
    sentence: str
    means: str
    remedy: str
    remedy_id: str
    checks: tuple[Check, ...]

    @property
    def doc(self) -> str:
        return f"{self.sentence}\n\nA finding means: {self.means}\n\nWhat to do: {self.remedy}"


INVARIANTS = (
    Invariant(
        key="posting_is_balanced",
        sentence="Each posting balances: its totals are the sums of both sides of its journal.",
        means="journal rows were added, changed or taken away after the posting, or one has two sides or none.",
        remedy="compare with the posting set and its document (`attempts`, `audit-log`); find who wrote to `jurnal`."
        " Put back from a backup what was changed; posted rows are not edited to fit.",
        remedy_id="bandingkan dengan posting dan dokumennya (`attempts`, `audit-log`); cari siapa yang menulis ke"
        " `jurnal`. Kembalikan yang berubah dari cadangan; baris yang sudah diposting tidak disunting"
        " supaya cocok.",
        checks=(walked("unbalanced", POSTINGS, ("posting_id",)),),
    ),
    Invariant(
        key="inventory_equals_stock_card",
        sentence="The inventory account of each posting moves by what its stock card says, debit and credit apart.",
        means="the journal and the stock card of one posting tell different stories: rows of one of them were changed.",
        remedy="see which of the two still fits `transaksi_values` of the document; restore the other from a backup, or"
        " reverse the posting and post a new nota.",
        remedy_id="lihat mana dari keduanya yang masih cocok dengan `transaksi_values` dokumen itu; kembalikan"
        " yang lain dari cadangan, atau balik postingnya dan posting nota baru.",
        checks=(walked("inventory_differs", POSTINGS, ("posting_id",)),),
    ),
    Invariant(
        key="completed_is_posted_once",
        sentence="Each COMPLETED document has its posting set, and nothing else has one.",
        means="a status was written without the books, or the books without the status; both are one commit.",
        remedy="`status NOTA` and the workflow's timeline tell what ran. COMPLETED without a posting: nothing was"
        " posted; submit the count under a new nota. A posting without COMPLETED: it is posted; find who changed the"
        " row.",
        remedy_id="`status NOTA` dan riwayat alur kerjanya menunjukkan apa yang berjalan. COMPLETED tanpa posting:"
        " tidak ada yang diposting; kirim hitungan dengan nota baru. Posting tanpa COMPLETED: sudah"
        " diposting; cari siapa yang mengubah barisnya.",
        checks=(
            walked("completed_without_posting", JOBS, ("transaksi_id",)),
            walked("posting_without_completed", POSTINGS, ("posting_id",)),
        ),
    ),
    Invariant(
        key="rows_belong_to_their_posting",
        sentence="Each journal and stock-card row that says OPNAME belongs to a posting set of the same document, and"
        " no other program has rows for such a document.",
        means="an unfinished attempt of an older worker left rows behind, rows were written by hand, or an older worker"
        " posted a document that was posted already.",
        remedy="post the document of that nota (its posting archives and replaces such rows); where there is none, or"
        " it is posted, let its owner take the rows out. docs/existing-installations.md has the rule that keeps two"
        " workers apart.",
        remedy_id="posting dokumen nota itu (postingnya mengarsipkan dan mengganti baris begitu); kalau tidak ada,"
        " atau sudah diposting, minta pemiliknya mengeluarkan barisnya. docs/existing-installations.md"
        " memuat aturan yang memisahkan dua worker.",
        checks=(
            walked("journal_without_posting", JOURNAL, ("jurnal_id",)),
            walked("stock_card_without_posting", STOCK_CARD, ("kartu_stok_id",)),
        ),
    ),
    Invariant(
        key="reversal_mirrors_original",
        sentence="Each reversal is the exact mirror of one posting: same amounts and movements, sides exchanged.",
        means="the reversal, or the posting it reverses, was changed afterwards.",
        remedy="the two together must be zero per account and per item; restore from a backup the one that was"
        " changed.",
        remedy_id="keduanya bersama harus nol per akun dan per barang; kembalikan yang berubah dari cadangan.",
        checks=(
            walked("reversal_of_nothing", POSTINGS, ("posting_id",)),
            walked("journal_not_mirrored", POSTINGS, ("posting_id", "kode_akun", "debet", "kredit")),
            walked(
                "stock_card_not_mirrored",
                POSTINGS,
                ("posting_id", "kode_barang", "lot", "gudang_kode", "masuk", "keluar", "nilai"),
            ),
        ),
    ),
    Invariant(
        key="closed_month_stays_closed",
        sentence="Nothing was entered in a month while that month was closed.",
        means="the rows did not come from a posting of ours: a posting looks under the lock that closing waits for.",
        remedy="find who wrote them (the database's own log); let accounting decide whether they stay. Months that"
        " another program closed are named, because since when is not known.",
        remedy_id="cari siapa yang menulisnya (log basis data sendiri); biarkan akuntansi memutuskan apakah"
        " barisnya tetap. Bulan yang ditutup program lain disebut, karena sejak kapan tidak diketahui.",
        checks=(months.entered_while_closed,),
    ),
    Invariant(
        key="empty_stock_has_no_value",
        sentence="An item of which nothing is there has no value left on its stock card.",
        means="it came in at another cost than it went out; the rest stands in the inventory account for nothing.",
        remedy="let accounting decide: a value correction by the module that owns the movements. A count cannot clear"
        " it, because there is nothing to count. Items with a movement entered without a value are not judged.",
        remedy_id="biarkan akuntansi memutuskan: koreksi nilai oleh modul pemilik mutasinya. Opname tidak bisa"
        " menghapusnya, karena tidak ada yang bisa dihitung. Barang dengan mutasi tanpa nilai tidak"
        " dinilai.",
        checks=(walked("empty_stock_with_value", ITEMS, ("kode_barang", "lot", "gudang_kode")),),
    ),
    Invariant(
        key="no_movement_entered_late",
        sentence="No other module entered a movement after a count was posted that is dated before that count.",
        means="the quantity that the count was compared with did not know the movement, so its variance is off by it.",
        remedy="`python -m everest report late-movements` shows all of it. Talk to who entered it; where the stock is"
        " wrong now, reverse the posting and count again. It stays a finding until the posting is reversed, or is older"
        " than EVEREST_AUDIT_LOOKBACK_DAYS.",
        remedy_id="laporan Mutasi terlambat setelah posting menunjukkan semuanya. Bicarakan dengan yang"
        " mencatatnya; kalau stoknya sekarang salah, balik postingnya dan hitung ulang. Tetap menjadi"
        " temuan sampai postingnya dibalik, atau lebih lama dari EVEREST_AUDIT_LOOKBACK_DAYS.",
        checks=(movements.entered_late,),
    ),
    Invariant(
        key="processing_has_live_run",
        sentence="Each job that is PROCESSING has a DAG run that is queued or running.",
        means="nobody works on it any more, and the reconciler has not begun it again.",
        remedy="is the reconciler running (`make status`, its log)? `python -m everest post NOTA --take-over` posts it"
        " now.",
        remedy_id="apakah reconciler berjalan (`make status`, lognya)? `python -m everest post NOTA --take-over`"
        " mempostingnya sekarang.",
        checks=(jobs.processing_without_run,),
    ),
    Invariant(
        key="pending_is_not_overdue",
        sentence="No job that is due has been PENDING for longer than the grace.",
        means="relay, consumer, Airflow or the DAG are down or paused, or a message was lost.",
        remedy='docs/operations.md, "PENDING for long".',
        remedy_id='docs/operations.md, "PENDING for long".',
        checks=(jobs.overdue,),
    ),
    Invariant(
        key="failure_has_dead_letter",
        sentence="Each document that FAILED by a fault has its dead letter.",
        means="nobody would see it among the dead letters: reconciler or relay are down, or letters were purged.",
        remedy="start reconciler and relay. Purged letters: `rerun` or drop each FAILED document (`status NOTA`).",
        remedy_id="nyalakan reconciler dan relay. Surat yang sudah dihapus: `rerun` atau batalkan tiap dokumen"
        " yang gagal (`status NOTA`).",
        checks=(jobs.without_letter, jobs.letters_lost),
    ),
)

BY_KEY = {invariant.key: invariant for invariant in INVARIANTS}
