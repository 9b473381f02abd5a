"""A DAG that is in the stack's Airflow for one test, and documents that go through it instead of the posting's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from everest import bootstrap
from everest.workflow import engine
from everest.workflow.definition import Definition
from stack.layout import Layout
from tests.acceptance.live import Live, until
from tests.builders import Document


@dataclass
class Guest:
    """A workflow of the tests, loaded by Airflow."""

    live: Live
    definition: Definition

    def dispatch(self, *documents: Document) -> list[Document]:
        """Documents of the web application as jobs of this workflow, announced together, in place of their own jobs."""
        database = bootstrap.database(self.live.mysql)
        announced = []
        try:
            with database.transaction() as tx:
                for document in documents:
                    with tx.conn.cursor() as cursor:
                        cursor.execute("DELETE FROM rabbit_publish_shadow WHERE id = %s", (document.shadow_id,))
                    payload = {"transaksi_id": document.transaksi_id}
                    job = engine.dispatch(
                        tx, self.definition, payload, None, document.transaksi_id, document.nomer_nota
                    )
                    announced.append(replace(document, shadow_id=job.shadow_id))
        finally:
            database.close()
        return announced


@contextmanager
def guest_dag(
    live: Live, definition: Definition, max_active_runs: int = 64, module: str = "tests.acceptance.workflows"
) -> Iterator[Guest]:
    """Its file lies in Airflow's second DAG folder, never in production's. Afterwards the file, the DAG and its runs
    are gone, and no job waits for it. module: whose WORKFLOWS it is one of."""
    folder, dag = Layout.here().bench_dags, definition.dag_id
    file = folder / f"{dag}.py"
    file.write_text(
        "from everest.workflow.airflow_dag import to_dag\n"
        f"from {module} import WORKFLOWS\n\n"
        f"dag = to_dag(WORKFLOWS[{dag!r}], max_active_runs={max_active_runs})\n"
    )
    try:
        until(f"Airflow to load {file.name}", lambda: is_loaded(live, dag), every=1)
        yield Guest(live, definition)
    finally:
        file.unlink(missing_ok=True)
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        abandon(live, dag)
        with live.airflow() as airflow:
            airflow.delete(f"/dags/{dag}")


def remove_left_files() -> None:
    """Of a test process that was killed."""
    for file in Layout.here().bench_dags.glob("test_*.py"):
        file.unlink()


def is_loaded(live: Live, dag_id: str) -> bool:
    with live.airflow() as airflow:
        answer = airflow.get(f"/dags/{dag_id}")
        return answer.status_code == 200 and not answer.json()["is_stale"]


def abandon(live: Live, dag_id: str) -> None:
    """What a test left unfinished or FAILED is cancelled, and with it its dead letter settled."""
    with live.connection() as conn, conn.cursor() as cursor:
        cursor.execute(
            "UPDATE workflow_runs SET status = 'cancelled'"
            " WHERE dag_id = %s AND status NOT IN ('completed', 'cancelled')",
            (dag_id,),
        )
        cursor.execute(
            "UPDATE rabbit_publish_shadow SET worker_status = 'CANCELLED'"
            " WHERE dag_id = %s AND worker_status NOT IN ('COMPLETED', 'CANCELLED')",
            (dag_id,),
        )
        conn.commit()
