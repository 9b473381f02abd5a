"""The names of DAG runs: deterministic, and always something Airflow takes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_consumer.shadow import dag_run_id

AIRFLOW_TAKES = re.compile(r"^[A-Za-z0-9_.~:+-]+$")


def test_a_posting_is_named_by_its_document_and_its_shadow_row() -> None:
    assert dag_run_id("opname_posting", 1001, 5, 7, 2) == "opname_posting__1001__7__2"


@given(st.text(max_size=250), st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1))
def test_whatever_the_key_is_the_name_is_one_that_airflow_takes(key: str, workflow_id: int, shadow_id: int) -> None:
    name = dag_run_id("payroll", key, workflow_id, shadow_id, 3)

    assert AIRFLOW_TAKES.fullmatch(name)
    assert ".." not in name
    assert len(name.encode()) < 200
    assert name.endswith(f"__{shadow_id}__3")


def test_without_a_usable_key_and_without_a_workflow_there_is_no_name() -> None:
    with pytest.raises(ValueError, match="shadow row 7"):
        dag_run_id("opname_posting", None, None, 7, 1)
