"""A column of quantities, costs or amounts, and what is asked of one as a whole.

`Numbers` is either `Decimals`, a list of Decimal objects that can hold anything, or `fixed.FixedPoint`, the same values
in 64 bits each. Both are exact and give the same answers; `Decimals` is the reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, DecimalException, localcontext
from itertools import repeat
from typing import Protocol

from everest.opname.amounts import MONEY_CONTEXT, ZERO, column_context, misfits, unit


class Numbers(Protocol):
    """Decimal or None by position."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Decimal | None]: ...

    def at(self, position: int) -> Decimal | None: ...

    @property
    def has_null(self) -> bool: ...

    @property
    def has_zero(self) -> bool: ...

    def negatives(self) -> list[int]:
        """Positions of what is below 0; NaN is not."""
        ...

    def misfits(self, precision: int, scale: int) -> list[int]:
        """Positions of what DECIMAL(precision, scale) can't hold exactly."""
        ...

    def count_nonzero(self) -> int: ...

    def total(self) -> Decimal:
        """Exact; of nothing, 0. Raises TypeError for a NULL."""
        ...

    def largest(self) -> Decimal:
        """Of nothing, 0. Raises TypeError for a NULL."""
        ...

    def texts(self, precision: int, scale: int) -> Sequence[str]:
        """In column scale, '' for NULL. Raises ValueError for what the column can't hold."""
        ...

    def step_texts(self, precision: int, scale: int) -> list[str]:
        """The same as whole numbers of the column's smallest step: 2 pieces in DECIMAL(18,4) are '20000'."""
        ...


class Decimals(list[Decimal | None]):
    """Numbers as the objects they are."""

    def at(self, position: int) -> Decimal | None:
        return self[position]

    @property
    def has_null(self) -> bool:
        return None in self

    @property
    def has_zero(self) -> bool:
        return any(value is not None and not value for value in self)

    def negatives(self) -> list[int]:
        signed = [(place, value) for place, value in enumerate(self) if value is not None and value.is_signed()]
        return [place for place, value in signed if not value.is_nan() and value < 0]

    def misfits(self, precision: int, scale: int) -> list[int]:
        return misfits(self, precision, scale)

    def count_nonzero(self) -> int:
        return sum(map(bool, self))

    def total(self) -> Decimal:
        with localcontext(MONEY_CONTEXT):
            return sum(self, ZERO)  # type: ignore[type-var, return-value]

    def largest(self) -> Decimal:
        return max(self, default=ZERO)  # type: ignore[type-var, return-value]

    def texts(self, precision: int, scale: int) -> list[str]:
        within, step = column_context(precision).quantize, unit(scale)
        try:
            # The whole column in C: nearly every column has no NULL and fits.
            found = list(map(str, map(within, self, repeat(step))))  # type: ignore[arg-type]
            if "NaN" not in "".join(found):
                return found
        except (TypeError, DecimalException):
            pass
        unfit = self.misfits(precision, scale)
        if unfit:
            raise ValueError(f"{self[unfit[0]]} does not fit DECIMAL({precision},{scale})")
        return ["" if value is None else str(within(value, step)) for value in self]

    def step_texts(self, precision: int, scale: int) -> list[str]:
        return [
            "" if text == "" else str(int(MONEY_CONTEXT.scaleb(Decimal(text), scale)))
            for text in self.texts(precision, scale)
        ]
