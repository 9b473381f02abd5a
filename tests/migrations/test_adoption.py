"""A database in which the existing application's tables stand already: extended, never dropped, or refused whole."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

import pytest

from everest.errors import DatabaseError
from everest.settings import MysqlUrl
from everest.store.migrations import MigrationError, migrate
from tests.migrations import shape
from tests.migrations.older_tables import BIN, JURNAL, KARTU_STOK, SHADOW

NEW_JOURNAL_ROW = (
    "INSERT INTO jurnal (nomer_nota, tanggal_wib, kode_akun, debet, cabang)"
    " VALUES ('LM-2', '2026-01-02 10:00:00', '1010030030', 1, 'SBY');\n"
)


def described(url: MysqlUrl, table: str) -> str:
    return str(shape.query(url, f"SHOW CREATE TABLE {table}")[0][1])


def refusal(url: MysqlUrl) -> str:
    """The sentence; asserts that nothing of the existing tables changed and nothing of ours was made."""
    tables = [table for table in shape.tables(url) if table != "schema_migrations"]
    before = {table: described(url, table) for table in tables}
    with pytest.raises(MigrationError) as caught:
        migrate(url, lambda line: None)
    assert {table: described(url, table) for table in tables} == before
    assert set(shape.tables(url)) - set(tables) == {"schema_migrations"}
    assert shape.query(url, "SELECT * FROM schema_migrations") == []
    return caught.value.message


def test_rows_that_stand_in_the_books_are_kept_and_labelled_as_the_older_systems(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, JURNAL + KARTU_STOK)
    lines: list[str] = []

    migrate(empty_schema, lines.append)

    assert shape.query(
        empty_schema,
        "SELECT id, posting_id, urutan, nomer_nota, sumber, kode_akun, debet, kredit, cabang FROM jurnal ORDER BY id",
    ) == [
        (1, None, None, "LM-1", "LAMA", "1010030030", Decimal("10.5"), Decimal(0), "JKT"),
        (2, None, None, "LM-1", "LAMA", "7010150", Decimal(0), Decimal("10.5"), "JKT"),
    ]
    assert shape.query(empty_schema, "SELECT nomer_nota, sumber, masuk, harga_pokok, saldo FROM v_kartu_stok") == [
        ("BELI-1", "LAMA", Decimal(10), None, Decimal(10))
    ]
    assert "jurnal exists already: adds column sumber, 'LAMA' on the 2 rows that stand there" in lines


def test_rows_the_existing_application_writes_afterwards_are_not_labelled_old(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, JURNAL)
    migrate(empty_schema, lambda line: None)
    shape.run(empty_schema, NEW_JOURNAL_ROW)

    assert shape.query(
        empty_schema, "SELECT nomer_nota, sumber, created_at > '2026-01-01' FROM jurnal WHERE id > 1"
    ) == [
        ("LM-1", "LAMA", 0),
        ("LM-2", "", 1),
    ]


def test_movements_of_unknown_entry_do_not_look_as_if_they_were_entered_just_now(empty_schema: MysqlUrl) -> None:
    """Else each would count as a late movement against every document whose snapshot is older than the migration."""
    shape.run(empty_schema, KARTU_STOK)
    migrate(empty_schema, lambda line: None)
    assert shape.query(empty_schema, "SELECT created_at FROM kartu_stok") == [(datetime(1970, 1, 1),)]


def test_an_adopted_table_has_every_column_key_and_check_of_ours_and_keeps_its_own(
    empty_schema: MysqlUrl, migrated_schema: MysqlUrl
) -> None:
    shape.run(empty_schema, JURNAL + KARTU_STOK)
    migrate(empty_schema, lambda line: None)

    ours, adopted = shape.of(migrated_schema), shape.of(empty_schema)
    named = [{(row[0], row[2]) for row in part["columns"]} for part in (ours, adopted)]
    assert named[1] - named[0] == {("jurnal", "cabang")}
    assert named[0] <= named[1]
    assert {row[0] for row in ours["checks"]} == {row[0] for row in adopted["checks"]}
    keys = [{row[:5] for row in part["keys"]} for part in (ours, adopted)]
    assert keys[1] - keys[0] == {("jurnal", "ix_cabang", 1, "cabang", 1)}
    assert keys[0] <= keys[1]
    # What we added is as we would have made it, down to the default that labelled the old rows for a moment.
    added = {row[2]: row[3:] for row in adopted["columns"] if row[0] == "jurnal"}
    made = {row[2]: row[3:] for row in ours["columns"] if row[0] == "jurnal"}
    for column in ("posting_id", "urutan", "sumber", "created_at"):
        assert added[column] == made[column], column
    with pytest.raises(DatabaseError, match="ck_jurnal_satu_sisi"):
        shape.run(empty_schema, NEW_JOURNAL_ROW.replace(", 1, 'SBY'", ", -1, 'SBY'"))


def test_a_key_that_served_until_ours_grew_longer_stays_the_applications_own(empty_schema: MysqlUrl) -> None:
    theirs = "created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), KEY ix_masuk (gudang_kode, created_at)"
    shape.run(empty_schema, KARTU_STOK.replace("\n) ENGINE", f",\n    {theirs}\n) ENGINE"))
    migrate(empty_schema, lambda line: None)

    described_now = described(empty_schema, "kartu_stok")
    assert "`ix_masuk` (`gudang_kode`,`created_at`)" in described_now
    assert "`ix_kartu_stok_masuk` (`gudang_kode`,`created_at`,`kode_barang`)" in described_now
    assert "ix_kartu_stok_segar" not in described_now


def test_a_second_run_finds_nothing_to_do_in_adopted_tables(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, JURNAL + KARTU_STOK)
    migrate(empty_schema, lambda line: None)
    before = shape.of(empty_schema)
    assert migrate(empty_schema, lambda line: None) == []
    assert shape.of(empty_schema) == before


def test_rows_of_an_older_worker_that_say_opname_become_lama_and_other_sources_stay(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        JURNAL.replace("cabang VARCHAR(20) NULL", "cabang VARCHAR(20) NULL, sumber VARCHAR(20) NOT NULL DEFAULT ''")
        + "UPDATE jurnal SET sumber = IF(id = 1, 'OPNAME', 'PENJUALAN');\n",
    )
    lines: list[str] = []
    migrate(empty_schema, lines.append)
    assert shape.query(empty_schema, "SELECT sumber FROM jurnal ORDER BY id") == [("LAMA",), ("PENJUALAN",)]
    assert "jurnal exists already: labels 1 rows of an older system 'LAMA' that said 'OPNAME'" in lines


def test_a_run_that_died_between_labelling_and_the_new_default_is_finished(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, JURNAL + "ALTER TABLE jurnal ADD COLUMN sumber VARCHAR(20) NOT NULL DEFAULT 'LAMA';\n")
    migrate(empty_schema, lambda line: None)
    shape.run(empty_schema, NEW_JOURNAL_ROW)
    assert shape.query(empty_schema, "SELECT sumber FROM jurnal ORDER BY id") == [("LAMA",), ("LAMA",), ("",)]


@pytest.mark.parametrize(
    ("theirs", "instead", "sentence"),
    [
        ("debet DECIMAL(30,4)", "debet DECIMAL(24,1)", "jurnal has debet decimal(24,1): needed is decimal(24,2)"),
        ("debet DECIMAL(30,4)", "debet DECIMAL(23,2)", "jurnal has debet decimal(23,2): needed is decimal(24,2)"),
        ("debet DECIMAL(30,4)", "debet DOUBLE", "jurnal has debet double: needed is decimal(24,2)"),
        ("VARCHAR(150)", "VARCHAR(20)", "jurnal has nomer_nota varchar(20): needed is varchar(100)"),
        ("DATETIME NOT NULL", "DATE NOT NULL", "jurnal has tanggal_wib date: needed is datetime"),
        (
            "utf8mb4_bin NOT NULL",
            "utf8mb4_unicode_ci NOT NULL",
            "jurnal has kode_akun varchar(30): compares as utf8mb4_unicode_ci, needed is utf8mb4_bin",
        ),
        (
            "keterangan VARCHAR(255)",
            "keterangan VARCHAR(255) CHARACTER SET latin1",
            "jurnal has keterangan varchar(255): is latin1_swedish_ci, needed is utf8mb4",
        ),
        (
            "kredit DECIMAL(30,4) NOT NULL DEFAULT 0",
            "kredit DECIMAL(30,4) NOT NULL",
            "jurnal has kredit decimal(30,4): has no default",
        ),
        (
            "kredit DECIMAL(30,4) NOT NULL DEFAULT 0",
            "kredit DECIMAL(30,4) NULL",
            "jurnal has kredit decimal(30,4): may be NULL",
        ),
        (
            "cabang VARCHAR(20) NULL",
            "cabang VARCHAR(20) NOT NULL",
            "jurnal has a column cabang of its own that must be filled",
        ),
        ("tanggal_wib", "tanggal", "jurnal has no column tanggal_wib"),
        ("ENGINE=InnoDB", "ENGINE=MyISAM", "jurnal is kept by MyISAM"),
        ("DEFAULT CHARSET=utf8mb4", "DEFAULT CHARSET=latin1", "jurnal has the default collation latin1_swedish_ci"),
        ("AUTO_INCREMENT", "", "jurnal has id int(10) unsigned: does not count by itself"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(
    empty_schema: MysqlUrl, theirs: str, instead: str, sentence: str
) -> None:
    # The rows are left out: some of these tables could not take them.
    shape.run(empty_schema, JURNAL.split("INSERT INTO")[0].replace(theirs, instead))
    found = refusal(empty_schema).replace("int unsigned", "int(10) unsigned")
    assert sentence in found


def test_all_differences_of_all_tables_are_named_at_once_and_each_names_what_mends_it(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        JURNAL.replace("VARCHAR(150)", "VARCHAR(20)").replace("debet DECIMAL(30,4)", "debet DECIMAL(12,2)")
        + KARTU_STOK.replace("ENGINE=InnoDB", "ENGINE=MyISAM").replace("utf8mb4_bin", "utf8mb4_general_ci")
        + "CREATE TABLE rabbit_publish_shadow (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
        f" nomer_nota VARCHAR(100) {BIN}, transaksi_id BIGINT, payload LONGTEXT,"
        " publish_status VARCHAR(20) NOT NULL DEFAULT 'PENDING', published_at DATETIME(6),"
        " worker_status ENUM('PENDING', 'PROCESSING', 'FAILED', 'COMPLETED') NOT NULL DEFAULT 'PENDING'"
        ") DEFAULT CHARSET=utf8mb4;\n",
    )
    message = refusal(empty_schema)
    differences = [line.strip() for line in message.splitlines() if line.startswith("  - ")]
    assert {line.split()[1] for line in differences} == {"jurnal", "kartu_stok", "rabbit_publish_shadow"}
    assert len(differences) == 2 + 1 + 4 + 1
    assert "worker_status enum('PENDING','PROCESSING','FAILED','COMPLETED'): lacks CANCELLED, WAITING" in message

    # What the sentences say is enough, one by one and in one statement per table.
    for statement in re.findall(r"ALTER TABLE [^;]*;", message):
        shape.run(empty_schema, statement + "\n")
    assert migrate(empty_schema, lambda line: None)
    assert shape.query(empty_schema, "SELECT sumber, COUNT(*) FROM jurnal GROUP BY sumber") == [("LAMA", 2)]


def test_journal_rows_that_break_the_check_stay_are_reported_and_do_not_loosen_it_for_ours(
    empty_schema: MysqlUrl,
) -> None:
    broken = NEW_JOURNAL_ROW.replace("debet, cabang", "debet, kredit, cabang").replace(", 1, 'SBY'", ", 7, 7, 'SBY'")
    shape.run(empty_schema, JURNAL + broken)
    lines: list[str] = []

    migrate(empty_schema, lines.append)

    assert (
        "jurnal exists already: adds check ck_jurnal_satu_sisi for our own rows only;"
        " rows that break it stay as they are: 1 rows, id = 3" in lines
    )
    assert shape.query(empty_schema, "SELECT id, debet, kredit, sumber FROM jurnal WHERE id = 3") == [
        (3, Decimal(7), Decimal(7), "LAMA")
    ]
    shape.run(empty_schema, broken)
    with pytest.raises(DatabaseError, match="ck_jurnal_satu_sisi"):
        shape.run(
            empty_schema, broken.replace("(nomer_nota", "(posting_id, nomer_nota").replace("('LM-2'", "(1, 'LM-2'")
        )


def test_rows_that_break_a_check_elsewhere_are_named_and_refused(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        f"CREATE TABLE periode_akuntansi (periode CHAR(7) {BIN} NOT NULL PRIMARY KEY,"
        " status VARCHAR(10) NOT NULL DEFAULT 'OPEN') DEFAULT CHARSET=utf8mb4;\n"
        "INSERT INTO periode_akuntansi VALUES ('2026-01', 'CLOSED'), ('2026-02', 'LOCKED');\n",
    )
    message = refusal(empty_schema)
    assert "periode_akuntansi holds rows that break ck_periode_status" in message
    assert "1 rows, periode = 2026-02" in message
    assert shape.query(empty_schema, "SELECT COUNT(*) FROM periode_akuntansi") == [(2,)]


def test_rows_that_stand_twice_where_ours_stand_once_are_named_and_refused(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        "CREATE TABLE so_details_staging (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, header_id BIGINT NOT NULL,"
        " baris INT NOT NULL) DEFAULT CHARSET=utf8mb4;\n"
        "INSERT INTO so_details_staging (header_id, baris) VALUES (5, 1), (5, 2), (5, 2), (6, 2);\n",
    )
    assert "so_details_staging holds the same (header_id, baris) more than once: 5/2" in refusal(empty_schema)


def test_a_unique_key_of_the_existing_application_is_pointed_out(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, KARTU_STOK.replace("keluar DECIMAL", "UNIQUE KEY uq_nota (nomer_nota), keluar DECIMAL"))
    lines: list[str] = []
    migrate(empty_schema, lines.append)
    assert [line for line in lines if "keeps a unique key of its own, uq_nota (nomer_nota)" in line]


def test_master_data_we_only_read_may_have_columns_that_its_owner_must_fill(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        f"CREATE TABLE gudang (gudang_kode VARCHAR(40) {BIN} NOT NULL PRIMARY KEY, nama VARCHAR(150) NULL,"
        " alamat VARCHAR(99) NOT NULL) DEFAULT CHARSET=utf8mb4;\n"
        "INSERT INTO gudang VALUES ('GD-A', NULL, 'Cikarang');\n",
    )
    migrate(empty_schema, lambda line: None)
    assert shape.query(empty_schema, "SELECT * FROM gudang") == [("GD-A", None, "Cikarang", 1)]


def test_accounts_of_a_site_keep_their_names_and_state(empty_schema: MysqlUrl) -> None:
    shape.run(
        empty_schema,
        f"CREATE TABLE akun (kode_akun VARCHAR(30) {BIN} NOT NULL PRIMARY KEY, nama VARCHAR(150) NOT NULL DEFAULT '',"
        " aktif TINYINT NOT NULL DEFAULT 1) DEFAULT CHARSET=utf8mb4;\n"
        "INSERT INTO akun VALUES ('7010150', 'Pendapatan lain', 0);\n",
    )
    migrate(empty_schema, lambda line: None)
    assert shape.query(empty_schema, "SELECT nama, aktif FROM akun WHERE kode_akun = '7010150'") == [
        ("Pendapatan lain", 0)
    ]
    assert shape.query(empty_schema, "SELECT COUNT(*) FROM akun") == [(3,)]


@pytest.mark.parametrize("has_the_column", [False, True])
def test_jobs_of_before_us_that_failed_or_stayed_pending_are_marked_and_told(
    empty_schema: MysqlUrl, has_the_column: bool
) -> None:
    """Decision 0044: no letter is written for an old failure, and no document of years ago is posted by itself."""
    added = "ALTER TABLE rabbit_publish_shadow ADD COLUMN dead_lettered_at DATETIME(6) NULL;\n"
    shape.run(empty_schema, SHADOW + (added if has_the_column else ""))
    lines: list[str] = []
    migrate(empty_schema, lines.append)
    shape.run(empty_schema, "INSERT INTO rabbit_publish_shadow (worker_status) VALUES ('FAILED');\n")
    migrate(empty_schema, lines.append)

    before = datetime(1970, 1, 1)
    assert shape.query(
        empty_schema, "SELECT worker_status, dead_lettered_at FROM rabbit_publish_shadow ORDER BY id"
    ) == [
        ("PENDING", before),
        ("PROCESSING", None),
        ("COMPLETED", None),
        ("FAILED", before),
        ("FAILED", None),
    ]
    told = [line for line in lines if line.startswith("rabbit_publish_shadow exists already: holds")]
    assert [re.sub(r".*holds (1 jobs that are \w+), the oldest is (\d);.*", r"\1 \2", line) for line in told] == [
        "1 jobs that are FAILED 4",
        "1 jobs that are PENDING 1",
        "1 jobs that are PROCESSING 2",
    ]


def test_dates_with_a_zero_are_named_and_a_default_of_zero_is_only_a_habit(empty_schema: MysqlUrl) -> None:
    zero = "'0000-00-00 00:00:00'"
    made = JURNAL.replace("tanggal_wib DATETIME NOT NULL", f"tanggal_wib DATETIME NOT NULL DEFAULT {zero}")
    habits = "SET SESSION sql_mode = '';\n"
    shape.run(empty_schema, habits + made + f"UPDATE jurnal SET tanggal_wib = {zero} WHERE id = 2;\n")

    message = refusal(empty_schema)
    assert (
        "jurnal holds dates with a zero in tanggal_wib: 1 rows, id = 2. UPDATE jurnal SET tanggal_wib = '...'"
        in message
    )
    shape.run(empty_schema, "UPDATE jurnal SET tanggal_wib = '2025-12-31' WHERE id = 2;\n")
    assert migrate(empty_schema, lambda line: None)
    assert shape.query(empty_schema, "SELECT COUNT(*) FROM jurnal WHERE sumber = 'LAMA'") == [(2,)]


def test_a_table_where_a_view_of_ours_belongs_is_refused(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, "CREATE TABLE v_kartu_stok (id INT);\n")
    assert "v_kartu_stok is a table; needed is a view" in refusal(empty_schema)


def test_a_view_where_a_table_of_ours_belongs_is_refused(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, "CREATE TABLE master (gudang_kode INT);\nCREATE VIEW gudang AS SELECT * FROM master;\n")
    with pytest.raises(MigrationError, match="gudang is not a table of its own"):
        migrate(empty_schema, lambda line: None)


def test_columns_wider_than_ours_are_not_narrowed(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, KARTU_STOK.replace("lot VARCHAR(64)", "lot VARCHAR(99)") + JURNAL)
    migrate(empty_schema, lambda line: None)
    assert "`lot` varchar(99)" in described(empty_schema, "kartu_stok")
    assert "`debet` decimal(30,4)" in described(empty_schema, "jurnal")
    assert "`nomer_nota` varchar(150)" in described(empty_schema, "jurnal")


def test_tables_we_know_nothing_of_are_not_looked_at(empty_schema: MysqlUrl) -> None:
    shape.run(empty_schema, "CREATE TABLE users (name VARCHAR(9)) ENGINE=MyISAM DEFAULT CHARSET=latin1;\n")
    before = described(empty_schema, "users")
    migrate(empty_schema, lambda line: None)
    assert described(empty_schema, "users") == before
