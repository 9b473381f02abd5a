"""What finance, auditors and analysts read: typed reports over the books, and their CSV, XLSX and JSON.

`opened(tx, key, filters)` gives a `Report`: columns with headings, a stream of rows in bounded memory, and exact totals
of what was streamed. `REPORTS` lists what there is; `csv_file`, `xlsx_file` and `json_file` write one. SELECTs only.

The rule about reversals, for all of them: a posting and its reversal are both shown, each at its own date, the reversal
with the sides exchanged. So the totals are those of the journal, and a reversed document adds up to nothing.
"""

from everest.reports.catalogue import REPORTS as REPORTS
from everest.reports.catalogue import opened as opened
from everest.reports.shape import Column as Column
from everest.reports.shape import Filters as Filters
from everest.reports.shape import Kind as Kind
from everest.reports.shape import Report as Report
from everest.reports.shape import ReportDefinition as ReportDefinition
from everest.reports.shape import ReportRefused as ReportRefused
