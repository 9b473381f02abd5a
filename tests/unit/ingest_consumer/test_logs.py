"""Log lines: text or JSON, the ids of the job at work in each, and never a password."""

from __future__ import annotations

import io
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from ingest_consumer import logs
from ingest_consumer.errors import SettingsError

JOB = {"shadow_id": 7, "transaksi_id": 41, "nota": "SO-1", "workflow_id": None, "dag_run_id": "run__1", "n": 1}


class Said:
    """A logger of this test alone, with our handler."""

    def __init__(self, form: str = "text", **env: str) -> None:
        self._stream = io.StringIO()
        self.log = logging.Logger("test")
        self.log.addHandler(logs.handler("consumer", form, env, self._stream))

    @property
    def lines(self) -> list[str]:
        return self._stream.getvalue().splitlines()


def test_json_lines_carry_the_ids_of_the_job_and_what_a_program_needs() -> None:
    said = Said("json")
    with logs.about(**JOB):
        said.log.warning("dead-lettered: %s", "kaput")
    said.log.info("consuming")
    first, second = (json.loads(line) for line in said.lines)
    assert first["message"] == "dead-lettered: kaput"
    assert (first["level"], first["program"]) == ("WARNING", "consumer")
    assert {name: first[name] for name in logs.IDS if name in first} == {
        name: value for name, value in JOB.items() if value is not None
    }
    assert not set(second) & set(logs.IDS)


def test_json_is_one_line_also_for_a_traceback_and_a_message_with_line_breaks() -> None:
    said = Said("json")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        said.log.exception("broken\nmessage")
    (line,) = said.lines
    assert "ValueError: two\nlines" in json.loads(line)["trace"]


def test_text_lines_carry_the_ids_once() -> None:
    said = Said()
    with logs.about(shadow_id=7, nota="SO-1"):
        said.log.info("published")
        said.log.info("action=woke shadow_id=7: done")
    first, second = said.lines
    assert first.endswith("published [shadow_id=7 nota=SO-1]")
    assert second.endswith("action=woke shadow_id=7: done [nota=SO-1]")


FORGED = "SO-1\n2026-12-02 10:00:00 INFO    posted \x1b[2K\u202e\u2028\x85\r[shadow_id=9] \ud800"


@pytest.mark.parametrize("form", logs.FORMATS)
def test_what_others_write_neither_begins_a_line_nor_ends_one(form: str) -> None:
    """The nota of a foreign message, the text of an error."""
    said = Said(form)
    with logs.about(shadow_id=7, nota=FORGED):
        said.log.info("acked %s", FORGED)
        try:
            raise ValueError(FORGED)
        except ValueError:
            said.log.exception("broken")

    assert all(line.isprintable() for line in said.lines)
    "\n".join(said.lines).encode()  # a half of a character would stop the handler
    if form == "json":
        first, second = map(json.loads, said.lines)
        assert (first["nota"], first["message"]) == (FORGED, f"acked {FORGED}")
        assert FORGED in second["trace"]
    else:
        assert [line[:2] for line in said.lines if not line.startswith("    ")] == ["20", "20"]
        assert "shadow_id=7" in said.lines[0]


def test_an_id_that_would_read_as_several_is_quoted() -> None:
    said = Said()
    with logs.about(nota="SO-1 shadow_id=9", n=1):
        said.log.info("acked")
    assert said.lines[0].endswith('acked [nota="SO-1 shadow_id=9" n=1]')


def test_ids_are_those_of_the_innermost_job_and_of_this_thread_alone() -> None:
    seen: list[dict[str, Any]] = []
    with logs.about(shadow_id=1, n=1):
        with logs.about(n=2):
            seen.append(logs.ids())
        thread = threading.Thread(target=lambda: seen.append(logs.ids()))
        thread.start()
        thread.join()
        seen.append(logs.ids())
    assert seen == [{"shadow_id": 1, "n": 2}, {}, {"shadow_id": 1, "n": 1}]
    assert logs.ids() == {}


@pytest.mark.parametrize("form", logs.FORMATS)
def test_no_password_of_the_settings_gets_into_a_line(form: str) -> None:
    secret, in_url, quoted = "hunter2-secret", "p@ss/word1", "p%40ss%2Fword1"
    said = Said(
        form,
        EVEREST_AIRFLOW_PASSWORD=secret,
        EVEREST_MYSQL_URL=f"mysql://everest:{quoted}@127.0.0.1/books",
    )
    try:
        raise ConnectionError(f"mysql://everest:{quoted}@127.0.0.1")
    except ConnectionError:
        said.log.exception("no answer for %s and %s", secret, in_url)
    for word in (secret, in_url, quoted):
        assert word not in "".join(said.lines)
    assert logs.HIDDEN in "".join(said.lines)


def test_a_password_from_a_file_is_hidden_as_well(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2-secret\n")
    said = Said(EVEREST_AIRFLOW_PASSWORD_FILE=str(file))
    said.log.info("no answer for hunter2-secret")
    assert said.lines[0].endswith("no answer for ***")


def test_a_word_too_short_to_be_a_secret_hides_nothing() -> None:
    said = Said(EVEREST_AIRFLOW_PASSWORD="dev")
    said.log.info("device is well again")
    assert "device is well again" in said.lines[0]


def test_wrong_settings_are_named_together() -> None:
    with pytest.raises(SettingsError) as raised:
        logs.set_up("consumer", {"EVEREST_LOG_LEVEL": "loud", "EVEREST_LOG_FORMAT": "xml"})
    assert "EVEREST_LOG_LEVEL='LOUD'" in raised.value.message
    assert "EVEREST_LOG_FORMAT='xml'" in raised.value.message
