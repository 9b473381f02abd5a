"""Which of the server's errors pass: judged by their number, never by their text."""

from __future__ import annotations

import MySQLdb
import pytest

from everest.errors import DuplicateKey, TransientDatabaseError
from everest.store.database import typed


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(1213, id="deadlock"),
        pytest.param(1205, id="lock wait"),
        pytest.param(2013, id="lost connection"),
        pytest.param(1040, id="too many connections"),
        pytest.param(4031, id="MySQL 8 ends an idle connection"),
        pytest.param(1290, id="read only by an option"),
        pytest.param(1836, id="read only mode"),
        pytest.param(3032, id="offline"),
        pytest.param(3100, id="the group takes no commit"),
        pytest.param(3101, id="the group rolled it back"),
        pytest.param(1047, id="no part of the cluster"),
        pytest.param(1158, id="the way to us"),
    ],
)
def test_what_passes_is_worth_another_try(number: int) -> None:
    error = typed(MySQLdb.OperationalError(number, "whatever it says"))

    assert isinstance(error, TransientDatabaseError)
    assert (error.number, error.retryable, error.code) == (number, True, 503)


@pytest.mark.parametrize("number", [1054, 1064, 1146, 1264, 1406, 3819, 4025])
def test_what_we_sent_wrong_stays_wrong(number: int) -> None:
    error = typed(MySQLdb.OperationalError(number, "Lock wait timeout exceeded; try restarting transaction"))

    assert not error.retryable


def test_a_key_that_stands_is_its_own_kind() -> None:
    assert isinstance(typed(MySQLdb.IntegrityError(1062, "Duplicate entry")), DuplicateKey)
