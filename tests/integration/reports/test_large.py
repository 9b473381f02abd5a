"""A report of 100,000 lines: exact to the cent in the eyes of another library, in memory that does not grow with it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from everest.settings import MysqlUrl
from tests import builders
from tests.conftest import as_text

LINES = 100_000
MAX_MEMORY_KIB = 160 * 1024
"""Interpreter, libraries and one batch take about 80 MiB; the rows alone, all at once, would take 200 more."""

# Not getrusage: its maximum includes what the process that started this one held.
PROGRAM = """
import sys
from pathlib import Path
from everest.cli.main import main
try:
    main(sys.argv[1:])
finally:
    status = Path("/proc/self/status").read_text()
    print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")))
"""


@pytest.mark.long
def test_100_000_lines_as_a_workbook_add_up_to_the_journal_for_another_library_in_bounded_memory(
    database: MysqlUrl, connection: Any, tmp_path: Path
) -> None:
    lebih, kurang = posting(connection)
    target = tmp_path / "selisih.xlsx"

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "report", "variance", "--output", str(target)],
        env={**os.environ, "EVEREST_MYSQL_URL": as_text(database), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < MAX_MEMORY_KIB
    with closing(openpyxl.load_workbook(target, read_only=True)) as book:
        rows = book["Laporan"].iter_rows(min_col=8, max_col=18, min_row=2, values_only=True)
        sums = [D(0), D(0)]
        count = 0
        for baris, kode, *_, debit, credit in rows:
            amounts = [D(repr(debit)), D(repr(credit))]  # what a reader of the cells sees
            if baris is None:
                break
            count += 1
            assert isinstance(kode, str)
            sums = [total + amount for total, amount in zip(sums, amounts, strict=True)]
    assert count == LINES
    assert sums == amounts == [lebih, kurang]


def posting(connection: Any) -> tuple[D, D]:
    """A posting of LINES lines, straight into the tables: what is measured is the report. (surplus, shortage)."""
    builders.warehouse(connection)
    builders.insert(connection, "transaksi", id=1, nomer_nota="SO-1", jenis="OPNAME", tanggal_wib="2026-03-10 12:00:00")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO transaksi_values SELECT 1, n, LPAD(n, 8, '0'), '', 'GD-A', 100, 100 + s, 0.1, s,"
            " IF(s > 0, ROUND(s * (n %% 997 + 0.01), 2), 0), IF(s < 0, ROUND(-s * (n %% 991 + 0.07), 2), 0)"
            " FROM (SELECT n, IF(n %% 2, 1, -1) * (n %% 7 + 1) AS s FROM ("
            "   SELECT 1 + a.i + 10 * b.i + 100 * c.i + 1000 * d.i + 10000 * e.i AS n FROM"
            "   (SELECT 0 i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL"
            "    SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) a, digits b,"
            "   digits c, digits d, digits e) numbers) numbered".replace(
                "digits",
                "(SELECT 0 i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL"
                " SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)",
            ),
            (),
        )
    connection.commit()
    (sums,) = builders.rows(
        connection, "SELECT COUNT(*) AS n, SUM(nilai_debet) AS d, SUM(nilai_kredit) AS k FROM transaksi_values"
    )
    assert sums["n"] == LINES
    total = sums["d"] + sums["k"]
    builders.insert(
        connection,
        "posting_sets",
        transaksi_id=1,
        nomer_nota="SO-1",
        input_hash="0" * 64,
        total_debet=total,
        total_kredit=total,
        baris_selisih=LINES,
    )
    return sums["d"], sums["k"]
