"""What a schedule is made of: small values that know how to begin and, if they last, how to end."""

from __future__ import annotations

from dataclasses import dataclass, fields
from random import Random
from typing import ClassVar, Self

from tests.chaos.world import World


@dataclass(frozen=True)
class Happening:
    """name: how it is called in logs and arguments. weight: how often it is drawn, against the others.

    Subclasses draw their values from the seed; what they meet when they begin is the world's business.
    """

    name: ClassVar[str]
    weight: ClassVar[int] = 1

    @classmethod
    def draw(cls, rng: Random) -> Self:
        raise NotImplementedError

    @property
    def seconds(self) -> float:
        """How long it lasts; 0: nothing to end."""
        return 0.0

    @property
    def target(self) -> str:
        """Two that overlap must not have the same."""
        return self.name

    @property
    def needs(self) -> tuple[str, ...]:
        """What of the rig it needs: links that a proxy is in front of, clocks that can be set."""
        return ()

    def begin(self, world: World) -> str | None:
        """What was done it to, for the log. Raises NotNow when there is nothing."""
        raise NotImplementedError

    def end(self, world: World) -> None:
        """Undoes what lasts; called once, also when `begin` failed."""

    def __str__(self) -> str:
        values = [f"{one.name}={getattr(self, one.name)}" for one in fields(self) if one.name != "draft"]
        return " ".join([self.name, *values])


@dataclass(frozen=True)
class Lasting(Happening):
    lasts: float

    @property
    def seconds(self) -> float:
        return self.lasts


def span(rng: Random, least: float, most: float) -> float:
    """Seconds, to a tenth."""
    return round(rng.uniform(least, most), 1)
