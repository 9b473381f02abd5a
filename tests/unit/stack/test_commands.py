"""What the Makefile calls ends in a sentence, whatever the machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from stack import commands, install, report
from stack.layout import Layout


def fails_with(error: Exception, layout: Layout) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/srv/x/.local"), "stack: /srv/x/.local: Permission denied\n"),
        (ModuleNotFoundError("No module named 'supervisor'"), "`make setup` makes it\n"),
        (KeyboardInterrupt(), "`make down` ends what runs\n"),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(Layout, "here", classmethod(lambda cls: cls(tmp_path)))
    monkeypatch.setattr(install, "setup", lambda layout: fails_with(error, layout))
    assert commands.main(["setup"]) in (1, 130)
    assert capsys.readouterr().err.endswith(sentence)


def test_an_error_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "status", lambda layout: fails_with(OSError("no file"), layout))
    with pytest.raises(OSError, match="no file"):
        commands.main(["status"])
