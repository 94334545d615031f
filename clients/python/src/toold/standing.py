"""What stands on a connection and is put up again on the next one: events, prompts, lent functions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from .connection import Connection
from .errors import Disconnected, RpcError, TooldError, UnknownId
from .lend import Invocation, Lent, to_wire
from .model import Event

logger = logging.getLogger("toold")

# Events that wait to be taken; what comes then is dropped, and a `lagged` says how many.
MAX_EVENTS = 65_536
# Progress of one lent function that waits to be sent; what comes then is dropped.
MAX_TOLD = 1024


class Standing(Protocol):
    async def stand(self, connection: Connection) -> None:
        """Puts itself up on a new connection."""


async def in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Runs a function in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result: Any = None
        failed: BaseException | None = None
        try:
            result = function(*arguments, **named)
        except StopIteration as error:
            # A future does not take it.
            failed = RuntimeError(f"{function!r} raised StopIteration: {error}")
        except BaseException as error:
            failed = error
        # The loop may be gone by now; then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="toold-callback", daemon=True).start()
    result = await future
    return await result if inspect.isawaitable(result) else result


class AsyncEvents:
    """Events, from `AsyncClient.events`; ends with its block, with `close` or with the client.

    It goes on after a reconnect where it stopped. An event of kind `lagged` stands for those that are lost.
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
        """Subscribes; events from then on will be seen."""
        if not self._opened:
            self._opened = True
            await self._open(self)
        return self

    async def close(self) -> None:
        """Unsubscribes. Events that wait can still be taken."""
        self._forget(self)
        connection, subscription = self._connection, self._subscription
        self.end()
        if connection is not None and connection.lost is None and subscription is not None:
            connection.forget(subscription)
            with contextlib.suppress(TooldError):
                await connection.request("events.unsubscribe", {"subscription": subscription})

    def end(self, failure: TooldError | None = None) -> None:
        """Lets the iteration end, or fail, after what waits."""
        if not self._ended:
            self._ended = True
            self._failure = failure
            self._queue.put_nowait(None)

    async def stand(self, connection: Connection) -> None:
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
            # For whoever asks again.
            self._queue.put_nowait(None)
            if self._failure is not None:
                raise self._failure
            raise StopAsyncIteration
        return event


class Prompt(Protocol):
    @property
    def request_id(self) -> str: ...
    @property
    def over(self) -> threading.Event: ...


P = TypeVar("P", bound=Prompt)


class Responder(Generic[P]):
    """Answers asks or questions by a callback.

    Plain functions are called one at a time, each in a thread; coroutine functions at once, each in a task
    that is cancelled when its answer is no longer needed.
    """

    def __init__(
        self,
        subject: str,
        callback: Callable[[P], Any],
        prompt_of: Callable[[dict[str, Any]], P],
        params_of: Callable[[Any], dict[str, Any]],
        on_failure: Callable[[P], Any],
    ) -> None:
        self._subject = subject
        self._callback = callback
        self._prompt_of = prompt_of
        self._params_of = params_of
        self._on_failure = on_failure
        self._asynchronous = inspect.iscoroutinefunction(callback)
        self._turn = asyncio.Lock()
        self._open: dict[str, tuple[P, asyncio.Task[None]]] = {}

    async def stand(self, connection: Connection) -> None:
        for request_id in list(self._open):
            self._over(request_id)
        await connection.request(f"{self._subject}.subscribe", {}, functools.partial(self._item, connection))

    def end(self) -> None:
        for request_id in list(self._open):
            self._over(request_id)

    def _item(self, connection: Connection, item: dict[str, Any]) -> None:
        if item.get("type") != "asked":
            self._over(item.get("request_id", ""))
            return
        prompt = self._prompt_of(item["request"])
        if prompt.request_id in self._open:
            return
        task = asyncio.create_task(self._answer(connection, prompt), name=f"toold-prompt-{prompt.request_id}")
        self._open[prompt.request_id] = (prompt, task)
        task.add_done_callback(lambda _: self._open.pop(prompt.request_id, None))

    def _over(self, request_id: str) -> None:
        prompt, task = self._open.pop(request_id, (None, None))
        if prompt is not None:
            prompt.over.set()
        # A thread cannot be stopped, and the next prompt waits for its turn until it is done.
        if task is not None and self._asynchronous:
            task.cancel()

    async def _answer(self, connection: Connection, prompt: P) -> None:
        try:
            if self._asynchronous:
                reply = await self._callback(prompt)
            else:
                async with self._turn:
                    if prompt.over.is_set():
                        return
                    reply = await in_thread(self._callback, prompt)
            params = None if reply is None else self._params_of(reply)
        except Exception:
            # A prompt that fails must not leave a call waiting, and must never allow.
            logger.exception("the callback for %s failed", self._subject)
            params = self._params_of(self._on_failure(prompt))
        if params is None or prompt.over.is_set():
            return
        try:
            await connection.request(f"{self._subject}.reply", {"request_id": prompt.request_id, **params})
        except (UnknownId, Disconnected):
            pass  # Somebody else was first, or the call is over.
        except RpcError as error:
            logger.error("the daemon refused an answer for %s: %s", self._subject, error)


