"""The connection of a client, its session, and everything that is restored after a reconnect.

`AsyncClient` (`aio.py`) is the public face; `LoopCore` (`loop.py`) runs this in a thread for `Client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .aliases import OnPermission, OnProgress, OnQuestion, Path_
from .calls import AsyncCall, ProgressQueue, Routes
from .connection import Connection
from .ended import EndedDaemon, Restarts, stopped
from .environment import lacks, passed_on
from .errors import Disconnected, NotRead, NotRunning, RequestTimeout, RpcError, TooldError, Unreachable
from .events import AsyncEvents
from .launch import PATIENCE, connect_or_start, reach
from .model import Answer, Ask, Progress, Question, Reply, Session
from .paths import socket_path
from .prompts import Responder
from .provided_tool import ProvidedTool
from .provided_tools import ProvidedTools

logger = logging.getLogger("toold")

T = TypeVar("T")

# Seconds before the first attempt to come back to a lost daemon, and between attempts at most.
RETURN_AFTER = 0.05
RETURN_AFTER_MOST = 2.0


class Restorable(Protocol):
    async def restore(self, connection: Connection) -> None:
        """Sets itself up on a new connection."""


class ClientCore:
    """See `AsyncClient` for the parameters."""

    def __init__(
        self,
        *,
        socket: Path_ | None,
        toold: Path_ | None,
        start: bool,
        start_timeout: float,
        timeout: float | None,
        reconnect: bool,
        on_permission: OnPermission | None,
        on_question: OnQuestion | None,
    ) -> None:
        self.socket = Path(socket) if socket is not None else socket_path()
        self.session: Session | None = None
        self._program = Path(toold) if toold is not None else None
        self._start = start
        self._start_timeout = start_timeout
        self._timeout = timeout
        self._reconnect = reconnect
        self._routes = Routes()
        self._connection: Connection | None = None
        # The daemon whose connection was lost.
        self._ended: EndedDaemon | None = None
        self._restarts = Restarts()
        self._connecting = asyncio.Lock()
        self._session_params: dict[str, Any] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._closed = False
        # Whether a warning about the session was logged; once is enough.
        self._warned = False
        self._provided = ProvidedTools()
        self._events: list[AsyncEvents] = []
        self._responders: list[Responder[Any]] = []
        if on_permission is not None:
            self._responders.append(Responder("permissions", on_permission, Ask.of, _reply, lambda ask: ask.deny()))
        if on_question is not None:
            self._responders.append(Responder("questions", on_question, Question.of, _answer, lambda q: q.cancel()))

    async def connect(self) -> None:
        await self._ready()

    async def enter(self) -> None:
        await self._ready()

    async def close(self) -> None:
        self._closed = True
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()
        # Of a connection that was lost before.
        for events in self._events:
            events.end()
        self._events.clear()

    async def request(self, method: str, params: Mapping[str, Any], timeout: float | None) -> Any:
        patience = self._timeout if timeout is None else timeout
        return await self._within(patience, method, self._request(method, params))

    async def open_session(self, params: dict[str, Any]) -> Session:
        opening = self._asked(lambda connection: self._open(connection, params))
        opened = await self._within(self._timeout, "session.open", opening)
        self._session_params = {**params, "cwd": opened.cwd, "session_id": opened.session_id}
        await self._asked(self._provided.move)
        return opened

    async def close_session(self) -> None:
        session, self.session, self._session_params = self.session, None, None
        if session is not None:
            await self.request("session.close", {"session_id": session.session_id}, None)

    def call(self, params: dict[str, Any]) -> AsyncCall:
        return AsyncCall(self._asked, self._routes, params)

    async def report(self, on_progress: OnProgress, progress: Progress) -> None:
        result = on_progress(progress)
        if inspect.isawaitable(result):
            await result

    async def batch(
        self, params: dict[str, Any], call_ids: Sequence[str] | None, on_progress: OnProgress | None
    ) -> list[dict[str, Any]]:
        """The results, as the daemon sends them. `call_ids` is `None` for calls in the form of a provider."""
        queue = ProgressQueue()
        with contextlib.ExitStack() as stack:
            for call_id in call_ids or []:
                self._routes.add(call_id, queue.put)
                stack.callback(self._routes.remove, call_id)
            if call_ids is None:
                self._routes.add_other(queue.put)
                stack.callback(self._routes.remove_other, queue.put)
            task = asyncio.create_task(self._request("tools.execute_batch", params))
            task.add_done_callback(lambda _: queue.end())
            stack.callback(task.cancel)
            while on_progress is not None and (progress := await queue.take()) is not None:
                await self.report(on_progress, progress)
            return list((await task)["results"])

    def events(self, params: dict[str, Any]) -> AsyncEvents:
        return AsyncEvents(params, self._open_events, self._forget_events)

    def provide_later(self, tool: ProvidedTool) -> None:
        """Provides it from the first connection on."""
        if self._connection is not None:
            raise RuntimeError("the client is connected: use `await client.lend(function)`")
        self._provided.add(tool)

    async def provide(self, tool: ProvidedTool) -> None:
        await self._ready()
        self._provided.add(tool)
        try:
            registering = self._asked(lambda connection: self._provided.register_once(connection, tool))
            await self._within(self._timeout, "tools.provide", registering)
        except BaseException:
            self._provided.remove(tool.name)
            raise

    async def withdraw(self, name: str) -> None:
        self._provided.remove(name)
        await self._provided.unregister(await self._ready(), name)

    # Below: how the connection is kept.

    async def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        return await self._asked(lambda connection: connection.request(method, params))

    async def _asked(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Does the work again on the next connection when a daemon that ended in order did not read the request."""
        deadline: float | None = None
        while True:
            connection = await self._ready()
            try:
                return await work(connection)
            except NotRead:
                if not self._reconnect or self._closed:
                    raise
                deadline = deadline or time.monotonic() + PATIENCE
                if time.monotonic() >= deadline:
                    raise

    async def _within(self, seconds: float | None, what: str, work: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(work, seconds)
        except asyncio.TimeoutError:
            raise RequestTimeout(f"{what} has no answer after {seconds} s") from None

    async def _ready(self) -> Connection:
        """The connection; connects when there is none."""
        async with self._connecting:
            if self._closed:
                raise Disconnected("the client is closed")
            known = self._connection
            if known is not None and known.lost is None:
                return known
            if known is not None and not self._reconnect:
                raise Disconnected(known.lost or "the connection is gone")
            deadline = time.monotonic() + PATIENCE
            while True:
                connection = await self._reached()
                try:
                    return await self._settle(connection)
                except NotRead:
                    # Another daemon takes over: restore everything on the next connection.
                    if self._closed or time.monotonic() >= deadline:
                        raise

    async def _reached(self) -> Connection:
        """A new connection. A daemon that a person stopped is not started again, and any other one not too often."""
        if self._was_stopped():
            raise stopped()
        if not self._start:
            return await reach(self.socket)
        before_start = self._restarts.count if self._ended is not None else lambda: None
        return await connect_or_start(self.socket, self._program, self._start_timeout, before_start)

    def _was_stopped(self) -> bool:
        """Whether a person stopped the last daemon, and no other one has followed."""
        known, ended = self._connection, self._ended
        return known is not None and known.closing == "stop" and ended is not None and not ended.is_followed()

    async def _settle(self, connection: Connection) -> Connection:
        """Restores the session, prompts, provided tools and events of this client on a new connection."""
        again = self._connection is not None
        connection.on_progress = self._routes.route
        try:
            if self._session_params is not None:
                await self._open(connection, self._session_params)
            for restorable in self._restorables():
                try:
                    await restorable.restore(connection)
                except RpcError as error:
                    if not again:
                        raise
                    logger.error("%s could not be restored: %s", type(restorable).__name__, error)
        except BaseException:
            await connection.close()
            raise
        self._connection = connection
        connection.on_closed = self._lost
        if connection.lost is not None:
            self._lost()
        return connection

    async def _open(self, connection: Connection, params: Mapping[str, Any]) -> Session:
        """Opens a session with the variables that this process has now."""
        role, own = params.get("role"), params.get("env") or {}
        env = {**passed_on(role, os.environ), **own}
        session = Session.of(await connection.request("session.open", {**params, "env": env}))
        self.session = session
        if not self._warned:
            missing = lacks(session, role, own)
            self._warned = bool(missing)
            for line in missing:
                logger.warning("%s", line)
        return session

    def _restorables(self) -> list[Restorable]:
        return [*self._responders, *([self._provided] if self._provided else []), *self._events]

    def _lost(self) -> None:
        self._ended = EndedDaemon(self.socket)
        for responder in self._responders:
            responder.end()
        self._provided.end()
        if self._closed or not self._reconnect:
            failure = None if self._closed else Disconnected("the connection is gone")
            for events in self._events:
                events.end(failure)
            self._events.clear()
        elif self._restorables() and (self._returning is None or self._returning.done()):
            self._returning = asyncio.create_task(self._return(), name="toold-return")

    async def _return(self) -> None:
        """Waits for a daemon to come back. Does not start one, since the user may have stopped it on purpose."""
        pause = RETURN_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETURN_AFTER_MOST)
            async with self._connecting:
                if self._connection is None or self._connection.lost is None:
                    return
                if self._was_stopped():
                    continue
                try:
                    await self._settle(await reach(self.socket))
                    return
                except (NotRunning, Disconnected):
                    continue
                except (Unreachable, TooldError) as error:
                    logger.warning("could not reconnect to %s: %s", self.socket, error)

    async def _open_events(self, events: AsyncEvents) -> None:
        await self._within(self._timeout, "events.subscribe", self._asked(events.restore))
        self._events.append(events)

    def _forget_events(self, events: AsyncEvents) -> None:
        if events in self._events:
            self._events.remove(events)


def without_none(**params: Any) -> dict[str, Any]:
    """The params that are given."""
    return {name: value for name, value in params.items() if value is not None}


def _reply(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, Reply):
        raise TypeError(f"expected Ask.allow(), Ask.deny() or None from on_permission, got {reply!r}")
    return without_none(
        action=reply.action,
        scope=reply.scope,
        pattern=reply.pattern,
        message=reply.message,
        all_parts=reply.all_parts or None,
    )


def _answer(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, Answer):
        raise TypeError(f"expected Question.choose(), .say(), .cancel() or None from on_question, got {answer!r}")
    if answer.answer_ids is None and answer.answer is None:
        return {"cancelled": True}
    ids = list(answer.answer_ids) if answer.answer_ids is not None else None
    return without_none(answer_ids=ids, answer=answer.answer)
