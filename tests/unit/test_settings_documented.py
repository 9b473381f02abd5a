"""Every setting that a program reads stands in docs/operations.md, and every setting that stands there is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stack import processes
from stack.ports import OFFSETS
from stack.programs import PEOPLE
from tests.queue_rig import ROOT

OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
TABLE = OPERATIONS.partition("\n## Settings\n")[2]
OF_PROGRAMS = ("plugins", "ingest_consumer", "config", "dags")
PARTS = ("URL", "USER", "PASSWORD")
LOGINS = ("EVEREST_AIRFLOW", "EVEREST_RABBIT_MANAGEMENT")
"""Read by `Login.of`, which puts one of PARTS behind the name."""
OF_THE_STACK = {
    "EVEREST_STACK_ROOT",
    processes.MARK,
    processes.PROGRAM_MARK,
    *(f"EVEREST_LOGIN_{user.upper()}" for user in PEOPLE),
}
"""What `make up` gives its processes and stack.env, for nobody to set."""
OF_AIRFLOW = {"AIRFLOW_CONN_EVEREST_MYSQL"}
"""Read by Airflow itself."""
OF_TESTS = {"EVEREST_MIGRATION_ROWS", "EVEREST_STORY", "EVEREST_PICTURES"}
OF_MAKE_UP = {"EVEREST_PORT_BASE", "EVEREST_PORT_<NAME>", "EXECUTOR", "WORKERS", "CONSUMERS", "STANDBY"}


def named_in(cell: str) -> Iterator[str]:
    """`EVEREST_A_URL`, `_USER`: the second is EVEREST_A_USER."""
    last = ""
    for word in re.findall(r"`([A-Z][A-Z0-9_<>]*|_[A-Z0-9_]+)`", cell):
        last = last.rpartition("_")[0] + word if word.startswith("_") else word
        yield last


def documented() -> set[str]:
    rows = [line.split("|")[1] for line in TABLE.splitlines() if line.startswith("| `")]
    return {name for cell in rows for name in named_in(cell)}


def read_by_programs() -> set[str]:
    """Names of variables as they stand in the code; what is part of a sentence is no such name."""
    found: set[str] = set()
    for folder in OF_PROGRAMS:
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= set(re.findall(r"\AEVEREST_[A-Z0-9_]*[A-Z0-9]\Z", node.value))
    for prefix in LOGINS:
        assert prefix in found, f"nobody reads {prefix}_URL any more"
        found = found - {prefix} | {f"{prefix}_{part}" for part in PARTS}
    return found - OF_THE_STACK


def test_the_names_in_a_cell_are_read_as_a_person_reads_them() -> None:
    assert list(named_in(" `EVEREST_A_URL`, `_USER`, `_PASSWORD` ")) == [
        "EVEREST_A_URL",
        "EVEREST_A_USER",
        "EVEREST_A_PASSWORD",
    ]
    assert list(named_in(" `EVEREST_P_CONSUMER`, `_RELAY` and `EXECUTOR`, `EVEREST_PORT_<NAME>` ")) == [
        "EVEREST_P_CONSUMER",
        "EVEREST_P_RELAY",
        "EXECUTOR",
        "EVEREST_PORT_<NAME>",
    ]


def test_every_setting_of_a_program_is_documented_and_every_documented_one_is_read() -> None:
    read, told = read_by_programs(), documented()
    assert len(read) > 50
    assert sorted(read - told) == []
    assert sorted(told - read - OF_AIRFLOW - OF_MAKE_UP) == []


def test_every_setting_that_another_page_or_file_names_exists() -> None:
    """A variable that is misspelled in a guide or in a container's environment does nothing, without a word."""
    ours = documented() | OF_THE_STACK | {f"EVEREST_PORT_{name.upper()}" for name in OFFSETS}
    pages = [ROOT / "README.md", ROOT / "README.id.md", *(ROOT / "docs").glob("*.md"), ROOT / "docker" / "README.md"]
    compose = (ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8")
    of_compose = set(re.findall(r"\$\{(EVEREST_\w+)", compose))
    inside = set(re.findall(r"^ +(EVEREST_\w+):", compose, re.MULTILINE))
    unknown = {name for name in inside if name.removesuffix("_FILE") not in ours} - of_compose
    for page in pages:
        for name in re.findall(r"\bEVEREST_[A-Z0-9_]*[A-Z0-9]\b", page.read_text(encoding="utf-8")):
            parts = {f"{name}_{part}" for part in PARTS} | {name.removesuffix("_FILE")}
            if not parts & ours and name not in of_compose | OF_TESTS:
                unknown.add(f"{page.name}: {name}")
    assert sorted(unknown) == []
