"""`python -m tests.chaos --seed 7 --seconds 120`: what `make chaos` runs. Exit code 1 when something did not hold."""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from stack import machine
from stack.layout import Layout
from tests.acceptance.guest import guest_dag
from tests.acceptance.live import Live
from tests.chaos import errand_workflow, run, schedule
from tests.chaos.errand_workflow import ERRAND
from tests.chaos.faults import FAULTS
from tests.chaos.rig import LINK_NAMES, OURS, Rig, rigged
from tests.chaos.schedule import Schedule
from tests.chaos.world import World


def choices() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make chaos ARGS=...", description="Breaks everything by a seed, and looks whether the books hold."
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed is the same schedule (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="so many runs, with seeds from --seed on")
    parser.add_argument("--seconds", type=float, default=120, help="how long things break (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="NAME,...", help=f"of {', '.join(one.name for one in FAULTS)}")
    parser.add_argument("--show", action="store_true", help="print the schedule, and touch nothing")
    parser.add_argument("--ours", action="store_true", help="no proxy that needs Airflow restarted, as in `make test`")
    parser.add_argument(
        "--older", type=Path, metavar="FOLDER", help="the second consumer, relay and reconciler run the release there"
    )
    return parser


def drawn(chosen: argparse.Namespace) -> list[Schedule]:
    only = [name for name in chosen.only.split(",") if name]
    return [schedule.draw(seed, chosen.seconds, only) for seed in range(chosen.seed, chosen.seed + chosen.seeds)]


def main(arguments: list[str] | None = None) -> int:
    chosen = choices().parse_args(arguments)
    plans = drawn(chosen)
    if chosen.show:
        print("\n".join(str(entry) for plan in plans for entry in plan.entries))
        return 0
    if machine.fake_clock() is None:
        print("libfaketime is not installed, so no clock could jump: `make setup` installs it", flush=True)
        return 1
    reports = []
    layout = Layout.here()
    links = OURS if chosen.ours else LINK_NAMES
    with guest_dag(_live(layout), ERRAND, module=errand_workflow.__name__), rigged(layout, links, chosen.older) as rig:
        for plan in plans:
            report = one_run(plan, _live(layout), rig)
            file = run.save(report, layout.local / "chaos")
            print(f"{report}\n  log: {file.relative_to(layout.root)}", flush=True)
            reports.append(report)
    happened = sum_of(report.happened for report in reports)
    faults = sum(happened[fault.name] for fault in FAULTS)
    drawn_links = {need for plan in plans for one in plan.without(rig.missing).entries for need in one.happening.needs}
    _tell("faults", Counter({name: happened[name] for name in (fault.name for fault in FAULTS)}))
    on = sum_of(report.links for report in reports)
    _tell("links and clocks", Counter({name: on[name] for name in drawn_links}))
    wrong = [report for report in reports if report.wrong]
    print(
        f"{len(reports)} seeds, {faults} faults, {happened.total() - faults} deeds; {len(wrong)} seeds found something"
    )
    for report in wrong:
        print(f"  {report.again}")
    return 1 if wrong else 0


def sum_of(counters: Iterable[Counter[str]]) -> Counter[str]:
    return sum(counters, Counter[str]())


def _tell(what: str, times: Counter[str]) -> None:
    """How often each, and which never."""
    never = sorted(name for name, number in times.items() if not number)
    print(f"{what}: {run.counted(+times)}{'; never: ' + ', '.join(never) if never else ''}")


def one_run(plan: Schedule, live: Live, rig: Rig) -> run.Report:
    world = World(live, rig, stamp=f"C{plan.seed}T{int(time.time()) % 10**7:x}", say=partial(print, flush=True))
    return run.run(plan.without(rig.missing), world)


def _live(layout: Layout) -> Live:
    """The stack by its own file; what the shell says about other servers is not asked."""
    lines = [shlex.split(line)[1:] for line in layout.env_file.read_text(encoding="utf-8").splitlines()]
    env = dict(words[0].split("=", 1) for words in lines if words and words[0].startswith("EVEREST_"))
    return Live({**env, "PYTHONPATH": layout.python_path})


if __name__ == "__main__":
    sys.exit(main())
