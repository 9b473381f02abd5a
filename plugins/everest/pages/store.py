"""The pages' way to the database: a connection per request, from the same place as everybody's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta

from fastapi import Request

from everest import bootstrap
from everest.pages.settings import PageSettings
from everest.store.unit_of_work import Database, UnitOfWork

ANSWER_WITHIN = timedelta(minutes=2)
"""A browser has given up by then; the thread that answers it must be free again too."""


def database(request: Request) -> Database:
    """For what opens several transactions; the caller closes it."""
    settings: PageSettings = request.app.state.settings
    return bootstrap.database(settings.mysql, settings.site, ANSWER_WITHIN)


@contextmanager
def snapshot(request: Request) -> Iterator[UnitOfWork]:
    """Everything read inside is of one moment; nothing is written and no row locked."""
    with closing(database(request)) as found, found.snapshot() as tx:
        yield tx


@contextmanager
def transaction(request: Request) -> Iterator[UnitOfWork]:
    """One transaction; it commits at the end, also when it has only read."""
    with closing(database(request)) as found, found.transaction() as tx:
        yield tx
