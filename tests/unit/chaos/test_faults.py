"""A fault that hurt nobody has not happened."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.connections import BlackHole, Cut, Forgotten, Slow
from tests.chaos.world import NotNow


class Board:
    """A proxy with so many connections."""

    def __init__(self, number: int) -> None:
        self.number, self.is_shut = number, False

    def cut(self, proxy: Any) -> int:
        return self.number

    forget = connections = cut

    def shut(self, proxy: Any, is_shut: bool = True) -> None:
        self.is_shut = is_shut

    def hold(self, proxy: Any, is_held: bool = True) -> None: ...

    def slow(self, proxy: Any, delay: float) -> None: ...


def world(number: int) -> Any:
    return SimpleNamespace(rig=SimpleNamespace(board=Board(number), links={"consumer-mysql": None}))


@pytest.mark.parametrize("fault", [Cut(0.0, "consumer-mysql"), Forgotten("consumer-mysql")], ids=lambda one: one.name)
def test_a_cut_that_met_no_connection_has_not_happened(fault: Cut | Forgotten) -> None:
    with pytest.raises(NotNow):
        fault.begin(world(0))
    assert fault.begin(world(2)) == "2 connections"


@pytest.mark.parametrize(
    "fault", [Cut(3.0, "consumer-mysql"), BlackHole(3.0, "consumer-mysql"), Slow(3.0, "consumer-mysql", 0.5)]
)
def test_what_lasts_waits_for_the_connections_that_come(fault: Cut | BlackHole | Slow) -> None:
    hurt = world(0)
    assert fault.begin(hurt) == "0 connections"
    assert hurt.rig.board.is_shut == isinstance(fault, Cut)
