"""What became of the documents, whether the books are right, and where a newcomer looks next."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rich.markup import escape

from demo.follow import Followed, look
from everest.cli.output import Table, console, rupiah, styled
from everest.store.database import load_queries
from everest.store.unit_of_work import Database

_QUERIES = load_queries("demo")

DEAD_LETTER_PATIENCE_S = 45
"""A rejection takes milliseconds; one that a crash prevented is made good by the reconciler in its period."""

LIST_SECONDS = 30


def print_documents(documents: list[Followed]) -> None:
    table = Table(title="What became of them", title_justify="left")
    for heading in ("document", "nota", "status"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "document")
    for heading in ("seconds", "debit", "credit", "lines"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reason", overflow="fold")
    for document in documents:
        seen, sample = document.seen, document.sample
        reason = str(seen.response.get("message", "")) if seen else ""
        code = f"{seen.error_code}: " if seen and seen.error_code else ""
        table.add_row(
            sample.title,
            sample.nota,
            styled(document.status),
            f"{seen.seconds:.1f}" if seen and document.is_settled and seen.seconds is not None else "",
            rupiah(seen.total_debet) if seen else "",
            rupiah(seen.total_kredit) if seen else "",
            f"{sample.lines:,}",
            escape(code + reason),
        )
    console().print(table)
    for document in documents:
        for error in document.seen.reasons if document.seen else []:
            console().print(
                f"  {document.sample.title}, baris {error['baris']}, {error['kolom']}: {error['pesan']}", markup=False
            )


def check_books(database: Database, documents: list[Followed]) -> list[str]:
    """Everything that is wrong with the postings, of this run and of all before it."""
    with database.transaction() as tx:
        postings = list(_QUERIES.postings(tx.conn))
    wrong = []
    for row in postings:
        name = f"posting {row['id']} ({row['nomer_nota']})"
        if not row["debet"] == row["kredit"] == row["total_debet"] == row["total_kredit"]:
            wrong.append(f"{name}: debit {row['debet']}, credit {row['kredit']}, said {row['total_debet']}")
        if row["persediaan"] != row["nilai"]:
            wrong.append(
                f"{name}: inventory in the ledger moved by {row['persediaan']}, the stock card by {row['nilai']}"
            )
    notas = [row["nomer_nota"] for row in postings]
    for document in documents:
        wanted = (
            1
            if document.sample.nota in {other.sample.nota for other in documents if other.sample.amount is not None}
            else 0
        )
        if notas.count(document.sample.nota) != wanted:
            wrong.append(f"{document.sample.nota} has {notas.count(document.sample.nota)} postings, must have {wanted}")
    if not wrong:
        console().print(f"[green]✓[/] {len(postings)} postings: each balanced, inventory in the ledger = stock card")
    return wrong


def check_dead_letters(database: Database, documents: list[Followed]) -> list[str]:
    """Every failed document must have its dead letter, no other one may; waits a little for it."""
    look(database, documents)
    failed = {
        d.shadow_id for d in documents if d.seen and d.seen.worker_status == "FAILED" and d.seen.error_code != 403
    }
    others = {document.shadow_id for document in documents} - failed
    deadline = time.monotonic() + DEAD_LETTER_PATIENCE_S
    while True:
        try:
            letters = _dead_letters()
        except (subprocess.SubprocessError, ValueError) as error:
            return [f"the dead letters could not be listed: {error}"]
        missing = failed - letters
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(1)
    wrong = [f"job #{shadow_id} FAILED and has no dead letter" for shadow_id in sorted(missing, key=str)]
    wrong += [f"job #{shadow_id} did not fail and has a dead letter" for shadow_id in sorted(others & letters, key=str)]
    if not wrong:
        console().print(
            f"[green]✓[/] {len(failed)} of these documents FAILED and have their dead letter, the other"
            f" {len(others)} have none"
        )
    return wrong


def _dead_letters() -> set[int | None]:
    """Shadow ids in the dead-letter queue, as `dead-letters list` shows them."""
    command = [sys.executable, "-m", "ingest_consumer", "dead-letters", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIST_SECONDS, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or f"exit code {done.returncode}")
    return {letter["shadow_id"] for letter in json.loads(done.stdout)}


def print_next(env: Mapping[str, str], failed: Followed, waiting: Followed, corrected: Path) -> None:
    """Airflow, how the failed one is put right, how the waiting one goes on: commands that can be pasted."""
    nota = shlex.quote(failed.sample.nota)
    console().print(
        f"""
Where to look next
  Airflow   {env.get("EVEREST_AIRFLOW_URL", "?")}  user {env.get("EVEREST_AIRFLOW_USER", "?")},\
 password: EVEREST_AIRFLOW_PASSWORD in .local/stack.env; the DAG is opname_posting
  Put the failed one right (its file holds the corrected lines), then watch it post:
    source .local/stack.env
    python -m everest status {nota}
    python -m ingest_consumer dead-letters list
    python -m everest submit {shlex.quote(str(corrected))} --nota {nota} --replace
    python -m everest rerun {nota}
    python -m everest status {nota} --watch
  Its dead letter is taken out within a minute after it is COMPLETED.
  Decide about the one that waits (or: reject), then watch it post:
    python -m everest approvals
    python -m everest approve {shlex.quote(waiting.sample.nota)} --reason "the receipt was counted"
    python -m everest status {shlex.quote(waiting.sample.nota)} --watch""",
        markup=False,
    )