class Loans:
    """Functions that are lent as tools."""

    def __init__(self) -> None:
        self._lent: dict[str, Lent] = {}
        self._subscriptions: dict[str, str] = {}
        self._open: dict[str, tuple[Invocation, asyncio.Task[None], bool]] = {}

    def __bool__(self) -> bool:
        return bool(self._lent)

    def add(self, lent: Lent) -> None:
        if lent.name in self._lent:
            raise ValueError(f"this client lends a tool {lent.name} already")
        self._lent[lent.name] = lent

    def remove(self, name: str) -> None:
        self._lent.pop(name, None)

    async def put_up(self, connection: Connection, lent: Lent) -> None:
        params = {"tools": [lent.tool]}
        on_item = functools.partial(self._item, connection, lent)
        self._subscriptions[lent.name] = await connection.request("tools.provide", params, on_item)

    async def put_up_once(self, connection: Connection, lent: Lent) -> None:
        # A connection that was made meanwhile has it already.
        if lent.name not in self._subscriptions:
            await self.put_up(connection, lent)

    async def take_down(self, connection: Connection, name: str) -> None:
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:
            connection.forget(subscription)
            await connection.request("tools.unprovide", {"subscription": subscription})

    async def stand(self, connection: Connection) -> None:
        self._subscriptions.clear()
        for lent in self._lent.values():
            await self.put_up(connection, lent)

    async def move(self, connection: Connection) -> None:
        """Lends all anew, since tools belong to the session that they were lent in."""
        for lent in list(self._lent.values()):
            await self.take_down(connection, lent.name)
            await self.put_up(connection, lent)

    def end(self) -> None:
        for invocation_id in list(self._open):
            self._cancel(invocation_id)

    def _item(self, connection: Connection, lent: Lent, item: dict[str, Any]) -> None:
        invocation_id = item["invocation_id"]
        if item.get("cancelled"):
            self._cancel(invocation_id)
            return
        told: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(progress: dict[str, Any]) -> None:
            # The loop may be gone, and nobody listens any more.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(put, progress)

        def put(progress: dict[str, Any]) -> None:
            if told.qsize() < MAX_TOLD:
                told.put_nowait(progress)

        invocation = Invocation(item, tell)
        task = asyncio.create_task(self._run(connection, lent, invocation, item.get("arguments") or {}, told))
        self._open[invocation_id] = (invocation, task, inspect.iscoroutinefunction(lent.function))
        task.add_done_callback(lambda _: self._open.pop(invocation_id, None))

    def _cancel(self, invocation_id: str) -> None:
        if (entry := self._open.pop(invocation_id, None)) is not None:
            invocation, task, asynchronous = entry
            invocation.cancelled.set()
            if asynchronous:
                task.cancel()

    async def _run(
        self,
        connection: Connection,
        lent: Lent,
        invocation: Invocation,
        given: dict[str, Any],
        told: asyncio.Queue[dict[str, Any] | None],
    ) -> None:
        own = {"invocation_id": invocation.invocation_id}

        async def tell_all() -> None:
            # One after another, or they could overtake each other and the result.
            while (progress := await told.get()) is not None:
                await connection.request("tools.provide_progress", {**own, **progress})

        teller = asyncio.create_task(tell_all())
        try:
            try:
                arguments = lent.arguments(invocation, given)
                if inspect.iscoroutinefunction(lent.function):
                    result = await lent.function(**arguments)
                else:
                    result = await in_thread(lent.function, **arguments)
                answer = {"result": to_wire(result)}
            except Exception as error:
                logger.info("the lent tool %s failed", lent.name, exc_info=True)
                answer = {"error": f"{type(error).__name__}: {error}"}
            # Behind what the function told, which comes through the loop too.
            asyncio.get_running_loop().call_soon(told.put_nowait, None)
            await asyncio.gather(teller, return_exceptions=True)
            if not invocation.cancelled.is_set():
                await connection.request("tools.provide_result", {**own, **answer})
        except (UnknownId, Disconnected):
            pass  # The call is over.
        except TooldError as error:
            logger.error("the result of the lent tool %s was refused: %s", lent.name, error)
        finally:
            teller.cancel()


def without_none(**params: Any) -> dict[str, Any]:
    """The params that are given."""
    return {name: value for name, value in params.items() if value is not None}


def names(kinds: Sequence[str] | str | None) -> list[str] | None:
    """One name or several."""
    return [kinds] if isinstance(kinds, str) else None if kinds is None else list(kinds)
