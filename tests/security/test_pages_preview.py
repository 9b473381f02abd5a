"""The pages under their own account, which may not write the books: what reads works, previews among it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from everest import reversal
from everest.pages.access import RoleMapping
from everest.pages.app import create_app
from everest.pages.settings import PageSettings
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.integration.opname.walk import Walker
from tests.pages.conftest import SECRET, Browser, by_header
from tests.security.conftest import as_account


def test_under_the_pages_own_account_every_part_is_shown_and_previewed(database: MysqlUrl, connection: Any) -> None:
    document = builders.document(connection, lines=[builders.Line("BRG-A", "10", None)])
    settings = PageSettings(
        mysql=as_account(database, "everest_pages"), site=Settings(), roles=RoleMapping({}, {}), secret=SECRET
    )
    client = Browser(create_app(settings, by_header), "finance")
    one = f"/documents/{document.shadow_id}"
    tabs = [f"{one}?tab={tab}" for tab in ("summary", "lines", "journal", "card", "history")]
    for path in ["/documents?gudang=GD-A&min=1", "/health", "/submit", "/drafts", "/reports?since=", *tabs]:
        assert client.get(path).status_code == 200, path
    answer = client.get(f"{one}/preview")
    assert answer.status_code == 200 and "Akan ditolak" in answer.text and "qty_fisik" in answer.text
    sound = builders.document(connection)
    answer = client.get(f"/documents/{sound.shadow_id}/preview")
    assert answer.status_code == 200 and "Akan diposting" in answer.text and "Rp 8.001,00" in answer.text
    with closing(Walker(database)) as walker:
        assert walker.post(sound.shadow_id) == "COMPLETED"
        with walker.database.transaction() as tx:
            asked = reversal.request(tx, f"#{sound.shadow_id}", "finance", "salah rak")
    answer = client.get(f"/documents/{asked.shadow_id}/preview")
    assert answer.status_code == 200 and "Akan diposting" in answer.text and "Pembalikan" in answer.text
    connection.commit()
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "PENDING"
