"""Persetujuan and drafts: what somebody is asked, what they see before they say yes, and where they can say it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from everest.opname.amounts import format_rupiah
from everest.pages import approvals as page_of_approvals
from everest.pages import drafts as page_of_drafts
from everest.settings import MysqlUrl
from tests import builders
from tests.builders import Document, Line
from tests.integration.opname.walk import Walker
from tests.pages.conftest import Be
from tests.pages.forms import kept


@pytest.fixture(autouse=True)
def warehouse(connection: Any) -> None:
    builders.warehouse(connection, "GD-A")
    connection.commit()


@pytest.fixture
def walker(database: MysqlUrl) -> Iterator[Walker]:
    with closing(Walker(database)) as found:
        yield found


def waiting(connection: Any, walker: Walker, lines: int = 1, **header: Any) -> Document:
    """A count whose every line is above the limit, up to its question."""
    builders.limits(connection, batas_baris="1000")
    counted = [Line(f"BRG-{n:03d}", "10", "12", "1500") for n in range(lines)]
    document = builders.document(connection, counted, **header)
    connection.commit()
    assert walker.post(document.shadow_id) == "WAITING"
    return document


def sequence(page: str) -> str:
    return re.findall(r'name="sequence" value="(\d+)"', page)[0]


# ------------------------------------------------------------------------------------------------- documents


def test_a_document_behind_the_first_page_is_found_and_decided_on_its_own_page(
    browser: Be, connection: Any, walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_approvals, "PAGE", 2)
    first, second, third = (waiting(connection, walker) for _ in range(3))
    client = browser("finance")
    page = client.get("/approvals").text
    assert first.nomer_nota in page and second.nomer_nota in page and third.nomer_nota not in page
    (there,) = re.findall(r'href="(/approvals\?after=\d+)"', page)
    page = client.get(there).text
    assert third.nomer_nota in page and first.nomer_nota not in page and 'rel="next"' not in page

    place = f"/documents/{third.shadow_id}"
    page = client.get(place).text
    assert f'action="/approvals/{third.shadow_id}/approve"' in page and "melebihi batas baris" in page
    told = client.submit(f"/approvals/{third.shadow_id}/reject", reason="rak B salah", sequence=sequence(page))
    assert (told.status_code, told.headers["location"]) == (303, f"{place}?done=rejected")
    assert walker.post(third.shadow_id) == "FAILED"
    page = client.get(place).text
    assert "rak B salah" in page and "/reject" not in page

    page = client.get(f"/documents/{first.shadow_id}").text
    told = client.submit(f"/approvals/{first.shadow_id}/approve", reason="sudah dilihat", sequence=sequence(page))
    assert told.status_code == 303 and walker.post(first.shadow_id) == "COMPLETED"
    done = builders.rows(
        connection, "SELECT actor, action, reason FROM audit_log WHERE action IN ('approve', 'reject')"
    )
    assert [tuple(row.values()) for row in done] == [
        ("finance", "reject", "rak B salah"),
        ("finance", "approve", "sudah dilihat"),
    ]


def test_the_documents_own_page_has_every_reason(browser: Be, connection: Any, walker: Walker) -> None:
    document = waiting(connection, walker, lines=27)
    client = browser("analyst")
    listed = client.get("/approvals").text
    assert listed.count("melebihi batas baris") == page_of_approvals.REASONS_SHOWN == 20 and "dan 7 lagi" in listed
    assert client.get(f"/documents/{document.shadow_id}").text.count("<b>Baris ") == 27


def test_a_limit_that_was_raised_meanwhile_is_told_and_decides_nothing(
    browser: Be, connection: Any, walker: Walker
) -> None:
    document = waiting(connection, walker, lines=3)
    client = browser("finance")
    told = "Batasnya sejak itu dinaikkan"
    assert told not in client.get("/approvals").text

    builders.limits(connection, "GD-A", batas_dokumen="999999999.00")

    for page in ("/approvals", f"/documents/{document.shadow_id}"):
        shown = client.get(page).text
        assert told in shown
        assert "kini per dokumen: Rp 999.999.999,00; per baris: tanpa batas" in shown
    assert builders.shadow(connection, document.shadow_id)["worker_status"] == "WAITING"


@pytest.mark.parametrize("who", ["finance", "analyst"])
def test_a_question_says_whom_it_waits_for_and_who_may_not_answer(
    browser: Be, connection: Any, walker: Walker, who: str
) -> None:
    """To everybody who reads it, a draft's too; in both languages."""
    document = waiting(connection, walker, dibuat_oleh="rudi <b>", diotorisasi_oleh="sari")
    kept(browser, connection)
    client = browser(who)
    for path in ("/approvals", f"/documents/{document.shadow_id}"):
        page = client.get(path).text
        assert "<dt>Menunggu</dt><dd>bagian keuangan</dd>" in page
        assert "<dt>Tidak boleh diputuskan oleh</dt><dd>rudi &lt;b&gt;</dd>" in page
        assert "<dt>Waits for</dt><dd>finance</dd>" in client.get(f"{path}?lang=en").text
        client.cookies.clear()
    for path in ("/approvals", "/drafts"):
        assert "<dt>Tidak boleh diputuskan oleh</dt><dd>warehouse</dd>" in client.get(path).text


