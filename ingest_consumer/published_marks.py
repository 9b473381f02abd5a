"""That a job's message is out, said in the job's own row, beside the publishing.

Never in the transaction that marks the outbox rows: to wait for a job that somebody holds, or to lose to it, would
publish a whole batch again. One that is held is marked in a later round, and what a relay does not come to do, the next
one finds when it becomes active.
"""

from __future__ import annotations

from collections.abc import Iterable

from ingest_consumer.database import Connection, Database
from ingest_consumer.shadow import JOBS_EXCHANGE, queries

LOOK_BACK_S = 3600
MOST = 10_000
"""How far back, and how many jobs, a relay that becomes active looks."""


class Marks:
    """The jobs that are still to be marked."""

    def __init__(self) -> None:
        self._owed: set[int] = set()

    def add(self, shadow_ids: Iterable[int]) -> None:
        self._owed |= set(shadow_ids)

    def look_back(self, conn: Connection) -> None:
        """What the relay before this one left unmarked."""
        found = queries.unmarked_shadows(conn, lately_s=LOOK_BACK_S, exchange=JOBS_EXCHANGE, most=MOST)
        self.add(one for (one,) in found)

    def write(self, database: Database) -> None:
        """Marks those that nobody holds. Raises what the database raises; they are owed until it has committed."""
        if not self._owed:
            return
        with database.transaction() as conn:
            free = free_of(conn, self._owed)
            if free:
                queries.mark_shadows_published(conn, shadow_ids=tuple(sorted(free)))
            held = self._owed - free
            known = queries.known_shadows(conn, shadow_ids=tuple(sorted(held))) if held else ()
            still = held & {one for (one,) in known}
        self._owed = still


def free_of(conn: Connection, shadow_ids: set[int]) -> set[int]:
    """Those of them that nobody else holds; they are ours until the commit."""
    return {one for (one,) in queries.free_shadows(conn, shadow_ids=tuple(sorted(shadow_ids)))}
