"""A short run in `make test`, with the faults that need no restart of Airflow; `make chaos` does the rest."""

from __future__ import annotations

from stack.layout import Layout
from tests.acceptance.guest import guest_dag
from tests.acceptance.live import Live
from tests.chaos import errand_workflow, run, schedule
from tests.chaos.__main__ import one_run
from tests.chaos.errand_workflow import ERRAND
from tests.chaos.rig import OURS, rigged

SEED, SECONDS = 11, 20.0


def test_a_short_run_leaves_the_books_as_a_plain_ledger_says(live: Live) -> None:
    layout = Layout.here()
    with guest_dag(live, ERRAND, module=errand_workflow.__name__), rigged(layout, OURS) as rig:
        report = one_run(schedule.draw(SEED, SECONDS), live, rig)
    run.save(report, layout.local / "chaos")
    assert not report.wrong, f"{report}\n" + "\n".join(report.log)
    assert report.outcomes["COMPLETED"], report
    assert report.errands, report
    assert rig.clocks, "libfaketime is not there: `make setup` installs it"
