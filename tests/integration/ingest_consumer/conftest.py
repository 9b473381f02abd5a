"""The fixtures of the queue."""

from __future__ import annotations

from tests.queue_fixtures import airflow, process, rows, running, settings, vhost

__all__ = ["airflow", "process", "rows", "running", "settings", "vhost"]
