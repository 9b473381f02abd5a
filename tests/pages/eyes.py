"""A page as people see it: by axe, in either language, light and dark, at a desk and on a phone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Page

from everest.pages import view

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
AXE = {"resultTypes": ["violations"]}
ENGLISH = re.compile(
    r"\b(?:the|is|are|was|were|has|have|not|no|and|or|of|with|than|this|that|which|only|step|steps|failed|waiting|running"
    r"|active|standby|missing|unknown|paused|completed|approval|decision|input|allows|asked|cannot|by|from)\b"
)
"""Words that no Indonesian sentence has. Names (of steps, columns, workflows) are in code, or longer than one word."""
OURS = """() => [...document.querySelectorAll("body *")].filter(
    (one) => one.checkVisibility() && !one.closest("[lang=en], code, pre, option") ).flatMap(
    (one) => [...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data)).join("\\n")"""
"""What a page shows in words of its own."""
ISO = re.compile(r"\b20[0-9]{2}-[01][0-9]-[0-3][0-9]\b")
"""A day as programs write it; people read the day first, on every page alike."""
PICTURES = os.environ.get("EVEREST_PICTURES")
"""A folder for a picture of every page in both languages, at a desk and on a phone; none by default."""

Manner = tuple[str, Any, Any]
"""Language, light or dark, size: how a page is shown."""
MANNERS: tuple[Manner, ...] = (
    ("id", "light", DESK),
    ("id", "dark", PHONE),
    ("en", "light", PHONE),
    ("en", "dark", DESK),
)
"""Every two of language, colours and size occur together in one of them."""
OPPOSITE: tuple[Manner, ...] = (("id", "light", DESK), ("en", "dark", PHONE))
"""Two in which each of them is seen."""


def serious(page: Page | Frame) -> list[Any]:
    found = Axe().run(page, options=AXE).response["violations"]
    return [
        (one["id"], [node["html"][:160] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def too_wide(page: Page | Frame) -> list[Any]:
    """Whether it has to be moved sideways to be read: how wide its window is, or nothing. And where a phone shows a row
    as a card: the values that stand there letter below letter."""
    squeezed = """[...document.querySelectorAll("table.stack td")].filter((cell) =>
        cell.checkVisibility() && getComputedStyle(cell).display === "block" && cell.clientWidth < 60
    ).map((cell) => cell.innerText)"""
    wide: list[Any] = page.evaluate("document.documentElement.scrollWidth > innerWidth ? [innerWidth] : []")
    return [*wide, *page.evaluate(squeezed)]


def dress(page: Page, root: str, language: str, theme: Any, size: Any) -> None:
    """What is opened or loaded next is shown in this manner. root: the address of the site."""
    # Of the whole site: at the page's own address it would be a second one, for the pages below that address.
    page.context.add_cookies([{"name": view.LANGUAGE_COOKIE, "value": language, "url": root}])
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=theme)


def show(page: Page, language: str, theme: Any, size: Any) -> None:
    """The page that is open, anew."""
    dress(page, page.evaluate("location.origin"), language, theme, size)
    page.reload()
    assert page.locator("html").get_attribute("lang") == language


def looks(page: Page) -> Iterator[tuple[str, Any]]:
    """Two times through axe, which is what takes the time: between them every colour, language and layout was seen."""
    for language, theme, size in OPPOSITE:
        show(page, language, theme, size)
        yield theme, serious(page)
        if language == "id":
            yield "English", ENGLISH.findall(page.evaluate(OURS))
            yield "days", ISO.findall(page.evaluate(OURS))
        yield "too wide", too_wide(page)


def draw(page: Page, path: str) -> None:
    """Pictures of the page that is open, where somebody wants them."""
    if not PICTURES:
        return
    folder = Path(PICTURES)
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9-]+", "_", path.lower().strip("/"))
    sizes = (("desk", "light", DESK), ("phone", "dark", PHONE))
    for language, (size_name, theme, size) in product(("id", "en"), sizes):
        show(page, language, theme, size)
        page.screenshot(path=folder / f"{name}.{language}.{size_name}.png", full_page=True)


def refreshed(page: Page) -> None:
    """Now instead of in five seconds."""
    page.evaluate("async () => tell(await look())")