def test_a_late_movement_is_shown_with_its_quantity_and_its_day(browser: Be, connection: Any, walker: Walker) -> None:
    now = datetime.now(UTC)
    dated = datetime(2026, 8, 30, 9, 30)
    builders.movement(connection, "BRG-A", masuk="1234.5", nomer_nota="BELI-9", tanggal_wib=dated, created_at=now)
    document = builders.document(
        connection, [Line("BRG-A", "10", "12", "1500")],
        snapshot_at=now - timedelta(hours=2), diotorisasi_at=now,
    )  # fmt: skip
    connection.commit()
    assert walker.post(document.shadow_id) == "WAITING"
    page = browser("finance").get(f"/documents/{document.shadow_id}").text
    assert "BELI-9" in page and ">1.234,5</td>" in page and ">30-08-2026 09:30:00</td>" in page


@pytest.mark.parametrize(
    "whose", [{"dibuat_oleh": "Finance "}, {"dibuat_oleh": None, "diotorisasi_oleh": "finance"}], ids=["sent", "unsaid"]
)
def test_whose_it_is_is_told_so_and_gets_no_form(
    browser: Be, connection: Any, walker: Walker, whose: dict[str, Any]
) -> None:
    document = waiting(connection, walker, **whose)
    for place in (f"/documents/{document.shadow_id}", "/approvals"):
        page = browser("finance").get(place).text
        assert "Anda mengirim atau mengoreksi dokumen ini" in page and "orang lain yang harus memutuskan" in page, place
        assert f"/approvals/{document.shadow_id}/" not in page, place
        assert f"/approvals/{document.shadow_id}/approve" in browser("finance-2").get(place).text
        assert "Keputusan diambil oleh bagian keuangan" in browser("analyst").get(place).text


def test_who_authorised_a_count_that_somebody_else_submitted_decides_about_it(
    browser: Be, connection: Any, walker: Walker
) -> None:
    """Decision 0024: that authorisation is a second person's look already."""
    document = waiting(connection, walker, dibuat_oleh="warehouse", diotorisasi_oleh="finance")
    client = browser("finance")
    page = client.get("/approvals").text
    assert "orang lain yang harus memutuskan" not in page
    path = f"/approvals/{document.shadow_id}/approve"
    assert client.submit(path, reason="cocok", sequence=sequence(page)).status_code == 303


def test_a_clerk_reads_that_it_waits_and_not_what_others_moved(browser: Be, connection: Any, walker: Walker) -> None:
    document = waiting(connection, walker, dibuat_oleh="warehouse")
    page = browser("warehouse").get(f"/documents/{document.shadow_id}").text
    assert "menunggu persetujuan" in page and 'class="question"' not in page


# ---------------------------------------------------------------------------------------------------- drafts


def test_the_money_on_a_draft_is_the_money_that_is_posted(browser: Be, connection: Any, walker: Walker) -> None:
    number = kept(browser, connection)
    page = browser("finance").get(f"/drafts/{number}").text
    surplus, shortage = Decimal("4003001.10"), Decimal("5000.01")  # 2 x 1500.55 + 4,000,000; 2 x 2500.005
    assert (
        f"<strong>{format_rupiah(surplus)}</strong>" in page and f"<strong>{format_rupiah(shortage)}</strong>" in page
    )
    accounts = re.findall(r'<th scope="row"><code>(\d+)</code> ([^<]*)</th>', page)
    assert accounts == [
        ("1010030030", "Persediaan barang"),
        ("7010150", "Laba selisih persediaan"),
        ("7020020", "Rugi selisih persediaan"),
        ("1010030030", "Persediaan barang"),
    ]
    assert "akan ditolak" not in page.lower() and "/authorise" in page

    sent = browser("finance").submit(f"/drafts/{number}/authorise").headers["location"]
    assert walker.post(int(re.findall(r"/documents/(\d+)", sent)[0])) == "COMPLETED"
    journal = builders.rows(connection, "SELECT kode_akun, debet, kredit FROM jurnal ORDER BY urutan")
    assert [tuple(row.values()) for row in journal] == [
        ("1010030030", surplus, 0),
        ("7010150", 0, surplus),
        ("7020020", shortage, 0),
        ("1010030030", 0, shortage),
    ]
    page = browser("finance").get(f"/drafts/{number}").text
    assert f"/documents/of/{number}" in page and "/authorise" not in page


