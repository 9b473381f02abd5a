"""What a person decides about, as evidence: what changes it, what does not, and what an answer is worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest

from everest.errors import DocumentRefused
from everest.opname import approval
from everest.opname.approval import ApprovalRules, Surprise
from everest.opname.variance import compute_variance
from everest.workflow.questions import Question
from everest.workflow.ticket import Decision
from tests.unit.opname.tables import header, lines

HEADER = header(nomer_nota="SO-1", snapshot_at=datetime(2026, 8, 14, 1, 0, tzinfo=UTC))
LINES = lines(
    # kode | lot | gudang | sistem | fisik | harga
    "A     | ''  | GD-A   | 10     | 12    | 1500",
    "B     | ''  | GD-A   | 7      | 5     | 2500.50",
)
RULES = ApprovalRules()
MOVEMENT = {
    "id": 71, "kode_barang": "A", "lot": "", "gudang_kode": "GD-A", "nomer_nota": "BELI-7", "is_opname": 0,
    "tanggal_wib": datetime(2026, 8, 14, 7), "created_at": datetime(2026, 8, 14, 5), "sumber": "BELI",
    "masuk": Decimal("4.0000"), "keluar": Decimal("0.0000"),
}  # fmt: skip


def found(
    *movements: dict[str, Any], policy: tuple[Decimal | None, Decimal | None] = (None, None), input_hash: str = "h"
) -> Surprise:
    rows = pd.DataFrame([MOVEMENT | one for one in movements], columns=list(MOVEMENT), dtype=object)
    values = compute_variance(LINES).frame
    return approval.surprise(HEADER, input_hash, values, rows, policy, (Decimal("3000.00"), Decimal("5001.00")))


def said(outcome: Any, evidence: str) -> Decision:
    return Decision(outcome, "tono", datetime(2026, 8, 15, 1, tzinfo=UTC), "cocok", evidence, 1)


def test_a_document_without_reasons_needs_nobody() -> None:
    quiet = found({"tanggal_wib": datetime(2026, 8, 14, 9)}, {"id": 72, "kode_barang": "Z"})

    assert (quiet.reasons, quiet.movements, approval.covers(None, quiet)) == ((), (), True)
    assert approval.settled(quiet, None, None, RULES) is None


@pytest.mark.parametrize("movements", [(), ({},), ({"kode_barang": "Z"},), ({"is_opname": 1},), ({}, {"id": 72})])
@pytest.mark.parametrize(
    "policy", [(None, None), (Decimal(8001), Decimal(5001)), (Decimal(0), None), (None, Decimal(0))]
)
def test_there_is_something_to_decide_exactly_where_there_is_a_reason(
    movements: tuple[dict[str, Any], ...], policy: tuple[Decimal | None, Decimal | None]
) -> None:
    surprise = found(*movements, policy=policy)

    assert surprise.is_any == bool(surprise.reasons)
    assert bool(surprise.movements) == any(one.kolom == "qty_sistem" for one in surprise.reasons)


def test_the_same_facts_in_another_order_are_the_same_evidence() -> None:
    assert found({}, {"id": 72}).evidence == found({"id": 72}, {}).evidence
    assert found({"created_at": datetime(2026, 8, 14, 6)}).evidence == found({}).evidence


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(found({}, {"id": 72}), id="one movement more"),
        pytest.param(found({"masuk": Decimal("4.0001")}), id="another quantity"),
        pytest.param(found({"tanggal_wib": datetime(2026, 8, 14, 6)}), id="another day"),
        pytest.param(found({"id": 72}), id="another row"),
        pytest.param(found({"kode_barang": "B"}), id="another item"),
        pytest.param(found({}, policy=(Decimal(8000), None)), id="a limit exceeded as well"),
        pytest.param(found({}, input_hash="other"), id="other lines"),
    ],
)
def test_what_a_person_would_have_to_look_at_again_is_other_evidence(other: Surprise) -> None:
    assert other.evidence != found({}).evidence


def test_a_limit_that_is_kept_is_no_evidence_and_one_that_moved_is() -> None:
    assert found({}, policy=(Decimal(9000), Decimal(6000))).evidence == found({}).evidence
    over = [found(policy=(Decimal(limit), None)).evidence for limit in (8000, 7000)]
    assert over[0] != over[1]


def test_reasons_name_the_document_first_then_movements_then_lines() -> None:
    surprise = found({}, policy=(Decimal(8000), Decimal(5000)))

    assert [(one.baris, one.kolom) for one in surprise.reasons] == [
        (None, "batas_dokumen"), (1, "qty_sistem"), (2, "batas_baris"),
    ]  # fmt: skip
    assert surprise.summary() == (
        "1 baris dengan mutasi terlambat; jumlah selisih melebihi batas dokumen; 1 baris melebihi batas baris"
    )


def test_an_approval_of_this_evidence_lets_it_post_and_is_kept_with_who_when_and_why() -> None:
    surprise = found({})
    kept = approval.settled(surprise, None, said("approved", surprise.evidence), RULES)

    assert kept is not None
    assert (kept["oleh"], kept["alasan"], kept["bukti"], kept["input_hash"]) == (
        "tono", "cocok", surprise.evidence, "h",
    )  # fmt: skip
    assert approval.settled(surprise, kept, None, RULES) == kept, "asked by a later pass, it still holds"
    assert approval.covers(kept, surprise)
    assert not approval.covers(kept, found({}, {"id": 72}))
    assert approval.settled(found({}, {"id": 72}), kept, None, RULES) is None


def test_an_approval_or_a_timeout_of_other_evidence_is_void_and_a_no_is_a_no() -> None:
    assert approval.settled(found({}), None, said("approved", "older"), RULES) is None
    assert approval.settled(found({}), None, said("timeout", "older"), RULES) is None
    with pytest.raises(DocumentRefused, match="ditolak oleh tono pada 2026-08-15 08:00:00 WIB: cocok") as refused:
        approval.settled(found(), None, said("rejected", "older"), RULES)
    assert refused.value.code == 403


@pytest.mark.parametrize(
    ("timeout", "words"),
    [
        (timedelta(days=14), "14 hari"),
        (timedelta(hours=36), "36 jam"),
        (timedelta(minutes=90), "90 menit"),
        (timedelta(seconds=45), "45 detik"),
    ],
)
def test_no_answer_in_time_is_a_403_that_says_how_long(timeout: timedelta, words: str) -> None:
    surprise = found({})
    with pytest.raises(DocumentRefused, match=f"tidak ada keputusan dalam {words}") as refused:
        approval.settled(surprise, None, said("timeout", surprise.evidence), replace(RULES, timeout=timeout))
    assert (refused.value.code, refused.value.problems) == (403, surprise.reasons)


@pytest.mark.parametrize(
    ("people", "correctors", "barred"),
    [
        pytest.param({"dibuat_oleh": "budi", "diotorisasi_oleh": "sari"}, (), ["budi"], id="who submitted"),
        pytest.param({"dibuat_oleh": None, "diotorisasi_oleh": "sari"}, (), ["sari"], id="nobody says who submitted"),
        pytest.param({"dibuat_oleh": " ", "diotorisasi_oleh": "sari"}, (), ["sari"], id="blank is nobody"),
        pytest.param({"dibuat_oleh": None, "diotorisasi_oleh": None}, (), [], id="nobody is known"),
        pytest.param({"dibuat_oleh": "budi"}, ("ani", "budi"), ["budi", "ani"], id="who corrected it, too"),
    ],
)
def test_whose_document_it_is(people: dict[str, Any], correctors: tuple[str, ...], barred: list[str]) -> None:
    own = approval.own_people(header(**people), correctors)
    asked = Question.of("step", approval.question(found({}), RULES, own, ["lama: 3"]))
    allowed = Question.of("step", approval.question(found({}), replace(RULES, allow_self_approval=True), own))

    assert asked is not None and allowed is not None
    assert (asked.not_by, allowed.not_by) == (barred, [])
    assert [one["kolom"] for one in asked.reasons] == ["peringatan", "qty_sistem"]
    assert asked.evidence == allowed.evidence, "a warning is shown, and is no evidence"
