"""What rows keep of a failure is told in the reader's language when it is ours, and as it was said when it is not."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from everest.errors import Conflict, DatabaseError, DocumentRefused, StepTimeout
from everest.pages import telling, words
from everest.pages.words import Language
from everest.words import say, span
from everest.workflow import endings
from ingest_consumer.broken_letters import WORDS_MAX, _kept
from ingest_consumer.errors import DecodeError, Reason
from ingest_consumer.message import decode, mismatch
from ingest_consumer.shadow import Shadow
from tests.broken_messages import broken_bodies


def kept(error: Exception) -> dict[str, Any]:
    """As a row has it."""
    code, message, _ = endings.describe(error)
    return json.loads(json.dumps({"code": code, "message": message, **endings.known_as(error)}))  # type: ignore[no-any-return]


def both(error: Exception) -> tuple[str, str]:
    row = kept(error)
    return str(telling.html("id", row)), str(telling.html("en", row))


def test_an_error_of_the_engine_is_told_in_both_languages_by_its_key() -> None:
    assert both(Conflict(say("en", "engine.not_paused", run=5, status="running"))) == (
        "alur kerja 5 berstatus berjalan, tidak dijeda",
        "workflow 5 is running, not paused",
    )
    late = StepTimeout(say("id", "engine.timeout", step="post_jurnal", limit=span(timedelta(minutes=5))))
    assert both(late) == (
        "langkah posting jurnal melewati batas waktu 5 menit",
        "step post journal ran longer than its timeout 5 min",
    )


def test_what_a_handler_said_stands_as_it_was_said_and_names_its_language() -> None:
    assert both(DocumentRefused("gudang <b>A</b> tutup")) == (
        "gudang &lt;b&gt;A&lt;/b&gt; tutup",
        '<span lang="id">gudang &lt;b&gt;A&lt;/b&gt; tutup</span>',
    )


def test_a_bug_and_the_words_of_the_database_are_english_inside_a_sentence_of_ours() -> None:
    assert both(ValueError("no <i>such</i> row")) == (
        'kesalahan program: ValueError: <span lang="en">no &lt;i&gt;such&lt;/i&gt; row</span>',
        "a bug: ValueError: no &lt;i&gt;such&lt;/i&gt; row",
    )
    assert "MySQL 1062" in both(DatabaseError("Duplicate entry", 1062))[0]


def test_a_failure_inside_a_failure_is_told_too() -> None:
    inner = kept(Conflict(say("en", "engine.loop", step="x", n=3)))
    outer = DocumentRefused(say("id", "engine.nested_ended", run=7, workflow="w", status="failed", why=inner), code=409)
    assert both(outer) == (
        "alur kerja 7 (w) gagal: langkah x sudah mengulang 3 kali dan syaratnya belum terpenuhi",
        "workflow 7 (w) failed: step x has gone back 3 times and its condition is not met",
    )


@pytest.mark.parametrize(
    "row",
    [
        {"message": "apa", "key": "engine.loop", "values": {}},
        {"message": "apa", "key": "engine.loop", "values": "x"},
        {"message": "apa", "key": "nothing.here", "values": {"step": 1}},
        {"message": "apa", "said": [1], "lang": "<script>"},
        {"message": "apa", "said": "{"},
        {"message": "apa", "said": None},
    ],
)
def test_a_row_of_another_version_is_told_as_it_was_said(row: dict[str, Any]) -> None:
    assert telling.html("id", row) == "apa"


def test_holes_are_text() -> None:
    told = telling.html("id", {"key": "engine.gave_up", "values": {"n": 1, "why": "<script>\u202e{x}\0"}})
    assert told.endswith("&lt;script&gt;\\u202e{x}\\x00")


def test_a_hostile_message_is_kept_bounded_and_writable() -> None:
    for text in ("\udcff\ud800", "x" * 100_000, "mysql://a:secret@host/ {x}"):
        row = kept(RuntimeError(text))
        assert len(json.dumps(row)) < 2 * endings.SAID_MAX and "secret" not in json.dumps(row)
        json.dumps(row, ensure_ascii=False).encode()


@pytest.mark.parametrize(("body", "english"), broken_bodies(7))
def test_every_broken_message_has_its_reason_in_indonesian(body: bytes, english: str) -> None:
    row = Shadow(**{**dict.fromkeys(Shadow.__annotations__), "id": 7, "transaksi_id": 1})  # type: ignore[arg-type]
    try:
        message = decode(body)
        reason = mismatch(message, row if message.shadow_id == 7 else None)
    except DecodeError as error:
        reason = error.message  # type: ignore[assignment]
    assert isinstance(reason, Reason) and english in reason
    stored = _kept(reason)
    assert len(stored) <= WORDS_MAX
    told = telling.html("id", telling.decoded(stored))
    assert "lang=" not in told and str(reason) not in told and words.has(reason.key)
    assert telling.html("en", telling.decoded(stored))


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_words_that_a_program_of_an_earlier_version_left_are_english(language: Language) -> None:
    told = telling.html(language, telling.decoded("not JSON: Expecting value"))
    assert told == (
        "not JSON: Expecting value" if language == "en" else '<span lang="en">not JSON: Expecting value</span>'
    )


def test_a_file_has_the_sentence_without_marks() -> None:
    assert telling.plain("id", kept(ValueError("a < b & c"))) == "kesalahan program: ValueError: a < b & c"
    for language in words.LANGUAGES:
        text = '  dua  spasi\nbaris </span><span lang="id"> &amp; ' + "x" * 5_000
        assert telling.plain(language, {"pesan": text}) == text


def test_days_stand_as_pages_write_them_and_no_line_ends_inside_of_one_or_of_an_amount() -> None:
    movement = say("id", "count.movement", nota="2026-08-31", number=7, at="2026-08-31 10:00:05")
    told = telling.said("en", movement)
    assert told == '2026-08-31 (movement 7, <span class="whole">31-08-2026 10:00:05</span> WIB)', "a nota is a nota"
    assert telling.plain("id", words.said_of(movement)) == "2026-08-31 (mutasi 7, 31-08-2026 10:00:05 WIB)"
    limit = telling.said("id", say("id", "limit.document", amount="Rp 3.000,00", limit="Rp 9" + "9" * 200))
    assert limit.count('class="whole"') == 1, "what is longer than any amount may be broken"


@pytest.mark.parametrize(
    "row",
    [
        {"message": "m", "key": "engine.not_paused", "values": {"self": 1, "run": 2}},
        {
            "message": "m",
            "key": "engine.not_paused",
            "values": {"run": [[[[[[["deep"]]]]]]], "status": {"message": "n"}},
        },
        {"message": "m", "said": "[" * 100_000},
    ],
)
def test_what_another_program_wrote_in_the_place_of_our_words_breaks_no_page(row: dict[str, Any]) -> None:
    assert telling.html("id", row)
    assert telling.plain("en", row)
