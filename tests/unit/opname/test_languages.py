"""What the domain says of a document is stored in Indonesian and read in either language, from key and holes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest import errors, words
from everest.errors import DocumentRefused, Problem
from everest.opname import approval, freshness, limits
from everest.opname.document import Header, period_problems, validate
from everest.opname.freshness import Known
from everest.opname.hints import Elsewhere, by_line, hints
from everest.opname.variance import compute_variance
from everest.pages import telling
from everest.store.headers import header_of
from everest.words import Said, say
from everest.workflow.ticket import Decision
from tests.unit.opname import test_approval, test_freshness, test_hints
from tests.unit.opname.tables import frame, header, references
from tests.unit.words import foreign

NOW = datetime(2026, 8, 15, 3, tzinfo=UTC)
CODES = st.one_of(
    st.none(),
    st.sampled_from(["", "A", "A ", " A", "A\u200b", "GD-X", "GD-TUTUP", "{x}", "<b>'\""]),
    st.text(max_size=5),
)
AMOUNTS = st.one_of(
    st.none(),
    st.sampled_from(
        [Decimal(text) for text in ("0", "-1", "12.5", "1E+30", "0.00001", "NaN", "Infinity", "99999999999999.9999")]
    ),
    st.decimals(allow_nan=True, allow_infinity=True),
)
ROWS = st.lists(st.tuples(CODES, CODES, CODES, AMOUNTS, AMOUNTS, AMOUNTS), max_size=4)


def told_again(sentence: str) -> None:
    """By way of a row: the stored text, the same in Indonesian, and an English one without Indonesian words."""
    assert isinstance(sentence, Said), sentence
    row = json.loads(json.dumps(Problem(1, "x", sentence).as_json()))
    kept = Problem.of_json(row).pesan
    assert row["pesan"] == str(sentence) == kept and isinstance(kept, Said)
    assert words.again("id", kept) == sentence
    assert _as_rows_have_days(telling.plain("id", row)) == str(sentence)
    english = _as_rows_have_days(telling.plain("en", row))
    assert english == words.again("en", kept) != str(sentence)
    assert foreign("en", english) == [] and "lang=" not in telling.html("en", row)


def _as_rows_have_days(told: str) -> str:
    """Pages write the day first."""
    return re.sub(r"\b([0-9]{2})-([0-9]{2})-([0-9]{4})\b", r"\3-\2-\1", told)


def of_document(given: Header, rows: Iterable[tuple[Any, ...]], **known: Any) -> Iterator[Problem]:
    lines = frame(list(rows))
    yield from validate(given, lines, references(**known))
    yield from compute_variance(lines).problems
    yield from period_problems(given, frozenset({"2026-08"}))


@given(ROWS, CODES, CODES, st.sampled_from([0, 1, 2]))
@settings(deadline=None, max_examples=25)
def test_whatever_is_wrong_with_a_document_is_stored_as_before_and_told_anew(
    rows: list[tuple[Any, ...]], nota: str | None, warehouse: str | None, level: int
) -> None:
    wrong = header(nomer_nota=nota or "", gudang_kode=warehouse or "", otorisasi_level=level, diotorisasi_oleh=None)
    for problem in of_document(wrong, rows):
        told_again(problem.pesan)


def every_sentence() -> Iterator[str]:
    """Each of the domain that needs no database, once at least."""
    huge, good = Decimal(10) ** 15, ("A", "", "GD-A", Decimal(10), Decimal(12), Decimal(5))
    rows = [
        good,
        good,
        ("B", "L1", "GD-B", *good[3:]),
        ("B", "L1", "GD-B", *good[3:]),
        *[("C", "", "GD-A", *good[3:])] * 8,
    ]
    rows += [
        (None, "L ", "GD-X", None, None, None), ("D\u200b", "", "GD-TUTUP", Decimal(1), Decimal(-2), Decimal(-3)),
        ("E", "", "GD-A", Decimal(1), Decimal(2), None), ("F", "", "GD-A", Decimal(1), Decimal(2), Decimal(0)),
        ("G", "", "GD-A", Decimal("0.00001"), huge, Decimal(1)),
        ("H", "", "GD-A", Decimal("-99999999999999"), Decimal("99999999999999"), Decimal(1)),
        ("I", "", "GD-A", Decimal(0), Decimal("99999999999999"), Decimal("999999999999999999")),
    ]  # fmt: skip
    rows += [(f"J{n}", "", "GD-A", Decimal(0), Decimal("10000000"), Decimal("99999999999999")) for n in range(20)]
    bad = header(nomer_nota="SO ", gudang_kode="GD-X", otorisasi_level=1, diotorisasi_oleh="", diotorisasi_at=None)
    own = references().document_accounts
    for given_header, found, known in (
        (bad, rows, {"accounts": {own.laba_selisih: False}}),
        (header(), [], {"document_accounts": replace(own, laba_selisih=own.persediaan)}),
    ):
        yield from (one.pesan for one in of_document(given_header, found, **known))
    yield from _of_the_first_row()
    yield from _of_time_and_money()
    yield from _of_people()
    yield from _of_hints()


def _of_the_first_row() -> Iterator[str]:
    long_ago = datetime(1, 1, 1)
    empty: dict[str, Any] = {
        "id": 1, "transaksi_id": 1, "nomer_nota": "SO-1", "gudang_kode": "GD-A", "otorisasi_level": 2,
        "diotorisasi_oleh": "x", "dibuat_oleh": "y", "diotorisasi_at": None, "zona_waktu": "Mars", "snapshot_at": None,
        "created_at": None, "tanggal_opname": None, "tanggal_posting": date(1, 1, 1),
    }  # fmt: skip
    for row in (empty, {**empty, "snapshot_at": long_ago}):
        yield from (flaw.pesan for flaw in header_of(row, UTC).flaws)


def _of_time_and_money() -> Iterator[str]:
    ahead = header(snapshot_at=NOW + timedelta(hours=2), diotorisasi_at=NOW + timedelta(hours=3))
    first = freshness.future_problems(ahead, NOW, Known(None))
    yield from (one.pesan for one in first)
    refused = Known(None, tuple(str(one.pesan) for one in first))
    yield from (one.pesan for one in freshness.future_problems(ahead, NOW + timedelta(days=1), refused))
    sent = Known(NOW)
    yield from (one.pesan for one in freshness.future_problems(ahead, NOW + timedelta(days=1), sent))
    moved = [f"{n} | A | '' | GD-A | SO-{n} | opname | 2026-08-14 09:00:00" for n in range(2, 9)]
    late = ["71 | A | L1 | GD-A |  | beli | 2026-08-13 09:00:00"]
    given_lines = (test_freshness.HEADER, test_freshness.LINES, test_freshness.movements(*moved, *late))
    yield from (one.pesan for one in freshness.stale_problems(*given_lines))
    yield from (one.pesan for one in freshness.late_movement_problems(*given_lines))
    values = compute_variance(frame([("A", "", "GD-A", Decimal(1), Decimal(9), Decimal(1000))])).frame
    yield from (one.pesan for one in limits.limit_problems(values, Decimal(1), Decimal(2)))


def _of_people() -> Iterator[str]:
    surprise = test_approval.found({}, policy=(Decimal(8000), Decimal(5000)))
    asked = approval.question(surprise, test_approval.RULES, ())
    yield from (question["message"] for question in asked.values())
    yield approval.sentence({"oleh": "tono", "alasan": ""})
    for outcome in ("rejected", "timeout"):
        for span in (timedelta(days=2), timedelta(hours=5), timedelta(minutes=7), timedelta(seconds=9)):
            decision = Decision(outcome, "tono", NOW, None, surprise.evidence, 1)  # type: ignore[arg-type]
            with pytest.raises(DocumentRefused) as refused:
                approval.settled(surprise, None, decision, approval.ApprovalRules(span))
            yield refused.value.message


def _of_hints() -> Iterator[str]:
    counted = test_hints.lines(
        "A||G|10|120|", "B||G|1|100|", "C||G|100|1|", "D||G|-5|1|", "E|L|G|50|28|", "E||H|3|25|", "F||G|10|47|",
        "K||G|90|53|", "M||G|1|1|9", "N||G|1|1|1", "O||G|1|1|1", *[f"P||G{n}|10|{3 + n / 10}|" for n in range(8)],
    )  # fmt: skip
    found = hints(counted, [Elsewhere("A", "X", "SO-9")])
    yield from (one.pesan for one in found)
    yield from by_line(found).values()


def keys_in(value: Any) -> set[str]:
    if isinstance(value, Said):
        return {value.key} | keys_in(value.values)
    if isinstance(value, dict):
        return ({value["key"]} if "key" in value else set()) | {key for one in value.values() for key in keys_in(one)}
    return {key for one in value for key in keys_in(one)} if isinstance(value, list) else set()


def test_every_sentence_of_the_domain_is_told_in_both_languages() -> None:
    found = list(every_sentence())
    for sentence in found:
        told_again(sentence)
    reached = {key for sentence in found for key in keys_in(sentence)}
    sections = ("flaw", "account", "rule", "header", "future", "limit", "hint", "asked", "span")
    needed = {key for key in words.catalogue() if key.split(".")[0] in sections}
    assert needed - reached == set()


@pytest.mark.parametrize(
    "section", sorted(tomllib.loads((words.FOLDER / "documents.toml").read_text(encoding="utf-8")).keys())
)
def test_a_sentence_that_only_a_database_provokes_is_told_from_its_holes(section: str) -> None:
    for key in (key for key in words.catalogue() if key.startswith(f"{section}.")):
        holes = set(re.findall(r"\{(\w+)\}", words.text("id", key)))
        sentence = say("id", key, **{hole: f"<{hole}>" for hole in holes})
        assert words.again("id", sentence) == sentence
        assert all(f"<{hole}>" in words.again("en", sentence) for hole in holes)


def test_a_row_without_a_key_or_with_a_foreign_one_stands_as_it_was_stored() -> None:
    for said in (None, [], "x", {"key": "no.such", "values": {}}, {"key": "rule.level", "values": {}}, {"key": 1}):
        row = {"baris": None, "kolom": "x", "pesan": "belum <b>dihitung</b>", "said": said}
        assert Problem.of_json(row).pesan == "belum <b>dihitung</b>"
        assert words.again("en", Problem.of_json(row).pesan) == "belum <b>dihitung</b>"
        assert telling.html("en", row) == '<span lang="id">belum &lt;b&gt;dihitung&lt;/b&gt;</span>'
    assert Problem.of_json({"baris": "7"}) == Problem(None, "", "")


def test_the_problems_of_a_document_are_the_same_whether_their_rows_have_keys_or_not() -> None:
    """What an attempt compares, before and after the upgrade."""
    now = Problem(3, "qty_fisik", say("id", "rule.not_counted"))
    before = Problem.of_json({"baris": 3, "kolom": "qty_fisik", "pesan": str(now.pesan)})
    assert (before, hash(before)) == (now, hash(now)) and before.as_json().keys() == {"baris", "kolom", "pesan"}


MANY = [
    Problem(n, "gudang_kode", say("id", "rule.gudang_kode", flaw=say("id", "flaw.unknown", code="X" * 60)))
    for n in range(400)
]


def test_a_document_with_very_many_problems_keeps_each_of_them_and_not_each_in_two_languages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(errors, "MAX_PROBLEMS_BYTES", 100_000)
    kept = errors.problems_json(MANY)
    assert len(json.dumps(kept, ensure_ascii=False).encode()) <= 100_000
    assert Problem.all_of(kept) == tuple(MANY)
    told = [n for n, entry in enumerate(kept) if "said" in entry]
    assert told == list(range(len(told))) and 50 < len(told) < 350


def test_no_row_grows_beyond_a_packet_however_many_problems_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "MAX_PROBLEMS_BYTES", 30_000)
    kept = errors.problems_json(MANY)
    assert 100 < len(kept) < 300 and len(json.dumps(kept, ensure_ascii=False).encode()) <= 31_000
    assert words.again("en", Problem.of_json(kept[-1]).pesan).startswith(f"more problems: {400 - len(kept) + 1};")


def test_a_count_of_the_largest_document_that_is_stale_on_every_line_keeps_every_problem() -> None:
    movement = say("id", "count.movement", nota="OPN-2026-000123", number=123456, at="2026-12-01 08:00:00")
    stale = [Problem(n, "kode_barang", say("id", "count.stale_line", movements=[movement] * 3)) for n in range(20_000)]
    assert len(errors.problems_json(stale)) == 20_000


@pytest.mark.parametrize("left", [None, {}, "x", [None, 3, "x", ["y"]], [{"pesan": None, "kolom": None}]])
def test_what_another_program_left_in_the_place_of_problems_is_passed_over(left: Any) -> None:
    assert all(problem == Problem(None, "", "") for problem in Problem.all_of(left))


def test_a_hole_holds_what_a_row_can_keep() -> None:
    """An older table's level is a DECIMAL."""
    said = say("id", "rule.level", level=Decimal("1"), needed=2)
    assert said == "otorisasi level 1 belum cukup; perlu otorisasi level 2 atau lebih"
    assert json.loads(json.dumps(Problem(None, "x", said).as_json()))["said"]["values"] == {"level": "1", "needed": 2}


def test_a_sentence_inside_another_is_told_whichever_way_its_row_keeps_it() -> None:
    inner = say("id", "rule.not_counted")
    english = words.again("en", inner)
    for kept in (inner, words.said_of(inner), words.told(inner)):
        outer = say("id", "asked.waits", why=kept)
        assert words.again("en", outer) == f"waits for an approval: {english}"


@pytest.mark.parametrize("values", [{"why": {"key": "rule.level", "values": [1]}}, {"why": {"key": {}, "values": {}}}])
def test_a_sentence_with_something_else_in_its_holes_is_the_text_that_stands_beside_it(values: Any) -> None:
    heard = words.heard("apa", {"key": "asked.waits", "values": values})
    assert words.again("en", heard) == "apa"
