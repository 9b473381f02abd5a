"""The commands of `python3 -m stack`, which the Makefile calls. Exit code 1 and one sentence when something has to be
done."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from stack.layout import Layout, StackError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m stack", description="The local stack; see `make help`.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("setup", "up", "down", "status", "clean", "check"):
        commands.add_parser(name)
    commands.add_parser("logs").add_argument("names", nargs="*", metavar="PROCESS")
    pins = commands.add_parser("requirements")
    pins.add_argument("--check", action="store_true")
    commands.add_parser("container-secrets").add_argument("folder", type=Path)
    chosen = parser.parse_args(arguments)
    layout = Layout.here()
    # Imported where needed: most of it wants libraries that only `setup` brings.
    try:
        match chosen.command:
            case "setup":
                from stack.install import setup

                setup(layout)
            case "up":
                from stack.up import up

                up(layout)
            case "down" | "clean":
                from stack import down

                (down.down if chosen.command == "down" else down.clean)(layout)
            case "status":
                from stack.report import status

                return 0 if status(layout) else 1
            case "logs":
                from stack.report import logs

                logs(layout, chosen.names)
            case "check":
                from stack.checks import check as check_security

                check_security(layout)
            case "container-secrets":
                from stack.containers import write

                names = write(chosen.folder)
                print(f"{len(names)} files in {chosen.folder}; it holds every password: keep it, and show it to nobody")
            case "requirements":
                from stack.pins import check, recompile

                (check if chosen.check else recompile)(layout)
    except StackError as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head`: whoever reads has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except ModuleNotFoundError as error:
        if layout.python.exists():
            raise
        print(f"stack: there is no environment here ({error}); `make setup` makes it", file=sys.stderr)
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"stack: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstack: interrupted; `make up` goes on from here, `make down` ends what runs", file=sys.stderr)
        return 130
    return 0
