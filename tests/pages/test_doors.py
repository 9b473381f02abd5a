"""Every route, taken from the application itself: nobody without login, nobody with the wrong role, nothing forged.

A new route is in these tests by being there.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest
from starlette.routing import Route

from everest.pages import view
from everest.pages.access import Permission, Role, RoleMapping
from everest.pages.app import create_app
from everest.pages.guard import GuardedRoute
from everest.pages.settings import PageSettings
from everest.settings import MysqlUrl, Settings
from tests.pages.conftest import PEOPLE, Be, Browser, by_header
from tests.pages.routes import ROUTES, address, doors


def named(door: tuple[str, GuardedRoute]) -> str:
    return f"{door[0]} {door[1].path}"


DOORS = pytest.mark.parametrize("door", doors(), ids=named)
WRITING = pytest.mark.parametrize("door", [door for door in doors() if door[0] != "GET"], ids=named)


def test_there_is_no_route_without_a_guard() -> None:
    assert ROUTES and all(isinstance(route, GuardedRoute) for route in ROUTES if isinstance(route, Route))
    assert len(ROUTES) == len([route for route in ROUTES if isinstance(route, Route)]), "something is mounted"


@DOORS
def test_nobody_enters_without_a_login(door: tuple[str, GuardedRoute], browser: Be) -> None:
    answer = browser(None).request(door[0], address(door[1]))
    assert answer.status_code == 401


@DOORS
def test_somebody_without_the_role_is_refused(door: tuple[str, GuardedRoute], browser: Be) -> None:
    method, route = door
    outside = [role.value for role in Role if route.permission not in role.permissions] + ["stranger"]
    for who in outside:
        client = browser(who)
        answer = client.get(address(route)) if method == "GET" else client.submit(address(route), reason="x")
        assert answer.status_code == 403, who


@WRITING
@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://testserver.evil.example", "http://testserver:81", ""]
)
def test_a_form_from_elsewhere_is_refused(door: tuple[str, GuardedRoute], browser: Be, origin: str | None) -> None:
    who = next(role.value for role in Role if door[1].permission in role.permissions)
    answer = browser(who).submit(address(door[1]), origin=origin, reason="x")
    assert answer.status_code == 403


@WRITING
def test_a_form_without_our_token_is_refused(door: tuple[str, GuardedRoute], browser: Be) -> None:
    who = next(role.value for role in Role if door[1].permission in role.permissions)
    client = browser(who)
    for token in ("", "1.abc", "x"):
        assert client.submit(address(door[1]), token=token, reason="x").status_code == 403


@WRITING
def test_what_changes_something_is_no_get(door: tuple[str, GuardedRoute], browser: Be) -> None:
    """A GET on the same address is another page or none."""
    assert door[0] == "POST"
    answer = browser("engineer").get(address(door[1]))
    assert answer.status_code in (200, 303, 404, 405)


WHAT_CHANGES_SOMETHING = {
    Permission.SUBMIT: {"/submit", "/submit/problems.{form}", "/drafts/{transaksi_id}/withdraw"},
    Permission.ACT: {
        "/approvals/{shadow_id}/approve",
        "/approvals/{shadow_id}/reject",
        "/dead-letters/drop",
        "/dead-letters/drop-broken",
        "/dead-letters/replay",
        "/documents/{shadow_id}/authorise",
        "/documents/{shadow_id}/correct",
        "/documents/{shadow_id}/correct/problems.{form}",
        "/documents/{shadow_id}/rerun",
        "/documents/{shadow_id}/reverse",
        "/drafts/{transaksi_id}/authorise",
        "/workflows/{run_id}/approve",
        "/workflows/{run_id}/input",
        "/workflows/{run_id}/reject",
    },
    Permission.CONTROL: {
        "/workflows/{run_id}/cancel",
        "/workflows/{run_id}/compensate",
        "/workflows/{run_id}/pause",
        "/workflows/{run_id}/resume",
        "/workflows/{run_id}/retry",
        "/workflows/{run_id}/signal",
    },
}
"""Said here once more, and not asked of the routes: a new one, or one that asks for less, has to be written down."""

ONES_OWN = ("/documents", "/drafts")
"""What a warehouse opens, each row asked whose it is."""


def test_what_changes_something_asks_for_the_permission_that_is_written_here() -> None:
    found: dict[Permission, set[str]] = {}
    for method, route in doors():
        if method != "GET":
            found.setdefault(route.permission, set()).add(route.path)

    assert found == WHAT_CHANGES_SOMETHING


def test_who_may_only_submit_reads_their_own_documents_and_nothing_else() -> None:
    for method, route in doors():
        if method == "GET" and route.permission in (Permission.ENTER, Permission.READ_OWN):
            assert route.permission is Permission.READ_OWN or route.path in ("/", "/assets/{version}/{name}")
            assert route.permission is Permission.ENTER or route.path.startswith(ONES_OWN)


@DOORS
def test_every_answer_closes_every_door(door: tuple[str, GuardedRoute], browser: Be) -> None:
    client = browser("engineer")
    answer = client.get(address(door[1])) if door[0] == "GET" else client.submit(address(door[1]))
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'self'" in policy
    assert "form-action 'self'" in policy and "base-uri 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "no-store" in answer.headers["cache-control"] or door[1].path.startswith("/assets/")
    assert "Traceback" not in answer.text and "MySQLdb" not in answer.text


@pytest.mark.parametrize(("who", "path"), [(None, "/documents"), ("stranger", "/documents"), (None, "/nothing")])
def test_who_may_not_fetch_our_style_has_it_in_the_page_and_nothing_else_inline(
    browser: Be, who: str | None, path: str
) -> None:
    """Named by its hash: no other style and no script runs, and nothing is asked for that would be refused."""
    answer = browser(who).get(path)
    policy = answer.headers["content-security-policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'self'" in policy
    assert "/assets/" not in answer.text and "<script" not in answer.text
    assert browser(who).get(f"/assets/{view.asset_version()}/style.css").status_code in (401, 403)


def test_an_error_of_ours_is_a_number_to_the_browser_and_a_trace_in_the_log(
    browser: Be, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from everest.pages import documents

    def broken(*args: object, **rest: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(documents.QUERIES, "warehouses", broken)
    answer = browser("finance").get("/documents")
    number = re.search(r"\b([0-9a-f]{8})\b", answer.text)
    assert answer.status_code == 500 and number and "secret of the house" not in answer.text
    assert number[1] in caplog.text and "the secret of the house" in caplog.text


def test_a_database_that_is_away_is_told_as_that(app: object, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PageSettings(MysqlUrl("127.0.0.1", 1, "x", "x", "x"), Settings(), RoleMapping({}, {}), b"")
    answer = Browser(create_app(settings, by_header), "finance").get("/documents")
    assert answer.status_code == 503 and "127.0.0.1" not in answer.text


def test_nothing_in_a_page_reaches_out_of_it() -> None:
    """In a sandboxed frame popups, modal boxes and _top links are dead; and nothing comes from the internet."""
    folder = Path(__file__).resolve().parents[2] / "plugins" / "everest" / "pages"
    templates, static = [*folder.glob("templates/*")], [*folder.glob("static/*")]
    assert templates and static
    for file in [*templates, *static]:
        text = file.read_text(encoding="utf-8")
        dead = r"_blank|_top\b|window\.open|\b(?:alert|confirm|prompt)\(|https?://|\|\s*safe|\son[a-z]+="
        assert not re.findall(dead, text), file.name


def test_the_people_of_the_tests_have_every_role() -> None:
    assert {role for person in PEOPLE.values() for role in person.roles} == set(Role)
