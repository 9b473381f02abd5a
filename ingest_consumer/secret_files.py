"""Secrets that stand in files instead of the environment: EVEREST_MYSQL_URL_FILE=/run/secrets/mysql_url, and so on.

Container platforms and systemd hand secrets over as files, because an environment is inherited by every child and shown
by tools. Used by every program of the house.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SECRETS = (
    "EVEREST_MYSQL_URL",
    "EVEREST_AMQP_URL",
    "EVEREST_AIRFLOW_PASSWORD",
    "EVEREST_RABBIT_MANAGEMENT_PASSWORD",
)
SUFFIX = "_FILE"
LONGEST_BYTES = 64 * 1024
"""No secret is longer; a path that names something else is noticed instead of read into memory."""


def resolved(env: Mapping[str, str], problems: list[str]) -> Mapping[str, str]:
    """The environment with the secrets of the named files in it. What is wrong is added to `problems`, by the name of
    the variable and the file and never by content. One newline at the end of a file is not part of its secret."""
    found = dict(env)
    for name in SECRETS:
        path = found.pop(name + SUFFIX, "")  # gone afterwards: who gets the result may resolve it again
        if not path:
            continue
        if env.get(name):
            problems.append(f"{name} and {name}{SUFFIX} are both set; only one of them can hold")
            continue
        try:
            with Path(path).open("rb") as file:
                content = file.read(LONGEST_BYTES + 1)
            if len(content) > LONGEST_BYTES:
                raise ValueError
            found[name] = content.decode().removesuffix("\n").removesuffix("\r")
        except OSError as error:
            problems.append(f"{name}{SUFFIX}: {path} cannot be read ({type(error).__name__})")
        except ValueError:
            problems.append(f"{name}{SUFFIX}: {path} is not a text of at most {LONGEST_BYTES} bytes")
    return found
