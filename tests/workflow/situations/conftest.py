"""The 26 situations in which another engine was seen to hang, lose or double work. A test's number is the situation's.

What needs processes that die is in ../test_killed.py, what needs the reconciler's rounds in integration/reconciler.
"""

from __future__ import annotations

import pytest
from tenacity import wait_none

from everest.workflow import again


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two transient tries nobody waits here."""
    monkeypatch.setattr(again, "wait_random_exponential", lambda **_: wait_none())
