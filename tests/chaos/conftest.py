from __future__ import annotations

from tests.acceptance.conftest import live

__all__ = ["live"]
