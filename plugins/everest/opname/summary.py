"""What step 1 found out about a document, kept for step 3: as long as its lines are the same, so is all of this, and
nobody has to read them again. The words of the state are those of finance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from everest.opname.amounts import MONEY_CONTEXT
from everest.opname.lines import columns, numbers

if TYPE_CHECKING:
    from pandas import DataFrame

MAX_WAREHOUSES_KEPT = 200
"""A document over more is read again in step 3: a state is no place for thousands of codes."""


@dataclass(frozen=True)
class Summary:
    """Of valid lines and their values. warehouses: of the lines, sorted. surplus, shortage and largest (the value of
    the line that is worth most) in rupiah, all >= 0. has_free_variance: a line with a variance costs 0."""

    values_digest: str
    warehouses: tuple[str, ...]
    surplus: Decimal
    shortage: Decimal
    largest: Decimal
    baris_selisih: int
    has_free_variance: bool

    @classmethod
    def of(cls, values: DataFrame, digest: str) -> Summary:
        """values: computed lines with effective warehouses; digest: theirs. Raises ValueError if one is not
        computed."""
        from everest.opname import variance

        (gudang,) = columns(values, "gudang_kode")
        selisih, harga = numbers(values, "selisih_qty"), numbers(values, "harga_pokok")
        surplus, shortage = variance.totals(values)
        return cls(
            digest,
            tuple(sorted(set(gudang))),
            surplus,
            shortage,
            max(numbers(values, name).largest() for name in ("nilai_debet", "nilai_kredit")),
            selisih.count_nonzero(),
            harga.has_zero and any(moved and not cost for moved, cost in zip(selisih, harga, strict=True)),
        )

    @property
    def total(self) -> Decimal:
        with localcontext(MONEY_CONTEXT):
            return self.surplus + self.shortage

    def as_state(self) -> dict[str, Any]:
        is_kept = len(self.warehouses) <= MAX_WAREHOUSES_KEPT
        return {
            "sidik_nilai": self.values_digest if is_kept else None,
            "gudang": list(self.warehouses) if is_kept else None,
            "nilai_lebih": self.surplus,
            "nilai_kurang": self.shortage,
            "nilai_terbesar": self.largest,
            "baris_selisih": self.baris_selisih,
            "ada_harga_nol": self.has_free_variance,
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Summary | None:
        """None where step 1 left none: too many warehouses, or a release before this one."""
        if state.get("sidik_nilai") is None:
            return None
        return cls(
            state["sidik_nilai"],
            tuple(state["gudang"]),
            state["nilai_lebih"],
            state["nilai_kurang"],
            state["nilai_terbesar"],
            state["baris_selisih"],
            state["ada_harga_nol"],
        )
