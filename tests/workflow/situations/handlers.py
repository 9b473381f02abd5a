"""Handlers of the situations, and work beside them in another thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from everest.errors import DocumentRefused
from everest.store import database as store
from everest.workflow.builder import workflow
from tests.workflow.world import MysqlWorld

PATIENCE_S = 60


class Died(BaseException):
    """The process ends here."""


def never(state: dict[str, Any], step: Any) -> None:
    raise AssertionError("nobody may call this")


def per_item(state: dict[str, Any], step: Any) -> dict[str, Any]:
    step.tx.write([step.step, step.visit, step.item])
    return {"twice": step.item * 2}


class Fixable:
    """Fails for good until it is repaired."""

    def __init__(self, **output: Any) -> None:
        self.is_broken, self.calls, self.output = True, 0, output

    def __call__(self, state: dict[str, Any], step: Any) -> dict[str, Any]:
        self.calls += 1
        step.tx.write(step.branch or step.step)
        if self.is_broken:
            raise DocumentRefused("rusak")
        return self.output


@contextmanager
def at_once(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Does this in another thread beside the body; what it raised is among the answers."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield answers
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "the other session hangs"


CHILD = workflow("child").wait_for_signal("go", name="gate").build()


def wait_for_lock(world: MysqlWorld) -> None:
    """Until some session of this schema waits for a row of ours. The server renews its list of locks only when nobody
    asked for a tenth of a second."""
    with closing(store.connect(world.url)) as conn, conn.cursor() as cursor:
        for _ in range(PATIENCE_S * 5):
            cursor.execute(
                "SELECT COUNT(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p"
                " ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
            )
            conn.commit()
            if cursor.fetchone()[0]:
                return
            time.sleep(0.2)
    raise AssertionError("nobody waits for a lock")
