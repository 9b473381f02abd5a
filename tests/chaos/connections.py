"""What becomes of the ways between programs and servers in a chaos run, by the proxies of the rig."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from tests.chaos.happening import Happening, Lasting, span
from tests.chaos.rig import CELERY_LINKS, LINK_NAMES, LINKS
from tests.chaos.world import NotNow, World

ON_POSTGRESQL = {link.name for link in (*LINKS, *CELERY_LINKS) if link.server == "postgresql"}
FORGETFUL = tuple(name for name in LINK_NAMES if name not in ON_POSTGRESQL)
"""psycopg2 leaves it to the kernel to notice, and the kernel sees a proxy that is well."""


@dataclass(frozen=True)
class OnLink(Lasting):
    link: str

    @property
    def target(self) -> str:
        return f"link {self.link}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.link,)

    def met(self, world: World) -> str:
        """Whom it hurt at once; while it lasts, new ones come."""
        return f"{world.rig.board.connections(world.rig.links[self.link])} connections"


@dataclass(frozen=True)
class Cut(OnLink):
    """The connections of a pair are reset; if it lasts, new ones are turned away."""

    name: ClassVar[str] = "cut"
    weight: ClassVar[int] = 7

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.choice((0.0, 0.0, span(rng, 1, 20))), rng.choice(LINK_NAMES))

    def begin(self, world: World) -> str:
        proxy = world.rig.links[self.link]
        number = world.rig.board.cut(proxy)
        if self.lasts:
            world.rig.board.shut(proxy)
        elif not number:
            raise NotNow("no connection is open")
        return f"{number} connections"

    def end(self, world: World) -> None:
        world.rig.board.shut(world.rig.links[self.link], False)


@dataclass(frozen=True)
class BlackHole(OnLink):
    """Connections stay open and nothing comes through; after it, everything does, late."""

    name: ClassVar[str] = "black-hole"
    weight: ClassVar[int] = 4

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 1, 40), rng.choice(LINK_NAMES))

    def begin(self, world: World) -> str:
        world.rig.board.hold(world.rig.links[self.link])
        return self.met(world)

    def end(self, world: World) -> None:
        world.rig.board.hold(world.rig.links[self.link], False)


@dataclass(frozen=True)
class Forgotten(Happening):
    """The way between two programs forgets what is open, as a firewall does: nobody is told, new connections work."""

    name: ClassVar[str] = "forget"
    weight: ClassVar[int] = 2
    link: str

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.choice(FORGETFUL))

    @property
    def target(self) -> str:
        return f"link {self.link}"

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.link,)

    def begin(self, world: World) -> str:
        number = world.rig.board.forget(world.rig.links[self.link])
        if not number:
            raise NotNow("no connection is open")
        return f"{number} connections"


@dataclass(frozen=True)
class Slow(OnLink):
    """Every piece of data waits: a slow database, broker or API."""

    name: ClassVar[str] = "slow"
    weight: ClassVar[int] = 3
    delay: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(span(rng, 3, 20), rng.choice(LINK_NAMES), span(rng, 0.1, 1.5))

    def begin(self, world: World) -> str:
        world.rig.board.slow(world.rig.links[self.link], self.delay)
        return self.met(world)

    def end(self, world: World) -> None:
        world.rig.board.slow(world.rig.links[self.link], 0.0)
