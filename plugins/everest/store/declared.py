"""What a migration declares about a table, and whether a column that stands there already can hold it. Pure.

A migration writes one item of a table per line; that is all the parsing there is. Types are compared as the server
itself writes them in SHOW COLUMNS, so that MySQL's `bigint` and MariaDB's `bigint(20)` never meet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

CREATE_TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+) \(\n(.*)\n\)", re.DOTALL)
COLUMN = re.compile(r"(\w+) (\w+(?:\([\d,]+\))?) ?(.*)")
KEY = re.compile(r"(?:(UNIQUE )?KEY (\w+)|(PRIMARY) KEY) \(([\w, ]+)\)")
ADD_COLUMN = re.compile(r"ALTER TABLE (\w+) ADD COLUMN (\w+) ([^,]+);")
ADD_KEY = re.compile(r"ALTER TABLE (\w+) ADD ((UNIQUE )?KEY (\w+) \((.+)\));")
DROP_KEY = re.compile(r"ALTER TABLE (\w+) DROP KEY (\w+);")
CHECK = re.compile(r"CONSTRAINT (\w+) CHECK \((.*)\)")
LISTED = re.compile(r"(\w+) IN \((.*)\)")
TYPE = re.compile(r"(\w+)(?:\((.*)\))?(.*)")

WHOLE_BYTES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
TEXT_BYTES = {"tinytext": 255, "text": 65_535, "mediumtext": 16_777_215, "longtext": 4_294_967_295}
UTF8_BYTES = 4


@dataclass(frozen=True)
class Column:
    """kind: the type as declared; tail: what follows it; line: all of it."""

    kind: str
    tail: str
    line: str

    @property
    def cannot_be_added(self) -> bool:
        """No value can be invented for rows that stand there, nor for those another program goes on writing."""
        return "NOT NULL" in self.tail and "DEFAULT" not in self.tail


@dataclass(frozen=True)
class Key:
    columns: tuple[str, ...]
    unique: bool
    line: str


@dataclass
class Table:
    """A CREATE TABLE of a migration: columns, keys ('PRIMARY' among them) and the expressions of CHECKs, by name."""

    name: str
    columns: dict[str, Column] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def declared_by(cls, statement: str) -> Table | None:
        """None if the statement makes no table. ValueError for a line that is none of column, key, CHECK, comment."""
        match = CREATE_TABLE.search(statement)
        if not match:
            return None
        table = cls(match[1])
        for line in (line.strip().removesuffix(",") for line in match[2].splitlines()):
            if line.startswith("--"):
                continue
            if check := CHECK.fullmatch(line):
                table.checks[check[1]] = check[2]
            elif key := KEY.fullmatch(line):
                columns = tuple(column.strip() for column in key[4].split(","))
                table.keys[key[2] or "PRIMARY"] = Key(columns, bool(key[1] or key[3]), line)
            elif column := COLUMN.fullmatch(line):
                table.columns[column[1]] = Column(column[2], column[3], line)
            else:
                raise ValueError(f"{table.name}: not a column, key or CHECK on one line: {line}")
        return table

    def with_key_of(self, statement: str) -> None:
        """Takes in a key that a later statement adds to the table, and forgets one that it drops."""
        if (added := ADD_KEY.fullmatch(statement)) and added[1] == self.name:
            columns = tuple(column.strip() for column in added[5].split(","))
            self.keys[added[4]] = Key(columns, bool(added[3]), added[2])
        elif (dropped := DROP_KEY.fullmatch(statement)) and dropped[1] == self.name:
            self.keys.pop(dropped[2], None)

    def allowed_values(self, column: str) -> frozenset[str]:
        """The values that a CHECK of ours lists for a column; empty = no list."""
        for expression in self.checks.values():
            if (listed := LISTED.fullmatch(expression)) and listed[1] == column:
                return frozenset(value.strip().strip("'") for value in listed[2].split(","))
        return frozenset()

    def in_a_key(self, column: str) -> bool:
        return any(column in key.columns for key in self.keys.values())


def collation_misfit(expected: dict[str, Any], actual: dict[str, Any]) -> str | None:
    """Why text would be lost or compared otherwise; rows of SHOW FULL COLUMNS."""
    ours, theirs = expected["Collation"], actual["Collation"]
    if not ours or not theirs or is_json(expected):
        return None  # MariaDB's JSON is a text with a collation of its own
    if ours.endswith("_bin") and theirs != ours:
        return f"compares as {theirs}, needed is {ours}"
    return None if theirs.startswith("utf8mb4") else f"is {theirs}, needed is utf8mb4"


def filling_misfits(expected: dict[str, Any], actual: dict[str, Any]) -> list[str]:
    """Why rows of ours, or what they are read by, would not go with a column that we both write."""
    found = []
    if is_computed(actual):
        found.append("is computed")
    elif expected["Null"] == "NO" and actual["Null"] == "YES":
        found.append("may be NULL")
    elif expected["Null"] == "YES" and actual["Null"] == "NO":
        found.append("may not be NULL")
    elif "auto_increment" in expected["Extra"] and "auto_increment" not in actual["Extra"]:
        found.append("does not count by itself")
    elif expected["Default"] is not None and is_required(actual):
        found.append("has no default")
    return found


def type_misfit(expected: str, actual: str, values: frozenset[str], in_key: bool) -> str | None:
    """Why the existing type cannot hold what ours holds. values: those that a CHECK of ours lists for the column."""
    ours, size, _ = parts(expected)
    theirs, their_size, their_rest = parts(actual)
    fits = False
    if ours in WHOLE_BYTES and theirs in WHOLE_BYTES:
        # Counters of 4 bytes are what older applications have; what exceeds one is an error in strict mode, not a lie.
        fits = WHOLE_BYTES[theirs] >= min(WHOLE_BYTES[ours], WHOLE_BYTES["int"])
    elif ours == theirs == "decimal":
        (digits, scale), (their_digits, their_scale) = numbers(size), numbers(their_size)
        fits = their_scale >= scale and their_digits - their_scale >= digits - scale and "unsigned" not in their_rest
    elif ours in ("varchar", "char") and theirs in ("varchar", "char"):
        fits = int(their_size) >= int(size)
    elif ours in ("varchar", "char") and theirs in TEXT_BYTES:
        fits = not in_key and TEXT_BYTES[theirs] >= int(size) * UTF8_BYTES
    elif ours in ("varchar", "char") and theirs == "enum":
        missing = values - set(re.findall(r"'([^']*)'", their_size))
        if values and not missing:
            return None
        return f"lacks {', '.join(sorted(missing))}" if values else f"is not {expected}"
    elif ours in TEXT_BYTES and theirs in TEXT_BYTES:
        # Nobody writes 16 MB into a row; the broker's limit for a body is 64 KiB.
        fits = TEXT_BYTES[theirs] >= min(TEXT_BYTES[ours], TEXT_BYTES["mediumtext"])
    elif ours in ("json", "longtext") and theirs in ("json", "longtext", "mediumtext"):
        fits = True
    elif ours == theirs == "datetime":
        fits = int(their_size or 0) >= int(size or 0)
    else:
        fits = ours == theirs
    return None if fits else f"needed is {expected}"


def is_required(column: dict[str, Any]) -> bool:
    """An INSERT that does not name the column fails."""
    return bool(column["Null"] == "NO" and column["Default"] is None and not column["Extra"])


def is_computed(column: dict[str, Any]) -> bool:
    return "GENERATED" in str(column["Extra"]).replace("DEFAULT_GENERATED", "")


def is_json(column: dict[str, Any]) -> bool:
    """MariaDB keeps JSON as longtext in utf8mb4_bin; no other text of ours is both."""
    return bool(column["Type"] == "json" or (column["Type"] == "longtext" and column["Collation"] == "utf8mb4_bin"))


def parts(kind: str) -> tuple[str, str, str]:
    match = TYPE.fullmatch(kind.lower() if not kind.startswith("enum") else kind)
    assert match, kind
    return match[1], match[2] or "", match[3]


def numbers(size: str) -> tuple[int, int]:
    digits, _, scale = size.partition(",")
    return int(digits), int(scale or 0)
