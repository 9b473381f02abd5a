"""What arrives at the broker beside the relay's messages: old, doubled and wrong ones, and connections that end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

import httpx

from tests.chaos.happening import Happening
from tests.chaos.world import NotNow, World


@dataclass(frozen=True)
class PublishAgain(Happening):
    """A message that came before, whatever became of its document; its own form, or the one without a run."""

    name: ClassVar[str] = "publish-again"
    weight: ClassVar[int] = 4
    place: float
    is_first_form: bool

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(round(rng.random(), 3), rng.random() < 0.5)

    def begin(self, world: World) -> str:
        sent = world.some(self.place)
        sql = "SELECT body FROM outbox WHERE shadow_id = %s AND exchange = 'everest.jobs.x' ORDER BY id LIMIT 1"
        stored = world.insist(lambda: world.rows(sql, sent.shadow_id))
        message = {"transaksi_id": sent.transaksi_id, "shadow_id": sent.shadow_id, "nota": sent.paper.nota}
        is_stored = bool(stored) and not self.is_first_form
        body = str(stored[0]["body"]).encode() if is_stored else json.dumps(sent.message or message).encode()
        world.insist(lambda: world.live.publish(body))
        return sent.paper.nota


@dataclass(frozen=True)
class PublishWrong(Happening):
    """A message that no document stands behind: each is owed a dead letter, and harms nobody."""

    name: ClassVar[str] = "publish-wrong"
    weight: ClassVar[int] = 3
    kind: str
    place: float

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls(rng.choice(("text", "bytes", "list", "no row", "other nota")), round(rng.random(), 3))

    def begin(self, world: World) -> None:
        with world.lock:
            mark = f"{world.stamp}-{len(world.broken)}"
        match self.kind:
            case "text":
                body = f"not json {mark}".encode()
            case "bytes":
                body = bytes(range(128, 256)) + mark.encode()
            case "list":
                body = json.dumps([mark]).encode()
            case "no row":
                body = json.dumps({"transaksi_id": 1, "shadow_id": 10**15, "nota": mark}).encode()
            case _:
                sent = world.some(self.place)
                body = json.dumps({"transaksi_id": 10**15, "shadow_id": sent.shadow_id, "nota": mark}).encode()
        world.insist(lambda: world.live.publish(body))
        with world.lock:
            world.broken.append(body)


@dataclass(frozen=True)
class Disconnect(Happening):
    """The broker closes the consumers' connections: everything they hold is delivered again."""

    name: ClassVar[str] = "disconnect"
    weight: ClassVar[int] = 2

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls()

    def begin(self, world: World) -> str:
        env = world.live.env
        login = (env["EVEREST_RABBIT_MANAGEMENT_USER"], env["EVEREST_RABBIT_MANAGEMENT_PASSWORD"])
        url = env["EVEREST_RABBIT_MANAGEMENT_URL"]
        with httpx.Client(base_url=url, auth=login, timeout=10, trust_env=False) as client:
            found = client.get("/api/connections").raise_for_status().json()
            names = [one["name"] for one in found if one.get("user") == "everest_consumer"]
            for name in names:
                client.request("DELETE", f"/api/connections/{httpx.URL(path='/' + name).raw_path.decode()[1:]}")
        return f"{len(names)} connections"


@dataclass(frozen=True)
class MoveBack(Happening):
    """Somebody moves a dead letter back to the queue with the broker's own tools; one of this run."""

    name: ClassVar[str] = "move-back"
    weight: ClassVar[int] = 2

    @classmethod
    def draw(cls, rng: Random) -> Self:
        return cls()

    def begin(self, world: World) -> str:
        with world.live.channel() as channel:
            while True:
                method, properties, body = channel.basic_get("everest.jobs.failed.dlq")
                if method is None:  # the others go back when the channel closes
                    raise NotNow("no dead letter")
                if world.stamp.encode() in body:
                    break
            channel.basic_publish("everest.jobs.x", "job.process", body, properties, mandatory=True)
            channel.basic_ack(method.delivery_tag)
        return str(body[:80])
