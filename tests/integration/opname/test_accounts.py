"""Which accounts a document posts to, and what a cost of 0 does where the site allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pytest

from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.builders import LABA_SELISIH, PERSEDIAAN, RUGI_SELISIH, Line
from tests.integration.opname.walk import Walker

SURPLUS, SHORTAGE = Line("A", "10", "12", "1500"), Line("B", "7", "5", "2500.50")


@pytest.fixture
def lenient(database: MysqlUrl) -> Iterator[Walker]:
    """A site that accepts a cost of 0."""
    walker = Walker(database, Settings(allow_zero_cost=True))
    yield walker
    walker.close()


def own_accounts(connection: Any, gudang_kode: str = "GD-A", **accounts: str | None) -> None:
    for code in accounts.values():
        if code is not None:
            builders.account(connection, code)
    builders.replace(connection, "akun_gudang", gudang_kode=gudang_kode, **accounts)


def accounts_of(connection: Any, nota: str) -> list[str]:
    return [code for _, code, *_ in builders.journal_of(connection, nota)]


def refusal(connection: Any, shadow_id: int) -> list[tuple[int | None, str, str]]:
    row = builders.shadow(connection, shadow_id)
    assert (row["worker_status"], row["error_code"]) == ("FAILED", 422), row["error"]
    assert builders.books(connection) == builders.NOTHING_POSTED
    return [(one["baris"], one["kolom"], one["pesan"]) for one in row["response"]["errors"]]


@pytest.mark.parametrize(
    ("own", "posted_to"),
    [
        pytest.param(
            {"akun_persediaan": "111", "akun_laba_selisih": "222", "akun_rugi_selisih": "333"},
            ["111", "222", "333", "111"],
            id="all its own",
        ),
        pytest.param({"akun_persediaan": "111"}, ["111", LABA_SELISIH, RUGI_SELISIH, "111"], id="only inventory"),
        pytest.param({"akun_rugi_selisih": "333"}, [PERSEDIAAN, LABA_SELISIH, "333", PERSEDIAAN], id="only the loss"),
        pytest.param(
            {"akun_laba_selisih": None}, [PERSEDIAAN, LABA_SELISIH, RUGI_SELISIH, PERSEDIAAN], id="a row without any"
        ),
        pytest.param(
            {"akun_laba_selisih": "222", "akun_rugi_selisih": "222"},
            [PERSEDIAAN, "222", "222", PERSEDIAAN],
            id="one account for gain and loss, still gross",
        ),
    ],
)
def test_a_warehouse_posts_to_its_own_accounts_and_to_the_common_one_where_it_names_none(
    walker: Walker, connection: Any, own: dict[str, str | None], posted_to: list[str]
) -> None:
    own_accounts(connection, **own)
    document = builders.document(connection, [SURPLUS, SHORTAGE])

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert accounts_of(connection, document.nomer_nota) == posted_to
    amounts = [debet - kredit for *_, debet, kredit in builders.journal_of(connection, document.nomer_nota)]
    assert amounts == [D("3000"), D("-3000"), D("5001"), D("-5001")]
    (sums,) = builders.rows(
        connection,
        "SELECT (SELECT SUM(debet - kredit) FROM jurnal WHERE kode_akun = %s) AS inventory,"
        " (SELECT SUM(nilai) FROM kartu_stok) AS card",
        posted_to[0],
    )
    assert sums["inventory"] == sums["card"] == D("-2001.00")


def test_the_header_s_warehouse_decides_whatever_the_lines_say(walker: Walker, connection: Any) -> None:
    own_accounts(connection, "GD-LINE", akun_persediaan="111")
    own_accounts(connection, "GD-HEAD", akun_persediaan="999")
    document = builders.document(connection, [Line("A", gudang_kode="GD-LINE")], gudang_kode="GD-HEAD")

    assert walker.post(document.shadow_id) == "COMPLETED"

    assert accounts_of(connection, document.nomer_nota) == ["999", LABA_SELISIH]
    (card,) = builders.rows(connection, "SELECT gudang_kode FROM kartu_stok")
    assert card["gudang_kode"] == "GD-LINE"


def unknown(connection: Any) -> None:
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_persediaan="404")


def unknown_but_for_a_space(connection: Any) -> None:
    builders.account(connection, "404")
    builders.replace(connection, "akun_gudang", gudang_kode="GD-A", akun_laba_selisih="404 ")


def inactive(connection: Any) -> None:
    builders.account(connection, RUGI_SELISIH, aktif=False)


def inactive_inventory(connection: Any) -> None:
    builders.account(connection, PERSEDIAAN, aktif=False)


def inventory_that_is_a_variance_account(connection: Any) -> None:
    own_accounts(connection, akun_persediaan=LABA_SELISIH)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (unknown, "akun persediaan '404' tidak ada"),
        (unknown_but_for_a_space, "akun laba selisih '404 ' tidak ada"),
        (inactive, f"akun rugi selisih '{RUGI_SELISIH}' tidak aktif"),
        (inactive_inventory, f"akun persediaan '{PERSEDIAAN}' tidak aktif"),
        (inventory_that_is_a_variance_account, "juga dipakai sebagai akun selisih"),
    ],
)
def test_an_account_that_is_unknown_or_inactive_is_refused_by_its_field(
    walker: Walker, connection: Any, prepare: Callable[[Any], None], said: str
) -> None:
    document = builders.document(connection, [SURPLUS, SHORTAGE])
    prepare(connection)

    walker.post(document.shadow_id)

    ((baris, kolom, pesan),) = refusal(connection, document.shadow_id)
    assert (baris, kolom, said in pesan) == (None, "kode_akun", True), pesan


def test_an_account_that_becomes_inactive_between_the_steps_posts_nothing(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [SURPLUS])

    def before_posting(step: str) -> None:
        if step == "post_jurnal":
            builders.account(connection, LABA_SELISIH, aktif=False)

    assert walker.post(document.shadow_id, before_posting) == "FAILED"
    ((_, kolom, pesan),) = refusal(connection, document.shadow_id)
    assert (kolom, "tidak aktif" in pesan) == ("kode_akun", True)


def test_accounts_that_change_between_the_steps_are_those_of_the_posting(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [SURPLUS])

    def before_posting(step: str) -> None:
        if step == "post_jurnal":
            own_accounts(connection, akun_persediaan="111")

    assert walker.post(document.shadow_id, before_posting) == "COMPLETED"
    assert accounts_of(connection, document.nomer_nota) == ["111", LABA_SELISIH]


# ---------------------------------------------------------------------------------------------------- a cost of 0


def test_a_cost_of_0_is_refused_unless_the_site_allows_it(walker: Walker, connection: Any) -> None:
    document = builders.document(connection, [SURPLUS, Line("FREE", "1", "4", "0"), Line("SAME", "3", "3", "0")])

    walker.post(document.shadow_id)

    assert refusal(connection, document.shadow_id) == [(2, "harga_pokok", "harga 0 pada baris yang punya selisih")]


def test_an_allowed_cost_of_0_moves_stock_and_no_money_and_is_not_replaced_by_another(
    lenient: Walker, connection: Any
) -> None:
    now = datetime.now(UTC)
    builders.warehouse(connection)
    bought = {"tanggal_wib": datetime(2026, 1, 5), "created_at": now - timedelta(days=300)}
    builders.movement(connection, "FREE", masuk="1", harga_pokok="1500", nilai="1500", **bought)
    lines = [SURPLUS, Line("FREE", "1", "4", "0"), Line("LESS", "4", "1", "0"), Line("SAME", "3", "3", "0")]
    document = builders.document(connection, lines)

    assert lenient.post(document.shadow_id) == "COMPLETED"

    assert accounts_of(connection, document.nomer_nota) == [PERSEDIAAN, LABA_SELISIH]
    assert builders.card_of(connection, document.nomer_nota) == [
        ("A", D("2"), D("0"), D("3000.00")),
        ("FREE", D("3"), D("0"), D("0.00")),
        ("LESS", D("0"), D("3"), D("0.00")),
    ]
    costs = builders.rows(connection, "SELECT harga_pokok FROM kartu_stok WHERE posting_id IS NOT NULL ORDER BY id")
    assert [row["harga_pokok"] for row in costs] == [D("1500"), D("0"), D("0")]
    assert builders.books(connection).agree


def test_nothing_but_free_lines_is_a_posting_without_a_journal(lenient: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("FREE", "1", "4", "0")])

    assert lenient.post(document.shadow_id) == "COMPLETED"

    assert builders.journal_of(connection, document.nomer_nota) == []
    assert len(builders.card_of(connection, document.nomer_nota)) == 1
    row = builders.shadow(connection, document.shadow_id)
    assert (row["response"]["baris_selisih"], row["response"]["total_debet"]) == (1, "0.00")


def test_an_allowed_cost_of_0_does_not_allow_a_missing_one(lenient: Walker, connection: Any) -> None:
    document = builders.document(connection, [Line("A", "1", "4", None)])

    lenient.post(document.shadow_id)

    assert refusal(connection, document.shadow_id) == [(1, "harga_pokok", "harga kosong pada baris yang punya selisih")]


def test_a_cost_of_0_that_is_no_longer_allowed_at_the_posting_is_refused(
    lenient: Walker, walker: Walker, connection: Any
) -> None:
    document = builders.document(connection, [Line("FREE", "1", "4", "0")])
    ticket = lenient.claim(document.shadow_id)
    for name in ("compute_variance", "clean_duplicate_notas"):
        lenient.step(ticket, name)

    walker.dag_run(ticket)

    assert refusal(connection, document.shadow_id)[0][1] == "harga_pokok"
