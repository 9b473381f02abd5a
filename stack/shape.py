"""How many of what: the executor of Airflow's tasks, its workers, the consumers, and whether a standby waits.

`make up EXECUTOR=celery WORKERS=2 CONSUMERS=2 STANDBY=1` chooses; like the ports the choice is written down, so that
every later command, a plain `make up` too, finds the same stack.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from stack.layout import StackError, write_private

PREFIX = "EVEREST_STACK_"
MOST = 16  # of a kind, on one machine
LOCAL, CELERY = "local", "celery"


@dataclass(frozen=True)
class Shape:
    """executor: LOCAL, where tasks are children of the scheduler, or CELERY, where `workers` processes of their own
    take them from the broker. standby: a second relay and a second reconciler, which take over when the first dies."""

    executor: str = LOCAL
    workers: int = 2
    consumers: int = 1
    standby: bool = False

    @property
    def is_celery(self) -> bool:
        return self.executor == CELERY

    @classmethod
    def choose(cls, env: Mapping[str, str] = os.environ, earlier: Shape | None = None) -> Shape:
        """The environment decides, then the earlier choice, then the default. Raises StackError."""
        kept = earlier or cls()
        problems: list[str] = []

        def word(name: str, default: str, allowed: tuple[str, ...]) -> str:
            text = env.get(PREFIX + name) or default
            if text not in allowed:
                problems.append(f"{name}={text!r} must be {' or '.join(allowed)}")
            return text

        def count(name: str, default: int) -> int:
            text = env.get(PREFIX + name) or str(default)
            if text.isdecimal() and 1 <= int(text) <= MOST:
                return int(text)
            problems.append(f"{name}={text!r} must be a number from 1 to {MOST}")
            return default

        shape = cls(
            executor=word("EXECUTOR", kept.executor, (LOCAL, CELERY)),
            workers=count("WORKERS", kept.workers),
            consumers=count("CONSUMERS", kept.consumers),
            standby=word("STANDBY", str(int(kept.standby)), ("0", "1")) == "1",
        )
        if env.get(PREFIX + "WORKERS") and not shape.is_celery:
            problems.append("WORKERS are Celery's; with them goes EXECUTOR=celery")
        if problems:
            raise StackError("; ".join(problems))
        return shape

    @classmethod
    def load(cls, file: Path) -> Shape | None:
        """The choice of the last `up`, None when there was none or it is of another time."""
        try:
            return cls(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, file: Path) -> None:
        write_private(file, json.dumps(asdict(self), indent=2) + "\n")
