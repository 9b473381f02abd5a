"""A worked example of a module that lives beside everest: the monthly closing of the warehouses, as a durable workflow.

To copy: `workflow.py` says what happens in which order, `handlers.py` does it, `rows.py` and `queries.sql` are the only
ones that know tables, `dags/monthly_closing.py` gives it to Airflow. Tests: `tests/unit/closing_example` (in memory),
`tests/integration/closing_example` (on MySQL). `docs/workflows.md` walks through it.

It closes nothing in earnest: what it does is a row in the audit log, written once per step whatever goes wrong.
"""
