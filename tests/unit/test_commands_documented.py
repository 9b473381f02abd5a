"""Every command that a guide names exists, with the options that it names: nobody meets "No such option" at night."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from everest.cli.main import main as everest
from everest.reconciler.__main__ import main as reconciler
from everest.reports import REPORTS
from ingest_consumer.__main__ import cli as consumer
from tests.queue_rig import ROOT

GUIDES = [
    ROOT / "README.md",
    ROOT / "README.id.md",
    ROOT / "docker" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PROGRAMS: dict[str, click.Command] = {
    "python -m everest": everest,
    "python -m ingest_consumer": consumer,
    "python -m everest.reconciler": reconciler,
}
ENDS = {"&&", "||", "|", ";", ">", "<", "#"}


def phrases(text: str) -> Iterator[str]:
    """What stands as code: in lines of blocks, and between backticks."""
    parts = re.split(r"^```.*$", text, flags=re.MULTILINE)
    for number, part in enumerate(parts):
        yield from part.splitlines() if number % 2 else re.findall(r"`([^`]+)`", part)


def commands(phrase: str) -> Iterator[tuple[click.Command, list[str]]]:
    """Each of our commands in it, with the words behind; `dead-letters list` and `rerun NOTA --x` are short for one."""
    for match in re.finditer(r"python -m (?:everest|ingest_consumer)(?:\.reconciler)?(?= |$)", phrase):
        yield PROGRAMS[match[0]], words_of(phrase[match.end() :])
    words = [] if "python -m" in phrase else words_of(phrase)
    if words[:1] == ["dead-letters"]:
        yield consumer, words
    elif words[:1] and "--" in phrase and below(everest, words[0]):
        yield everest, words


def below(command: click.Command, name: str) -> click.Command | None:
    """The subcommand of that name."""
    return command.get_command(click.Context(command), name) if isinstance(command, click.Group) else None


def words_of(text: str) -> list[str]:
    words: list[str] = []
    for word in text.replace("[", " ").replace("]", " ").split():
        if word in ENDS:
            break
        words.append(word)
    return words


def problems(command: click.Command, words: list[str]) -> Iterator[str]:
    """An option belongs to the command before it; what is no option and no subcommand is an argument."""
    name = str(command.name)
    for word, behind in zip(words, [*words[1:], ""], strict=False):
        if inner := below(command, word):
            command, name = inner, f"{name} {word}"
        elif word.startswith("--") and len(word) > 2:
            option = word.partition("=")[0].rstrip(".,;:)")
            known = {text for one in command.params for text in (*one.opts, *one.secondary_opts)} | {"--help"}
            if option not in known:
                yield f"{name} has no {option}"
            yield from _not_to_choose(command, option, word.partition("=")[2] or behind)
        elif (
            isinstance(command, click.Group)
            and re.fullmatch(r"[a-z][a-z-]+", word)
            and not command.invoke_without_command
        ):
            yield f"{name} has no command {word}"


def _not_to_choose(command: click.Command, option: str, value: str) -> Iterator[str]:
    """A word behind an option that is none of its choices; capitals stand for one of them."""
    for one in command.params:
        if not (option in one.opts and isinstance(one.type, click.Choice)):
            continue
        if re.fullmatch(r"[a-z_-]+", value) and value not in one.type.choices:
            yield f"{option} of {command.name} is never {value}"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: str(guide.relative_to(ROOT)))
def test_a_command_that_is_named_exists_with_its_options(guide: Path) -> None:
    found = [
        f"{phrase.strip()}: {problem}"
        for phrase in phrases(guide.read_text(encoding="utf-8"))
        for command, words in commands(phrase)
        for problem in problems(command, words)
    ]
    assert found == []


def test_most_of_what_is_named_is_found_and_a_wrong_name_is_seen() -> None:
    operations = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert len([one for phrase in phrases(operations) for one in commands(phrase)]) > 40
    wrong = (
        "python -m everest status N --jason",
        "python -m everest stat N",
        "dead-letters lst",
        "rerun N --force",
        "workflow list --status waiting",
    )
    for phrase in wrong:
        assert [problem for command, words in commands(phrase) for problem in problems(command, words)], phrase


NAMED = {
    "variance": ("report variance", "report variance"),
    "documents": ("per document", "per dokumen"),
    "warehouse": ("warehouse", "gudang"),
    "group": ("item group", "kelompok barang"),
    "item": ("report item", "report item"),
    "month": ("month and", "bulan dan"),
    "reason": ("reason;", "alasan;"),
    "journal": ("journal,", "jurnal,"),
    "stock-card": ("stock card,", "kartu stok,"),
    "late-movements": ("late movements", "mutasi terlambat"),
    "trace": ("report trace", "report trace"),
}


@pytest.mark.parametrize(("guide", "language"), [("README.md", 0), ("README.id.md", 1)])
def test_a_readme_names_every_report(guide: str, language: int) -> None:
    section = re.search(r"report variance.*?docs/reports\.md", (ROOT / guide).read_text("utf-8"), re.DOTALL)

    assert set(NAMED) == set(REPORTS)
    assert section and [words for words in NAMED.values() if words[language] not in section[0]] == []


def test_a_demo_that_is_asked_for_something_is_refused_before_anything_starts() -> None:
    asked = subprocess.run(["make", "-n", "demo", "ARGS=foo"], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (asked.returncode, asked.stdout) == (2, "")
    assert "make demo has nothing to choose" in asked.stderr
