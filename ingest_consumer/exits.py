"""How a command ends: the one table of exit codes, and the one place where an error becomes a sentence and a number.

`python -m ingest_consumer`, `python -m everest` and the reconciler all begin in `run`. Nobody who types a command gets
a traceback; what went wrong on the way to a server names the server, and `make up` where it is the local stack's.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn, TextIO
from urllib.parse import urlsplit

import click

from ingest_consumer.errors import (
    IngestError,
    LetterMissing,
    RerunRefused,
    ServerDown,
    SettingsError,
    TopologyError,
    named,
    reason,
)

DONE, FAILED, USAGE, NOT_POSSIBLE, NOT_FOUND, NOT_READY = range(6)
INTERRUPTED = 130

TABLE = """\b
Exit codes, of every command:
  0  done (also: it was done already)
  1  refused or failed; the reasons are printed
  2  the command line is wrong
  3  not possible in the state the document or workflow is in; nothing was changed (`post`: it waits for a person)
  4  no such file, document, workflow or dead letter
  5  a server or a setting is not ready; the same command can be tried again
  130  interrupted (Ctrl-C)
"""

KINDS: tuple[tuple[type[Exception], int], ...] = (
    (LetterMissing, NOT_FOUND),
    (RerunRefused, NOT_POSSIBLE),
    (ServerDown, NOT_READY),
    (SettingsError, NOT_READY),
    (TopologyError, NOT_READY),
    (IngestError, FAILED),
)

STACK_ROOT = "EVEREST_STACK_ROOT"
"""In a shell that has sourced .local/stack.env: the checkout whose stack it is."""
TRACEBACK = "EVEREST_TRACEBACK"
_OUTPUT = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


def code_of(error: Exception) -> int:
    """The exit code of one of our own errors."""
    return next((code for kind, code in KINDS if isinstance(error, kind)), FAILED)


def server_down(
    server: str, url: str, error: BaseException, said: str = "", env: Mapping[str, str] = os.environ
) -> str:
    """What to say when a server does not answer. url: named without its password; server: what people call it; said:
    what the log would say, with what to look at in the settings."""
    hint = said.removeprefix(named(error))
    parts = urlsplit(url)
    where = f" at {parts.hostname}:{parts.port}" if parts.hostname and parts.port else ""
    return f"the {server}{where} cannot be reached or used ({reason(error)}{hint}); {advice(parts.hostname, env)}"


def advice(host: str | None, env: Mapping[str, str] = os.environ) -> str:
    """What to do about a server that does not answer, or does not let us in."""
    root = env.get(STACK_ROOT)
    if not root or host not in LOOPBACK:
        return "try the same command again"
    where = "" if os.path.realpath(root) == os.getcwd() else f" (in {root})"
    return (
        f"`make status`{where} says whether the local stack runs, `make up` starts it;"
        " if it has other ports or passwords by now, `source .local/stack.env` again"
    )


def run(command: click.Command, name: str) -> NoReturn:
    """Runs it with the arguments of this process, and leaves with its exit code."""
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    try:
        code = command.main(prog_name=name, standalone_mode=False)
        code = code if isinstance(code, int) else DONE
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nInterrupted.", err=True)
        code = INTERRUPTED
    except IngestError as error:
        click.echo(f"Error: {error.message}", err=True)
        code = code_of(error)
    except OSError as error:
        code = _bug(error) if error.errno not in _OUTPUT else FAILED
        if error.errno in _OUTPUT and error.errno != errno.EPIPE:  # `| head`: whoever reads has had enough
            click.echo(f"Error: the output cannot be written: {error.strerror}", err=True)
    except UnicodeEncodeError as error:
        foreign = next((word for word in sys.argv[1:] if not _is_text(word)), None)
        if foreign is None:
            code = _bug(error)
        else:
            click.echo(f"Error: {os.fsencode(foreign)!r} is not UTF-8; nothing has such a name here", err=True)
            code = USAGE
    except Exception as error:
        code = _bug(error)
    _leave(code)


def _is_text(word: str) -> bool:
    """Whether an argument came as UTF-8; Python keeps bytes that did not as halves of surrogates."""
    return not any("\udc80" <= char <= "\udcff" for char in word)


def _bug(error: Exception) -> int:
    if os.environ.get(TRACEBACK):
        raise error
    words = f"this should not happen: {type(error).__name__}: {error}".splitlines()[0]
    click.echo(f"Error: {words}\nPlease report it with what the command prints after {TRACEBACK}=1.", err=True)
    return FAILED


def _usable(stream: TextIO | None) -> TextIO:
    """One that was closed before we began (`>&-`) takes all and keeps nothing; a terminal that knows no `é` gets it as
    an escape."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
        stream.reconfigure(errors="backslashreplace")
    return stream


def _leave(code: int) -> NoReturn:
    """Without Python's own complaint about an output that nobody reads any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(code)
