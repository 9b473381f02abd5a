"""The pages under their own account: what reads works, and a preview says what to do instead."""

from __future__ import annotations

from typing import Any

from everest.pages.access import RoleMapping
from everest.pages.app import create_app
from everest.pages.settings import PageSettings
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.pages.conftest import SECRET, Browser, by_header
from tests.security.conftest import as_account


def test_under_the_pages_own_account_every_part_is_shown_and_a_preview_says_what_to_do(
    database: MysqlUrl, connection: Any
) -> None:
    document = builders.document(connection, lines=[builders.Line("BRG-A", "10", None)])
    settings = PageSettings(
        mysql=as_account(database, "everest_pages"), site=Settings(), roles=RoleMapping({}, {}), secret=SECRET
    )
    client = Browser(create_app(settings, by_header), "finance")
    one = f"/documents/{document.shadow_id}"
    tabs = [f"{one}?tab={tab}" for tab in ("summary", "lines", "journal", "card", "history")]
    for path in ["/documents?gudang=GD-A&min=1", "/health", "/submit", "/drafts", "/reports?since=", *tabs]:
        assert client.get(path).status_code == 200, path
    answer = client.submit(f"{one}/preview")
    assert answer.status_code == 200 and "Akan ditolak" in answer.text  # found before anything is written
    sound = builders.document(connection)
    answer = client.submit(f"/documents/{sound.shadow_id}/preview")
    assert answer.status_code == 200 and "python -m everest preview" in answer.text and "denied" not in answer.text
    connection.commit()
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "PENDING"
