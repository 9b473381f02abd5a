"""PAGES: how long a person waits for a page, with 100,000 documents and with one of 20,000 lines, over HTTP.

The application is served by uvicorn, as Airflow's API server serves it; who is logged in is said by a header instead of
Airflow. Pages are asked for one after another, each to its last byte, in absolute seconds: what the person at the
screen was promised. A row is a group of pages and shows its slowest one; statements per request are counted at the
driver, and no page may need more of them than MOST_STATEMENTS however much there is to show.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import MySQLdb.connections
import uvicorn
from fastapi import FastAPI, Request

from bench.measure import Result, Run, percentile
from bench.pages_browser import interactive
from bench.pages_data import fill
from bench.pages_list import OUTSIDE, groups
from bench.pages_submit import AIM_S, MUST_S, submits
from everest.pages.access import Person, Role, RoleMapping
from everest.pages.app import create_app
from everest.pages.guard import GuardedRoute
from everest.pages.settings import PageSettings
from everest.pages.tokens import sign
from everest.settings import MysqlUrl, Settings

DOCUMENTS, LINES, RUNS = 100_000, 20_000, 20
REPORTED_RUNS = 5
"""Of what is only reported, seconds each."""
SMOKE_DOCUMENTS, SMOKE_LINES, SMOKE_RUNS = 400, 50, 1
MOST_STATEMENTS = 100
START_SECONDS, PATIENCE_SECONDS = 30, 120
SECRET = b"of the benchmark"
PEOPLE = {role.value: Person(role.value, frozenset({role})) for role in Role}


@dataclass(frozen=True)
class Asked:
    """One page, asked for several times. statements: the most that one request sent to the database."""

    name: str
    seconds: Sequence[float]
    statements: int

    @property
    def p95(self) -> float:
        return percentile(self.seconds, 0.95)


def pages(url: MysqlUrl, smoke: bool) -> list[Result]:
    count, lines, runs = (SMOKE_DOCUMENTS, SMOKE_LINES, SMOKE_RUNS) if smoke else (DOCUMENTS, LINES, RUNS)
    filled = fill(url, count, lines)
    results = []
    with served(url) as (app, client), counted_statements() as sent:
        listed = groups(filled)
        check_nothing_is_forgotten(app, [path for group in listed for _, path, _ in group.pages])
        for group in listed:
            often = runs if group.is_promised else min(runs, REPORTED_RUNS)
            asked = [_ask(client, sent, name, path, who, often) for name, path, who in group.pages]
            results.append(_result(group.id, f"{group.what}; {count:,} documents", asked, group.is_promised))
        results += submits(client, sign(SECRET, PEOPLE["warehouse"]), url, filled, lines, runs)
        base_url = str(client.base_url).rstrip("/")
        results += interactive(base_url, filled.large, lines, runs, MUST_S, AIM_S)
    return results


def _ask(client: httpx.Client, sent: Counter[str], name: str, path: str, who: str, runs: int) -> Asked:
    seconds, statements = [], 0
    for number in range(runs + 1):
        before, began = sent.total(), time.perf_counter()
        answer = client.get(path, headers={"x-person": who})
        if number or runs == 1:  # the first one fills caches of ours
            seconds.append(time.perf_counter() - began)
        statements = max(statements, sent.total() - before)
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code}")
    if statements > MOST_STATEMENTS:
        raise RuntimeError(f"{path}: {statements} statements in one request")
    return Asked(name, seconds, statements)


def _result(id: str, what: str, asked: Sequence[Asked], is_promised: bool) -> Result:
    slowest = max(asked, key=lambda one: one.p95)
    told = "; ".join(f"{one.name} {one.p95:.2f} s, {one.statements}" for one in asked)
    return Result(
        f"PAGES-{id}",
        f"{what}: the slowest of {len(asked)}, p95 of {len(slowest.seconds)}: {slowest.name}",
        "s",
        "absolute",
        slowest.p95,
        None,
        slowest.p95,
        must=MUST_S if is_promised else None,
        aim=AIM_S if is_promised else None,
        runs=tuple(map(Run, slowest.seconds)),
        note=f"p95 and statements of each: {told}",
    )


@contextmanager
def served(url: MysqlUrl) -> Iterator[tuple[FastAPI, httpx.Client]]:
    """The pages on a free port, and somebody who asks."""

    async def by_header(request: Request) -> Person | None:
        return PEOPLE.get(request.headers.get("x-person", ""))

    settings = PageSettings(mysql=url, site=Settings.from_environment(), roles=RoleMapping({}, {}), secret=SECRET)
    app = create_app(settings, by_header)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise RuntimeError("the pages did not start")
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS, trust_env=False) as client:
            yield app, client
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


@contextmanager
def counted_statements() -> Iterator[Counter[str]]:
    """How many statements this process sends to a database, while the `with` lasts."""
    sent: Counter[str] = Counter()
    connection: Any = MySQLdb.connections.Connection
    query: Callable[[Any, Any], None] = connection.query

    def counted(self: Any, statement: Any) -> None:
        sent["statements"] += 1
        query(self, statement)

    connection.query = counted
    try:
        yield sent
    finally:
        connection.query = query


def check_nothing_is_forgotten(app: FastAPI, paths: Sequence[str]) -> None:
    """Every page that can be opened is measured; a new one is missed here until it is."""
    routes = [route for route in app.routes if isinstance(route, GuardedRoute) and "GET" in (route.methods or ())]
    bare = [path.partition("?")[0] for path in paths]
    missed = [
        route.path
        for route in routes
        if route.path not in OUTSIDE and not any(route.path_regex.fullmatch(path) for path in bare)
    ]
    if missed:
        raise RuntimeError(f"not measured: {', '.join(missed)}")
