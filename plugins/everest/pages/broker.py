"""What RabbitMQ's management API says of our two queues. The pages speak no AMQP, and a broker that is away is news,
not an error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

import httpx

from everest.pages.settings import Broker
from ingest_consumer import tls
from ingest_consumer.shadow import DEAD_LETTER_QUEUE, JOBS_QUEUE, OUT_OF_ORDER

TIMEOUT_SECONDS = 2.0
"""A page waits no longer for a number that only informs."""


Trouble = Literal["unknown", "silent", "refused", "absent", "down"]
"""Why there are no numbers: nobody said where the API is, it does not answer, it does not let us in, it knows no such
queue, or one is out of order."""


@dataclass(frozen=True)
class Queues:
    """Messages as of a few seconds ago. ready: waiting for a consumer, held: being worked on. None: not told."""

    ready: int | None = None
    held: int | None = None
    consumers: int | None = None
    letters: int | None = None
    trouble: Trouble | None = None


_TROUBLES: dict[int, Trouble] = {401: "refused", 403: "refused", 404: "absent"}


def look(where: Broker | None) -> Queues:
    """Never an error: what is wrong is said in `trouble`."""
    if where is None:
        return Queues(trouble="unknown")
    try:
        address, verify = tls.http(where.url)
        with httpx.Client(
            base_url=address.rstrip("/"),
            auth=(where.user, where.password),
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            verify=verify,
        ) as client:
            jobs, letters = (_queue(client, where.vhost, one) for one in (JOBS_QUEUE, DEAD_LETTER_QUEUE))
    except httpx.HTTPStatusError as error:
        return Queues(trouble=_TROUBLES.get(error.response.status_code, "silent"))
    except (httpx.HTTPError, OSError, ValueError):  # OSError: a file of its ssl_ parameters is gone
        return Queues(trouble="silent")
    if any(str(one.get("state")) in OUT_OF_ORDER for one in (jobs, letters)):
        return Queues(trouble="down")
    return Queues(
        ready=jobs.get("messages_ready"),
        held=jobs.get("messages_unacknowledged"),
        consumers=jobs.get("consumers"),
        letters=letters.get("messages"),
    )


def _queue(client: httpx.Client, vhost: str, name: str) -> dict[str, Any]:
    answer = client.get(f"/api/queues/{quote(vhost, safe='')}/{name}")
    answer.raise_for_status()
    found = answer.json()
    return found if isinstance(found, dict) else {}
