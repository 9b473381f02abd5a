"""Smell hints: what is said about a count, and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal as D
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everest.opname.hints import (
    FACTORS,
    MAX_NAMED,
    CountedLine,
    Elsewhere,
    HintKind,
    by_line,
    factor_between,
    far_off_items,
    hints,
    is_far_off,
)


def lines(*rows: str) -> list[CountedLine]:
    """`kode | lot | gudang | sistem | fisik | nilai`, numbered from 1."""
    made = []
    for baris, row in enumerate(rows, start=1):
        kode, lot, gudang, sistem, fisik, nilai = (cell.strip() for cell in row.split("|"))
        made.append(CountedLine(baris, kode, lot, gudang, D(sistem), D(fisik), D(nilai) if nilai else None))
    return made


def said(found: Sequence[CountedLine], *elsewhere: Elsewhere) -> list[tuple[HintKind, tuple[int, ...]]]:
    return [(hint.kind, hint.baris) for hint in hints(found, elsewhere)]


@pytest.mark.parametrize(
    ("sistem", "fisik", "factor"),
    [
        ("10", "100", 10),
        ("100", "10", 10),
        ("5", "60", 12),
        ("240", "10", 24),
        ("1.5", "150", 100),
        ("0.013", "13", 1000),
        ("100", "1020", 10),  # 2 % off is near
        ("100", "1020.0001", None),
        ("100", "980", 10),
        ("100", "979.9999", None),
        ("10", "20", None),
        ("0", "10", None),
        ("-1", "10", None),
        ("7", "7", None),
    ],
)
def test_a_factor_is_seen_either_way_within_two_percent(sistem: str, fisik: str, factor: int | None) -> None:
    assert factor_between(D(sistem), D(fisik)) == factor


def test_a_dozen_and_a_shifted_comma_are_guessed_in_words() -> None:
    dozen, comma = hints(lines("A||G|5|60|10", "B||G|130|13|-5"))[:2]

    assert dozen.pesan == "jumlah fisik sekitar 12 kali jumlah sistem: satuan mungkin tertukar"
    assert comma.pesan == "jumlah sistem sekitar 10 kali jumlah fisik: koma desimal atau satuan mungkin salah"


def test_h29_negative_system_stock_is_flagged_with_and_without_a_variance() -> None:
    found = hints(lines("A||G|-2000|0|30000", "B||G|-3|-3|0", "C||G|0|0|0"))

    assert [(hint.kind, hint.baris) for hint in found if hint.kind is HintKind.NEGATIVE_STOCK] == [
        (HintKind.NEGATIVE_STOCK, (1,)),
        (HintKind.NEGATIVE_STOCK, (2,)),
    ]
    assert "-2.000" in found[0].pesan


def test_one_item_up_at_one_place_and_down_at_another_is_one_pair_even_by_one_piece() -> None:
    found = hints(lines("A|L1|G1|10|11|5", "B||G1|5|6|5", "A|L2|G2|10|9|-5", "C||G1|8|7|-1"))

    (hint,) = [hint for hint in found if hint.kind is HintKind.SWAPPED_PLACE]
    assert hint.baris == (1, 3)
    assert "gudang G1 lot L1" in hint.pesan and "gudang G2 lot L2" in hint.pesan
    assert not any(hint.kind is HintKind.SWAPPED_LABEL for hint in found), "one off each way is daily business"


def test_two_items_with_one_variance_up_and_down_may_have_their_labels_exchanged_when_nothing_else_fits() -> None:
    pair = ("A||G|10|17|", "B||G|20|13|")

    assert (HintKind.SWAPPED_LABEL, (1, 2)) in said(lines(*pair))
    assert said(lines(*pair, "C||G|50|57|")) == [], "of three nobody knows which two"
    assert said(lines("A||G|10|17|", "B||G|13|20|")) == [], "both are surplus"


def test_a_pair_within_an_item_is_no_pair_of_labels_and_leaves_the_others_to_be_one() -> None:
    found = said(lines("A|L1|G|30|37|", "A|L2|G|30|23|", "B||G|40|47|", "C||G|40|33|"))

    assert found == [(HintKind.SWAPPED_PLACE, (1, 2)), (HintKind.SWAPPED_LABEL, (3, 4))]


def test_the_line_that_is_most_of_the_value_is_named_where_there_are_three_or_more() -> None:
    assert said(lines("A||G|50|51|10", "B||G|50|53|-20.01", "C||G|50|55|10")) == [(HintKind.DOMINANT, (2,))]
    assert said(lines("A||G|50|51|10", "B||G|50|53|-20.00", "C||G|50|55|10")) == [], "half is not most"
    assert said(lines("A||G|50|51|10", "B||G|50|53|-90", "C||G|50|50|0")) == []


def test_an_item_far_off_in_several_warehouses_is_named_on_all_its_lines() -> None:
    found = hints(lines("A||G1|10|2|", "A||G2|9|4|", "A||G3|100|99|", "B||G1|10|2|"))

    (hint,) = [hint for hint in found if hint.kind is HintKind.FAR_OFF]
    assert (hint.baris, "G1, G2" in hint.pesan) == ((1, 2), True)


def test_an_item_far_off_here_and_in_another_document_is_named_unless_it_is_the_same_warehouse() -> None:
    here = lines("A||G1|11|3|", "B||G1|100|99|")

    other = Elsewhere("A", "G2", "SO-7")
    assert said(here, other, Elsewhere("B", "G2", "SO-7")) == [(HintKind.FAR_OFF, (1,))]
    assert "G2 di SO-7" in hints(here, [other])[0].pesan
    assert said(here, Elsewhere("A", "G1", "SO-7")) == []


def test_the_sentences_of_a_line_stand_together() -> None:
    texts = by_line(hints(lines("A||G|-24|-2|30", "A|L|G|50|28|", "C||G|1|1|")))

    assert set(texts) == {1, 2}
    assert "; " in texts[1]


# ------------------------------------------------------------------------------------------- for every document

QUANTITY = st.one_of(
    st.integers(-3, 30).map(D),
    st.decimals(min_value=-100, max_value=10_000, places=4),
    st.sampled_from([D(0), D("1e13")]),
)
ROW = st.tuples(
    st.sampled_from("ABCDE"),
    st.sampled_from(["", "L1"]),
    st.sampled_from(["G1", "G2", "G3"]),
    QUANTITY,
    QUANTITY.map(abs),
    st.one_of(st.none(), st.decimals(min_value=-1000, max_value=1000, places=2)),
)
DOCUMENT = st.lists(ROW, max_size=25).map(lambda rows: [CountedLine(n, *row) for n, row in enumerate(rows, start=1)])


@given(DOCUMENT, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_the_lines_does_not_matter(document: list[CountedLine], random: object) -> None:
    shuffled = list(document)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert hints(shuffled) == hints(document)


@given(DOCUMENT)
@settings(deadline=None)
def test_lines_that_agree_with_the_books_change_nothing(document: list[CountedLine]) -> None:
    telling = [line for line in document if line.selisih or line.qty_sistem < 0]
    silent = [line._replace(nilai=D(0)) if not line.selisih else line for line in document]

    assert hints(silent) == hints([line._replace(nilai=D(0)) if not line.selisih else line for line in telling])


@given(st.decimals(min_value=D("0.0001"), max_value=D("1e9"), places=4), st.sampled_from(FACTORS))
def test_every_exact_factor_is_seen_both_ways(quantity: D, factor: int) -> None:
    assert factor_between(quantity, quantity * factor) == factor_between(quantity * factor, quantity) == factor


@given(DOCUMENT)
@settings(deadline=None)
def test_swapped_labels_are_those_that_a_search_over_all_pairs_finds(document: list[CountedLine]) -> None:
    def is_pair(one: CountedLine, other: CountedLine) -> bool:
        return one.selisih == -other.selisih != 0

    found = said(document)
    places = {baris for kind, baris in found if kind is HintKind.SWAPPED_PLACE}
    explained = {number for pair in places for number in pair}
    assert places == {
        (a.baris, b.baris)
        for a, b in combinations(document, 2)
        if a.kode_barang == b.kode_barang
        and is_pair(a, b)
        and sum(c.kode_barang == a.kode_barang and abs(c.selisih) == abs(a.selisih) for c in document) == 2
    }
    rest = [line for line in document if line.baris not in explained]
    assert {baris for kind, baris in found if kind is HintKind.SWAPPED_LABEL} == {
        (a.baris, b.baris)
        for a, b in combinations(rest, 2)
        if a.kode_barang != b.kode_barang
        and is_pair(a, b)
        and abs(a.selisih) >= 2
        and sum(abs(c.selisih) == abs(a.selisih) for c in rest) == 2
    }


@given(DOCUMENT)
@settings(deadline=None)
def test_far_off_is_at_least_half_and_two_units(document: list[CountedLine]) -> None:
    for line in document:
        expected = abs(line.selisih) >= 2 and 2 * abs(line.selisih) >= max(abs(line.qty_sistem), line.qty_fisik)
        assert is_far_off(line.qty_sistem, line.qty_fisik) == expected
    assert set(far_off_items(document)) <= {line.kode_barang for line in document}


def test_the_worst_document_of_20_000_lines_is_answered_in_few_words() -> None:
    """Every line far off, in a warehouse of its own, with the same variance up and down: whatever compares lines with
    each other, or names all of them on each, would not end here."""
    count = 20_000
    worst = [CountedLine(n, "A", "", f"G{n}", D(0 if n % 2 else 10), D(10 if n % 2 else 0), D(1)) for n in range(count)]

    found = hints(worst)

    (hint,) = found
    assert (hint.kind, len(hint.baris)) == (HintKind.FAR_OFF, count)
    assert hint.pesan.count("G") == MAX_NAMED and f"dan {count - MAX_NAMED} lagi" in hint.pesan
    texts = by_line(found)
    assert len(texts) == count and len({id(text) for text in texts.values()}) <= count
