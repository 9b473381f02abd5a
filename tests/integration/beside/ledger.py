"""What the books must hold of the documents of a site, whoever posted them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.builders import Document


def ledger(documents: Iterable[Document]) -> dict[str, tuple[Any, ...]]:
    """What the books must hold: surplus 2 x 1,500 and shortage 2 x N.505 of each."""
    expected = {}
    for document in documents:
        number = int(document.nomer_nota.removeprefix("SO-"))
        short = (2 * Decimal(f"{number}.505")).quantize(Decimal("0.01"), ROUND_HALF_UP)
        moved = 3000 - short
        expected[document.nomer_nota] = (4, 3000 + short, moved, 2, moved)
    return expected
