"""Decimals of one column as whole numbers of its smallest step: exact like Decimal, and numpy computes with them.

15.5 pieces in DECIMAL(18,4) are 155,000 steps of 0.0001. To whoever looks into the frame such a column is what it
means, Decimal or None, so nobody can take steps for pieces; only sums and `variance` reach for the numbers inside. A
column with a value beyond 63 bits stays one of Decimal objects (`Decimals`), and whoever reads columns takes either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take
from pandas.api.indexers import check_array_indexer

from everest.opname.amounts import MONEY_CONTEXT, ZERO, as_column, misfits

Steps = npt.NDArray[np.int64]
Gaps = npt.NDArray[np.bool_]

_NAME = re.compile(r"fixed\[(\d+)\]")
_LOW = 0xFFFF_FFFF


class FixedPointDtype(ExtensionDtype):  # type: ignore[misc]
    """`fixed[4]`: Decimals with four digits behind the point."""

    _metadata: ClassVar[tuple[str, ...]] = ("scale",)
    type = Decimal
    na_value = None

    def __init__(self, scale: int) -> None:
        self.scale = scale

    @property
    def name(self) -> str:
        return f"fixed[{self.scale}]"

    @classmethod
    def construct_array_type(cls) -> type[FixedPoint]:  # type: ignore[valid-type]
        return FixedPoint

    @classmethod
    def construct_from_string(cls, string: str) -> FixedPointDtype:
        match = _NAME.fullmatch(string)
        if not match:
            raise TypeError(f"{string} is not a fixed-point column")
        return cls(int(match[1]))


class FixedPoint(ExtensionArray):  # type: ignore[misc]
    """`Numbers` in steps of 10**-scale; what is asked of them is documented there. gaps: where a value is NULL (its
    steps are 0), None if nowhere. Not to be changed once made."""

    def __init__(
        self, steps: Steps, scale: int, gaps: Gaps | None = None, written: tuple[str, ...] | None = None
    ) -> None:
        self.steps = steps
        self.scale = scale
        self.gaps = None if gaps is None or not gaps.any() else gaps
        self._written = written  # the texts it was read from; a tuple, because pandas slices whole columns for nothing

    @classmethod
    def read(cls, texts: Sequence[str | None], precision: int, scale: int) -> FixedPoint | None:
        """Of what the database writes for a DECIMAL(precision, scale). None for anything else, and for a number that
        does not fit 63 bits."""
        gaps, given = None, texts
        if None in texts:
            gaps = np.fromiter((text is None for text in texts), dtype=bool, count=len(texts))
            zero = f"{0:.{scale}f}"
            given = [zero if text is None else text for text in texts]
        whole = "\n".join(given)  # type: ignore[arg-type]
        number = rf"-?[0-9]+\.[0-9]{{{scale}}}"
        if texts and not re.fullmatch(rf"{number}(?:\n{number})*", whole):
            return None
        try:
            steps = np.array(list(map(int, whole.replace(".", "").split())), dtype=np.int64)
        except OverflowError:
            return None
        if len(steps) and max(int(steps.max()), -int(steps.min())) >= 10**precision:
            return None
        return cls(steps, scale, gaps, tuple(texts if gaps is None else ["" if t is None else t for t in texts]))  # type: ignore[arg-type]

    # ----------------------------------------------------------------------------------------------- Numbers

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Decimal | None]:
        return iter(self.tolist())

    def at(self, position: int) -> Decimal | None:
        return None if self.gaps is not None and self.gaps[position] else self._decimal(int(self.steps[position]))

    @property
    def has_null(self) -> bool:
        return self.gaps is not None

    @property
    def has_zero(self) -> bool:
        zeros = self.steps == 0
        return bool((zeros if self.gaps is None else zeros & ~self.gaps).any())

    def negatives(self) -> list[int]:
        found: list[int] = np.flatnonzero(self.steps < 0).tolist()
        return found

    def misfits(self, precision: int, scale: int) -> list[int]:
        if scale >= self.scale:
            limit = 10 ** (precision - scale + self.scale)
            if not len(self) or max(int(self.steps.max()), -int(self.steps.min())) < limit:
                return []
        return misfits(self.tolist(), precision, scale)

    def count_nonzero(self) -> int:
        return int(np.count_nonzero(self.steps))

    def total(self) -> Decimal:
        self._refuse_null()
        # In two halves, so that no partial sum exceeds 63 bits.
        high, low = (self.steps >> 32).sum(), (self.steps & _LOW).sum()
        return self._decimal((int(high) << 32) + int(low))

    def largest(self) -> Decimal:
        self._refuse_null()
        return self._decimal(int(self.steps.max())) if len(self) else ZERO

    def texts(self, precision: int, scale: int) -> Sequence[str]:
        if scale != self.scale or self.misfits(precision, scale):
            raise ValueError(f"a column with {self.scale} decimals is not a DECIMAL({precision},{scale})")
        if self._written is not None:
            return self._written
        return ["" if value is None else str(value) for value in self.tolist()]

    def step_texts(self, precision: int, scale: int) -> list[str]:
        if scale != self.scale or self.misfits(precision, scale):
            raise ValueError(f"a column with {self.scale} decimals is not a DECIMAL({precision},{scale})")
        texts = list(map(str, self.steps.tolist()))
        if self.gaps is not None:
            for place in np.flatnonzero(self.gaps):
                texts[place] = ""
        return texts

    def _decimal(self, steps: int) -> Decimal:
        return MONEY_CONTEXT.scaleb(Decimal(steps), -self.scale)

    def _refuse_null(self) -> None:
        if self.gaps is not None:
            raise TypeError("a column with NULLs has no total and no largest value")

    # ---------------------------------------------------------------------- what pandas needs of a column

    @property
    def dtype(self) -> FixedPointDtype:
        return FixedPointDtype(self.scale)

    @property
    def nbytes(self) -> int:
        return self.steps.nbytes

    def tolist(self) -> list[Decimal | None]:
        values: list[Decimal | None] = list(
            map(MONEY_CONTEXT.scaleb, map(Decimal, self.steps.tolist()), repeat(-self.scale))
        )
        if self.gaps is not None:
            for place in np.flatnonzero(self.gaps):
                values[place] = None
        return values

    def isna(self) -> Gaps:
        return np.zeros(len(self), dtype=bool) if self.gaps is None else self.gaps

    def copy(self) -> FixedPoint:
        return FixedPoint(self.steps, self.scale, self.gaps, self._written)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> FixedPoint:
        steps = take(self.steps, indices, allow_fill=allow_fill, fill_value=0)
        gaps = take(self.isna(), indices, allow_fill=allow_fill, fill_value=True)
        return FixedPoint(steps, self.scale, gaps)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | np.integer):
            return self.at(int(item))
        item = check_array_indexer(self, item)
        written = self._written[item] if self._written is not None and isinstance(item, slice) else None
        return FixedPoint(self.steps[item], self.scale, self.isna()[item], written)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Sequence | ExtensionArray | np.ndarray):
            other = [other] * len(self)
        return np.array([one is not None and one == two for one, two in zip(self, other, strict=True)], dtype=bool)

    @classmethod
    def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> FixedPoint:
        """Raises ValueError for what the column can't hold, OverflowError for what 63 bits can't."""
        if isinstance(dtype, str):
            dtype = FixedPointDtype.construct_from_string(dtype)
        values = list(scalars)
        steps = [
            0 if v is None else int(MONEY_CONTEXT.scaleb(as_column(v, 24, dtype.scale), dtype.scale)) for v in values
        ]
        return cls(np.array(steps, dtype=np.int64), dtype.scale, np.array([v is None for v in values], dtype=bool))

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[FixedPoint]) -> FixedPoint:
        steps = np.concatenate([each.steps for each in to_concat])
        return cls(steps, to_concat[0].scale, np.concatenate([each.isna() for each in to_concat]))
