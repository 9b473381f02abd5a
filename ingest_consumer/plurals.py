"""How a number of things is said: 1 line, 2 lines."""

from __future__ import annotations


def count(number: int, noun: str, plural: str | None = None) -> str:
    """plural: where an s at the end would not do."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
