"""stack.env: what a shell, an operator's command or a test needs to reach the stack; `source .local/stack.env`."""

from __future__ import annotations

import shlex

from stack.accounts import OPERATOR, OWNER, Identity
from stack.layout import write_private
from stack.programs import Stack


def render_env_file(stack: Stack, who: Identity = OWNER) -> str:
    """Of the owner, for developers and tests: may migrate, and make schemas and vhosts. Of the operator: what a person
    at work needs and no more. Readable by a shell and line by line as NAME=value."""
    file = stack.layout.env_file if who == OWNER else stack.layout.operator_env_file
    lines = [f"# Written by `make up`. Holds passwords. Usage: source .local/{file.name}"]
    values = (stack.own_settings() if who == OWNER else stack.connections(who)) | stack.python_environment()
    values["EVEREST_STACK_ROOT"] = str(stack.layout.root)  # what to start when a server does not answer
    if who == OWNER:
        values["AIRFLOW_CONN_EVEREST_MYSQL"] = stack.airflow_connection()
    lines += [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
    # Proxies are for the outside; a second `source` does not lengthen PATH.
    bin_folder = str(stack.layout.venv / "bin")
    lines += [
        f'case ":$PATH:" in *:{shlex.quote(bin_folder)}:*) ;; *) export PATH={shlex.quote(bin_folder)}:"$PATH" ;; esac',
        'export NO_PROXY="127.0.0.1${NO_PROXY:+,$NO_PROXY}" no_proxy="127.0.0.1${no_proxy:+,$no_proxy}"',
        "unset PYTHONDONTWRITEBYTECODE",
    ]
    return "\n".join(lines) + "\n"


def write_env_file(stack: Stack) -> None:
    write_private(stack.layout.env_file, render_env_file(stack))
    write_private(stack.layout.operator_env_file, render_env_file(stack, OPERATOR))
