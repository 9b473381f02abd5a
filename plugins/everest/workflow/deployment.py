"""Which definition a run goes by: the one it began under, as long as that is deployed, whatever is newest by now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from everest.workflow.definition import Definition
from everest.workflow.records import Run

Deployed = Callable[[str, str, str], Definition | None]
"""Finds a definition by workflow name, version and hash."""


def nothing(workflow: str, version: str, definition_hash: str) -> None:
    """The Deployed of whoever knows none."""


def among(definitions: Iterable[Definition], workflow: str, version: str, definition_hash: str) -> Definition | None:
    """The one with this hash; else one of this version, whose handlers are the nearest there is; else None."""
    fitting = [one for one in definitions if (one.name, one.version) == (workflow, version)]
    return next((one for one in fitting if one.definition_hash == definition_hash), fitting[0] if fitting else None)


def of_run(deployed: Deployed, run: Run) -> Definition | None:
    return deployed(run.workflow, run.version, run.definition_hash)
