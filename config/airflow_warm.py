"""What a posting does first in every task, done once before the tasks are forked.

The first DAG, the first frame, the first look through a column make tables, compiled patterns and code paths that stay;
a task that inherits them spends a sixth less CPU of its own (bench/README.md). Nothing here reads a setting, a file or
a server.
"""

from __future__ import annotations

from airflow.sdk import DAG

from everest.opname.fingerprint import CanonicalLines
from everest.opname.lines import POSTED_COLUMNS
from everest.opname.summary import Summary
from everest.opname.variance import compute_variance
from everest.store.book_reader import MOVEMENT_COLUMNS
from everest.store.frames import frame_of, stored_lines


def count_one_line() -> Summary:
    """The arithmetic of a document of one line, in the frames that a posting makes of what the driver hands over."""
    DAG("warm", schedule=None)
    lines = stored_lines([(1, "BARANG", "", "GUDANG", "10.0000", "12.0000", "1500.000000")], POSTED_COLUMNS)
    values = compute_variance(lines).frame
    frame_of([], MOVEMENT_COLUMNS)
    return Summary.of(values, CanonicalLines(lines, "GUDANG").digest_with(values))
