"""`python -m bench [--smoke] [P1 P2 ...]`: measures, prints a table, writes bench/results/<date>.json.

--smoke runs everything small, once, to see that it works; nothing is written and no time is judged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import click
import httpx
from rich.console import Console
from rich.table import Table

from bench import measure
from bench.measure import Result, show, spread
from everest.errors import EverestError
from everest.settings import mysql_url
from stack.layout import Layout, StackError

RESULTS = Path(__file__).with_name("results")
TABLE_WIDTH = 150
ALL = ("P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9", "P10", "P11", "P12", "P13", "PAGES")
NAMED = ("P14",)
"""Only when they are named: they switch the stack over to another shape, and back."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("wanted", nargs=-1, type=click.Choice((*ALL, *NAMED)))
@click.option("--smoke", is_flag=True, help="Small and once: does it work? Times are not judged or kept.")
def main(wanted: tuple[str, ...], smoke: bool) -> None:
    """Measures the product beside its floors: all but P14 unless some are named. Needs the stack: `make up`."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    machine = measure.machine()
    results: list[Result] = []
    try:
        for name, run in benchmarks(set(wanted or ALL), smoke):
            with console.status(f"{name} ..."):
                results += run()
    except (EverestError, StackError, RuntimeError, KeyError, httpx.HTTPError) as problem:
        console.print(table(results, smoke))
        sys.exit(f"bench: {problem.args[0] if isinstance(problem, KeyError) else problem}")
    console.print(table(results, smoke))
    if smoke:
        console.print("Everything measured works; the figures of a smoke run say nothing about speed.")
        return
    file = write(results, machine)
    console.print(f"Written to {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")


def benchmarks(wanted: set[str], smoke: bool) -> Iterator[tuple[str, Callable[[], list[Result]]]]:
    """Each with its name; servers are started when the first one needs them. Imported late: pandas comes along."""
    layout = Layout.here()
    with ExitStack() as servers:
        if "P3" in wanted:
            from bench import arithmetic

            yield "P3", lambda: arithmetic.p3(smoke)
        if wanted & {"P2", "P9", "P11", "P13"}:
            from bench import bursts, history, items, posting, server, steps

            own = servers.enter_context(server.running(layout))
            if "P2" in wanted:
                yield "P2", lambda: posting.p2(own, smoke)
            if "P9" in wanted:
                yield "P9", lambda: posting.p9(own, smoke)
                yield "P9-history", lambda: history.p9_history(own, smoke)
            if "P11" in wanted:
                yield "P11", lambda: steps.p11(own, smoke)
                yield "P11-items", lambda: items.p11_items(own, smoke)
            if "P13" in wanted:
                yield "P13", lambda: bursts.p13(mysql_url(), layout, own, smoke)
            servers.pop_all().close()
        if "P1" in wanted:
            from bench import schema, web_path

            with schema.private_schema(mysql_url()) as url:
                yield "P1", lambda: web_path.p1(url, smoke)
        if "P6" in wanted:
            from bench import environment

            yield "P6", lambda: environment.p6(layout, smoke)
        if "P7" in wanted:
            from bench import handling

            yield "P7", lambda: handling.p7(mysql_url(), smoke)
        if "PAGES" in wanted:
            from bench import pages, schema

            with schema.private_schema(mysql_url()) as url:
                yield "PAGES", lambda: pages.pages(url, smoke)
        if "P8" in wanted:
            from bench import memory

            yield "P8", lambda: memory.p8(mysql_url(), smoke)
        if wanted & {"P4", "P5"}:
            from bench import pipeline

            yield "P4, P5", lambda: pipeline.p4_and_p5(mysql_url(), layout, smoke, wanted)
        if "P12" in wanted:
            from bench import bursts

            yield "P12", lambda: bursts.p12(mysql_url(), layout, smoke)
        if "P10" in wanted:
            from bench import waiting

            yield "P10", lambda: waiting.p10(mysql_url(), layout, smoke)
        if "P14" in wanted:
            from bench import celery_workers

            yield "P14", lambda: celery_workers.p14(mysql_url(), layout, smoke)


def table(results: Sequence[Result], smoke: bool) -> Table:
    """One line per result; bounds are `must (aim)`."""
    shown = Table(title="Benchmarks, small: that they work" if smoke else "Benchmarks", show_lines=True)
    shown.add_column("")
    shown.add_column("what / floor", ratio=3)
    for name in ("value", "floor", "ratio", "must (aim)"):
        shown.add_column(name, justify="right")
    for result in sorted(results, key=lambda each: each.id):
        floors = [run.floor for run in result.runs if run.floor is not None]
        shown.add_row(
            result.id,
            f"{result.what}\n[dim]against {result.floor_what}" + (f"\n{result.note}" if result.note else "") + "[/dim]",
            _figure(result.value, result.unit, [run.value for run in result.runs]),
            "" if result.floor is None else _figure(result.floor, result.unit, floors),
            show(result.ratio),
            result.bounds if smoke else f"{result.bounds}\n{_verdict(result)}",
        )
    return shown


def _figure(value: float, unit: str, runs: Sequence[float]) -> str:
    return f"{show(value)} {unit}".strip() + (f"\n[dim]{spread(runs)}[/dim]" if len(runs) > 1 else "")


def _verdict(result: Result) -> str:
    if result.must_met is None:
        return ""
    if result.aim_met:
        return "[green]aim met[/green]"
    return "[yellow]must met[/yellow]" if result.must_met else "[red]missed[/red]"


def write(results: Sequence[Result], machine: dict[str, object], folder: Path = RESULTS) -> Path:
    """Today's file; figures of an earlier run today that were not measured again stay in it."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{datetime.now():%Y-%m-%d}.json"
    fresh = [result.as_json(machine) for result in results]
    measured = {entry["id"] for entry in fresh}
    earlier = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    kept = [entry for entry in earlier if entry["id"] not in measured]
    entries = sorted(kept + fresh, key=lambda entry: str(entry["id"]))
    file.write_text(json.dumps(entries, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


if __name__ == "__main__":
    main()
