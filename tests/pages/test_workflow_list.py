"""The list of workflows: what a filter says is what it shows, over all pages of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from everest.pages.workflows import STATUSES
from everest.settings import MysqlUrl
from everest.store.workflow_lists import PAGE
from everest.workflow import control
from everest.workflow.builder import workflow
from tests.pages.conftest import Be, Browser
from tests.workflow.world import MysqlWorld, gives


@pytest.fixture
def world(database: MysqlUrl) -> Iterator[MysqlWorld]:
    with closing(MysqlWorld(database)) as found:
        found.database.move_clock(datetime.now(UTC) - found.now)  # the pages take the time from the server
        yield found


def listed(client: Browser, path: str) -> list[int]:
    """The runs of a list, through all of its pages."""
    found: list[int] = []
    while path:
        page = client.get(path).text
        found += [int(one) for one in re.findall(r'<th scope="row"><a href="/workflows/(\d+)"', page)]
        further = re.search(r'rel="next" href="([^"]*)"', page)
        path = further[1].replace("&amp;", "&") if further else ""
    return found


def test_status_and_name_show_exactly_those_runs(browser: Be, world: MysqlWorld) -> None:
    loads = workflow("memuat").wait_for_signal("truk").build()
    prints = workflow("mencetak").then(gives(a=1), name="a").build()
    endless = workflow("anggaran").then(gives(a=1), name="a").then(gives(b=1), name="b").max_transitions(1).build()
    nested = workflow("induk").run_workflow(loads, name="anak").build()
    runs: dict[str, list[tuple[str, int]]] = {status: [] for status in STATUSES}
    runs["waiting_for_signal"] += [("memuat", world.begin(loads)) for _ in range(2)]
    runs["completed"] += [("mencetak", world.begin(prints))]
    runs["failed"] += [("anggaran", world.begin(endless))]
    paused, cancelled = world.begin(loads), world.begin(loads)
    world.do(paused, control.pause, "engineer", "audit")
    world.do(cancelled, control.cancel, "engineer", "salah bulan")
    runs["paused"] += [("memuat", paused)]
    runs["cancelled"] += [("memuat", cancelled)]
    parent = world.begin(nested)
    runs["waiting_for_workflows"] += [("induk", parent)]
    (child,) = world.rows("SELECT id FROM workflow_runs WHERE parent_id = %s", parent)
    runs["waiting_for_signal"] += [("memuat", child["id"])]
    runs["running"] += [("mencetak", world.start(prints))]
    stored = {row["id"]: (row["workflow"], row["status"]) for row in world.rows("SELECT * FROM workflow_runs")}
    assert stored == {run: (name, status) for status, some in runs.items() for name, run in some}
    client = browser("analyst")
    newest = sorted(stored, reverse=True)
    for status in ("", *STATUSES, "nonsense"):
        for name in ("", "memuat", "mencetak", "induk", "tiada"):
            wanted = [
                run for run in newest
                if name in ("", stored[run][0]) and status in ("", "nonsense", stored[run][1])
            ]  # fmt: skip
            assert listed(client, f"/workflows?status={status}&workflow={name}") == wanted, (status, name)


def test_a_filter_goes_along_from_page_to_page_and_the_form_shows_it(browser: Be, world: MysqlWorld) -> None:
    loads, prints = (workflow(name).wait_for_signal("x").build() for name in ("opname_posting", "mencetak"))
    wanted = []
    for number in range(PAGE + 3):
        wanted.append(world.start(loads, key=f"a{number}"))
        if number % 10 == 0:
            world.start(prints, key=f"b{number}")
    client = browser("analyst")
    path = "/workflows?status=running&workflow=opname_posting"
    assert listed(client, path) == wanted[::-1]
    page = client.get(path).text
    assert '<option value="running" selected>' in page and '<option value="opname_posting" selected>' in page
    page = client.get("/workflows?workflow=tiada").text
    assert "<tbody>" not in page and 'class="empty"' in page
