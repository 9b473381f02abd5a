"""Every setting of everest, read once from the environment; all problems are reported together."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

from everest.errors import SettingsError
from ingest_consumer.addresses import MysqlUrl as MysqlUrl
from ingest_consumer.secret_files import resolved

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True)
class Settings:
    """What a site can decide about the postings.

    foreign_zone: zone of the instants that other programs write (our own rows are UTC).
    allow_zero_cost: accept a cost of 0 on a line with variance.
    approval_timeout: how long a document waits for a person's decision before it is refused.
    allow_self_approval: whoever submitted a document may also decide about it or reverse it.
    max_attempts: tries of a step before it is recorded as failed.
    step_timeout: longest one try of a step may take.
    max_active_runs: DAG runs of one workflow at work at once.
    posting_tasks: one Airflow task for each step of a posting, or one for all ("fused"): for many small documents.
    workflows: modules that hold the definitions this site runs, for the reconciler and the commands.
    """

    foreign_zone: tzinfo = ZoneInfo("UTC")
    allow_zero_cost: bool = False
    approval_timeout: timedelta = timedelta(days=14)
    allow_self_approval: bool = False
    max_attempts: int = 3
    step_timeout: timedelta = timedelta(minutes=10)
    max_active_runs: int = 64
    posting_tasks: Literal["per_step", "fused"] = "per_step"
    workflows: tuple[str, ...] = ("everest.opname.workflow", "closing_example.workflow")

    @classmethod
    def from_environment(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Raises SettingsError naming every variable that is wrong."""
        problems: list[str] = []

        def whole(name: str, default: int) -> int:
            text = env.get(name, str(default))
            if text.isdecimal() and int(text) > 0:
                return int(text)
            problems.append(f"{name}={text!r}: must be a whole number above 0")
            return default

        def switch(name: str) -> bool:
            text = env.get(name, "0")
            if text not in ("0", "1"):
                problems.append(f"{name}={text!r}: must be 0 or 1")
            return text == "1"

        def span(name: str, default: timedelta) -> timedelta:
            text = env.get(name)
            found = re.fullmatch(r"([1-9][0-9]{0,5})([smhd])", text or "")
            if found is not None:
                return timedelta(**{_UNITS[found[2]]: int(found[1])})
            if text is not None:
                problems.append(f"{name}={text!r}: must be a time such as 14d, 12h, 90m or 30s")
            return default

        posting_tasks: Literal["per_step", "fused"] = "per_step"
        match env.get("EVEREST_POSTING_TASKS", posting_tasks):
            case "per_step":
                pass
            case "fused":
                posting_tasks = "fused"
            case other:
                problems.append(f"EVEREST_POSTING_TASKS={other!r}: must be per_step or fused")

        zone: tzinfo = ZoneInfo("UTC")
        try:
            zone = ZoneInfo(env.get("EVEREST_FOREIGN_ZONE", "UTC"))
        except (KeyError, ValueError, OSError):
            problems.append("EVEREST_FOREIGN_ZONE: not a time zone name such as Asia/Jakarta")

        settings = cls(
            foreign_zone=zone,
            allow_zero_cost=switch("EVEREST_ALLOW_ZERO_COST"),
            approval_timeout=span("EVEREST_APPROVAL_TIMEOUT", timedelta(days=14)),
            allow_self_approval=switch("EVEREST_ALLOW_SELF_APPROVAL"),
            max_attempts=whole("EVEREST_MAX_ATTEMPTS", 3),
            step_timeout=timedelta(seconds=whole("EVEREST_STEP_TIMEOUT_S", 600)),
            max_active_runs=whole("EVEREST_MAX_ACTIVE_RUNS", 64),
            posting_tasks=posting_tasks,
            workflows=_modules(env),
        )
        if problems:
            raise SettingsError("; ".join(problems))
        return settings


def _modules(env: Mapping[str, str]) -> tuple[str, ...]:
    named = [module.strip() for module in env.get("EVEREST_WORKFLOWS", "").split(",")]
    return tuple(filter(None, named)) or Settings.workflows


def mysql_url(env: Mapping[str, str] = os.environ) -> MysqlUrl:
    """The database of this process, from EVEREST_MYSQL_URL. Raises SettingsError."""
    problems: list[str] = []
    text = resolved(env, problems).get("EVEREST_MYSQL_URL")
    if found := [problem for problem in problems if problem.startswith("EVEREST_MYSQL_URL")]:
        raise SettingsError("; ".join(found))
    if not text:
        raise SettingsError("EVEREST_MYSQL_URL is not set; `source .local/stack.env` sets it for the local stack")
    try:
        return MysqlUrl.parse(text)
    except ValueError as problem:
        raise SettingsError(f"EVEREST_MYSQL_URL {problem}") from None
