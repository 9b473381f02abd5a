"""P7 in small: the consumer carries documents beside a stub Airflow, and every span of them is measured."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from bench import handling
from everest.settings import mysql_url


def test_the_consumers_own_cost_is_measured_on_real_documents(
    servers: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in servers.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(handling, "RUN_SECONDS", (0.05, 0.1))

    (result,) = handling.p7(mysql_url(), smoke=True)

    assert (result.id, len(result.runs), result.unit) == ("P7", 2, "ms")
    assert all(run.value > 0 and run.floor is not None and run.floor > 0 for run in result.runs)
    assert result.ratio == pytest.approx(result.value - (result.floor or 0)), "a difference, not a quotient"
