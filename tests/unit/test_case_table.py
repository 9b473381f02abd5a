"""The table of cases in tests/README.md is true: each test that it names is there, and no case is left out."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TEXT = (TESTS / "README.md").read_text(encoding="utf-8")
_LIST = r"(?:(?:,|\s+and)?\s*`{}`)+"
_NAMED = re.compile(rf"({_LIST.format('[a-z]+')})\s+=\s+({_LIST.format('[a-z_/]+[.]py')})")
_TEST = re.compile(r"`([a-z_/.]+)::(test_\w+)")


def files() -> dict[str, Path]:
    """By the short name that the text gives them; a file without a folder lies beside the one before it."""
    found: dict[str, Path] = {}
    for names, paths in _NAMED.findall(TEXT):
        folder = TESTS
        for name, path in zip(re.findall("`(.+?)`", names), re.findall("`(.+?)`", paths), strict=True):
            folder = (TESTS / path).parent if "/" in path else folder
            found[name] = folder / Path(path).name
    for path in TESTS.glob("workflow/test_behaviours_*.py"):
        found[path.stem.removeprefix("test_behaviours_")] = path
    return found


def test_every_test_that_the_table_names_is_there() -> None:
    known, missing = files(), []
    named = _TEST.findall(TEXT)
    for file, name in named:
        path = known.get(file, TESTS / file)
        # a list names a workflow test by its numbers alone, a case by its whole name
        if file != "..." and not re.search(rf"def {name}", path.read_text(encoding="utf-8") if path.exists() else ""):
            missing.append(f"{file}::{name}")
    assert len(named) > 100
    assert missing == []


def test_every_case_has_a_line_with_a_test_of_its_number() -> None:
    lines = {line[2:5]: line for line in TEXT.splitlines() if re.match(r"\| H\d\d \|", line)}
    one_of_a_table = set(
        re.findall(r'id="(H\d\d)\b', (TESTS / "integration/opname/test_posting.py").read_text("utf-8"))
    )

    assert sorted(lines) == [f"H{number:02}" for number in range(1, 46)]
    named = {case for case, line in lines.items() if re.search(rf"::test_(h\d\d_)*{case.lower()}[a-z]?_", line)}
    assert lines.keys() - named == {"H31"} and "h30_h31" in lines["H30"]
    assert {case for case, line in lines.items() if re.search(r"\| (one line|refused),", line)} == one_of_a_table
