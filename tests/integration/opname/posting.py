"""A document submitted and posted, in one call."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker

NOON = datetime(2026, 3, 10, 5, 0, tzinfo=UTC)  # 12:00 WIB

MORNING_WIB = datetime(2026, 3, 10, 8, 0)


def post(walker: Walker, connection: Any, *lines: Line, **header: Any) -> tuple[dict[str, Any], str]:
    """Submits and posts; the shadow row afterwards, and the nota."""
    document = builders.document(connection, lines, **header)
    walker.post(document.shadow_id)
    return builders.shadow(connection, document.shadow_id), document.nomer_nota
