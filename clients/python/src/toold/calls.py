"""Tool calls in flight, and the routing of their progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any

from .connection import Connection
from .errors import RequestTimeout
from .model import Progress, ToolResult

# How much progress of one call may wait to be read, in bytes of its JSON. More is dropped.
MAX_WAITING = 16 * 1024 * 1024

# Does some work on a connection, and again on the next one if the daemon is replaced before it reads the request.
Asked = Callable[[Callable[[Connection], Awaitable[Any]]], Awaitable[Any]]

Sink = Callable[[dict[str, Any], int], None]


class Routes:
    """Routes the progress on a connection to the calls that it belongs to."""

    def __init__(self) -> None:
        self._by_call: dict[str, Sink] = {}
        # Batches in a provider's form. Each provider puts the call ids elsewhere, so these batches get all progress
        # that belongs to no other call.
        self._others: list[Sink] = []

    def add(self, call_id: str, sink: Sink) -> None:
        if call_id in self._by_call:
            raise ValueError(f"a call {call_id} is in flight")
        self._by_call[call_id] = sink

    def remove(self, call_id: str) -> None:
        self._by_call.pop(call_id, None)

    def add_other(self, sink: Sink) -> None:
        self._others.append(sink)

    def remove_other(self, sink: Sink) -> None:
        self._others.remove(sink)

    def route(self, params: dict[str, Any], size: int) -> None:
        sink = self._by_call.get(params.get("call_id", ""))
        for each in [sink] if sink is not None else list(self._others):
            each(params, size)


class ProgressQueue:
    """Progress that waits to be read. Bounded: drops what exceeds the limit, and counts it in the next item."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[tuple[Progress, int] | None] = asyncio.Queue()
        self._bytes = 0
        self._dropped = 0
        self._ended = False

    def put(self, params: dict[str, Any], size: int) -> None:
        if self._bytes + size > MAX_WAITING:
            self._dropped += 1 + int(params.get("dropped") or 0)
            return
        self._bytes += size
        self._queue.put_nowait((Progress.of(params, self._dropped), size))
        self._dropped = 0

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def take(self) -> Progress | None:
        """The next item; `None` at the end."""
        if self._ended:
            return None
        taken = await self._queue.get()
        if taken is None:
            self._ended = True
            return None
        self._bytes -= taken[1]
        return taken[0]


class AsyncCall:
    """A call in flight, from `AsyncClient.call`.

    Iterate over it for its progress, which ends with the answer. The call runs whether or not you read its progress.
    As a context manager, it cancels the call if it is still running when the block ends.
    """

    def __init__(
        self,
        asked: Asked,
        routes: Routes,
        params: dict[str, Any],
    ) -> None:
        self.id: str = params["call_id"]
        self._session_id: str | None = params.get("session_id")
        self._asked = asked
        self._routes = routes
        self._queue = ProgressQueue()
        # Set when the request is sent, since a cancel must not overtake it.
        self._sent = asyncio.Event()
        routes.add(self.id, self._queue.put)
        self._task = asyncio.create_task(self._run(params), name=f"toold-call-{self.id}")
        self._task.add_done_callback(self._ended)

    async def result(self, timeout: float | None = None) -> ToolResult:
        """Waits for the answer, at most `timeout` seconds. The call goes on after a `RequestTimeout`."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._task), timeout)
        except asyncio.TimeoutError:
            raise RequestTimeout(f"no answer to call {self.id} after {timeout} s") from None

    async def cancel(self) -> bool:
        """Asks the daemon to cancel the call; its result is then `CallCancelled`. False when it has ended already."""
        await self._sent.wait()
        if self._task.done():
            return False
        params = {"call_id": self.id}
        if self._session_id is not None:
            params["session_id"] = self._session_id
        answer = await self._asked(lambda connection: connection.request("tools.cancel", params))
        return bool(answer["cancelled"])

    def done(self) -> bool:
        """Whether the call has its answer."""
        return self._task.done()

    def abandon(self) -> None:
        """Cancels the call without waiting for its answer."""
        self._task.cancel()

    async def __aenter__(self) -> AsyncCall:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._task.done():
            self.abandon()
            await asyncio.gather(self._task, return_exceptions=True)

    def __aiter__(self) -> AsyncIterator[Progress]:
        return self

    async def __anext__(self) -> Progress:
        progress = await self._queue.take()
        if progress is None:
            raise StopAsyncIteration
        return progress

    async def _run(self, params: dict[str, Any]) -> ToolResult:
        def send(connection: Connection) -> Awaitable[Any]:
            self._sent.set()
            return connection.request("tools.execute", params)

        return ToolResult.of(await self._asked(send))

    def _ended(self, task: asyncio.Task[ToolResult]) -> None:
        self._sent.set()
        self._routes.remove(self.id)
        self._queue.end()
        if not task.cancelled():
            # Read here, since asyncio warns about an exception that nobody reads.
            task.exception()
