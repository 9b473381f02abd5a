"""A database in use for years is adopted, and later upgraded, while its application goes on writing: nobody is locked
out for long.

By the millions it is `make migrate-large` (15 million rows, minutes, gigabytes); a small one runs with every test.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import MySQLdb
import pytest

from everest.settings import MysqlUrl
from everest.store import adoption, migrations
from everest.store import database as store
from everest.store.migrations import migrate, read_migrations
from tests.migrations import shape
from tests.migrations.older_tables import JURNAL, KARTU_STOK, SHADOW

ROWS = int(os.environ.get("EVEREST_MIGRATION_ROWS", "5000000"))
ROWS_PER_INSERT = 250_000
WRITE_EVERY_S = 0.004
DIGITS = "(SELECT 0 d UNION ALL " + " UNION ALL ".join(f"SELECT {digit}" for digit in range(1, 10)) + ")"
NUMBERS = "SELECT {first} + a.d + 10*b.d + 100*c.d + 1000*e.d + 10000*f.d + 100000*g.d AS n FROM " + ", ".join(
    f"{DIGITS} {name}" for name in "abcefg"
)

# What the application writes, old rows and new ones; {n} is a number of its own.
JOURNAL_ROW = (
    "INSERT INTO jurnal (transaksi_id, nomer_nota, tanggal_wib, kode_akun, debet, kredit)",
    (
        "{n}, CONCAT('LM-', {n} DIV 2), '2020-01-01' + INTERVAL {n} MOD 2000 DAY,"
        " IF({n} MOD 2, '1010030030', '7010150'), IF({n} MOD 2, 1500, 0), IF({n} MOD 2, 0, 1500)"
    ),
)
CARD_ROW = (
    "INSERT INTO kartu_stok (nomer_nota, transaksi_id, kode_barang, gudang_kode, tanggal_wib, masuk)",
    (
        "CONCAT('LM-', {n}), {n}, CONCAT('BRG-', {n} MOD 20000), CONCAT('GD-', {n} MOD 30),"
        " '2020-01-01' + INTERVAL {n} MOD 2000 DAY, 2"
    ),
)
JOB_ROW = (
    "INSERT INTO rabbit_publish_shadow (transaksi_id, nomer_nota, payload, worker_status)",
    "{n}, CONCAT('LM-', {n}), '{{}}', IF({n} MOD 1000, 'COMPLETED', 'FAILED')",
)
NEW_FROM = 1_000_000_000
OLD = f"transaksi_id < {NEW_FROM}"
"""Rows that stood there; ids have gaps."""
BEFORE_UPGRADE = 15
KEYS_OF_THE_CARD = (
    "SELECT DISTINCT index_name FROM information_schema.statistics"
    " WHERE table_schema = DATABASE() AND table_name = 'kartu_stok'"
)
TABLES = {"jurnal": JOURNAL_ROW, "kartu_stok": CARD_ROW, "rabbit_publish_shadow": JOB_ROW}


def fill(url: MysqlUrl, rows: int) -> None:
    with closing(store.connect(url)) as conn, conn.cursor() as cursor:
        for insert, values in TABLES.values():
            for first in range(1, rows + 1, ROWS_PER_INSERT):
                last = min(first + ROWS_PER_INSERT - 1, rows)
                numbers = NUMBERS.format(first=first)
                cursor.execute(f"{insert} SELECT {values.format(n='n')} FROM ({numbers}) x WHERE n <= {last}")
                conn.commit()


BEFORE = "nothing yet"


@dataclass
class Writer:
    """The application: a row into each table, each a transaction of its own, every few milliseconds."""

    url: MysqlUrl
    first: int = NEW_FROM
    stalls: dict[str, dict[str, float]] = field(default_factory=lambda: {table: {} for table in TABLES})
    """Longest wait in seconds, by table and by what was being done."""
    written: dict[str, int] = field(default_factory=lambda: dict.fromkeys(TABLES, 0))
    problems: list[str] = field(default_factory=list)
    doing: str = BEFORE
    during: dict[str, int] = field(default_factory=dict)
    """Rows written while each line of the report was the last one."""

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(table,), daemon=True) for table in TABLES]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(300)
            assert not thread.is_alive()

    def _write(self, table: str) -> None:
        conn = store.connect(self.url)
        conn.autocommit(True)
        insert, values = TABLES[table]
        with closing(conn), conn.cursor() as cursor:
            number = self.first
            while not self._stop.wait(WRITE_EVERY_S):
                number += 1
                doing, begun = self.doing, time.monotonic()
                try:
                    cursor.execute(f"{insert} SELECT {values.format(n=number)}")
                except MySQLdb.Error as error:
                    self.problems.append(f"{table}: {error}")
                    return
                took = time.monotonic() - begun
                self.stalls[table][doing] = max(self.stalls[table].get(doing, 0.0), took)
                self.written[table] += 1
                self.during[doing] = self.during.get(doing, 0) + 1


def flat(statement: str) -> str:
    return " ".join(statement.split())[:100]


def tell(rows: int, writer: Writer, seconds: dict[str, float]) -> None:
    total, written = sum(seconds.values()), sum(writer.written.values())
    print(f"\n{len(TABLES)} x {rows} rows: {total:.0f} s of statements, {written} rows written meanwhile")
    for statement, took in sorted(seconds.items(), key=lambda one: -one[1])[:12]:
        print(f"{took:8.1f} s  {writer.during.get(statement, 0):6} rows written meanwhile  {flat(statement)}")
    for table, stalls in writer.stalls.items():
        before = stalls.pop(BEFORE, 0.0)
        stall, doing = max(((took, doing) for doing, took in stalls.items()), default=(0.0, "no statement"))
        print(f"longest wait of a writer of {table}: {stall * 1000:.0f} ms, during {flat(doing)}")
        print(f"    before the migration began: {before * 1000:.0f} ms")


def migrate_beside(
    writer: Writer, rows: int, directory: Path = migrations.MIGRATIONS_DIR
) -> tuple[list[str], list[str], dict[str, float]]:
    """What was applied while the writer was at work, the report, and the seconds of each statement."""
    lines, seconds = [], {}
    real = migrations.execute

    def watched(conn: store.Connection, statement: str, report: Callable[[str], object]) -> None:
        writer.doing, begun = statement, time.monotonic()
        real(conn, statement, report)
        seconds[statement] = time.monotonic() - begun

    migrations.execute = watched
    writer.start()
    time.sleep(
        rows / 1_000_000
    )  # seconds in which nothing is migrated, to know what this machine's writers wait anyway
    try:
        applied = migrate(writer.url, lines.append, directory)
    finally:
        migrations.execute = real
        writer.stop()
        tell(rows, writer, seconds)
    assert writer.problems == []
    assert [line for line in lines if "nobody can write to the table meanwhile" in line] == [], "every ALTER was online"
    assert all(count > 0 for count in writer.written.values())
    return applied, lines, seconds


def adopt(
    url: MysqlUrl, rows: int, directory: Path = migrations.MIGRATIONS_DIR
) -> tuple[Writer, list[str], dict[str, float]]:
    """Fills, migrates beside a writer, and checks all that needs no clock. The seconds of each statement as well."""
    for text in (JURNAL, KARTU_STOK, SHADOW):
        shape.run(url, text.split("INSERT INTO")[0])
    fill(url, rows)
    writer = Writer(url)
    applied, lines, seconds = migrate_beside(writer, rows, directory)
    assert applied == [file.name for file in read_migrations(directory)]
    for table in TABLES:
        (count,) = shape.query(url, f"SELECT COUNT(*) FROM {table}")[0]
        assert count == rows + writer.written[table], table
    for table in ("jurnal", "kartu_stok"):
        ((old, others),) = shape.query(
            url, f"SELECT SUM(sumber = 'LAMA'), SUM(sumber <> 'LAMA' AND {OLD}) FROM {table}"
        )
        assert (old >= rows, others) == (True, 0), table
    marked = f"SELECT COUNT(*) FROM rabbit_publish_shadow WHERE dead_lettered_at < '1971-01-01' AND {OLD}"
    assert shape.query(url, marked) == [(rows // 1000,)]
    named = {line.split()[0] for line in lines if "goes without check" in line}
    assert named == set(TABLES)
    return writer, lines, seconds


def test_every_change_of_a_table_with_many_rows_is_made_beside_its_writers(
    empty_schema: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "MANY_ROWS", 1_000)
    _, _, seconds = adopt(empty_schema, 20_000)
    assert {one.split()[2] for one in seconds if one.startswith("ALTER")} >= set(TABLES)


def upgrade(url: MysqlUrl, rows: int, folder: Path) -> tuple[Writer, dict[str, float]]:
    """Adopts with the migrations up to BEFORE_UPGRADE, then, beside another writer, brings what came since."""
    every = read_migrations(migrations.MIGRATIONS_DIR)
    for file in every[:BEFORE_UPGRADE]:
        shutil.copy(migrations.MIGRATIONS_DIR / f"{file.name}.sql", folder)
    adopt(url, rows, folder)
    before = [shape.query(url, f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES]
    writer = Writer(url, 2 * NEW_FROM)
    applied, _, seconds = migrate_beside(writer, rows)
    assert applied == [file.name for file in every[BEFORE_UPGRADE:]]
    after = [shape.query(url, f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES]
    assert after == [count + writer.written[table] for count, table in zip(before, TABLES, strict=True)]
    keys = {row[0] for row in shape.query(url, KEYS_OF_THE_CARD)}
    assert "ix_kartu_stok_masuk" in keys, "the key of migration 16"
    assert "ix_kartu_stok_segar" not in keys, "in the place of another"
    return writer, seconds


def test_an_upgrade_of_tables_with_many_rows_is_made_beside_their_writers(
    empty_schema: MysqlUrl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(adoption, "MANY_ROWS", 1_000)
    upgrade(empty_schema, 5_000, tmp_path)


@pytest.mark.long
def test_millions_of_rows_are_upgraded_while_the_application_writes(empty_schema: MysqlUrl, tmp_path: Path) -> None:
    """Prints what stands in docs/existing-installations.md; run it with -s."""
    writer, seconds = upgrade(empty_schema, ROWS, tmp_path)
    assert slow_alters(seconds), "what is worth looking at"
    assert locked_out(writer.stalls, seconds) == []


def test_the_checks_that_were_left_out_can_be_added_as_the_report_says(
    empty_schema: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "MANY_ROWS", 1)
    shape.run(empty_schema, JURNAL)
    lines: list[str] = []
    migrate(empty_schema, lines.append)
    (said,) = [line for line in lines if "goes without check ck_jurnal_satu_sisi" in line]
    shape.run(empty_schema, said[said.index("ALTER TABLE") :] + "\n")
    assert "ck_jurnal_satu_sisi" in {row[0] for row in shape.of(empty_schema)["checks"]}


def test_a_transaction_that_has_a_table_open_does_not_make_everybody_wait_behind_the_migration(
    empty_schema: MysqlUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ALTER waits for it, and who comes later waits for the ALTER: it gives up, lets them through, comes again."""
    monkeypatch.setattr(migrations, "TABLE_PAUSE_SECONDS", 0.2)
    for text in (JURNAL, KARTU_STOK, SHADOW):
        shape.run(empty_schema, text)
    waits = threading.Event()

    def heard(line: str) -> None:
        if "waits for a transaction that has the table open" in line:
            waits.set()

    writer = Writer(empty_schema)
    with closing(store.connect(empty_schema)) as report, report.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM jurnal")  # somebody's long report: its transaction stays open
        writer.start()
        thread = threading.Thread(target=migrate, args=(empty_schema, heard))
        thread.start()
        assert waits.wait(60)
        before = writer.written["jurnal"]
        give_up_at = time.monotonic() + 60
        while writer.written["jurnal"] == before and time.monotonic() < give_up_at:
            time.sleep(0.05)
        assert writer.written["jurnal"] > before, "a row came in while the migration still waits"
        assert thread.is_alive()
    thread.join(120)
    writer.stop()
    assert writer.problems == []
    assert shape.query(empty_schema, "SELECT MAX(version) FROM schema_migrations WHERE applied_at IS NOT NULL") == [
        (len(read_migrations(migrations.MIGRATIONS_DIR)),)
    ]


