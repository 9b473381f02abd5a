"""JSON that another program wrote and that decides nothing here: read where it can be, passed over where not."""

from __future__ import annotations

import json
from typing import Any


def object_in(text: str | bytes | None) -> dict[str, Any]:
    """The object that the text is; empty where it is none, is no JSON, or goes deeper than Python does (how deep that
    is differs from place to place: what the consumer could read may be too deep for the relay)."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
