"""What not everybody sees, as those see it who do: an engineer's buttons, an analyst's pages without any, a clerk's own
ones, documents in each status, every report with its chart, answers that refuse.

Once through axe each, in languages, colours and sizes by turns, so that parts that pages have in common are seen in all
of them; what finance sees is in test_seen. `make pictures` keeps what the browser shows here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import combinations, cycle
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Page, expect

from everest import bootstrap
from everest.pages import document_tabs, documents
from everest.pages.drill_down import CHARTED
from everest.reports import REPORTS
from everest.settings import MysqlUrl
from everest.store.workflow_lists import page_of_runs
from everest.workflow import control
from everest.workflow.builder import workflow
from everest.workflow.definition import Definition
from tests import builders
from tests.builders import Line
from tests.integration.opname.walk import Walker
from tests.pages import eyes
from tests.pages.chromium import Open, address, chromium, open_as
from tests.pages.conftest import Be
from tests.pages.forms import kept
from tests.pages.standing import failed, run
from tests.workflow.world import MysqlWorld, gives

__all__ = ["address", "chromium", "open_as"]

WAITS, PAUSED, FAILED, STUCK = "waits", "paused", "failed", "compensation failed"


class Look(NamedTuple):
    """Who looks at what. shown: something that must stand there; clicked: what is opened then."""

    who: str
    path: str
    shown: str = "main h1"
    clicked: str | None = None


@pytest.fixture
def world(database: MysqlUrl, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlWorld]:
    """Its definitions are among those that this site runs."""
    real = bootstrap.deployed
    with closing(MysqlWorld(database)) as found:
        found.database.move_clock(datetime.now(UTC) - found.now)  # the pages take the time from the server

        def deployed(name: str, version: str, definition_hash: str | None = None) -> Definition | None:
            return found.definitions.get(name) or real(name, version, definition_hash)

        monkeypatch.setattr(bootstrap, "deployed", deployed)
        yield found


def sticks(state: dict[str, Any], step: Any) -> None:
    raise RuntimeError("printer macet")


@pytest.fixture
def runs(world: MysqlWorld) -> dict[str, int]:
    """A workflow in each state in which an engineer may do something to it."""
    found = {WAITS: world.begin(workflow("menunggu").wait_for_signal("truk").build(), {"bulan": "2026-08"}, "agustus")}
    found[PAUSED] = world.begin(workflow("berhenti").wait_for_signal("truk").build())
    world.do(found[PAUSED], control.pause, "engineer", "audit")
    endless = workflow("anggaran").then(gives(a=1), name="a").then(gives(b=1), name="b").max_transitions(1)
    found[FAILED] = world.begin(endless.build())
    prints = workflow("mencetak").then(gives(a=1), name="a", compensate_with=sticks).wait_for_signal("truk").build()
    found[STUCK] = world.begin(prints)
    world.do(found[STUCK], control.cancel, "engineer", "salah bulan")
    world.compensate()
    return found


BUTTONS = {
    WAITS: ("pause", "cancel"),
    PAUSED: ("resume", "cancel"),
    FAILED: ("retry", "cancel"),
    STUCK: ("compensate",),
}


def of_an_engineer(runs: dict[str, int]) -> Iterator[Look]:
    yield Look("engineer", "/workflows", "#rows tbody tr")
    for name, run_id in runs.items():
        last = BUTTONS[name][-1]
        yield Look("engineer", f"/workflows/{run_id}", f"[data-open={last}]")
        if name in (WAITS, STUCK):  # a dialog that asks why, and one that does not
            yield Look("engineer", f"/workflows/{run_id}", f"dialog#{last}[open]", f"[data-open={last}]")


def of_others(runs: dict[str, int], jobs: dict[str, int], draft: int) -> Iterator[Look]:
    analyst = ["/documents", "/approvals", "/dead-letters", "/drafts", f"/drafts/{draft}", "/health"]
    yield from (Look("analyst", path) for path in (*analyst, f"/workflows/{runs[WAITS]}"))
    clerk = ["/documents", "/drafts", f"/drafts/{draft}", "/submit"]
    yield from (Look("warehouse", path) for path in (*clerk, f"/documents/{jobs['COMPLETED']}"))
    yield Look("warehouse", f"/documents/{jobs['FAILED']}?tab=lines")
    for status, shadow_id in jobs.items():
        badge = f"#state .badge.{status.lower()}"
        yield Look("analyst", f"/documents/{shadow_id}", badge)
        if status in ("PENDING", "WAITING"):
            tabs = [tab for tab in document_tabs.TABS if tab != "summary"]
            yield from (Look("analyst", f"/documents/{shadow_id}?tab={tab}", badge) for tab in tabs)


def of_reports() -> Iterator[Look]:
    for key in REPORTS:
        shown = ".chart svg:visible a rect" if key in CHARTED else "main tbody tr, main .empty"
        yield Look("analyst", f"/reports?report={key}&since=&nomer_nota=SO-COMPLETED", shown)


def one_of_each(browser: Be, database: MysqlUrl, conn: Any) -> dict[str, int]:
    """A document of the clerk's in each status: the jobs. Each counts its own items, and makes no other one stale."""

    def counted(name: str) -> dict[str, Any]:
        lines = [Line(f"{name}-A", "10", "12", "1500", alasan="rak bocor"), Line(f"{name}-B", "7", "5", "2500.50")]
        return {"lines": lines, "nomer_nota": f"SO-{name}", "dibuat_oleh": "warehouse"}

    found = {"PENDING": builders.document(conn, **counted("PENDING"))}
    found |= {name: failed(conn, **counted(name)) for name in ("FAILED", "CANCELLED")}
    found |= {name: builders.document(conn, **counted(name)) for name in ("PROCESSING", "COMPLETED", "WAITING")}
    with closing(Walker(database)) as walker:
        walker.claim(found["PROCESSING"].shadow_id)
        assert walker.post(found["COMPLETED"].shadow_id) == "COMPLETED"
        builders.limits(conn, batas_dokumen="1")
        walker.dag_run(walker.claim(found["WAITING"].shadow_id))
    dropped = browser("finance").submit(
        "/dead-letters/drop", shadow_id=str(found["CANCELLED"].shadow_id), reason="ganda"
    )
    assert dropped.status_code == 200
    jobs = {status: one.shadow_id for status, one in found.items()}
    assert {status: builders.shadow(conn, one)["worker_status"] for status, one in jobs.items()} == {
        status: status for status in documents.STATUSES
    }
    return jobs


