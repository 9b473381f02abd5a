"""What a consumer keeps in memory for months is little, because it imports little (P8 in bench/README.md)."""

from __future__ import annotations

import subprocess
import sys

NOT_NEEDED = ("airflow", "everest", "numpy", "pandas", "prometheus_client", "tenacity", "tornado")


def test_the_consumer_imports_nothing_that_it_can_do_without() -> None:
    look = f"import sys, ingest_consumer.__main__; print(*(name for name in {NOT_NEEDED!r} if name in sys.modules))"

    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)

    assert found.stdout.split() == []
