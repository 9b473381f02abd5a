"""The mirror of a posting, without a database: sides, accounts, names, and what its hash says."""

from __future__ import annotations

from decimal import Decimal
from itertools import islice

import pytest

from everest.opname.journal import Accounts, JournalRow, Unbalanced, check_balanced, journal_rows
from everest.opname.ports import PostingSet
from everest.opname.reversal import MAX_NOTA, MAX_TEXT, inventory_account, mirrored, nota_candidates, reversal_hash

D = Decimal
OWN = Accounts("111", "222", "333")


def test_the_mirror_swaps_the_sides_and_keeps_amounts_accounts_and_places() -> None:
    rows = journal_rows("SO-1", D("3000.00"), D("5001.00"), OWN)

    mirror = mirrored(rows, "Pembalikan SO-1: salah rak")

    assert [(row.urutan, row.kode_akun, row.debet, row.kredit) for row in mirror] == [
        (1, "111", D("0.00"), D("3000.00")),
        (2, "222", D("3000.00"), D("0.00")),
        (3, "333", D("0.00"), D("5001.00")),
        (4, "111", D("5001.00"), D("0.00")),
    ]
    assert {row.keterangan for row in mirror} == {"Pembalikan SO-1: salah rak"}
    assert check_balanced(mirror) == check_balanced(rows)
    for row, swapped in zip(rows, mirror, strict=True):
        assert row.debet - row.kredit + swapped.debet - swapped.kredit == 0


def test_a_posting_without_amounts_has_an_empty_mirror() -> None:
    assert mirrored((), "x") == ()
    assert inventory_account(()) == ""


def test_the_inventory_account_is_the_one_that_was_posted_to() -> None:
    assert inventory_account(journal_rows("SO-1", D("1.00"), D("2.00"), OWN)) == "111"
    assert inventory_account(journal_rows("SO-1", D("0.00"), D("2.00"), OWN)) == "111"
    torn = (
        JournalRow(1, "111", "", D("1.00"), D("0.00")),
        JournalRow(2, "222", "", D("0.00"), D("1.00")),
        JournalRow(3, "333", "", D("1.00"), D("0.00")),
        JournalRow(4, "444", "", D("0.00"), D("1.00")),
    )
    with pytest.raises(Unbalanced):
        inventory_account(torn)


def test_a_long_reason_fits_the_column() -> None:
    rows = journal_rows("SO-1", D("1.00"), D("0.00"), OWN)
    assert {len(row.keterangan) for row in mirrored(rows, "x" * 700)} == {MAX_TEXT}


def test_the_nota_of_a_reversal_is_the_original_with_a_suffix_and_always_fits() -> None:
    assert list(islice(nota_candidates("SO-1"), 3)) == ["SO-1-BALIK", "SO-1-BALIK2", "SO-1-BALIK3"]
    long = "N" * 93 + " " + "M" * 6
    names = list(islice(nota_candidates(long), 12))
    assert len(set(names)) == 12
    assert all(len(name) <= MAX_NOTA and name != long and " -" not in name for name in names)


def test_the_hash_says_which_document_takes_back_which_posting_with_which_content() -> None:
    def posting(**changes: object) -> PostingSet:
        values = {"id": 7, "transaksi_id": 1, "nomer_nota": "SO-1", "input_hash": "a" * 64} | changes
        return PostingSet(**values, total_debet=D(1), total_kredit=D(1), baris_selisih=1)  # type: ignore[arg-type]

    hashes = {
        reversal_hash(2, "SO-1-BALIK", posting()),
        reversal_hash(3, "SO-1-BALIK", posting()),
        reversal_hash(2, "SO-1-BALIK2", posting()),
        reversal_hash(2, "SO-1-BALIK", posting(id=8)),
        reversal_hash(2, "SO-1-BALIK", posting(input_hash="b" * 64)),
    }

    assert len(hashes) == 5
    assert reversal_hash(2, "SO-1-BALIK", posting()) in hashes
