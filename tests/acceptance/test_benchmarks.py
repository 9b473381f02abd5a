"""The benchmarks that need Airflow, in small, as `make bench-smoke` runs them: each finishes and checks for itself that
its documents stand in the books. How fast is nobody's business here. P6 is left out: it installs an Airflow of its own.
"""

from __future__ import annotations

from tests.acceptance.live import Live

NAMES = ("P4", "P5", "P10", "P12", "P13")


def test_the_benchmarks_of_the_whole_pipeline_work_in_small(live: Live) -> None:
    said = live.run("bench", "--smoke", *NAMES).stdout

    assert "Everything measured works" in said
    for name in (*NAMES, "P13-fused", "P13-warehouses"):
        assert f" {name} " in said, f"{name} was not measured"
