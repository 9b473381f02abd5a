"""What the broker says of its queues, over RabbitMQ's management API: the reconciler and the audit speak no AMQP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

import httpx

from everest.errors import EverestError
from ingest_consumer import tls
from ingest_consumer.addresses import Login
from ingest_consumer.shadow import DEAD_LETTER_QUEUE, JOBS_QUEUE, OUT_OF_ORDER

SETTING = "EVEREST_RABBIT_MANAGEMENT_URL"


class ManagementUnavailable(EverestError):
    """RabbitMQ's management API could not say how many messages there are."""

    retryable = True


class Management:
    """One broker's management API, for one vhost."""

    def __init__(self, login: Login, vhost: str, timeout: timedelta) -> None:
        address, verify = tls.http(login.url)
        self._client = httpx.Client(
            base_url=address.rstrip("/"),
            auth=(login.user, login.password),
            timeout=timeout.total_seconds(),
            verify=verify,
        )
        self._vhost = quote(vhost, safe="")

    def close(self) -> None:
        self._client.close()

    def queue_is_empty(self) -> bool:
        """Neither ready nor unacked messages, as of a few seconds ago. Raises ManagementUnavailable; also when the
        queue does not exist or is out of order, because then nothing that we send could arrive."""
        return self._messages(JOBS_QUEUE) == 0

    def dead_letters(self) -> int:
        """How many letters lie in the dead-letter queue, as of a few seconds ago. Raises ManagementUnavailable."""
        return self._messages(DEAD_LETTER_QUEUE)

    def _messages(self, queue: str) -> int:
        """Ready and unacked."""
        path = f"/api/queues/{self._vhost}/{queue}"
        try:
            answer = self._client.get(path)
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ManagementUnavailable(f"no answer to GET {path}: {tls.said(error, SETTING)}") from error
        if answer.status_code != httpx.codes.OK:
            raise ManagementUnavailable(f"{answer.status_code} to GET {path}")
        state = str(_told(answer, "state"))
        if state in OUT_OF_ORDER:
            raise ManagementUnavailable(f"queue {queue} is {state}; what to do: docs/operations.md, Dead letters")
        return sum(_count(answer, name) for name in ("messages_ready", "messages_unacknowledged"))


def _count(answer: httpx.Response, name: str) -> int:
    """A queue that was made a moment ago has no counts yet: that is "unknown", not zero."""
    value = _told(answer, name)
    if not isinstance(value, int):
        raise ManagementUnavailable(f"no {name} in the answer to GET {answer.request.url.path}")
    return value


def _told(answer: httpx.Response, name: str) -> Any:
    try:
        return answer.json()[name]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
