"""Which pages there are: the entries of Airflow's navigation, and of the pages' own."""

from __future__ import annotations

from typing import Any

from everest.pages import words
from everest.pages.access import Permission

PREFIX = "/everest"
"""Where Airflow mounts the pages."""

PAGES = (
    ("documents", "/documents", Permission.READ_OWN),
    ("submit", "/submit", Permission.SUBMIT),
    ("drafts", "/drafts", Permission.READ_OWN),
    ("approvals", "/approvals", Permission.READ),
    ("reports", "/reports", Permission.READ),
    ("dead_letters", "/dead-letters", Permission.READ),
    ("workflows", "/workflows", Permission.READ),
    ("health", "/health", Permission.READ),
)
"""Name in the catalogue, address, and who sees it in the pages' own menu. Airflow's menu shows all to everybody; who
may not open one is told so."""


def views(base: str) -> list[dict[str, Any]]:
    """For Airflow, which opens each in a sandboxed frame. `base`: the path of the pages. Its menu has one language
    for everybody; ours there is Indonesian."""
    return [
        {
            "name": words.text("id", f"nav.{key}"),
            "href": base + path,
            "destination": "nav",
            "category": words.text("id", "nav.category"),
            "url_route": f"everest-{key.replace('_', '-')}",
        }
        for key, path, _ in PAGES
    ]
