"""Whether two names mean one person. Rules of four eyes stand or fall with it, so there is one answer for all of them.

Names come from logins, from commands and from rows that other programs wrote: "Rina" and "rina " are one person. What a
collation would say besides (jose is josé) is not said here.
"""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 100
"""Characters that the columns of names hold; what a person is called beyond them is not known any more."""


def is_same(one: str | None, other: str | None) -> bool:
    return _told(one) == _told(other)


def is_among(who: str, names: Iterable[str]) -> bool:
    return any(is_same(who, name) for name in names)


def _told(name: str | None) -> str:
    return (name or "")[:LONGEST].casefold().strip()
