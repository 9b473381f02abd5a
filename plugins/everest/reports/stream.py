"""Rows that stay on the server until they are wanted, a thousand at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from everest.opname.document import wib
from everest.settings import Settings

ROWS_PER_FETCH = 1_000


def streamed(selected: AbstractContextManager[Any]) -> Iterator[tuple[Any, ...]]:
    """Every row of a server-side cursor."""
    with selected as cursor:
        while rows := cursor.fetchmany(ROWS_PER_FETCH):
            yield from rows


def wib_entered(created_at: datetime, is_ours: bool, settings: Settings) -> datetime:
    """When a row was entered, as naive WIB: ours are UTC, those of other programs in the zone the settings name."""
    zone = UTC if is_ours else settings.foreign_zone
    return wib(created_at.replace(tzinfo=zone)).replace(microsecond=0)
