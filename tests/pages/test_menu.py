"""Where the pages are mounted, and that every entry of their menus leads to a page for whoever sees it."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI

from everest.pages import login
from everest.pages.access import Role
from everest.pages.mount import Pages
from everest.pages.navigation import PAGES, PREFIX, views
from everest.pages.settings import PageSettings
from everest.settings import MysqlUrl
from tests.conftest import as_text
from tests.pages.conftest import PEOPLE, Browser, by_header

BASE = "/airflow" + PREFIX


@pytest.fixture
def site(database: MysqlUrl, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """The pages as the plugin hands them to Airflow, below a path that a proxy put in front."""
    monkeypatch.setenv("EVEREST_MYSQL_URL", as_text(database))
    monkeypatch.setattr(login, "airflow_login", lambda settings: by_header)
    outer = FastAPI()
    outer.mount(BASE, Pages("a secret", "http://testserver/airflow"))
    return outer


def entries(page: str) -> dict[str, str]:
    """Text and address of each entry of the pages' own menu."""
    nav = re.search(r'<nav aria-label="(?:Halaman|Pages)">(.*?)</nav>', page, re.DOTALL)
    return {name: href for href, name in re.findall(r'<a href="([^"]*)"[^>]*>(.*?)</a>', nav[1])} if nav else {}


def opened(client: Browser, path: str) -> Any:
    """What a browser ends up with."""
    answer = client.get(path)
    while answer.status_code == 303:
        answer = client.get(answer.headers["location"])
    return answer


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.value)
def test_each_entry_that_a_role_sees_leads_to_its_page_and_the_others_are_refused(site: FastAPI, role: Role) -> None:
    client = Browser(site, role.value)
    menu = entries(opened(client, f"{BASE}/documents").text)
    assert set(menu.values()) == {BASE + path for _, path, asks in PAGES if PEOPLE[role.value].may(asks)}
    assert len(menu) == len(set(menu.values()))
    for name, href in menu.items():
        answer = opened(client, href)
        assert answer.status_code == 200, href
        assert re.search(r"<h1>.+?</h1>", answer.text, re.DOTALL), href
        current = re.findall(r'<a href="([^"]*)" aria-current="page">(.*?)</a>', answer.text)
        assert current == [(href, name)]
        assert entries(answer.text) == menu
    for _, path, _ in PAGES:
        if BASE + path not in menu.values():
            refused = client.get(BASE + path)
            assert refused.status_code == 403, path
            # Airflow's menu leads here; the page says where else to go.
            said = refused.text.split('role="alert"')[1]
            assert dict(re.findall(r'<a href="([^"]*)">(.*?)</a>', said)) == {href: name for name, href in menu.items()}


def test_airflows_menu_names_the_same_pages_and_each_opens(site: FastAPI) -> None:
    """Airflow shows all of them to everybody; an engineer may open each."""
    client = Browser(site, "engineer")
    shown = views(BASE)
    assert len({one["url_route"] for one in shown}) == len(PAGES)
    own = entries(opened(client, f"{BASE}/documents").text)
    assert {one["name"]: one["href"] for one in shown} == own
    for one in shown:
        assert (one["destination"], one["category"]) == ("nav", "Stok Opname")
        assert opened(client, one["href"]).status_code == 200


def test_style_and_script_of_a_mounted_page_are_found_and_no_link_leads_out_of_the_mount(site: FastAPI) -> None:
    client = Browser(site, "finance")
    for path in (path for _, path, _ in PAGES):
        page = opened(client, BASE + path).text
        assets = re.findall(r'(?:href|src)="([^"]*/assets/[^"]*)"', page)
        assert len(assets) == 2 and {client.get(one).status_code for one in assets} == {200}
        links = [one for one in re.findall(r'(?:href|action|formaction|src)="(/[^"]*)"', page) if one]
        assert links and [one for one in links if not one.startswith(BASE)] == []
    moved = client.get(f"{BASE}/")
    assert (moved.status_code, moved.headers["location"]) == (303, f"{BASE}/documents")


def test_the_pages_are_built_once_by_whoever_comes_first(site: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    real = PageSettings.from_environment

    def counted(secret: str, base_url: str | None = None) -> PageSettings:
        built.append(secret)
        return real(secret, base_url)

    monkeypatch.setattr(PageSettings, "from_environment", counted)
    with Browser(site, "analyst") as client, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.get(f"{BASE}/documents").status_code, range(8)))
    assert answers == [200] * 8
    assert built == ["a secret"]


def test_wrong_settings_are_told_in_the_log_and_not_to_a_browser(
    site: FastAPI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("EVEREST_PAGE_ROLES", "boss=user:rina")
    answer = Browser(site, "finance").get(f"{BASE}/documents")
    assert answer.status_code == 503
    assert "boss" not in answer.text and "EVEREST" not in answer.text
    assert "EVEREST_PAGE_ROLES" in caplog.text and "boss" in caplog.text
