from __future__ import annotations

from tests.acceptance.conftest import live
from tests.queue_fixtures import airflow, rows, settings, vhost

__all__ = ["airflow", "live", "rows", "settings", "vhost"]
