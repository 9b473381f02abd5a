"""A report into a file that is there whole or not at all, and never over another one by accident."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from everest.reports.shape import ReportRefused


@contextmanager
def new_file(path: Path, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A binary file that becomes `path` when the block ends well. Raises ReportRefused when `path` is there already and
    may not be replaced (also when it appears meanwhile), or cannot be written."""
    if path.exists() and not overwrite:
        raise ReportRefused(f"{path} is there already; --force replaces it")
    if path.exists() and not path.is_file():
        raise ReportRefused(f"{path} is not a regular file")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise ReportRefused(f"{path} cannot be written: {error.strerror}") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o666 & ~_umask())  # mkstemp gives it to its owner alone
        if overwrite:
            part.replace(path)
        else:
            os.link(part, path)  # unlike a rename, it fails when somebody else was quicker
    except FileExistsError:
        raise ReportRefused(f"{path} is there already; --force replaces it") from None
    except OSError as error:
        raise ReportRefused(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with suppress(OSError):
            part.unlink()


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
