"""The nightly audit of the books: every invariant is a task of its own, green when it holds.

A red task names the rows that break its invariant; they stand in `audit_findings` as well, with the night in which each
was first seen. Nothing is repaired here. What each finding means and what to do is written at its task, and in
docs/operations.md. `python -m everest audit` does the same by hand.
"""

from everest.audit.airflow_dag import audit_dag

dag = audit_dag("ledger_audit", doc=__doc__, tags=("audit",))