@pytest.mark.long
def test_millions_of_rows_are_adopted_while_the_application_writes(empty_schema: MysqlUrl) -> None:
    """Prints what stands in docs/existing-installations.md; run it with -s."""
    writer, _, seconds = adopt(empty_schema, ROWS)
    assert len(slow_alters(seconds)) >= len(TABLES) - 1, "what is worth looking at"
    assert locked_out(writer.stalls, seconds) == []


def slow_alters(seconds: Mapping[str, float]) -> dict[str, float]:
    """Of all statements the ALTERs that took a good part of the migration: they build keys over every row."""
    least = sum(seconds.values()) / 20
    return {one: took for one, took in seconds.items() if one.startswith("ALTER TABLE") and took >= least}


def locked_out(stalls: Mapping[str, Mapping[str, float]], seconds: Mapping[str, float]) -> list[str]:
    """Of those the ones that a writer of their own table waited for, half as long as they took or longer. Whom an ALTER
    locks out waits for nearly all of it, whom it lets in a moment at its beginning and end; so this is no matter of how
    fast the machine is."""
    return [
        f"{waited:.1f} of {took:.1f} s: {flat(statement)}"
        for statement, took in slow_alters(seconds).items()
        if (waited := stalls[statement.split()[2]].get(statement, 0.0)) >= took / 2
    ]


def test_an_alter_that_locks_writers_out_is_seen() -> None:
    slow, quick = "ALTER TABLE jurnal ADD KEY a (b)", "ALTER TABLE kartu_stok ADD COLUMN c INT"
    seconds = {slow: 20.0, quick: 0.1, "UPDATE jurnal SET sumber = 'LAMA'": 60.0}
    assert locked_out({"jurnal": {slow: 0.4}, "kartu_stok": {quick: 0.1, slow: 3.0}}, seconds) == []
    (said,) = locked_out({"jurnal": {slow: 19.0}, "kartu_stok": {}}, seconds)
    assert said == f"19.0 of 20.0 s: {slow}"
