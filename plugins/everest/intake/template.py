"""An empty file to fill in: the columns of a count, as CSV or as a workbook whose code columns are text already."""

from __future__ import annotations

import csv
import io

from everest.intake.lines import LINE_FIELDS, REQUIRED_COLUMNS
from everest.opname.document import DECIMAL_COLUMNS

COLUMNS = (*REQUIRED_COLUMNS, *(name for name in LINE_FIELDS if name not in REQUIRED_COLUMNS))


def template_csv() -> bytes:
    """The titles alone; UTF-8 with byte order mark, semicolons: as Indonesian Excel opens it."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerow(COLUMNS)
    return text.getvalue().encode("utf-8-sig")


def template_xlsx() -> bytes:
    """The titles; codes and texts in text columns, so that 00123 stays what is typed."""
    import xlsxwriter

    stream = io.BytesIO()
    with xlsxwriter.Workbook(stream, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Opname")
        title = book.add_format({"bold": True, "bottom": 1, "num_format": "@"})
        as_text = book.add_format({"num_format": "@"})
        as_number = book.add_format({"num_format": "#,##0.00####"})
        for place, name in enumerate(COLUMNS):
            sheet.set_column(place, place, 18, as_number if name in DECIMAL_COLUMNS else as_text)
            sheet.write_string(0, place, name, title)
        sheet.freeze_panes(1, 0)
    return stream.getvalue()
