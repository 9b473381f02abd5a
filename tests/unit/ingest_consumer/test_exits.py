"""How every command ends: one table of exit codes, a sentence for every error, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from pika.exceptions import AMQPConnectionError

from everest.cli.main import _EXITS, main
from everest.errors import DocumentMissing, SettingsError, TransientDatabaseError
from ingest_consumer import errors, exits
from ingest_consumer.__main__ import cli

ROOT = Path(__file__).resolve().parents[3]


def end(action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of a program that does this."""
    monkeypatch.setattr(sys, "argv", ["program"])
    with pytest.raises(SystemExit) as ended:
        exits.run(click.Command("it", callback=action), "program")
    return ended.value.code


def raises(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


USAGE = "Usage: program [OPTIONS]\nTry 'program --help' for help.\n\n"
BUG = "Error: this should not happen: KeyError: 'x'\nPlease report it with what the command prints after"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (errors.SettingsError("X is not set"), 5, "Error: X is not set\n"),
        (errors.TopologyError("another queue"), 5, "Error: another queue\n"),
        (errors.ServerDown("the broker is away"), 5, "Error: the broker is away\n"),
        (errors.LetterMissing("no dead letter of nota SO-1"), 4, "Error: no dead letter of nota SO-1\n"),
        (errors.RerunRefused("job #1 is PENDING"), 3, "Error: job #1 is PENDING\n"),
        (errors.IngestError("no"), 1, "Error: no\n"),
        (click.ClickException("say which"), 1, "Error: say which\n"),
        (click.UsageError("say which"), 2, f"{USAGE}Error: say which\n"),
        (KeyboardInterrupt(), 130, "\nInterrupted.\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (KeyError("x"), 1, f"{BUG} EVEREST_TRACEBACK=1.\n"),
    ],
)
def test_an_error_is_a_sentence_and_a_number(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(exits.TRACEBACK, raising=False)
    assert end(raises(error), monkeypatch) == code
    assert capsys.readouterr().err.lstrip("\n") == words.lstrip("\n")


def test_whoever_wants_the_traceback_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(exits.TRACEBACK, "1")
    monkeypatch.setattr(sys, "argv", ["program"])
    with pytest.raises(KeyError):
        exits.run(click.Command("it", callback=raises(KeyError("x"))), "program")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SettingsError("x"), errors.SettingsError("x")),
        (TransientDatabaseError("x", 2002), errors.ServerDown("x")),
        (DocumentMissing("x"), errors.LetterMissing("x")),
    ],
)
def test_both_programs_give_the_same_kind_of_error_the_same_number(ours: Exception, theirs: Exception) -> None:
    assert next(code for kind, code in _EXITS if isinstance(ours, kind)) == exits.code_of(theirs)


def test_both_programs_show_the_table() -> None:
    assert main.epilog == cli.epilog == exits.TABLE
    for code in (exits.DONE, exits.FAILED, exits.USAGE, exits.NOT_POSSIBLE, exits.NOT_FOUND, exits.NOT_READY, 130):
        assert f"\n  {code}  " in exits.TABLE


def test_a_server_that_does_not_answer_is_named_with_the_reason_and_never_with_its_password() -> None:
    refused = AMQPConnectionError(AMQPConnectionError(ConnectionRefusedError(111, "Connection refused")))
    assert str(AMQPConnectionError()) == "", "the library says nothing itself"
    words = exits.server_down("broker", "amqp://me:secret@10.0.0.7:5672/%2F", refused, env={})
    assert words.startswith("the broker at 10.0.0.7:5672 cannot be reached or used (Connection refused); try the same")
    assert errors.reason(AMQPConnectionError()) == "AMQPConnectionError"


def test_the_local_stack_is_named_where_its_settings_are_in_use_and_nowhere_else() -> None:
    sourced = {exits.STACK_ROOT: "/srv/everest"}
    assert "`make status` (in /srv/everest)" in exits.advice("127.0.0.1", sourced)
    assert "`make status` says" in exits.advice("127.0.0.1", {exits.STACK_ROOT: os.getcwd()})
    assert "make" not in exits.advice("db.example", sourced)
    assert "make" not in exits.advice("127.0.0.1", {})


def test_a_reader_that_has_had_enough_and_a_terminal_without_our_letters_break_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = (
        "import click; from ingest_consumer import exits\n"
        "def say(): print('é → · ' * 50_000)\n"
        "exits.run(click.Command('it', callback=say), 'it')"
    )
    env = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    closed = subprocess.run(command, env=env, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (closed.returncode, closed.stderr) == (1, b"")
    ascii_only = subprocess.run(command, env=env, capture_output=True, check=False)
    assert ascii_only.stdout.startswith(b"\\xe9 \\u2192 \\xb7")


def test_an_output_that_is_closed_or_full_is_no_traceback() -> None:
    code = (
        "import click; from ingest_consumer import exits\n"
        "def say(): print('x' * 50_000); click.echo('y', err=True)\n"
        "exits.run(click.Command('it', callback=say), 'it')"
    )
    shell = 'exec "$0" -c "$1" {}'
    env = os.environ | {"PYTHONPATH": str(ROOT)}

    def run(redirection: str) -> tuple[int, str]:
        command = ["bash", "-c", shell.format(redirection), sys.executable, code]
        done = subprocess.run(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
        )
        return done.returncode, done.stderr

    assert run(">&-") == (0, "y\n")
    assert run("2>&-") == (0, "")
    assert run(">/dev/full") == (1, "Error: the output cannot be written: No space left on device\n")


def test_an_argument_that_is_no_text_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["program", os.fsdecode(b"SO-\xff")])
    command = click.Command("it", params=[click.Argument(["nota"])], callback=lambda nota: nota.encode())
    with pytest.raises(SystemExit) as ended:
        exits.run(command, "program")
    assert ended.value.code == exits.USAGE
    assert "b'SO-\\xff' is not UTF-8" in capsys.readouterr().err
