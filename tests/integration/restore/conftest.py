"""The fixtures of the queue, and a site whose database is dumped and restored."""

from __future__ import annotations

from tests.queue_fixtures import airflow, rows, running, settings, vhost

__all__ = ["airflow", "rows", "running", "settings", "vhost"]
