"""The token in every form: says that the form came from a page that we gave to this very person, not long ago."""

from __future__ import annotations

import hashlib
import hmac
import time

from everest.pages.access import Person

TOKEN_LIVES_SECONDS = 12 * 3600
"""A page left open for a working day still works."""


def sign(secret: bytes, who: Person, now: float | None = None) -> str:
    """A token for this person's forms."""
    moment = str(int(time.time() if now is None else now))
    return f"{moment}.{_mac(secret, who, moment)}"


def is_signed(secret: bytes, who: Person, token: str, now: float | None = None) -> bool:
    moment, _, mac = token.partition(".")
    if not moment.isascii() or not moment.isdecimal() or len(moment) > 12:
        return False
    age = (time.time() if now is None else now) - int(moment)
    return -60 <= age <= TOKEN_LIVES_SECONDS and hmac.compare_digest(mac.encode(), _mac(secret, who, moment).encode())


def _mac(secret: bytes, who: Person, moment: str) -> str:
    return hmac.new(secret, f"everest-pages\0{who.name}\0{moment}".encode(), hashlib.sha256).hexdigest()
