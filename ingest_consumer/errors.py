"""All errors of the consumer: one shallow tree. `retryable` = the same call may succeed later, unchanged. And what is
to be said of the errors of libraries."""

from __future__ import annotations

from typing import Any


class Reason(str):
    """Words of ours in English, with the key under which the pages' catalogue has them in both languages, and what
    fills its holes: names, numbers and codes."""

    key: str
    values: dict[str, Any]

    @classmethod
    def of(cls, key: str, words: str, **values: Any) -> Reason:
        found = cls(words)
        found.key, found.values = key, values
        return found

    def kept(self) -> dict[str, Any]:
        """As a row keeps it, for JSON."""
        return {"message": str(self), "key": self.key, "values": self.values}


class IngestError(Exception):
    """Something in the consumer failed."""

    retryable = False

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])

    @property
    def message(self) -> str:
        return self.args[0]  # type: ignore[no-any-return]


class SettingsError(IngestError):
    """The environment is not what the program needs."""


class TopologyError(IngestError):
    """The broker holds a queue or exchange that is not the one we can work with."""


class ServerDown(IngestError):
    """A server does not answer, or lets nobody in at the moment."""

    retryable = True


class LetterMissing(IngestError):
    """There is no such dead letter."""


class DecodeError(IngestError):
    """The message is not one of ours. `body` keeps the offending bytes, the message is the reason."""

    def __init__(self, message: Reason, body: bytes) -> None:
        super().__init__(message)
        self.body = body


class AirflowUnavailable(IngestError):
    """Airflow could not do it this time: not reachable, busy, or not ready for this DAG."""

    retryable = True


class AirflowDown(AirflowUnavailable):
    """Airflow did not answer at all, or let nobody in: another call would find the same."""


class AirflowRefused(IngestError):
    """Airflow calls our own request malformed (422): a bug of ours, no retry will mend it."""


class RerunRefused(IngestError):
    """The document cannot be run again, or not be dropped; the message is a Reason. `status` is the worker_status
    found, None when there is no such row."""

    def __init__(self, message: Reason, status: str | None = None) -> None:
        super().__init__(message)
        self.status = status


def causes(error: BaseException) -> list[BaseException]:
    """The error and all that is behind it, from the outside in: what it was raised from, or keeps among its values."""
    seen: list[BaseException] = []
    todo: list[BaseException] = [error]
    while todo:
        one = todo.pop(0)
        if any(one is known for known in seen):
            continue
        seen.append(one)
        wrapped = getattr(one, "exception", None)
        inner = [*one.args, *getattr(one, "exceptions", ()), wrapped, one.__cause__, one.__context__]
        todo += [found for found in inner if isinstance(found, BaseException)]
    return seen


def reason(error: BaseException) -> str:
    """Why, in one line: some libraries hand on the cause and say nothing themselves."""
    return _of_the_system(error) or _with_kind(error, _words(error))


def named(error: BaseException) -> str:
    """The kind of error with its own words, or the reason where it has none."""
    own = str(error).strip()
    return f"{type(error).__name__} {own}" if own else _with_kind(error, _of_the_system(error) or _words(error))


def _of_the_system(error: BaseException) -> str | None:
    found = (one.strerror for one in reversed(causes(error)) if isinstance(one, OSError))
    return next((words for words in found if words), None)


def _words(error: BaseException) -> str:
    said = next((str(one) for one in causes(error) if str(one).strip()), "")
    return said or (type(error).__doc__ or "").partition("\n")[0]


def _with_kind(error: BaseException, words: str) -> str:
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
