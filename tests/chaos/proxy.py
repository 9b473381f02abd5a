"""A TCP proxy between two programs, that a test can cut, shut, slow down or turn into a black hole while it runs.

About as long as what it does: the known ones are servers of their own in other languages, and nothing on PyPI lets a
test hold back bytes of a connection that stays open. All proxies of a `Switchboard` share one thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65_536
STOP_SECONDS = 10
KEEPALIVE_SECONDS = 15
"""When a server finds out that a forgotten client is gone."""


class _Pair:
    """A connection through the proxy. back: its way on to the server."""

    def __init__(self, back: asyncio.StreamWriter) -> None:
        self.back = back
        self.is_forgotten = False


class Proxy:
    """One listening port in front of another. Made and moved by its switchboard; its state belongs to that thread.

    port: where it listens. is_shut: new connections end at once. delay: seconds that each piece of data waits.
    """

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = 0
        self.is_shut = False
        self.delay = 0.0
        self.accepted = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._pairs: set[_Pair] = set()
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def hold(self, is_held: bool) -> None:
        """A black hole: connections stay, what is sent into them arrives when it ends."""
        if is_held:
            self._flows.clear()
        else:
            self._flows.set()

    @property
    def connections(self) -> int:
        """How many are open now, but for those that it has forgotten."""
        return sum(not pair.is_forgotten for pair in self._pairs)

    def cut(self) -> int:
        """Every connection is reset, what was under way is lost. How many."""
        number = self.connections
        for writer in self._writers:
            writer.transport.abort()
        return number

    def forget(self) -> int:
        """What is open now stays silent for ever: the client is never told, the server after a while. How many."""
        forgotten = [pair for pair in self._pairs if not pair.is_forgotten]
        for pair in forgotten:
            pair.is_forgotten = True
            asyncio.get_running_loop().call_later(KEEPALIVE_SECONDS, pair.back.transport.abort)
        return len(forgotten)

    async def close(self) -> None:
        self.is_shut = True
        self.hold(False)
        self.cut()
        if self._server is not None:
            self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.accepted += 1
        try:
            await self._flows.wait()
            if self.is_shut:
                return
            try:
                there, back = await asyncio.open_connection(LOOPBACK, self.upstream)
            except OSError:
                return
            pair = _Pair(back)
            self._pairs.add(pair)
            self._writers.add(back)
            try:
                with suppress(OSError):  # a reset of one side is one of both
                    await asyncio.gather(self._pump(pair, reader, back), self._pump(pair, there, writer))
            finally:
                self._pairs.discard(pair)
                self._writers.discard(back)
                back.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pump(self, pair: _Pair, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._flows.wait()
                if not pair.is_forgotten:
                    target.write(data)
                    await target.drain()
        except OSError:
            if not pair.is_forgotten:
                raise
        if not pair.is_forgotten:
            target.write_eof()  # the other direction may have something to say yet


class Switchboard:
    """The thread in which all proxies live; every method may be called from any other."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._proxies: list[Proxy] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def open(self, upstream: int) -> Proxy:
        proxy: Proxy = self._ask(lambda: self._listening(upstream))
        self._proxies.append(proxy)
        return proxy

    def shut(self, proxy: Proxy, is_shut: bool = True) -> None:
        def act() -> None:
            proxy.is_shut = is_shut
            if is_shut:
                proxy.cut()

        self._do(act)

    def cut(self, proxy: Proxy) -> int:
        return int(self._do(proxy.cut))

    def connections(self, proxy: Proxy) -> int:
        return int(self._do(lambda: proxy.connections))

    def hold(self, proxy: Proxy, is_held: bool = True) -> None:
        self._do(lambda: proxy.hold(is_held))

    def forget(self, proxy: Proxy) -> int:
        return int(self._do(proxy.forget))

    def slow(self, proxy: Proxy, delay: float) -> None:
        self._do(lambda: setattr(proxy, "delay", delay))

    def heal(self) -> None:
        """All of them let everything through."""
        for proxy in self._proxies:
            self.shut(proxy, False)
            self.hold(proxy, False)
            self.slow(proxy, 0.0)

    def close(self) -> None:
        for proxy in self._proxies:
            self._ask(proxy.close)
        self._ask(_others_ended)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        self._loop.close()

    async def _listening(self, upstream: int) -> Proxy:
        proxy = Proxy(upstream)
        await proxy.listen()
        return proxy

    def _do(self, act: Callable[[], Any]) -> Any:
        async def acting() -> Any:
            return act()

        return self._ask(acting)

    def _ask(self, make: Callable[[], Awaitable[Any]]) -> Any:
        async def answered() -> Any:
            return await make()

        return asyncio.run_coroutine_threadsafe(answered(), self._loop).result(STOP_SECONDS)


async def _others_ended() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
