"""The client without asyncio: an `AsyncClient` on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Literal, TypeVar, overload

from .aio import (
    AsyncClient,
    BatchCall,
    BatchItem,
    F,
    Format,
    OnPermission,
    OnProgress,
    OnQuestion,
    Path_,
    Strategy,
)
from .calls import AsyncCall
from .errors import Disconnected, RequestTimeout
from .lend import lent
from .model import Event, Progress, Session, SharedSession, Tool, ToolResult
from .standing import AsyncEvents, in_thread

T = TypeVar("T")


class Client:
    """A client of the daemon, for any number of threads.

    As `toold.AsyncClient`, which see for the parameters, with methods that wait. Callbacks and lent functions run in
    threads of their own, and may use the client. `Ctrl-C` while a call is waited for cancels it.
    """

    def __init__(
        self,
        *,
        socket: Path_ | None = None,
        toold: Path_ | None = None,
        start: bool = True,
        start_timeout: float = 10.0,
        timeout: float | None = 30.0,
        reconnect: bool = True,
        name: str = "python",
        on_permission: OnPermission | None = None,
        on_question: OnQuestion | None = None,
    ) -> None:
        self._client = AsyncClient(
            socket=socket,
            toold=toold,
            start=start,
            start_timeout=start_timeout,
            timeout=timeout,
            reconnect=reconnect,
            name=name,
            on_permission=on_permission,
            on_question=on_question,
        )
        self._loop = _Loop(self._client.close)
        self.socket = self._client.socket

    @property
    def session(self) -> Session | None:
        """The session that this client is bound to, once it has opened one."""
        return self._client.session

    def connect(self) -> Client:
        """Connects now. Raises `Unreachable` when that cannot be done."""
        self._loop.run(self._client.connect())
        return self

    def close(self) -> None:
        """Ends the connection; the daemon cancels what this client has in flight. The session stays."""
        self._loop.close()

    def __enter__(self) -> Client:
        try:
            return self.connect()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Any:
        """Makes any request of the protocol, and gives its result as JSON."""
        return self._loop.run(self._client.request(method, params, timeout=timeout))

    def open_session(
        self,
        cwd: Path_ | None = None,
        *,
        session_id: str | None = None,
        roots: Sequence[Path_] | None = None,
        model: str | None = None,
        role: Literal["person", "agent"] | None = None,
        env: Mapping[str, str] | None = None,
        tools: Mapping[str, Sequence[str]] | None = None,
    ) -> Session:
        """Opens or resumes a session and binds this client to it."""
        opening = self._client.open_session(
            cwd, session_id=session_id, roots=roots, model=model, role=role, env=env, tools=tools
        )
        return self._loop.run(opening)

    def share_session(self, session_id: str | None = None) -> SharedSession:
        """Makes a code by which an agent may join a session, once; this client's own session when none is named."""
        return self._loop.run(self._client.share_session(session_id))

    def close_session(self) -> None:
        """Ends the session that this client is bound to, and cancels its calls."""
        self._loop.run(self._client.close_session())

    @overload
    def tools(
        self, query: str | None = None, *, source: str | None = None, names: Sequence[str] | None = None
    ) -> list[Tool]: ...
    @overload
    def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        format: Format,
    ) -> list[dict[str, Any]]: ...
    def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        format: Format | None = None,
    ) -> list[Tool] | list[dict[str, Any]]:
        """Lists the tools, sorted by name; with a `format`, as that provider's API takes them."""
        if format is None:
            return self._loop.run(self._client.tools(query, source=source, names=names))
        return self._loop.run(self._client.tools(query, source=source, names=names, format=format))

    def schema(self, name: str) -> Tool:
        """Shows one tool. Raises `UnknownTool`."""
        return self._loop.run(self._client.schema(name))

    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        session_id: str | None = None,
        cwd: Path_ | None = None,
        timeout: float | None = None,
        progress: bool = True,
        no_cache: bool = False,
        detach: bool = False,
    ) -> Call:
        """Calls a tool and gives a handle at once."""

        async def start() -> AsyncCall:
            return self._client.call(
                name,
                arguments,
                call_id=call_id,
                session_id=session_id,
                cwd=cwd,
                timeout=timeout,
                progress=progress,
                no_cache=no_cache,
                detach=detach,
            )

        return Call(self._loop, self._loop.run(start()))

    def execute(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        session_id: str | None = None,
        cwd: Path_ | None = None,
        timeout: float | None = None,
        no_cache: bool = False,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Calls a tool and waits for its result; `on_progress` is called in this thread."""
        call = self.call(
            name,
            arguments,
            call_id=call_id,
            session_id=session_id,
            cwd=cwd,
            timeout=timeout,
            progress=on_progress is not None,
            no_cache=no_cache,
        )
        with call:
            if on_progress is not None:
                for progress in call:
                    on_progress(progress)
            return call.result()

    @overload
    def execute_batch(
        self,
        calls: Sequence[BatchCall],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[BatchItem]: ...
    @overload
    def execute_batch(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
        format: Format,
    ) -> list[dict[str, Any]]: ...
    def execute_batch(
        self,
        calls: Sequence[Any],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
        format: Format | None = None,
    ) -> list[BatchItem] | list[dict[str, Any]]:
        """Calls several tools; results come in the order of the calls, errors of single calls among them.

        `on_progress` is called in another thread, one at a time.
        """
        batch = self._client.execute_batch
        told = None if on_progress is None else functools.partial(in_thread, on_progress)
        if format is None:
            return self._loop.run(batch(calls, strategy=strategy, session_id=session_id, on_progress=told))
        return self._loop.run(
            batch(calls, strategy=strategy, session_id=session_id, on_progress=told, format=format)
        )

    def cancel(self, call_id: str, *, session_id: str | None = None) -> bool:
        """Cancels a call of the session, whoever made it. False when it is not in flight."""
        return self._loop.run(self._client.cancel(call_id, session_id=session_id))

    def interrupt(self, *, session_id: str | None = None) -> int:
        """Lets the session's running calls end and skips those that wait. Gives how many were skipped."""
        return self._loop.run(self._client.interrupt(session_id=session_id))

    def events(
        self,
        kinds: Sequence[str] | str | None = None,
        *,
        session_id: str | None = None,
        since: int | None = None,
        epoch: str | None = None,
    ) -> Events:
        """Events from now on; `since` replays what the daemon still holds."""
        events = self._client.events(kinds, session_id=session_id, since=since, epoch=epoch)
        return Events(self._loop, self._loop.run(events.open()))

    @overload
    def provide(self, function: F) -> F: ...
    @overload
    def provide(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        label: str | None = None,
        parallelizable: bool = False,
        timeout: float | None = None,
        annotations: Mapping[str, bool] | None = None,
    ) -> Callable[[F], F]: ...
    def provide(self, function: F | None = None, **options: Any) -> F | Callable[[F], F]:
        """Lends a function as a tool while this client is connected; connects if it is not. A decorator.

        The description is the docstring, the schema comes from the type hints. A parameter annotated with
        `toold.Invocation` gets the call. What the function raises, the caller reads.
        """

        def register(function: F) -> F:
            self._loop.run(self._client.lend_tool(lent(function, **options)))
            return function

        return register if function is None else register(function)

    def withdraw(self, name: str) -> None:
        """Takes a lent tool back; its running calls end as failed."""
        self._loop.run(self._client.withdraw(name))


class Call:
    """A call in flight, from `Client.call`. Iterate over it for its progress; see `AsyncCall`."""

    def __init__(self, loop: _Loop, call: AsyncCall) -> None:
        self._loop = loop
        self._call = call

    @property
    def id(self) -> str:
        return self._call.id

    def result(self, timeout: float | None = None) -> ToolResult:
        """Waits for the answer, for so many seconds at most. The call goes on after a `RequestTimeout`."""
        return self._loop.run(self._call.result(timeout))

    def cancel(self) -> bool:
        """Asks the daemon to cancel the call, whose result is then `CallCancelled`. False when it had ended already."""
        return self._loop.run(self._call.cancel())

    def done(self) -> bool:
        """Whether the answer is there."""
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
    """Events, from `Client.events`; ends with its block, with `close` or with the client. See `AsyncEvents`."""

    def __init__(self, loop: _Loop, events: AsyncEvents) -> None:
        self._loop = loop
        self._events = events

    def next(self, timeout: float | None = None) -> Event:
        """The next event. Raises `RequestTimeout` after so many seconds, `StopIteration` at the end."""

        async def take() -> Event | None:
            try:
                return await asyncio.wait_for(_next(self._events), timeout)
            except asyncio.TimeoutError:
                raise RequestTimeout(f"no event came in {timeout} s") from None

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
        """Unsubscribes. Events that wait can still be taken."""
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


class _Loop:
    """An event loop in a thread, from its first use until it is closed, which happens when the process ends at last."""

    # Those that run: a process that ends without closing them would leave their tasks in the middle.
    running: ClassVar[set[_Loop]] = set()

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
        """Runs it in the loop and waits; an exception here, such as `KeyboardInterrupt`, cancels it."""
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
        """Runs what comes last, cancels the rest, and ends the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            closed, self._closed = self._closed, True
        _Loop.running.discard(self)
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
                _Loop.running.add(self)
            if threading.current_thread() is self._thread:
                raise RuntimeError("a coroutine of this client must not wait for it: use AsyncClient there")
            return self._loop


@atexit.register
def _close_all() -> None:
    for loop in list(_Loop.running):
        loop.close()


async def _next(items: AsyncCall | AsyncEvents) -> Any:
    """The next item; `None` at the end, since a future does not take `StopAsyncIteration`."""
    try:
        return await items.__anext__()
    except StopAsyncIteration:
        return None
