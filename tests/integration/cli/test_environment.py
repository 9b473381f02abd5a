"""What every command says of its settings, its servers and itself."""

from __future__ import annotations

import pytest

from everest.settings import MysqlUrl
from tests.integration.cli.conftest import HEADER, TITLES, Everest, WriteFile


def test_a_missing_setting_and_an_absent_server_are_one_sentence_each(
    everest: Everest, write: WriteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVEREST_STACK_ROOT", raising=False)
    monkeypatch.setenv("EVEREST_MYSQL_URL", "mysql://x:secret@127.0.0.1:1/books")
    absent = everest("status", "SO-1")
    monkeypatch.delenv("EVEREST_MYSQL_URL")
    unset = everest("submit", write(), *HEADER)

    assert (absent.exit_code, unset.exit_code) == (5, 5)
    assert "try the same command again" in absent.stderr
    assert "secret" not in absent.output
    assert "EVEREST_MYSQL_URL is not set" in unset.stderr


def test_migrate_of_a_migrated_database_changes_nothing(everest: Everest, database: MysqlUrl) -> None:
    result = everest("migrate")

    assert result.exit_code == 0
    assert f"{database.schema}: up to date" in result.stdout


def test_the_help_names_every_command_and_exit_code(everest: Everest) -> None:
    shown = everest("--help").stdout

    assert all(word in shown for word in ("submit", "status", "rerun", "post", "migrate", "Exit codes"))
    assert all(column in everest("submit", "--help").stdout for column in TITLES.strip().split(","))
