"""The header of a document, gathered from the command's options and the file. Two sources that disagree are a problem,
not a question of precedence; who authorised is never read from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from everest.intake import cells
from everest.intake.cells import FileProblem, said_by, shown
from everest.intake.submission import Line, Submission
from everest.words import say

_PARSERS: Mapping[str, Callable[[Any], Any]] = {
    "nomer_nota": lambda value: cells.code(value, "nomer_nota"),
    "gudang_kode": lambda value: cells.code(value, "gudang_kode"),
    "tanggal_opname": cells.day,
    "tanggal_posting": cells.day,
    "snapshot_at": cells.instant,
    "transaksi_id": cells.identity,
    "submit_token": lambda value: cells.code(value, "submit_token"),
}
OPTIONS = {
    "nomer_nota": "--nota",
    "gudang_kode": "--gudang",
    "tanggal_opname": "--tanggal-opname",
    "tanggal_posting": "--tanggal-posting",
    "snapshot_at": "--snapshot-at",
    "transaksi_id": "--transaksi-id",
    "submit_token": "--token",
}
HEADER_FIELDS = tuple(_PARSERS)

FORBIDDEN = frozenset({"otorisasi_level", "diotorisasi_oleh", "diotorisasi_at", "dibuat_oleh"})
AUTHORITY = "file.authority"
"""The sentence about one of them."""

_REQUIRED = ("nomer_nota", "gudang_kode", "tanggal_opname")


@dataclass
class HeaderReader:
    """Takes header values as they are met, keeps the first of each, and reports every one that differs from it."""

    problems: list[FileProblem]
    column_names: Mapping[str, str] = field(default_factory=dict)
    """How the file calls a field where it is not the field's own name."""
    _raw: dict[str, Any] = field(default_factory=dict)
    _values: dict[str, Any] = field(default_factory=dict)

    def take(self, name: str, raw: Any, baris: int | None = None, file_line: int | None = None) -> None:
        """A value of the file. Blank means not given here."""
        if raw is None or raw == "" or (name in self._raw and self._raw[name] == raw):
            return
        column = self.column_names.get(name, name)
        try:
            value = _PARSERS[name](raw)
        except ValueError as flaw:
            self.problems.append(FileProblem(baris, column, said_by(flaw), file_line))
            self._raw.setdefault(name, raw)  # the same mistake on every line is one mistake
            return
        if name in self._values and self._values[name] != value:
            pesan = say("id", "file.differs", value=shown(raw), other=shown(self._raw[name]))
            self.problems.append(FileProblem(baris, column, pesan, file_line))
            return
        self._raw.setdefault(name, raw)
        self._values.setdefault(name, value)

    def take_options(self, options: Mapping[str, str | None]) -> None:
        """The values of the command line; called after the file was read."""
        for name, raw in options.items():
            if raw is None:
                continue
            try:
                value = _PARSERS[name](raw)
            except ValueError as flaw:
                self.problems.append(FileProblem(None, OPTIONS[name], said_by(flaw)))
                self._raw.setdefault(name, raw)
                continue
            if name in self._values and self._values[name] != value:
                pesan = say("id", "file.differs_from_file", value=shown(raw), other=shown(self._raw[name]))
                self.problems.append(FileProblem(None, OPTIONS[name], pesan))
                continue
            self._raw.setdefault(name, raw)
            self._values.setdefault(name, value)

    def submission(self, lines: list[Line], is_correction: bool) -> Submission | None:
        """The document, None (and the problems) when something that must be there is not."""
        for name in ("nomer_nota",) if is_correction else _REQUIRED:
            if name not in self._raw:
                column = self.column_names.get(name, name)
                pesan = say("id", "file.absent", option=OPTIONS[name], column=column)
                self.problems.append(FileProblem(None, column, pesan))
        if self.problems:
            return None
        return Submission(
            nomer_nota=self._values["nomer_nota"],
            gudang_kode=self._values.get("gudang_kode"),
            tanggal_opname=self._values.get("tanggal_opname"),
            lines=tuple(lines),
            tanggal_posting=self._values.get("tanggal_posting"),
            snapshot_at=self._values.get("snapshot_at"),
            transaksi_id=self._values.get("transaksi_id"),
            submit_token=self._values.get("submit_token"),
        )
