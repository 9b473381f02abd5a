"""`python -m everest post` that dies in the middle: what it leaves, and the two ways on (docs/decisions/0012)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from everest.opname.workflow import POST_OPNAME
from everest.store import database as store
from everest.workflow import runner
from tests import builders
from tests.builders import Document
from tests.conftest import as_text
from tests.integration.reconciler.world import World
from tests.queue_rig import ROOT, until

Killed = Callable[[], Document]


def post(world: World, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "everest", "post", *arguments],
        env=os.environ | {"EVEREST_MYSQL_URL": as_text(world.url), "PYTHONPATH": f"{ROOT}:{ROOT}/plugins"},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sessions_in(world: World, table: str) -> list[dict[str, Any]]:
    return builders.rows(
        world.conn,
        "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = %s AND INFO LIKE %s AND ID <> CONNECTION_ID()",
        world.url.schema,
        f"%FROM {table}%FOR UPDATE%",
    )


@pytest.fixture(params=["so_headers_staging", "gudang"], ids=["in the first step", "in the last step"])
def killed(world: World, request: pytest.FixtureRequest) -> Killed:
    """A document whose `post` was killed while it waited for a lock on this table."""

    def kill() -> Document:
        document = builders.document(world.conn)
        with closing(store.connect(world.url)) as holder, holder.cursor() as cursor:
            # Not FOR UPDATE: this statement must not be taken for the one that waits.
            cursor.execute(f"SELECT 1 FROM {request.param} LOCK IN SHARE MODE")
            process = post(world, document.nomer_nota)
            until(lambda: sessions_in(world, request.param), "the command waits for the lock")
            process.kill()
            process.communicate()
            holder.rollback()
        until(lambda: not sessions_in(world, request.param), "the server notices that it is gone")
        return document

    return kill


def assert_posted_once(world: World, document: Document) -> None:
    books = builders.books(world.conn)
    assert world.status(document.shadow_id) == "COMPLETED"
    assert (books.postings, books.journal_rows, books.card_rows, books.agree) == (1, 4, 2, True)


def test_a_killed_post_is_finished_by_a_second_one_that_is_told_to_take_it_over(world: World, killed: Killed) -> None:
    document = killed()
    row = world.row(document.shadow_id)
    assert (row["worker_status"], builders.books(world.conn).postings) == ("PROCESSING", 0)
    assert world.unsent() == [], "nothing is on its way that would post it"

    asked = post(world, document.nomer_nota)
    _, refusal = asked.communicate()
    told = post(world, document.nomer_nota, "--take-over", "--json")
    answer, _ = told.communicate()

    assert asked.returncode == 3
    assert "--take-over" in refusal
    assert (told.returncode, json.loads(answer)["code"]) == (0, 200)
    assert world.row(document.shadow_id)["n"] == row["n"] + 1
    assert_posted_once(world, document)


def test_a_killed_post_begins_again_through_the_queue_after_the_hold_limit(world: World, killed: Killed) -> None:
    document = killed()
    n = world.row(document.shadow_id)["n"]
    reconciler = world.reconciler()
    world.age(timedelta(minutes=1))
    assert reconciler.round() == 0, "Airflow does not know the run, but the command may still be at it"

    world.age(timedelta(minutes=20))
    assert reconciler.round() == 1

    assert (world.status(document.shadow_id), world.run_of(document.shadow_id)["recovered"]) == ("PENDING", 1)
    (message,) = world.unsent()
    assert json.loads(message["body"])["n"] == n + 1
    ticket = world.claimed(document.shadow_id)
    for step in POST_OPNAME.steps:
        runner.run_step(POST_OPNAME, ticket, step.name, world.database.transaction, is_last_try=True)
    assert_posted_once(world, document)
