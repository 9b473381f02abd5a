"""Reports that the server adds up say, of arbitrary books and filters, what the same rows add up to in plain Python."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal as D
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everest.opname.document import WIB
from everest.reports.shape import NO_GROUP, NO_REASON
from everest.settings import MysqlUrl, Settings
from tests import builders
from tests.integration.opname.walk import Walker
from tests.integration.reports.conftest import Read

ITEMS, LOTS, WAREHOUSES = ("A", "B", "C", "00123"), ("", "L1"), ("GD-A", "GD-B", "GD-C")
GROUPS = {"A": "besi", "B": "kayu", "C": ""}
REASONS = ("rusak", "Rusak", "hilang", "", None)
COUNTS, REVERSED, WAITING = 40, 8, 3
MOVEMENTS = 60
ZONES = (ZoneInfo("UTC"), ZoneInfo("Asia/Jayapura"))
FIRST = datetime(2026, 1, 20, 8, 0)
CENTS = D("0.01")
VALUES = (
    "transaksi_id", "baris", "kode_barang", "lot", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok",
    "selisih_qty", "nilai_debet", "nilai_kredit",
)  # fmt: skip
STAGED = ("header_id", "baris", "kode_barang", "lot", "gudang_kode", "qty_sistem", "qty_fisik", "harga_pokok", "alasan")


@dataclass(frozen=True)
class Line:
    """A posted line as a report counts it."""

    posting_id: int
    is_count: bool
    nota: str
    posted_at: datetime
    kode_barang: str
    lot: str
    gudang_kode: str
    selisih: D
    lebih: D
    kurang: D
    alasan: str


@dataclass(frozen=True)
class Posting:
    id: int
    is_count: bool
    nota: str
    posted_at: datetime
    snapshot_at: datetime
    lines: tuple[Line, ...]


@pytest.fixture(params=enumerate(ZONES), ids=str)
def drawn_in(request: pytest.FixtureRequest) -> tuple[random.Random, ZoneInfo]:
    seed, zone = request.param
    return random.Random(seed), zone


@pytest.fixture
def drawn(drawn_in: tuple[random.Random, ZoneInfo]) -> random.Random:
    return drawn_in[0]


@pytest.fixture
def zone(drawn_in: tuple[random.Random, ZoneInfo]) -> ZoneInfo:
    """In which other programs write their instants."""
    return drawn_in[1]


@pytest.fixture
def walker(database: MysqlUrl, zone: ZoneInfo) -> Iterator[Walker]:
    walker = Walker(database, Settings(foreign_zone=zone))
    yield walker
    walker.close()


def _written(wib: datetime, zone: tzinfo) -> datetime:
    return wib.replace(tzinfo=WIB).astimezone(zone).replace(tzinfo=None)


@pytest.fixture
def postings(connection: Any, drawn: random.Random, zone: ZoneInfo) -> list[Posting]:
    """Arbitrary books, straight into the tables: counts of one or several warehouses, items in several lots, counts
    without variance, reversals, lines whose staged row is gone or another item's, and documents that are not posted."""
    for kode in WAREHOUSES[:2]:  # the third has no name
        builders.warehouse(connection, kode)
    for kode, kelompok in GROUPS.items():
        builders.insert(connection, "kelompok_barang", kode_barang=kode, kelompok=kelompok)
    found = [_count(connection, drawn, zone, number) for number in range(1, COUNTS + 1)]
    for number in range(COUNTS + 1, COUNTS + 1 + WAITING):
        _count(connection, drawn, zone, number, is_posted=False)
    found += [_reversed(connection, drawn, one, 500 + one.id) for one in drawn.sample(found, REVERSED)]
    connection.commit()
    return found


