"""The DAG of the audit: one task per invariant, so that each is green or red by itself.

A finding fails its task at once, with the rows named; it would be there again at the next try. Trouble of a server is
tried again. Tasks look at nothing of each other. What they need is imported when they run: Airflow parses this often.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from everest.audit.invariants import BY_KEY, INVARIANTS
from everest.audit.settings import AuditSettings
from everest.workflow.airflow_dag import open_connection

WIB = ZoneInfo("Asia/Jakarta")
TIMEOUT = timedelta(hours=1)
RETRIES = 2
RETRY_DELAY = timedelta(minutes=1)
AT_ONCE = 2
"""Tasks at work: the audit is in no hurry, postings are."""


class InvariantOperator(BaseOperator):
    """Looks at one invariant, by its key."""

    ui_color = "#fef3e8"

    def __init__(self, *, invariant: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.invariant = invariant

    def execute(self, context: Any) -> None:
        from everest import bootstrap
        from everest.audit.run import audit, auditor_of

        settings = AuditSettings.from_environment()
        database = bootstrap.database_from(open_connection, answer_within=self.execution_timeout)
        try:
            with auditor_of(database, settings) as auditor:
                report = audit(auditor, BY_KEY[self.invariant], "ledger_audit", context["dag_run"].run_id)
        finally:
            database.close()
        for note in report.notes:
            self.log.warning("%s", note)
        if report.unknown:
            raise AirflowFailException(report.sentence(settings.named))
        if report.not_checked:
            raise RuntimeError(f"{self.invariant} was not checked: {report.not_checked}")
        if report.found:
            self.log.warning("%s", report.sentence(settings.named))
            return
        self.log.info("%s Nothing found; %s findings are gone.", report.invariant.sentence, report.resolved)


def audit_dag(dag_id: str, doc: str, tags: tuple[str, ...]) -> DAG:
    """Nightly at the site's hour (WIB), and whenever somebody triggers it."""
    settings = AuditSettings.from_environment()
    with DAG(
        dag_id=dag_id,
        schedule=f"0 {settings.hour_wib} * * *",
        start_date=datetime(2026, 1, 1, tzinfo=WIB),
        catchup=False,
        max_active_runs=1,
        max_active_tasks=AT_ONCE,
        is_paused_upon_creation=False,
        doc_md=doc,
        tags=list(tags),
    ) as dag:
        for invariant in INVARIANTS:
            InvariantOperator(
                task_id=invariant.key,
                invariant=invariant.key,
                doc_md=invariant.doc,
                retries=RETRIES,
                retry_delay=RETRY_DELAY,
                execution_timeout=TIMEOUT,
            )
    return dag
