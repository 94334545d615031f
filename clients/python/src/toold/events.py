"""Subscriptions to the daemon's events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any

from .connection import Connection
from .errors import TooldError
from .model import Event

# How many events may wait to be read. More are dropped, and an event of kind `lagged` counts them.
MAX_EVENTS = 65_536


class AsyncEvents:
    """Events, from `AsyncClient.events`. It ends with its block, with `close` or with the client.

    After a reconnect it continues where it stopped. An event of kind `lagged` stands for lost events.
    """

    def __init__(
        self,
        params: dict[str, Any],
        open_: Callable[[AsyncEvents], Awaitable[None]],
        forget: Callable[[AsyncEvents], None],
    ) -> None:
        self._params = params
        self._open = open_
        self._forget = forget
        self._opened = False
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._missed = 0
        self._ended = False
        self._failure: TooldError | None = None
        self._connection: Connection | None = None
        self._subscription: str | None = None

    async def open(self) -> AsyncEvents:
        """Subscribes to the events from now on."""
        if not self._opened:
            self._opened = True
            await self._open(self)
        return self

    async def close(self) -> None:
        """Unsubscribes. Events that wait can still be read."""
        self._forget(self)
        connection, subscription = self._connection, self._subscription
        self.end()
        if connection is not None and connection.lost is None and subscription is not None:
            connection.forget(subscription)
            with contextlib.suppress(TooldError):
                await connection.request("events.unsubscribe", {"subscription": subscription})

    def end(self, failure: TooldError | None = None) -> None:
        """Lets the iteration end, or fail, after the events that wait."""
        if not self._ended:
            self._ended = True
            self._failure = failure
            self._queue.put_nowait(None)

    async def restore(self, connection: Connection) -> None:
        self._connection = connection
        self._subscription = await connection.request("events.subscribe", self._params, self._item)

    def _item(self, item: dict[str, Any]) -> None:
        event = Event.of(item)
        if event.epoch:
            self._params["since"], self._params["epoch"] = event.seq, event.epoch
        if self._queue.qsize() >= MAX_EVENTS:
            self._missed += 1
            return
        if self._missed:
            self._queue.put_nowait(Event("lagged", event.seq, event.epoch, event.at, {"missed": self._missed}))
            self._missed = 0
        self._queue.put_nowait(event)

    async def __aenter__(self) -> AsyncEvents:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        await self.open()
        event = await self._queue.get()
        if event is None:
            # For the next read.
            self._queue.put_nowait(None)
            if self._failure is not None:
                raise self._failure
            raise StopAsyncIteration
        return event
