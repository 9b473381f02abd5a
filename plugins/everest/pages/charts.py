"""Pictures of numbers, drawn on the server as SVG by pygal: no script, nothing from elsewhere, and a table beside it.

pygal computes where a bar ends with floats. That is a picture, not a figure: the amount that is shown with a bar is
the exact text of the row.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any
from unicodedata import combining

from markupsafe import Markup, escape

from everest.pages import formats, words
from everest.pages.words import Language

MAX_LABEL, PHONE_MAX_LABEL = 1_800, 2_500
"""How wide a label may be, in hundredths of the size of its text, which style.css says: 13 at a desk, 12 on a phone."""
LABEL_SIZE = 13
MARGIN, ROW_HEIGHT = 8, 26
LABEL_ROOM, NO_ROOM = 15, 0.1
"""The size of text for which pygal makes room; style.css draws it a little smaller."""
WIDTH, GUIDES = 820, 8
PHONE_WIDTH, PHONE_ROW_HEIGHT, PHONE_GUIDES = 330, 46, 4
"""On a phone a label stands above its bar (style.css puts it there), so that bars have the width to themselves."""
MAX_LETTERS, BROAD = 60, "WMm@%&#"
SURPLUS, SHORTAGE = "surplus", "shortage"
"""Classes of style.css, so that a chart follows light and dark; and what the catalogue calls them."""
Bar = tuple[str, Decimal, str, str]
"""Label, value in rupiah, side (class of its colour), link."""

_SIZES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (10**3, "thousand"))
_FOREIGN = re.compile(r"<!--.*?-->|<style.*?</style>|<script.*?</script>", re.DOTALL)
_COLOR = re.compile(r'style="fill: ([a-z]+); stroke: [a-z]+"')
_LABEL = re.compile(r'<desc class="label">(.*?)</desc>', re.DOTALL)
_NOTES = re.compile(r'<desc class.*?</desc>|<title>(?:Pygal|[0-9]+)</title>|<defs></defs>| id=""', re.DOTALL)
_STYLE = re.compile(r' style="[^"]*"')


def largest(
    surplus: Sequence[dict[str, Any]], shortage: Sequence[dict[str, Any]], address: str, language: Language
) -> Markup | None:
    """The largest surpluses and shortages of a document by value; a bar leads to its line, whose number is put behind
    `address`. None: nothing differs."""
    rows = [(row, row["nilai_debet"], SURPLUS) for row in surplus]
    rows += [(row, -row["nilai_kredit"], SHORTAGE) for row in reversed(shortage)]
    if not rows:
        return None
    bars = [
        (row["kode_barang"], value, color, f"{address}{row['baris']}#line-{row['baris']}") for row, value, color in rows
    ]
    return horizontal(bars, words.text(language, "chart.largest"), language)


def horizontal(bars: Sequence[Bar], title: str, language: Language = "id") -> Markup:
    """The bars from the top down, once for a desk and once for a phone; style.css shows one of them."""
    return _drawn(bars, title, language, is_wide=True) + _drawn(bars, title, language, is_wide=False)


def _drawn(bars: Sequence[Bar], title: str, language: Language, is_wide: bool) -> Markup:
    pygal = _pygal()
    shown = list(reversed(bars))  # pygal begins at the bottom
    labels = [_fitting(label, MAX_LABEL if is_wide else PHONE_MAX_LABEL) for label, _, _, _ in shown]
    widest = max(map(_width, labels)) * LABEL_SIZE // 100 - max(map(len, labels)) * LABEL_ROOM * 6 // 10
    chart = pygal.HorizontalBar(
        style=pygal.style.Style(label_font_size=LABEL_ROOM if is_wide else NO_ROOM),
        js=[],
        show_legend=False,
        print_values=False,
        show_y_guides=False,
        width=WIDTH if is_wide else PHONE_WIDTH,
        height=90 + ROW_HEIGHT * len(bars) if is_wide else 40 + PHONE_ROW_HEIGHT * len(bars),
        margin=MARGIN,
        spacing=4,
        disable_xml_declaration=True,
        truncate_label=-1,
        no_prefix=True,
        value_formatter=partial(short, language),
        min_scale=2,
        max_scale=GUIDES if is_wide else PHONE_GUIDES,
        margin_bottom=MARGIN if is_wide else 24,
        margin_left=MARGIN + max(widest, 0) if is_wide else MARGIN,  # pygal counts letters
    )
    chart.x_labels = labels
    links = [{"href": link, "target": "_self"} for _, _, _, link in shown]
    sides = {SURPLUS: words.text(language, "chart.surplus"), SHORTAGE: words.text(language, "chart.shortage")}
    values = [
        {
            "value": value,
            "color": side,
            "label": f"{formats.shown(label)}, {sides[side]}: {formats.rupiah(value)}",
            "xlink": link,
        }
        for (label, value, side, _), link in zip(shown, links, strict=True)
    ]
    if not is_wide:
        chart.add("", [None] * len(bars))  # the half of each row in which the label stands
    chart.add("", values)
    return Markup(_ours(chart.render(is_unicode=True), title, "wide" if is_wide else "narrow"))  # our own SVG  # nosec B704


def _fitting(label: str, most: int) -> str:
    """As much of a label as is not wider than that."""
    text = formats.shown(label, MAX_LETTERS)
    while _width(text) > most:
        text = text.rstrip("…")[:-1] + "…"
    return text


def _width(text: str) -> int:
    """In hundredths of the size of the text, rather too much: a Chinese character is as wide as two digits, many a
    capital as one and a half."""
    return sum(map(_width_of, text))


def _width_of(letter: str) -> int:
    if combining(letter):
        return 0
    if letter.isascii() and letter not in BROAD:
        return 85 if letter.isupper() or letter in "w+<=>~^" else 65
    return 100 if letter < "\U0001f000" else 140


def _pygal() -> Any:
    """The library, without the hook that it puts into Python's import system for plugins of its own: an old form of
    hook, which makes every later import of anything in this process warn."""
    import pygal
    import pygal.style

    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    return pygal


def short(language: Language, value: Any) -> str:
    """An axis says how large, not exactly how much; M would be a million to one reader and a milliar to another."""
    size = abs(value)
    for limit, unit in _SIZES:
        if size >= limit:
            return (
                f"{value / limit:,.1f}".replace(".", ",").removesuffix(",0")
                + " "
                + words.text(language, f"unit.{unit}")
            )
    return f"{value:.0f}"


def _ours(svg: str, title: str, width: str) -> str:
    """The picture with a name, in the page's own style: nothing inline is left that the page's policy would refuse."""
    svg = svg[svg.index("<svg") :]
    svg = _FOREIGN.sub("", svg)
    svg = _COLOR.sub(r'class="\1"', svg)
    svg = _STYLE.sub("", svg)
    svg = _LABEL.sub(r"<title>\1</title>", svg)  # what a bar's link is called, and its tooltip
    svg = _NOTES.sub("", svg)
    svg = svg.replace('class="pygal-chart"', f'class="{width}"', 1)
    return svg.replace("<svg ", f'<svg role="group" aria-label="{escape(title)}" ', 1)
