"""All errors of everest: one shallow tree. The docstring of a class is its message where none is given.

`retryable` answers "can the same call succeed later, unchanged?". It is decided by class or by the server's
error number, never by text. `code` is the number that lands in the shadow row (posting-rules: 422 data, 409
conflict, 423 closed period, 404 missing, 500 our bug, 503 gave up, 504 timeout, 499 cancelled).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from everest.words import heard, say, told

MAX_PROBLEMS_BYTES = 6 * 1024 * 1024
"""What the problems of one document may weigh as JSON: with every quote escaped still below the default
max_allowed_packet of 16 MiB. About 60,000 of an ordinary sentence."""


class EverestError(Exception):
    """Something in everest failed."""

    retryable = False
    code = 500

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])

    @property
    def message(self) -> str:
        """A sentence of the catalogue (`everest.words.Said`) where it was raised with one."""
        given = self.args[0]
        return given if isinstance(given, str) else str(given)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a document.

    baris: 1-based line of the document, None for the header. kolom: the column, as the tables name it.
    pesan: the sentence a person reads (Indonesian); one of the catalogue (`everest.words.say`) in either language.
    """

    baris: int | None
    kolom: str
    pesan: str

    def as_json(self) -> dict[str, Any]:
        """As rows and answers hold it; with "said" (key and holes) beside a sentence of the catalogue."""
        about = told(self.pesan)
        return {"baris": self.baris, "kolom": self.kolom, "pesan": about.pop("message"), **about}

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Problem:
        """What `as_json` gave, or what any program or release left in its place."""
        baris = kept.get("baris")
        return cls(
            baris if isinstance(baris, int) else None,
            str(kept.get("kolom") or ""),
            heard(str(kept.get("pesan") or ""), kept.get("said")),
        )

    @classmethod
    def all_of(cls, kept: Any) -> tuple[Problem, ...]:
        """Those of a list that a row holds; what is no problem in it, or no list, is passed over."""
        found = kept if isinstance(kept, list | tuple) else ()
        return tuple(cls.of_json(one) for one in found if isinstance(one, Mapping))


def problems_json(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    """The problems as a row can hold them: all, or the first MAX_PROBLEMS_BYTES of them and how many more there are.
    The first have with them what tells them in another language, as far as there is room behind the texts.

    A statement larger than the server's packet loses the connection, and a failure that cannot be written is a
    document that never ends.
    """
    shown: list[dict[str, Any]] = []
    room = MAX_PROBLEMS_BYTES
    for problem in problems:
        entry = replace(problem, pesan=str(problem.pesan)).as_json()
        room -= _weight(entry)
        if room < 0:
            more = say("id", "several.more_problems", n=len(problems) - len(shown))
            return [*shown, Problem(None, "", more).as_json()]
        shown.append(entry)
    for n, problem in enumerate(problems):
        entry = problem.as_json()
        room -= _weight(entry) - _weight(shown[n])
        if room < 0:
            break
        shown[n] = entry
    return shown


def _weight(entry: dict[str, Any]) -> int:
    return len(json.dumps(entry, ensure_ascii=False).encode(errors="replace")) + 2


class DocumentRefused(EverestError):
    """The document cannot be posted as it stands; a person has to act."""

    code = 422

    def __init__(self, message: str, problems: Sequence[Problem] = (), code: int | None = None) -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        if code is not None:
            self.code = code


class DocumentMissing(EverestError):
    """No such document."""

    code = 404


class Conflict(EverestError):
    """The call does not fit the state the document or workflow is in."""

    code = 409


class Forbidden(EverestError):
    """This person may not do that."""

    code = 403


class StepTimeout(EverestError):
    """The step ran longer than its timeout."""

    code = 504
    retryable = True


class WaitTimeout(StepTimeout):
    """What a step waited for did not come in time; another try would find the same."""

    retryable = False


class HandlerHangs(StepTimeout):
    """A handler that is called outside of a task took too long and was interrupted."""


class GaveUp(EverestError):
    """The work was begun again too often without an end; a person has to look."""

    code = 503


class DatabaseError(EverestError):
    """The database refused a statement."""

    def __init__(self, message: str, number: int = 0) -> None:
        super().__init__(f"{message} (MySQL {number})" if number else message)
        self.number = number


class TransientDatabaseError(DatabaseError):
    """The database could not do it this time: deadlock, lock wait, or a lost connection."""

    code = 503
    retryable = True


class DuplicateKey(DatabaseError):
    """A row with this key stands already."""

    code = 409


class SettingsError(EverestError):
    """The environment is not what the program needs."""


class DefinitionError(EverestError):
    """A workflow definition is wrong; the message names the step."""
