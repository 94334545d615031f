"""The core of the client without asyncio: `ClientCore` on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, TypeVar

from .aliases import OnProgress
from .calls import AsyncCall
from .core import ClientCore
from .errors import Disconnected, RequestTimeout
from .events import AsyncEvents
from .model import Event, Progress, Session, ToolResult
from .provided_tool import ProvidedTool
from .threads import in_thread

T = TypeVar("T")


class LoopCore:
    """The methods of `ClientCore`, which wait. Works from any thread."""

    def __init__(self, **options: Any) -> None:
        self._core = ClientCore(**options)
        self._loop = Loop(self._core.close)
        self.socket = self._core.socket

    @property
    def session(self) -> Session | None:
        return self._core.session

    def connect(self) -> None:
        self._loop.run(self._core.connect())

    def enter(self) -> None:
        try:
            self.connect()
        except BaseException:
            # The block is not entered, so nothing else would end the thread.
            self.close()
            raise

    def close(self) -> None:
        self._loop.close()

    def request(self, method: str, params: Mapping[str, Any], timeout: float | None) -> Any:
        return self._loop.run(self._core.request(method, params, timeout))

    def open_session(self, params: dict[str, Any]) -> Session:
        return self._loop.run(self._core.open_session(params))

    def close_session(self) -> None:
        self._loop.run(self._core.close_session())

    def call(self, params: dict[str, Any]) -> Call:
        async def start() -> AsyncCall:
            return self._core.call(params)

        return Call(self._loop, self._loop.run(start()))

    def report(self, on_progress: OnProgress, progress: Progress) -> None:
        on_progress(progress)

    def batch(
        self, params: dict[str, Any], call_ids: Sequence[str] | None, on_progress: OnProgress | None
    ) -> list[dict[str, Any]]:
        in_its_thread = None if on_progress is None else functools.partial(in_thread, on_progress)
        return self._loop.run(self._core.batch(params, call_ids, in_its_thread))

    def events(self, params: dict[str, Any]) -> Events:
        async def subscribe() -> AsyncEvents:
            return await self._core.events(params).open()

        return Events(self._loop, self._loop.run(subscribe()))

    def provide(self, tool: ProvidedTool) -> None:
        self._loop.run(self._core.provide(tool))

    def withdraw(self, name: str) -> None:
        self._loop.run(self._core.withdraw(name))


class Call:
    """A call in flight, from `Client.call`. Iterate over it for its progress; see `AsyncCall`."""

    def __init__(self, loop: Loop, call: AsyncCall) -> None:
        self._loop = loop
        self._call = call

    @property
    def id(self) -> str:
        return self._call.id

    def result(self, timeout: float | None = None) -> ToolResult:
        """Waits for the answer, at most `timeout` seconds. The call goes on after a `RequestTimeout`."""
        return self._loop.run(self._call.result(timeout))

    def cancel(self) -> bool:
        """Asks the daemon to cancel the call; its result is then `CallCancelled`. False when it has ended already."""
        return self._loop.run(self._call.cancel())

    def done(self) -> bool:
        """Whether the call has its answer."""
        return self._call.done()

    def __iter__(self) -> Iterator[Progress]:
        while (progress := self._loop.run(_next(self._call))) is not None:
            yield progress

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A client that is closed has no calls.
        with contextlib.suppress(Disconnected):
            self._loop.run(self._call.__aexit__(kind, error, trace))


class Events:
    """Events, from `Client.events`. It ends with its block, with `close` or with the client. See `AsyncEvents`."""

    def __init__(self, loop: Loop, events: AsyncEvents) -> None:
        self._loop = loop
        self._events = events

    def next(self, timeout: float | None = None) -> Event:
        """The next event. Raises `RequestTimeout` after `timeout` seconds, `StopIteration` at the end."""

        async def take() -> Event | None:
            try:
                return await asyncio.wait_for(_next(self._events), timeout)
            except asyncio.TimeoutError:
                raise RequestTimeout(f"no event within {timeout} s") from None

        try:
            event = self._loop.run(take())
        except Disconnected:
            if not self._loop.closed:
                raise
            event = None
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        """Unsubscribes. Events that wait can still be read."""
        # A client that is closed has no subscriptions.
        with contextlib.suppress(Disconnected):
            self._loop.run(self._events.close())

    def __iter__(self) -> Events:
        return self

    def __next__(self) -> Event:
        return self.next()

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Loop:
    """An event loop in a thread, from its first use until it is closed, at the latest when the process ends."""

    # Closed when the process ends, so that none of their tasks stops halfway.
    running: ClassVar[set[Loop]] = set()

    def __init__(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._last = last
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the work in the loop and waits; an exception here, such as `KeyboardInterrupt`, cancels it."""
        try:
            loop = self._started()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Disconnected("the client is closed") from None
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Runs the last work, cancels the rest, and ends the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            closed, self._closed = self._closed, True
        Loop.running.discard(self)
        if closed or loop is None or thread is None:
            return

        async def end() -> None:
            await self._last()
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        try:
            asyncio.run_coroutine_threadsafe(end(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise Disconnected("the client is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # A client that nobody closed must not keep the process from ending.
                self._thread = threading.Thread(target=self._loop.run_forever, name="toold", daemon=True)
                self._thread.start()
                Loop.running.add(self)
            if threading.current_thread() is self._thread:
                raise RuntimeError("a coroutine of this client must not wait for it: use AsyncClient there")
            return self._loop


@atexit.register
def _close_all() -> None:
    for loop in list(Loop.running):
        loop.close()


async def _next(items: AsyncCall | AsyncEvents) -> Any:
    """The next item; `None` at the end, since a future cannot hold a `StopAsyncIteration`."""
    try:
        return await items.__anext__()
    except StopAsyncIteration:
        return None
