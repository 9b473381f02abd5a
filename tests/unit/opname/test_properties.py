"""What holds for every document: exact balance, one rounding, agreement of journal and stock card."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everest.opname.document import input_hash
from everest.opname.journal import check_balanced, journal_rows
from everest.opname.stock_card import card_rows, card_totals, check_agreement
from everest.opname.variance import compute_variance, totals
from tests.unit.opname.tables import ACCOUNTS, frame, header

# Another context than the product's: wide enough for every product and sum below.
REFERENCE = Context(prec=100, rounding=ROUND_HALF_UP)

SOME_LINES = 60


def numbers(digits: int, scale: int, least: int) -> st.SearchStrategy[Decimal]:
    """Decimals of a column, small ones as often as huge ones, and not always written in the column's scale."""
    limit = 10**digits - 1
    sizes = st.sampled_from([10**power - 1 for power in (0, 2, 5, digits // 2, digits)])
    whole = sizes.flatmap(lambda size: st.integers(max(-size, least * limit), size))
    exact = whole.map(lambda number: Decimal(number).scaleb(-scale, REFERENCE))
    return st.one_of(exact, exact.map(lambda number: number.normalize(REFERENCE)))


# Small enough that values and totals fit their columns; what doesn't is in test_variance.
QUANTITIES = numbers(12, 4, -1)
COUNTS = numbers(12, 4, 0)
COSTS = numbers(17, 6, 0)
ROWS = st.lists(st.tuples(QUANTITIES, COUNTS, COSTS), max_size=SOME_LINES)


def document(rows: list[tuple[Decimal, Decimal, Decimal]]) -> Any:
    return frame([(f"ITM-{n}", "", "GD-A", *row) for n, row in enumerate(rows)])


@given(ROWS)
@settings(deadline=None)
def test_each_value_is_the_exact_product_rounded_half_away_from_zero_once(
    rows: list[tuple[Decimal, Decimal, Decimal]],
) -> None:
    result = compute_variance(document(rows))

    assert result.problems == ()
    computed = zip(*(result.frame[name] for name in ("selisih_qty", "nilai_debet", "nilai_kredit")), strict=True)
    for (sistem, fisik, harga), (selisih, debet, kredit) in zip(rows, computed, strict=True):
        exact = REFERENCE.multiply(REFERENCE.subtract(fisik, sistem), harga)
        assert REFERENCE.compare(selisih, REFERENCE.subtract(fisik, sistem)) == 0
        assert REFERENCE.subtract(debet, kredit) == exact.quantize(Decimal("0.01"), context=REFERENCE)
        assert min(debet, kredit) == 0
        assert [value.as_tuple().exponent for value in (selisih, debet, kredit)] == [-4, -2, -2]
        assert {debet.is_signed(), kredit.is_signed()} == {False}


@given(ROWS)
@settings(deadline=None)
def test_every_document_balances_exactly_and_its_journal_is_its_stock_card(
    rows: list[tuple[Decimal, Decimal, Decimal]],
) -> None:
    computed = compute_variance(document(rows)).frame
    surplus, shortage = totals(computed)
    cards = card_rows(computed)

    journal = journal_rows("SO-1", surplus, shortage, ACCOUNTS)

    assert sum(row.debet - row.kredit for row in journal) == 0
    assert check_balanced(journal) == REFERENCE.add(surplus, shortage)
    assert card_totals(card.nilai for card in cards) == (surplus, shortage)
    check_agreement(journal, card_totals(card.nilai for card in cards), ACCOUNTS.persediaan)
    assert len(cards) == sum(1 for sistem, fisik, _ in rows if sistem != fisik)
    assert all((card.masuk > 0) != (card.keluar > 0) for card in cards)
    moved = [REFERENCE.subtract(card.masuk, card.keluar) for card in cards]
    assert moved == [REFERENCE.subtract(fisik, sistem) for sistem, fisik, _ in rows if sistem != fisik]


@given(ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
@settings(deadline=None)
def test_the_order_of_the_lines_does_not_matter_to_the_totals(pair: tuple[Any, Any]) -> None:
    one, other = (totals(compute_variance(document(rows)).frame) for rows in pair)

    assert one == other


@given(ROWS, st.data())
@settings(deadline=None)
def test_a_line_that_cannot_be_computed_changes_nothing_on_the_others(
    rows: list[tuple[Decimal, Decimal, Decimal]], data: st.DataObject
) -> None:
    bad = data.draw(
        st.sampled_from(
            [(None, Decimal(1), Decimal(1)), (Decimal("NaN"), Decimal(1), Decimal(1)), (Decimal(0), Decimal(1), None)]
        )
    )
    place = data.draw(st.integers(0, len(rows)))
    names = ["selisih_qty", "nilai_debet", "nilai_kredit"]

    alone = compute_variance(document(rows)).frame[names].to_numpy().tolist()
    with_bad = compute_variance(document([*rows[:place], bad, *rows[place:]])).frame[names].to_numpy().tolist()  # type: ignore[list-item]

    assert with_bad.pop(place) == [None, None, None]
    assert [list(map(str, row)) for row in with_bad] == [list(map(str, row)) for row in alone]


@given(ROWS, st.data())
@settings(deadline=None)
def test_the_hash_is_that_of_the_values_and_every_value_counts(
    rows: list[tuple[Decimal, Decimal, Decimal]], data: st.DataObject
) -> None:
    hashed = input_hash(header(), document(rows), "OPNAME")
    rewritten = [tuple(number.normalize(REFERENCE) for number in row) for row in rows]
    assert input_hash(header(), document(rewritten), "OPNAME") == hashed  # type: ignore[arg-type]
    if rows:
        changed = [list(row) for row in rows]
        row = data.draw(st.sampled_from(changed))
        column = data.draw(st.integers(0, 2))
        row[column] = REFERENCE.add(row[column], Decimal("0.0001"))
        assert input_hash(header(), document(changed), "OPNAME") != hashed  # type: ignore[arg-type]