def _count(connection: Any, drawn: random.Random, zone: ZoneInfo, number: int, is_posted: bool = True) -> Posting:
    at = FIRST + timedelta(minutes=drawn.randrange(60 * 24 * 90))
    snapshot = at - timedelta(minutes=drawn.randrange(600))
    nota, header = f"SO-{number}", 1_000 + number
    written_in = drawn.choice(("UTC", None))
    builders.insert(
        connection,
        "so_headers_staging",
        id=header,
        transaksi_id=number,
        nomer_nota=nota,
        gudang_kode="GD-A",
        tanggal_opname=snapshot.date(),
        snapshot_at=_written(snapshot, UTC if written_in else zone),
        otorisasi_level=2,
        zona_waktu=written_in,
    )
    cards = [(kode, lot, gudang) for kode in ITEMS for lot in LOTS for gudang in WAREHOUSES]
    if drawn.random() < 0.6:  # most counts are of one warehouse
        only = drawn.choice(WAREHOUSES)
        cards = [card for card in cards if card[2] == only]
    is_right = drawn.random() < 0.25
    values, staged, lines = [], [], []
    for baris, (kode, lot, gudang) in enumerate(drawn.sample(cards, min(len(cards), drawn.randint(1, 6))), start=1):
        selisih = D(0) if is_right or drawn.random() < 0.2 else D(drawn.randrange(-50_000, 50_000)) / 10_000
        nilai = (selisih * D(drawn.randrange(1, 9_999_999)) / 1000).quantize(CENTS)
        lebih, kurang = max(nilai, D(0)), max(-nilai, D(0))
        alasan = drawn.choice(REASONS)
        values.append((number, baris, kode, lot, gudang, 10, 10 + selisih, 1, selisih, lebih, kurang))
        fate = drawn.choice(("stands",) * 6 + ("gone", "another item's"))
        if fate != "gone":
            stands = kode if fate == "stands" else "LAIN"
            staged.append((header, baris, stands, lot, gudang, 10, 10 + selisih, 1, alasan))
        said = (alasan if fate == "stands" else None) or NO_REASON
        lines.append(Line(number, True, nota, at, kode, lot, gudang, selisih, lebih, kurang, said))
    _write(connection, "transaksi_values", VALUES, values)
    _write(connection, "so_details_staging", STAGED, staged)
    return _posted(connection, Posting(number, True, nota, at, snapshot, tuple(lines)), is_posted, None)


def _reversed(connection: Any, drawn: random.Random, original: Posting, number: int) -> Posting:
    nota, at = f"{original.nota}-BALIK", original.posted_at + timedelta(minutes=drawn.randrange(60 * 24 * 40))
    lines, values = [], []
    for baris, line in enumerate(original.lines, start=1):
        if line.selisih == 0:
            continue
        card = (line.kode_barang, line.lot, line.gudang_kode)
        values.append((number, baris, *card, None, None, 1, -line.selisih, line.kurang, line.lebih))
        lines.append(Line(number, False, nota, at, *card, -line.selisih, line.kurang, line.lebih, line.alasan))
    _write(connection, "transaksi_values", VALUES, values)
    return _posted(connection, Posting(number, False, nota, at, original.snapshot_at, tuple(lines)), True, original.id)


def _posted(connection: Any, posting: Posting, is_posted: bool, membalik_id: int | None) -> Posting:
    builders.insert(
        connection,
        "transaksi",
        id=posting.id,
        nomer_nota=posting.nota,
        jenis="OPNAME" if posting.is_count else "PEMBALIKAN",
        tanggal_wib=posting.posted_at,
        gudang_kode="GD-A",
    )
    if is_posted:
        total = sum((line.lebih + line.kurang for line in posting.lines), D(0))
        builders.insert(
            connection,
            "posting_sets",
            id=posting.id,
            transaksi_id=posting.id,
            nomer_nota=posting.nota,
            jenis="POSTING" if posting.is_count else "PEMBALIKAN",
            membalik_id=membalik_id,
            input_hash="0" * 64,
            total_debet=total,
            total_kredit=total,
            baris_selisih=sum(line.selisih != 0 for line in posting.lines),
            created_at=posting.posted_at - timedelta(hours=7),
        )
    return posting