def test_what_each_role_sees_bars_nobody(
    open_as: Open, address: str, browser: Be, database: MysqlUrl, connection: Any, runs: dict[str, int]
) -> None:
    jobs = one_of_each(browser, database, connection)
    draft = kept(browser, connection)
    looks = [*of_an_engineer(runs), *of_others(runs, jobs, draft), *of_reports()]
    wrong: dict[str, Any] = {}
    pages: dict[str, set[tuple[str, str]]] = {}
    manners = cycle(eyes.MANNERS)
    for who in dict.fromkeys(look.who for look in looks):
        with open_as(who) as page:
            for look in (one for one in looks if one.who == who):
                manner = next(manners)
                found = seen(page, address, look, manner)
                if found:
                    wrong[f"{look} {manner}"] = found
                pages.setdefault(who, set()).update(combinations(map(str, manner), 2))
                if who != "analyst" and not look.clicked:
                    eyes.draw(page, f"{who}{look.path}")
    assert not wrong, wrong
    assert {who: len(pairs) for who, pairs in pages.items()} == dict.fromkeys(("engineer", "analyst", "warehouse"), 12)


def seen(page: Page, root: str, look: Look, manner: eyes.Manner) -> list[Any]:
    """What bars somebody from this page in this manner."""
    eyes.dress(page, root, *manner)
    answer = page.goto(look.path)
    assert answer is not None and answer.status == 200, look
    if look.clicked:
        page.locator(look.clicked).click()
    expect(page.locator(look.shown).first).to_be_visible()
    assert page.locator("html").get_attribute("lang") == manner[0]
    foreign = eyes.ENGLISH.findall(page.evaluate(eyes.OURS)) if manner[0] == "id" else []
    return [*eyes.serious(page), *eyes.too_wide(page), *foreign, *eyes.ISO.findall(page.evaluate(eyes.OURS))]


