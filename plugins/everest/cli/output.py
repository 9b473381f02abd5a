"""How the commands speak: tables for people, JSON for programs, times in WIB, money in rupiah.

Results go to stdout, complaints and progress to stderr, so that a pipe gets the result alone.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeVar

import click
from rich import table as rich_table
from rich.console import Console, ConsoleOptions, RenderResult

from everest.opname.amounts import format_rupiah
from everest.opname.document import WIB
from everest.words import again
from everest.workflow.fields import day

F = TypeVar("F", bound=Callable[..., Any])

MAX_PROBLEMS_ON_SCREEN = 200
"""On a terminal; a pipe or a file gets all of them."""

ANY_WIDTH = 1_000
"""Characters of a table that goes to no terminal: nothing there is folded."""

_JSON = "everest.json"

STYLES = {"COMPLETED": "green", "FAILED": "bold red", "CANCELLED": "red", "WAITING": "yellow", "PROCESSING": "cyan"}


def json_option(command: F) -> F:
    """--json, heeded by errors as well."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        ctx.meta[_JSON] = value
        return value

    return click.option(
        "--json", "as_json", is_flag=True, is_eager=True, callback=remember, help="Answer in JSON, for programs."
    )(command)


def wants_json(ctx: click.Context) -> bool:
    return bool(ctx.meta.get(_JSON))


def print_json(answer: Mapping[str, Any]) -> None:
    """One line; in escapes where the output could not carry the letters themselves."""
    takes_all = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
    click.echo(json.dumps(answer, ensure_ascii=not takes_all))


def error_answer(code: int, message: str, errors: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The shape in which every failure of the house is told to programs."""
    return {"status": "error", "code": code, "message": message, "errors": list(errors)}


def english(sentence: str) -> str:
    """A refusal of the house in the language of the commands; any other text as it is."""
    return str(again("en", sentence))


def complain(message: str) -> None:
    click.echo(f"Error: {plain(message)}", err=True)


def plain(text: str) -> str:
    """Rows of other programs may hold anything; a terminal must not obey it."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in text)


def _escape(char: str) -> str:
    """A byte that was no UTF-8 as that byte."""
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def print_problems(problems: Sequence[str]) -> None:
    """All of them; a terminal is spared the part that would only scroll away."""
    if not problems:
        return
    shown = problems
    if sys.stderr.isatty():
        shown = problems[:MAX_PROBLEMS_ON_SCREEN]
    click.echo(plain("\n".join(f"  {problem}" for problem in shown)), err=True)
    if len(shown) < len(problems):
        click.echo(f"  and {len(problems) - len(shown)} more; add `2> problems.txt` or --json for all", err=True)


def problem_line(problem: Mapping[str, Any]) -> str:
    """A problem as the rows hold it: {"baris", "kolom", "pesan"}."""
    where = [f"baris {problem['baris']}"] if problem.get("baris") else []
    where += [str(problem["kolom"])] if problem.get("kolom") else []
    return ": ".join([", ".join(where), str(problem.get("pesan", ""))] if where else [str(problem.get("pesan", ""))])


def console(stderr: bool = False) -> Console:
    """Wide enough for a table when nobody's terminal says how wide it is."""
    piped = not (sys.stderr if stderr else sys.stdout).isatty()
    return Console(stderr=stderr, width=160 if piped else None, highlight=False, soft_wrap=piped)


class Table(rich_table.Table):
    """On a terminal too narrow for the words of a row, each row is a block with a line for every value; that
    of the totals, behind a section, is the first."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        whole = self.__rich_measure__(console, options.update_width(ANY_WIDTH))
        if not self.show_header or whole.minimum <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        if isinstance(self.title, str):
            yield console.render_str(self.title, style="table.title")
        columns = [(column.header, list(column.cells)) for column in self.columns]
        numbers = list(range(len(self.rows)))
        if numbers[1:] and self.rows[-2].end_section:  # totals: behind hundreds of blocks nobody looks for them
            numbers = [numbers[-1], *numbers[:-1]]
        for number in numbers:
            row = self.rows[number]
            block = rich_table.Table.grid(padding=(0, 1))
            block.add_column(style="dim", overflow="fold", max_width=options.max_width // 2)
            block.add_column(overflow="fold")
            for heading, cells in columns:
                if cells[number] != "":
                    block.add_row(heading, cells[number], style=row.style)
            yield ""
            yield block


def wib(instant: datetime | None) -> str:
    """An instant, in UTC where it is naive, as people here read it."""
    if instant is None:
        return ""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return f"{aware.astimezone(WIB):%Y-%m-%d %H:%M:%S} WIB"


def rupiah(value: Decimal | str | None) -> str:
    return "" if value is None else format_rupiah(Decimal(value))


def styled(status: str) -> str:
    style = STYLES.get(status)
    return f"[{style}]{status}[/]" if style else status


class Day(click.ParamType[date]):
    """2026-08-31, a day of WIB."""

    name = "day"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        try:
            return value if isinstance(value, date) else day(value)
        except ValueError:
            self.fail(f"{value!r} is not a day; write it like 2026-08-31", param, ctx)


def midnight(day: date) -> datetime:
    """When a day begins, in WIB; nothing here is older or younger than what a calendar can also tell in UTC."""
    known = min(max(day, date(1900, 1, 1)), date(9998, 12, 31))
    return datetime(known.year, known.month, known.day, tzinfo=WIB)


def operator() -> str:
    """Who is at the keyboard, by the system's own account: an environment variable could say anything."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