def codes(page: str) -> list[str]:
    table = page[page.index('id="lines"') :]
    return re.findall(r'<th scope="row">(BRG-\w)</th>', table)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["BRG-A", "BRG-B", "BRG-C", "BRG-D"]),
        ("sort=surplus", ["BRG-D", "BRG-A", "BRG-C", "BRG-B"]),
        ("sort=shortage", ["BRG-B", "BRG-C", "BRG-A", "BRG-D"]),
        ("search=L1", ["BRG-B"]),
        ("variance=1&sort=item", ["BRG-A", "BRG-B", "BRG-D"]),
        ("skip=3", ["BRG-D"]),
    ],
)
def test_the_lines_of_a_draft_are_sorted_and_searched(
    browser: Be, connection: Any, query: str, found: list[str]
) -> None:
    number = kept(browser, connection)
    assert codes(browser("finance").get(f"/drafts/{number}?{query}").text) == found


def test_a_line_of_a_draft_has_its_difference_and_its_worth(browser: Be, connection: Any) -> None:
    page = browser("analyst").get(f"/drafts/{kept(browser, connection)}?search=BRG-B").text
    row = page[page.index('id="lines"') :]
    assert 'class="num minus">-2</td>' in row and format_rupiah(Decimal("5000.01")) in row and "BRG-A" not in row


def test_a_draft_says_what_speaks_against_it(browser: Be, connection: Any) -> None:
    """Limits need a further person; a closed month refuses it, and then there is no journal to show."""
    builders.limits(connection, batas_dokumen="1000000")
    connection.commit()
    number = kept(browser, connection, tanggal_posting="2026-08-31")
    page = browser("finance").get(f"/drafts/{number}").text
    assert "masih perlu persetujuan" in page and "melebihi batas dokumen" in page and "7010150" in page
    builders.period(connection, "2026-08")
    connection.commit()
    page = browser("finance").get(f"/drafts/{number}").text
    assert "Akan ditolak karena 1 masalah" in page and "2026-08" in page and "7010150" not in page
    assert format_rupiah(Decimal("4003001.10")) in page, "what it is worth is known all the same"


def test_a_draft_has_the_hints_of_its_lines(browser: Be, connection: Any) -> None:
    dozens = "kode_barang;qty_sistem;qty_fisik;harga_pokok\nBRG-A;12;144;1500\n"
    page = browser("finance").get(f"/drafts/{kept(browser, connection, pasted=dozens)}").text
    assert "Patut dilihat lagi" in page and "<b>Baris 1</b>" in page and "12" in page


def test_drafts_stand_where_people_look_for_what_waits(browser: Be, connection: Any) -> None:
    """In Persetujuan, in the counts of Dokumen, in the menu; analysts read them, a clerk sees their own."""
    number = kept(browser, connection)
    kept(browser, connection, who="other-clerk", nomer_nota="SO-LAIN")
    for who in ("finance", "analyst", "engineer"):
        page = browser(who).get("/approvals").text
        assert "Draf menunggu otorisasi (2)" in page and "SO-H1" in page and "SO-LAIN" in page, who
        assert 'href="/drafts"' in page and "/authorise" not in page
        assert browser(who).get(f"/drafts/{number}").status_code == 200
    assert re.search(r"Draf</span> <strong>2</strong>", browser("analyst").get("/documents").text)
    assert re.search(r"Draf</span> <strong>1</strong>", browser("warehouse").get("/documents").text)
    own = browser("warehouse").get("/drafts").text
    assert "SO-H1" in own and "SO-LAIN" not in own and "orang lain yang mengotorisasi" in own
    page = browser("analyst").get(f"/drafts/{number}").text
    assert "/authorise" not in page and "/withdraw" not in page
    page = browser("warehouse").get(f"/drafts/{number}").text
    assert "/authorise" not in page and f"/drafts/{number}/withdraw" in page


def test_somebody_whom_a_collation_takes_for_the_clerk_is_another_person(browser: Be, connection: Any) -> None:
    number = kept(browser, connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE so_headers_staging SET dibuat_oleh = %s WHERE transaksi_id = %s", ("wàrehouse", number))
    connection.commit()

    assert "SO-H1" not in browser("warehouse").get("/drafts").text
    assert "SO-H1" in browser("analyst").get("/drafts").text
    one = re.compile(r"Draf</span> <strong>1</strong>")
    counted = [bool(one.search(browser(role).get("/documents").text)) for role in ("warehouse", "analyst")]
    assert counted == [False, True]


def test_drafts_go_on_where_the_page_before_ended(
    browser: Be, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_drafts, "PAGE", 2)
    for n in (1, 2, 3):
        kept(browser, connection, nomer_nota=f"SO-D{n}")
    page = browser("finance").get("/drafts").text
    assert "SO-D1" in page and "SO-D2" in page and "SO-D3" not in page and "3 draf menunggu" in page
    (there,) = re.findall(r'href="(/drafts\?after=\d+)"', page)
    page = browser("finance").get(there).text
    assert "SO-D3" in page and "SO-D2" not in page


def test_a_name_in_other_letters_withdraws_their_own_draft(browser: Be, connection: Any) -> None:
    number = kept(browser, connection)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE so_headers_staging SET dibuat_oleh = 'Warehouse '")
    connection.commit()
    assert browser("warehouse").submit(f"/drafts/{number}/withdraw", reason="salah gudang").status_code == 303
    assert "Sudah ditarik" in browser("finance").get(f"/drafts/{number}").text