def test_an_engineer_has_the_buttons_of_a_workflows_state_and_nobody_else_has_any(
    browser: Be, runs: dict[str, int], connection: Any
) -> None:
    connection.commit()
    assert len(page_of_runs(connection)) == len(runs)
    for name, run_id in runs.items():
        page = browser("engineer").get(f"/workflows/{run_id}").text
        assert [
            one for one in ("pause", "resume", "retry", "cancel", "compensate") if f'data-open="{one}"' in page
        ] == [*BUTTONS[name]]
        assert ("/signal" in page) == (name in (WAITS, PAUSED))
        for who in ("analyst", "finance"):
            other = browser(who).get(f"/workflows/{run_id}").text
            assert "data-open=" not in other and f"/workflows/{run_id}/signal" not in other


def send_without_script(page: Page, form: str) -> None:
    """As a browser does where our script does not run; with it the refusal stands in the form (test_sending.py)."""
    with page.expect_navigation():
        page.locator(form).evaluate("(form) => form.submit()")


def asks_twice(page: Page, conn: Any) -> None:
    """409: somebody else has run it again meanwhile."""
    document = failed(conn)
    page.goto(f"/documents/{document.shadow_id}")
    run(conn, "UPDATE rabbit_publish_shadow SET worker_status = 'COMPLETED' WHERE id = %s", document.shadow_id)
    send_without_script(page, "dialog form[action$='/rerun']")


def chooses_nothing(page: Page, conn: Any) -> None:
    """422: a form without what it is about."""
    failed(conn)
    page.goto("/dead-letters")
    send_without_script(page, "#failed")


def opens(path: str) -> Callable[[Page, Any], None]:
    def go(page: Page, conn: Any) -> None:
        page.goto(path)

    return go


REFUSED: dict[str, tuple[str, int, Callable[[Page, Any], None]]] = {
    "no login": ("nobody", 401, opens("/documents")),
    "the wrong role": ("warehouse", 403, opens("/approvals")),
    "no role of ours": ("stranger", 403, opens("/documents")),
    "no such document": ("analyst", 404, opens("/documents/999999999")),
    "no such address": ("analyst", 404, opens("/nothing")),
    "things have changed": ("finance", 409, asks_twice),
    "nothing was chosen": ("finance", 422, chooses_nothing),
}


def test_an_answer_that_refuses_is_a_page_that_bars_nobody(open_as: Open, address: str, connection: Any) -> None:
    """In our style also for those who may not fetch it, in light and dark: the frame of the sentence is drawn, and no
    rule of its policy was broken for that."""
    wrong: dict[str, Any] = {}
    manners = cycle(eyes.MANNERS)
    for name, (who, status, act) in REFUSED.items():
        told: list[str] = []
        answers: list[int] = []
        with open_as(who) as page:
            page.on("console", lambda message, told=told: told.append(message.text))
            page.on("response", lambda answer, answers=answers: answers.append(answer.status))
            for manner in (next(manners), next(manners)) if status in (401, 403) else (next(manners),):
                eyes.dress(page, address, *manner)
                act(page, connection)
                box = page.locator("main .problem[role=alert]")
                expect(box.locator("h1")).to_be_visible()
                background = box.evaluate("() => getComputedStyle(document.body).backgroundColor")
                if found := [*eyes.serious(page), *eyes.too_wide(page)]:
                    wrong[f"{name} {manner}"] = found
                assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}[manner[1]], name
                assert box.evaluate("(one) => getComputedStyle(one).borderLeftWidth") == "5px", name
            if status in (401, 403, 404):  # the others are answers to a form
                eyes.draw(page, f"refused/{name}")
        assert not [one for one in told if "Content Security Policy" in one], told
        assert status in answers, name
        if who in ("nobody", "stranger"):
            assert set(answers) == {status}, "it asks for nothing that would be refused as well"
    assert not wrong, wrong
