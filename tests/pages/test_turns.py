"""Two uploads are read at a time: the others wait, and whoever waits too long gets their form back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from everest.pages import correct, submit, uploads
from everest.pages.turns import Crowd, Turns
from tests import builders
from tests.pages.conftest import Be
from tests.pages.forms import HEADER, NOT_COUNTED, SOUND
from tests.pages.standing import failed


def test_uploads_take_turns_and_whoever_waits_too_long_gets_their_form_back(
    browser: Be, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H02a: whatever is sent at once, the memory and the threads of Airflow's server are not all ours. The form that
    comes back holds what was pasted and the token of the same submission, so that sending it again is that one."""
    builders.warehouse(connection, "GD-A")
    document = failed(connection, lines=NOT_COUNTED)
    connection.commit()
    original, both, go_on = submit.read_upload, threading.Barrier(3), threading.Event()

    def slow(*given: Any, **rest: Any) -> Any:
        both.wait(30)
        assert go_on.wait(30)
        return original(*given, **rest)

    def send(token: str, language: str = "id") -> Any:
        fields = {**HEADER, "nomer_nota": f"SO-{token}", "pasted": SOUND, "submit_token": token}
        return browser("warehouse").submit(f"/submit?lang={language}", **fields)

    def put_right(reason: str) -> Any:
        path = f"/documents/{document.shadow_id}/correct"
        return browser("finance").submit(path, pasted=SOUND, decimal="id", reason=reason)

    monkeypatch.setattr(submit, "read_upload", slow)
    monkeypatch.setattr(correct, "read_upload", slow)
    with ThreadPoolExecutor(3) as pool:
        first = [pool.submit(send, "one"), pool.submit(put_right, "sudah dihitung")]
        both.wait(30)
        monkeypatch.setattr(submit, "read_upload", original)
        monkeypatch.setattr(correct, "read_upload", original)
        monkeypatch.setattr(uploads.TURNS, "wait_s", 0)
        turned_away, in_english, corrected = send("two"), send("two", "en"), put_right("menunggu")
        monkeypatch.setattr(uploads.TURNS, "wait_s", 30)
        waiting = pool.submit(send, "three")
        go_on.set()
        assert [one.result().status_code for one in (*first, waiting)] == [303] * 3

    assert [one.status_code for one in (turned_away, in_english, corrected)] == [503] * 3
    assert "Terlalu banyak berkas sedang dibaca" in turned_away.text and "00123;10;12" in turned_away.text
    assert 'name="submit_token" value="two"' in turned_away.text and "SO-two" in turned_away.text
    assert "Too many files are being read" in in_english.text
    assert "Terlalu banyak berkas sedang dibaca" in corrected.text and "menunggu" in corrected.text
    kept = {row["nomer_nota"] for row in builders.rows(connection, "SELECT nomer_nota FROM so_headers_staging")}
    assert {"SO-one", "SO-three"} <= kept and "SO-two" not in kept
    connection.commit()
    assert send("two").status_code == 303


def test_a_turn_is_given_back_whatever_happens_in_it() -> None:
    turns = Turns(at_once=1, wait_s=0)
    with pytest.raises(KeyError), turns.one():
        raise KeyError
    with turns.one(), pytest.raises(Crowd), turns.one():
        raise AssertionError("two at once")
    with turns.one():
        pass
