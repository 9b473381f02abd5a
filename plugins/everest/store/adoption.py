"""Tables that the existing application made before us: compared with what a migration declares, and extended.

Nothing here drops, recreates, narrows or converts. What is missing (columns, keys, CHECKs) is added in one ALTER per
table; what does not fit is refused before anything is changed, all of it at once, each with the statement that
mends it, because converting a large table is a decision about somebody else's working hours.

Rows that stand in `jurnal` and `kartu_stok` are the older system's: `sumber` becomes 'LAMA' and never stays 'OPNAME'
(which would make them look like leftovers of ours). Rows that break a CHECK stay as they are and are reported: where
a posting_id tells ours from theirs the CHECK is added for our rows only, elsewhere the migration is refused. Jobs that
stand FAILED or PENDING are marked: nothing begins them, or writes their letters, by itself (decision 0044).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from everest.store.database import Connection
from everest.store.declared import Key, Table, collation_misfit, filling_misfits, is_required, type_misfit
from everest.store.existing_table import ExistingTable

CREATE_VIEW = re.compile(r"CREATE OR REPLACE VIEW (\w+)")
DEFAULT = re.compile(r"DEFAULT ('[^']*'|[\w()]+)")

# What rows that stood there before us get in a column we add. An unknown time of entry must not look like "just now":
# every old movement would count as entered after the snapshot of every open document.
BEFORE_US = "'1970-01-01 00:00:00.000000'"
EXISTING_ROWS = {
    ("jurnal", "sumber"): "'LAMA'",
    ("kartu_stok", "sumber"): "'LAMA'",
    ("jurnal", "created_at"): BEFORE_US,
    ("kartu_stok", "created_at"): BEFORE_US,
    ("so_headers_staging", "created_at"): BEFORE_US,
}

# Master data that we only read: what may be NULL there, and what else must be filled, is the other program's matter.
ONLY_READ = frozenset({"gudang", "akun_gudang", "kebijakan_selisih"})

MANY_ROWS = 200_000
"""From here on nobody waits for a copy of the table; below, it takes a second or two."""

IDS_PER_UPDATE = 50_000
"""So many rows are held, and have to be undone if it dies, at a time."""

DATED = re.compile(r"date(time|stamp)?\b|timestamp\b")


@dataclass
class Findings:
    """What is to be done about existing tables: statements by table, lines for the report, and what does not fit."""

    statements: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    mendings: dict[str, list[str]] = field(default_factory=dict)
    """By table: what mends several differences in one ALTER."""


def examine(conn: Connection, queries: Any, statements: Sequence[str]) -> Findings:
    """Looks at every table and view that `statements` would make and that exists already. Changes nothing."""
    findings = Findings()
    existing = {row["name"]: row for row in queries.relations(conn)}
    for statement in statements:
        if (view := CREATE_VIEW.search(statement)) and existing.get(view[1], {}).get("kind") == "BASE TABLE":
            findings.differences.append(f"{view[1]} is a table; needed is a view of that name. Rename the table.")
        table = Table.declared_by(statement)
        if table and table.name in existing:
            for later in statements:
                table.with_key_of(later)
            Examination(conn, queries, table, existing[table.name], findings).run()
    return findings


class Examination(ExistingTable):
    """One existing table beside its declaration."""

    def __init__(
        self, conn: Connection, queries: Any, table: Table, relation: dict[str, Any], findings: Findings
    ) -> None:
        super().__init__(conn, table)
        self.queries, self.relation, self.findings = queries, relation, findings
        self.new_columns: list[str] = []
        self.defaults: list[str] = []
        self.new_keys: list[str] = []
        self.new_checks: list[str] = []

    def run(self) -> None:
        if self.relation["kind"] != "BASE TABLE":
            self.refuse("is not a table of its own", "Rename it, or let it be a table.")
            return
        if self.relation["engine"] != "InnoDB":
            self.refuse(f"is kept by {self.relation['engine']}", f"ALTER TABLE {self.name} ENGINE=InnoDB;")
        if not str(self.relation["collation"]).startswith("utf8mb4"):
            self.refuse(
                f"has the default collation {self.relation['collation']}",
                f"ALTER TABLE {self.name} DEFAULT CHARACTER SET utf8mb4;",
            )
        self.expected = self.expected_columns()
        self.look()
        self.rows = self.value(f"SELECT COUNT(*) FROM {self.name}")  # a name out of our own files  # nosec B608
        self.add_missing_columns()
        self.compare_columns()
        self.compare_keys()
        self.compare_checks()
        self.compare_dates()
        # Columns are there at once, and their defaults are put right before another row comes. A key is built beside
        # whoever writes; only a CHECK makes the server copy the table.
        statements = [
            *self.relabel(),
            *self.alter(self.new_columns),
            *self.alter(self.defaults),
            *self.mark_jobs(),
            *self.alter(self.new_keys),
            *self.alter(self.new_checks),
        ]
        if statements:
            self.findings.statements[self.name] = statements

    def alter(self, parts: list[str]) -> list[str]:
        return [f"ALTER TABLE {self.name} {', '.join(parts)}"] if parts else []

    def add_missing_columns(self) -> None:
        for name, column in self.table.columns.items():
            if name in self.actual:
                continue
            if column.cannot_be_added:
                self.refuse(
                    f"has no column {name}", f"The application that fills the table has to fill it: {column.line}"
                )
                continue
            existing = EXISTING_ROWS.get((self.name, name))
            if existing and self.rows:
                # One atomic ALTER labels the rows; a run that dies before the MODIFY is recognised by its default.
                self.new_columns.append(f"ADD COLUMN {DEFAULT.sub(f'DEFAULT {existing}', column.line)}")
                self.defaults.append(f"MODIFY COLUMN {column.line}")
                self.note(f"adds column {name}, {existing} on the {self.rows} rows that stand there")
            else:
                self.new_columns.append(f"ADD COLUMN {column.line}")
                self.note(f"adds column {name}")

    def compare_columns(self) -> None:
        written = self.name not in ONLY_READ
        for name, actual in self.actual.items():
            column, expected = self.table.columns.get(name), self.expected.get(name)
            if column is None or expected is None:
                if written and is_required(actual):
                    self.refuse(
                        f"has a column {name} of its own that must be filled, and our rows cannot",
                        f"ALTER TABLE {self.name} ALTER COLUMN {name} SET DEFAULT ...;",
                    )
                continue
            too_narrow = type_misfit(
                expected["Type"], actual["Type"], self.table.allowed_values(name), self.table.in_a_key(name)
            )
            wrong = [problem for problem in (too_narrow, collation_misfit(expected, actual)) if problem]
            if written:
                wrong += filling_misfits(expected, actual)
            if wrong:
                kind = column.kind if too_narrow else actual["Type"]
                self.refuse(
                    f"has {name} {actual['Type']}: {', '.join(wrong)}",
                    f"ALTER TABLE {self.name} MODIFY COLUMN {name} {kind} {column.tail};",
                )
            elif (labelled := EXISTING_ROWS.get((self.name, name))) and actual["Default"] == labelled.strip("'"):
                self.defaults.append(f"MODIFY COLUMN {name} {actual['Type']} {column.tail}")

    def compare_keys(self) -> None:
        actual = self.keys()
        for name, key in self.table.keys.items():
            if name == "PRIMARY":
                if actual.get(name, ((), True))[0] != key.columns:
                    self.refuse(f"has not the {key.line}", "Its owner has to decide that.")
            elif any(serves(key, columns, unique) for columns, unique in actual.values()):
                continue
            elif name in actual:
                self.refuse(f"has another key of the name {name}", f"ALTER TABLE {self.name} DROP KEY {name};")
            elif key.unique and (doubles := self.doubles(key.columns)):
                self.refuse(
                    f"holds the same ({', '.join(key.columns)}) more than once: {doubles}", "Only one may keep it."
                )
            else:
                self.new_keys.append(f"ADD {key.line}")
                self.note(f"adds key {name}")
        ours = {frozenset(key.columns) for key in self.table.keys.values() if key.unique}
        for name, (columns, unique) in actual.items():
            if unique and frozenset(columns) not in ours and self.name not in ONLY_READ:
                self.note(f"keeps a unique key of its own, {name} ({', '.join(columns)}): our rows have to fit it too")

    def compare_checks(self) -> None:
        there = {row["name"] for row in self.queries.checks_of(self.conn, table_name=self.name)}
        for name, expression in self.table.checks.items():
            if name in there:
                continue
            broken = self.rows_breaking(expression)
            if broken and "posting_id" not in self.table.columns:
                self.refuse(f"holds rows that break {name} ({expression}): {broken}", "Mend them first.")
                continue
            text = f"ADD CONSTRAINT {name} CHECK ({f'posting_id IS NULL OR ({expression})' if broken else expression})"
            if self.rows > MANY_ROWS:
                self.note(
                    f"goes without check {name}: adding it copies {self.rows} rows, and nobody can write meanwhile. In"
                    f" a quiet hour: ALTER TABLE {self.name} {text};"
                )
                continue
            self.new_checks.append(text)
            if broken:
                self.note(f"adds check {name} for our own rows only; rows that break it stay as they are: {broken}")
            else:
                self.note(f"adds check {name}")

    def relabel(self) -> list[str]:
        """No posting of ours can have made these rows, whatever they say."""
        if (self.name, "sumber") not in EXISTING_ROWS or "sumber" not in self.actual:
            return []
        ours = "sumber = 'OPNAME'" + (" AND posting_id IS NULL" if "posting_id" in self.actual else "")
        count = self.value(f"SELECT COUNT(*) FROM {self.name} WHERE {ours}")  # nosec B608
        if not count:
            return []
        self.note(f"labels {count} rows of an older system 'LAMA' that said 'OPNAME'")
        if self.rows <= IDS_PER_UPDATE:
            return [f"UPDATE {self.name} SET sumber = 'LAMA' WHERE {ours}"]  # nosec B608
        ((first, last),) = self.all(f"SELECT MIN(id), MAX(id) FROM {self.name} WHERE {ours}")  # nosec B608
        windows = range(first, last + 1, IDS_PER_UPDATE)
        return [
            f"UPDATE {self.name} SET sumber = 'LAMA' WHERE {ours}"  # nosec B608
            f" AND id BETWEEN {start} AND {start + IDS_PER_UPDATE - 1}"
            for start in windows
        ]

    def mark_jobs(self) -> list[str]:
        """An old failure is no letter of ours, and what was left PENDING years ago is not posted without a person."""
        if self.name != "rabbit_publish_shadow":
            return []
        theirs = "worker_status IN ('PENDING', 'FAILED')"
        theirs += " AND dead_lettered_at IS NULL" if "dead_lettered_at" in self.actual else ""
        theirs += " AND dag_run_id IS NULL" if "dag_run_id" in self.actual else ""
        jobs = "worker_status IN ('PENDING', 'PROCESSING', 'FAILED')"
        counted = self.all(f"SELECT worker_status, COUNT(*), MIN(id) FROM {self.name} WHERE {jobs} GROUP BY 1")  # nosec B608
        for status, count, oldest in sorted(counted):
            self.note(f"holds {count} jobs that are {status}, the oldest is {oldest}; look at them before you start")
        if not self.value(f"SELECT COUNT(*) FROM {self.name} WHERE {theirs}"):  # nosec B608
            return []
        # Without the column's own condition where the statement before has just added it.
        return [f"UPDATE {self.name} SET dead_lettered_at = {BEFORE_US} WHERE {theirs}"]  # nosec B608

    def compare_dates(self) -> None:
        """A date with a zero in it is none: nobody can say in which month such a row stands. (A default of zero is only
        the other program's habit.)"""
        for name, actual in self.actual.items():
            if name not in self.table.columns or not DATED.match(actual["Type"]):
                continue
            is_none = f"DAY({name}) = 0 OR MONTH({name}) = 0"
            where = f"FROM {self.name} WHERE {is_none}"  # nosec B608
            if count := self.value(f"SELECT COUNT(*) {where}"):
                nothing = "NULL" if "NULL" in self.table.columns[name].tail.replace("NOT NULL", "") else "'...'"
                self.refuse(
                    f"holds dates with a zero in {name}: {self.named(count, where)}",
                    f"UPDATE {self.name} SET {name} = {nothing} WHERE {is_none};",  # nosec B608
                )

    def note(self, text: str) -> None:
        self.findings.notes.append(f"{self.name} exists already: {text}")

    def refuse(self, text: str, remedy: str) -> None:
        alter = f"ALTER TABLE {self.name} "
        if remedy.startswith(alter) and "..." not in remedy:
            self.findings.mendings.setdefault(self.name, []).append(remedy.removeprefix(alter).removesuffix(";"))
        self.findings.differences.append(f"{self.name} {text}. {remedy}")


def serves(key: Key, columns: tuple[str, ...], unique: bool) -> bool:
    """A key that stands there guards, or finds, what ours would."""
    if key.unique:
        return unique and columns == key.columns
    return columns[: len(key.columns)] == key.columns
