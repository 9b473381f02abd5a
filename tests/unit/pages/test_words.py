"""The catalogue is complete, and no text hides anywhere else."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import everest.words
from everest.pages import view, words

TEMPLATES = sorted((view.HERE / "templates").glob("*.html"))
MODULES = sorted(view.HERE.glob("*.py"))
HOLES = re.compile(r"\{(\w+)\}")


@pytest.mark.parametrize("key", sorted(words.catalogue()))
def test_every_text_stands_in_both_languages_with_the_same_holes(key: str) -> None:
    texts = words.catalogue()[key]
    assert set(texts) == set(words.LANGUAGES)
    assert all(text.strip() for text in texts.values())
    assert HOLES.findall(texts["id"]).sort() == HOLES.findall(texts["en"]).sort()
    assert set(HOLES.findall(texts["id"])) == set(HOLES.findall(texts["en"]))


def test_no_key_stands_twice() -> None:
    # loads raises for a key that is twice in one file; a section of two files could hide one behind the other.
    sections = Counter(
        section for file in everest.words.files() for section in tomllib.loads(file.read_text(encoding="utf-8"))
    )
    assert set(sections.values()) == {1}


def used_keys(text: str) -> set[str]:
    return set(re.findall(r"""(?:\bt\(|words\.text\(\w+, |words\.text\("id", )['"]([a-z_]+\.\w+)['"](?! ?~)""", text))


@pytest.mark.parametrize("file", [*TEMPLATES, *MODULES], ids=lambda file: file.name)
def test_every_text_that_is_asked_for_exists(file: Path) -> None:
    missing = used_keys(file.read_text(encoding="utf-8")) - set(words.catalogue())
    assert not missing


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_a_template_holds_no_text_of_its_own(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"\{#.*?#\}|\{%.*?%\}", " ", text, flags=re.DOTALL)
    text = re.sub(r"\{\{.*?\}\}", " ", text, flags=re.DOTALL)
    spoken = re.findall(r'(?:aria-label|title|placeholder|alt|data-label)="([^"]*)"', text)
    text = re.sub(r"<[^>]*>", " ", text, flags=re.DOTALL)
    assert not re.findall(r"[A-Za-zÀ-ÿ]{2,}", text + " ".join(spoken))


def test_a_person_who_never_chose_reads_indonesian() -> None:
    assert words.language_of(None, None) == "id"
    assert words.language_of(None, "en") == "en"
    assert words.language_of("id", "en") == "id"
    assert words.language_of("fr", "xx") == "id"


def test_no_template_shows_a_sentence_of_a_row_as_it_was_stored() -> None:
    """`tell` and `tell_said` say it in the reader's language, and mark what nobody can say anew."""
    stored = re.compile(r"\{\{ ?\w+\.(?:get\('pesan'\)|pesan|message|rerun)\|")
    assert not [path.name for path in TEMPLATES if stored.search(path.read_text(encoding="utf-8"))]
    assert stored.search("{{ one.pesan|shown }}{{ tried.rerun|shown }}")