def _write(connection: Any, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    if rows:
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


OF_A_LINE = ("gudang_kode", "kode_barang", "lot")
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"since": date(2026, 2, 10), "until": date(2026, 3, 15)},
    {"gudang_kode": "GD-B"},
    {"kode_barang": "00123", "since": date(2026, 2, 1)},
    {"lot": ""},
    {"lot": "L1", "kode_barang": "A", "gudang_kode": "GD-C", "until": date(2026, 3, 31)},
    {"nomer_nota": "SO-7"},
)


def _fitting(postings: Iterable[Posting], filters: Mapping[str, Any]) -> list[Line]:
    of_a_line = {name: filters[name] for name in OF_A_LINE if name in filters}
    return [
        line
        for posting in _of_days(postings, filters)
        for line in posting.lines
        if all(getattr(line, name) == value for name, value in of_a_line.items())
    ]


def _of_days(postings: Iterable[Posting], filters: Mapping[str, Any]) -> list[Posting]:
    nota = filters.get("nomer_nota")
    return [
        one
        for one in postings
        if filters.get("since", date.min) <= one.posted_at.date() <= filters.get("until", date.max)
        and nota in (None, one.nota, one.nota.removesuffix("-BALIK"))
    ]


def _grouped(lines: Iterable[Line], key: Callable[[Line], str]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[key(line)].append(line)
    return found


def _sums(lines: Sequence[Line]) -> dict[str, Any]:
    lebih, kurang = sum((one.lebih for one in lines), D(0)), sum((one.kurang for one in lines), D(0))
    return {
        "baris_selisih": sum(one.selisih != 0 for one in lines),
        "nilai_lebih": lebih,
        "nilai_kurang": kurang,
        "nilai_bersih": lebih - kurang,
    }


def _postings_of(lines: Iterable[Line]) -> int:
    return len({line.posting_id for line in lines})


def _matching(lines: Iterable[Line], counted: Iterable[int]) -> dict[str, Any]:
    differing = {line.posting_id for line in lines if line.selisih != 0}
    counted = set(counted)
    n, right = len(counted), len(counted - differing)
    # Two decimals, half away from zero, as the server rounds.
    percent = (D(100) * right / n).quantize(CENTS, "ROUND_HALF_UP") if n else None
    return {"jumlah_dokumen": n, "dokumen_cocok": right, "persen_cocok": percent}


def test_every_sum_and_count_is_what_the_posted_lines_add_up_to(read: Read, postings: list[Posting]) -> None:
    for filters in FILTERS:
        _check(read, postings, filters)


def _check(read: Read, postings: list[Posting], filters: dict[str, Any]) -> None:
    lines = _fitting(postings, filters)

    def shown(key: str, name: str) -> dict[str, dict[str, Any]]:
        rows = read(key, **filters)[0]
        found = {str(row.pop(name)).lower(): row for row in rows}
        assert len(found) == len(rows)
        return found

    by_warehouse = shown("warehouse", "gudang_kode")
    assert [row.pop("nama") for row in by_warehouse.values()] == [
        f"Gudang {kode.upper()}" if kode.upper() in WAREHOUSES[:2] else None for kode in by_warehouse
    ]
    assert by_warehouse == {
        kode.lower(): {"jumlah_posting": _postings_of(some), **_sums(some)}
        | _matching(some, (line.posting_id for line in some if line.is_count))
        for kode, some in _grouped(lines, lambda line: line.gudang_kode).items()
    }
    assert shown("item", "kode_barang") == {
        kode.lower(): {"jumlah_gudang": len({line.gudang_kode for line in some}), "jumlah_posting": _postings_of(some)}
        | {
            "qty_lebih": sum((max(line.selisih, D(0)) for line in some), D(0)),
            "qty_kurang": sum((max(-line.selisih, D(0)) for line in some), D(0)),
            "qty_bersih": sum((line.selisih for line in some), D(0)),
        }
        | _sums(some)
        for kode, some in _grouped(lines, lambda line: line.kode_barang).items()
    }
    assert shown("group", "kelompok") == {
        kelompok: {"jumlah_barang": len({line.kode_barang for line in some}), "jumlah_posting": _postings_of(some)}
        | _sums(some)
        for kelompok, some in _grouped(lines, lambda line: GROUPS.get(line.kode_barang) or NO_GROUP).items()
    }
    differing = [line for line in lines if line.selisih != 0]
    assert shown("reason", "alasan") == {
        alasan: {"jumlah_posting": _postings_of(some), **_sums(some)}
        for alasan, some in _grouped(differing, lambda line: line.alasan.lower()).items()
    }

    is_by_line = any(name in filters for name in OF_A_LINE)
    shown_postings = [
        one for one in _of_days(postings, filters) if not is_by_line or any(line.posting_id == one.id for line in lines)
    ]
    by_month: dict[str, list[Posting]] = defaultdict(list)
    for one in shown_postings:
        by_month[f"{one.posted_at:%Y-%m}"].append(one)
    of_month = {bulan: [line for line in lines if f"{line.posted_at:%Y-%m}" == bulan] for bulan in by_month}
    assert shown("month", "bulan") == {
        bulan: {"jumlah_posting": len(some), **_sums(of_month[bulan])}
        | _matching(of_month[bulan], (one.id for one in some if one.is_count))
        for bulan, some in by_month.items()
    }
    _, documents = read("documents", **filters)
    assert (documents.row_count, documents.totals) == (
        len(shown_postings),
        {"jumlah_baris": len(lines), **_sums(lines)},
    )


def test_late_movements_are_those_that_each_standing_count_did_not_know(
    read: Read, postings: list[Posting], drawn: random.Random, zone: ZoneInfo, connection: Any
) -> None:
    movements = []
    counted = [one for one in postings if one.is_count]
    for _ in range(MOVEMENTS):  # around the snapshot of some count
        near = drawn.choice(counted)
        dated = near.snapshot_at + timedelta(minutes=drawn.choice((-30_000, -1, 0, 1)))
        entered = near.snapshot_at + timedelta(minutes=drawn.choice((-60, -1, 0, 1, 60, 30_000)))  # WIB
        line = drawn.choice(near.lines)
        card = (line.kode_barang, drawn.choice((line.lot, line.lot, "L2")), line.gudang_kode)
        number = builders.insert(
            connection,
            "kartu_stok",
            **dict(zip(("kode_barang", "lot", "gudang_kode"), card, strict=True)),
            sumber="BELI",
            nomer_nota="BELI-1",
            masuk=1,
            tanggal_wib=dated,
            created_at=_written(entered, zone),
        )
        movements.append((dated, entered, card, number))
    connection.commit()
    gone = {one.nota.removesuffix("-BALIK") for one in postings if not one.is_count}
    standing = sorted((one for one in counted if one.nota not in gone), key=lambda one: (one.posted_at, one.id))

    def expected(**only: Any) -> list[tuple[Any, ...]]:
        return [
            (one.nota, baris, number, "posting" if entered > one.posted_at else "snapshot")
            for one in _of_days(standing, only)
            for dated, entered, card, number in sorted(movements, key=lambda each: (each[0], each[3]))
            for baris, line in enumerate(one.lines, start=1)
            if dated <= one.snapshot_at < entered
            and card == (line.kode_barang, line.lot, line.gudang_kode)
            and only.get("gudang_kode") in (None, line.gudang_kode)
        ]

    for filters in FILTERS[:3]:
        rows, report = read("late-movements", **filters)

        assert [
            (row["nomer_nota"], row["baris"], row["kartu_stok_id"], row["dicatat_setelah"]) for row in rows
        ] == expected(**filters)
        assert report.totals["masuk"] == len(rows)
    assert expected()
