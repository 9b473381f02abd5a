"""Trying again: which trouble is tried again in place, with what pauses, and for how long.

A deadlock, a lock that somebody holds and a lost connection say nothing about the work, only about the moment. They
cost none of the tries that a definition allows (those count what its handlers do wrong): the work is begun again after
a short growing pause, by chance a little more or less so that two that met do not meet again, until the trouble has
lasted for a minute. Failures of a handler's own are tried again after a pause, too, and those are counted.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random_exponential

from everest.errors import TransientDatabaseError

log = logging.getLogger(__name__)

T = TypeVar("T")
Rest = Callable[[float], object]
"""Waits for so many seconds; in memory nobody does."""

PATIENCE = timedelta(seconds=60)
"""How long transient trouble is outlived in place: a restart or failover of the database, any storm of deadlocks."""
TRIES_AT_LEAST = 6
"""However long each takes: one that waits 20 s for a lock would else have three."""
LONGEST_PAUSE_S = 3.0
FIRST_REST_S = 1.0
LONGEST_REST_S = 30.0


def when_transient(work: Callable[[], T]) -> T:
    """What `work` returns. It is done again after a TransientDatabaseError, which is raised once it has lasted too
    long; so `work` is to be one transaction, or several that find out what was committed."""
    made = []
    try:
        return work()
    except TransientDatabaseError as error:
        made.append(error)
    retrying = Retrying(
        retry=retry_if_exception_type(TransientDatabaseError),
        wait=wait_random_exponential(multiplier=0.1, max=LONGEST_PAUSE_S),
        stop=stop_after_attempt(TRIES_AT_LEAST) & stop_after_delay(PATIENCE),
        before_sleep=lambda call: log.warning("transient database error, trying again: %s", _error_of(call)),
        reraise=True,
    )

    def once_more() -> T:
        if made:  # the first try: nearly always the only one, it needs no book-keeping
            raise made.pop()
        return work()

    outcome: T = retrying(once_more)
    return outcome


def rest_s(tries: int) -> float:
    """Seconds before the next try of what has failed so often on its own account: about 1, 2, 4 ... 30."""
    return min(LONGEST_REST_S, FIRST_REST_S * 2.0 ** (min(tries, 16) - 1)) * random.uniform(0.75, 1.25)


def at_once(seconds: float) -> None:
    """The rest of a world without time."""


def rest(seconds: float) -> None:
    time.sleep(seconds)


def _error_of(call: Any) -> BaseException | None:
    return call.outcome.exception() if call.outcome else None
