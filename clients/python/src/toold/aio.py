"""The client for asyncio. The one without is in `sync.py`, and is made of this one."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, Union, overload

from .calls import AsyncCall, ProgressQueue, Routes
from .connection import Connection
from .environment import lacks, passed_on
from .errors import Disconnected, NotRead, NotRunning, RequestTimeout, RpcError, TooldError, Unreachable, error_of
from .launch import PATIENCE, connect_or_start, reach
from .lend import Lent, lent
from .model import Answer, Ask, Progress, Question, Reply, Session, SharedSession, Tool, ToolResult
from .place import socket_path
from .standing import AsyncEvents, Loans, Responder, Standing, names, without_none

logger = logging.getLogger("toold")

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Path_ = Union[str, "os.PathLike[str]"]
Format = Literal["anthropic", "openai", "openai_responses", "gemini", "mcp"]
# A number runs units of so many calls, one unit after another.
Strategy = Union[Literal["auto", "sequential", "parallel"], int]
# One call of a batch: a name and its arguments, or `{"name", "arguments", "call_id"}`.
BatchCall = Union[tuple[str, Mapping[str, Any]], Mapping[str, Any]]
# What one call of a batch gave. Errors are returned, not raised: one call's never hides another's result.
BatchItem = Union[ToolResult, RpcError]
OnPermission = Callable[[Ask], Union[Reply, None, Awaitable[Union[Reply, None]]]]
OnQuestion = Callable[[Question], Union[Answer, None, Awaitable[Union[Answer, None]]]]
OnProgress = Callable[[Progress], Any]

# Seconds before a connection that was lost is looked for again, and at most.
RETURN_AFTER = 0.05
RETURN_AFTER_MOST = 2.0


class AsyncClient:
    """A client of the daemon, for any number of requests at once.

    It connects with `async with`, or at its first request, and starts a daemon when there is none. When the
    connection is lost, requests in flight raise `Disconnected`, since nobody knows whether they were carried out;
    the next one connects again. The session, events, prompts and lent tools come back with the connection, which is
    sought in the background as soon as there are any of the last three.

    - `socket`: where the daemon listens; see `toold.socket_path`.
    - `toold`: the program that is started; else the one beside the interpreter, or in `PATH`.
    - `start`: whether to start a daemon; `start_timeout` is how many seconds its first answer may take.
    - `timeout`: how many seconds an ordinary request may take. Calls of tools have the daemon's limits instead.
    - `on_permission`, `on_question`: called with what a person should answer, a plain function one at a time in a
      thread. `None` leaves it to other clients.
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
        self.socket = Path(socket) if socket is not None else socket_path()
        # The session that this client is bound to, once it has opened one.
        self.session: Session | None = None
        self._program = Path(toold) if toold is not None else None
        self._start = start
        self._start_timeout = start_timeout
        self._timeout = timeout
        self._reconnect = reconnect
        self._name = name
        self._routes = Routes()
        self._connection: Connection | None = None
        self._connecting = asyncio.Lock()
        self._session_params: dict[str, Any] | None = None
        self._returning: asyncio.Task[None] | None = None
        self._closed = False
        # Whether a session was found to lack something; said once.
        self._warned = False
        self._loans = Loans()
        self._events: list[AsyncEvents] = []
        self._responders: list[Responder[Any]] = []
        if on_permission is not None:
            self._responders.append(Responder("permissions", on_permission, Ask.of, _reply, lambda ask: ask.deny()))
        if on_question is not None:
            self._responders.append(Responder("questions", on_question, Question.of, _answer, lambda q: q.cancel()))

    # The connection.

    async def connect(self) -> AsyncClient:
        """Connects now. Raises `Unreachable` when that cannot be done."""
        await self._ready()
        return self

    async def close(self) -> None:
        """Ends the connection; the daemon cancels what this client has in flight. The session stays."""
        self._closed = True
        if self._returning is not None:
            self._returning.cancel()
            await asyncio.gather(self._returning, return_exceptions=True)
        if self._connection is not None:
            await self._connection.close()
        # Those of a connection that was lost before.
        for events in self._events:
            events.end()
        self._events.clear()

    async def __aenter__(self) -> AsyncClient:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Any:
        """Makes any request of the protocol, and gives its result as JSON.

        Waits for `timeout` seconds, or what the client was made with. Raises `RpcError`, `Unreachable`,
        `RequestTimeout`.
        """
        patience = self._timeout if timeout is None else timeout
        return await self._within(patience, method, self._request(method, params or {}))

    # Sessions.

    async def open_session(
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
        """Opens a session, or resumes the one of this id, and binds this client to it, after a reconnect too.

        `cwd` is this process's current folder when it is not given; on resuming, the session's own. The role
        `agent` is for clients that act for a model: they cannot answer asks. `tools` narrows the session's view:
        `{"enable": [...], "disable": [...]}`, by globs.

        Commands get this process's variables by which programs find their toolchains (`toold.TOOLCHAIN`), as they are
        at each connection; `env` is added to them, and wins. The role `agent` offers all variables, and the daemon
        takes those that the process was started with, without secrets. The session says which were ignored
        (`env_ignored`), and whether its tools may work in the folder (`workspace`); a warning is logged if not.
        """
        if cwd is None and session_id is None:
            cwd = os.getcwd()
        params = without_none(
            cwd=os.path.abspath(cwd) if cwd is not None else None,
            session_id=session_id,
            roots=[os.path.abspath(root) for root in roots] if roots is not None else None,
            model=model,
            role=role,
            env=dict(env) if env is not None else None,
            tools={name: list(globs) for name, globs in tools.items()} if tools is not None else None,
            client={"name": self._name},
            protocol=2,
        )
        opening = self._asked(lambda connection: self._open(connection, params))
        opened = await self._within(self._timeout, "session.open", opening)
        self._session_params = {**params, "cwd": opened.cwd, "session_id": opened.session_id}
        await self._asked(self._loans.move)
        return opened

    async def share_session(self, session_id: str | None = None) -> SharedSession:
        """Makes a code by which an agent may join a session, once; this client's own session when none is named.

        The agent opens the session with the code as its `session_id`. A client that acts for a model may share nothing.
        """
        return SharedSession.of(await self.request("session.share", without_none(session_id=session_id)))

    async def close_session(self) -> None:
        """Ends the session that this client is bound to, and cancels its calls."""
        session, self.session, self._session_params = self.session, None, None
        if session is not None:
            await self.request("session.close", {"session_id": session.session_id})

    # Tools.

    @overload
    async def tools(
        self, query: str | None = None, *, source: str | None = None, names: Sequence[str] | None = None
    ) -> list[Tool]: ...
    @overload
    async def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        format: Format,
    ) -> list[dict[str, Any]]: ...
    async def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        format: Format | None = None,
    ) -> list[Tool] | list[dict[str, Any]]:
        """Lists the tools, sorted by name; with a `format`, as that provider's API takes them."""
        wanted = list(names) if names is not None else None
        params = without_none(query=query, source=source, names=wanted, format=format)
        listed = (await self.request("tools.list", params))["tools"]
        return list(listed) if format is not None else [Tool.of(tool) for tool in listed]

    async def schema(self, name: str) -> Tool:
        """Shows one tool. Raises `UnknownTool`."""
        return Tool.of(await self.request("tools.schema", {"name": name}))

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
    ) -> AsyncCall:
        """Calls a tool and gives a handle at once.

        `timeout` is the tool's: when it is over, the result is an `is_error` with what there was so far. With
        `detach` the call lives on when this client goes. Nothing is raised here but a `ValueError` for a
        `call_id` that is in flight; the rest is raised by `AsyncCall.result`.
        """
        params = without_none(
            name=name,
            arguments=dict(arguments or {}),
            call_id=call_id or new_call_id(),
            session_id=session_id,
            cwd=os.fspath(cwd) if cwd is not None else None,
            timeout_ms=round(timeout * 1000) if timeout is not None else None,
            progress=progress or None,
            no_cache=no_cache or None,
            detach=detach or None,
        )
        return AsyncCall(self._asked, self._routes, params)

    async def execute(
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
        """Calls a tool and waits for its result; being cancelled cancels the call.

        Raises `InvalidArguments`, `UnknownTool`, `CallCancelled` and the other `RpcError`s. See `call` for
        the parameters.
        """
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
        async with call:
            if on_progress is not None:
                async for progress in call:
                    await _maybe(on_progress(progress))
            return await call.result()

    @overload
    async def execute_batch(
        self,
        calls: Sequence[BatchCall],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[BatchItem]: ...
    @overload
    async def execute_batch(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
        format: Format,
    ) -> list[dict[str, Any]]: ...
    async def execute_batch(
        self,
        calls: Sequence[BatchCall],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
        format: Format | None = None,
    ) -> list[BatchItem] | list[dict[str, Any]]:
        """Calls several tools; results come in the order of the calls, errors of single calls among them.

        With a `format`, `calls` are that provider's own call blocks, and so are the results.
        """
        queue = ProgressQueue()
        ids: list[str] = []
        blocks: list[Any] = list(calls)
        if format is None:
            blocks = [_batch_call(each) for each in calls]
            ids = [block["call_id"] for block in blocks]
        params = without_none(
            calls=blocks,
            strategy={"batched": strategy} if isinstance(strategy, int) else strategy,
            session_id=session_id,
            format=format,
            progress=True if on_progress is not None else None,
        )
        with contextlib.ExitStack() as stack:
            for call_id in ids:
                self._routes.add(call_id, queue.put)
                stack.callback(self._routes.remove, call_id)
            if format is not None:
                self._routes.add_other(queue.put)
                stack.callback(self._routes.remove_other, queue.put)
            task = asyncio.create_task(self._request("tools.execute_batch", params))
            task.add_done_callback(lambda _: queue.end())
            stack.callback(task.cancel)
            while on_progress is not None and (progress := await queue.take()) is not None:
                await _maybe(on_progress(progress))
            results = (await task)["results"]
        if format is not None:
            return list(results)
        return [ToolResult.of(r["result"]) if r.get("error") is None else error_of(r["error"]) for r in results]

    async def cancel(self, call_id: str, *, session_id: str | None = None) -> bool:
        """Cancels a call of the session, whoever made it. False when it is not in flight."""
        answer = await self.request("tools.cancel", without_none(call_id=call_id, session_id=session_id))
        return bool(answer["cancelled"])

    async def interrupt(self, *, session_id: str | None = None) -> int:
        """Lets the session's running calls end and skips those that wait. Gives how many were skipped."""
        return int((await self.request("tools.interrupt", without_none(session_id=session_id)))["skipped"])

    # What comes by itself.

    def events(
        self,
        kinds: Sequence[str] | str | None = None,
        *,
        session_id: str | None = None,
        since: int | None = None,
        epoch: str | None = None,
    ) -> AsyncEvents:
        """Events, of all kinds or some, of all sessions or one; `since` replays what the daemon still holds.

        Subscribed from the beginning of its `async with`, or of the iteration.
        """
        params = without_none(kinds=names(kinds), session_id=session_id, since=since, epoch=epoch)
        return AsyncEvents(params, self._open_events, self._forget_events)

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
        """Lends a function as a tool while this client is connected. A decorator, for before it connects.

        The description is the docstring, the schema comes from the type hints. A parameter annotated with
        `toold.Invocation` gets the call. Plain functions run in threads. What it raises, the caller reads.
        """

        def register(function: F) -> F:
            if self._connection is not None:
                raise RuntimeError("the client is connected: use `await client.lend(function)`")
            self._loans.add(lent(function, **options))
            return function

        return register if function is None else register(function)

    async def lend(self, function: Callable[..., Any], **options: Any) -> None:
        """Lends a function from now on; see `provide`. Raises `RpcError` when its name is taken."""
        await self.lend_tool(lent(function, **options))

    async def lend_tool(self, tool: Lent) -> None:
        await self._ready()
        self._loans.add(tool)
        try:
            await self._within(self._timeout, "tools.provide", self._asked(lambda on: self._loans.put_up_once(on, tool)))
        except BaseException:
            self._loans.remove(tool.name)
            raise

    async def withdraw(self, name: str) -> None:
        """Takes a lent tool back; its running calls end as failed."""
        self._loans.remove(name)
        await self._loans.take_down(await self._ready(), name)

    # Below: how the connection is kept.

    async def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        return await self._asked(lambda connection: connection.request(method, params))

    async def _asked(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Sends again what a daemon did not read that gave way to another: it was not carried out."""
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
        """The connection, made anew when there is none."""
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
                if self._start:
                    connection = await connect_or_start(self.socket, self._program, self._start_timeout)
                else:
                    connection = await reach(self.socket)
                try:
                    return await self._settle(connection)
                except NotRead:
                    # What is put up is put up again on the next connection.
                    if self._closed or time.monotonic() >= deadline:
                        raise

    async def _settle(self, connection: Connection) -> Connection:
        """Puts up on a new connection what belongs to this client."""
        again = self._connection is not None
        connection.on_progress = self._routes.route
        try:
            if self._session_params is not None:
                await self._open(connection, self._session_params)
            for standing in self._standing():
                try:
                    await standing.stand(connection)
                except RpcError as error:
                    if not again:
                        raise
                    logger.error("%s could not come back: %s", type(standing).__name__, error)
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

    def _standing(self) -> list[Standing]:
        return [*self._responders, *([self._loans] if self._loans else []), *self._events]

    def _lost(self) -> None:
        for responder in self._responders:
            responder.end()
        self._loans.end()
        if self._closed or not self._reconnect:
            failure = None if self._closed else Disconnected("the connection is gone")
            for events in self._events:
                events.end(failure)
            self._events.clear()
        elif self._standing() and (self._returning is None or self._returning.done()):
            self._returning = asyncio.create_task(self._return(), name="toold-return")

    async def _return(self) -> None:
        """Waits for a daemon to come back. Does not start one: somebody may have stopped it on purpose."""
        pause = RETURN_AFTER
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * 2, RETURN_AFTER_MOST)
            async with self._connecting:
                if self._connection is None or self._connection.lost is None:
                    return
                try:
                    await self._settle(await reach(self.socket))
                    return
                except (NotRunning, Disconnected):
                    continue
                except (Unreachable, TooldError) as error:
                    logger.warning("could not come back to %s: %s", self.socket, error)

    async def _open_events(self, events: AsyncEvents) -> None:
        await self._within(self._timeout, "events.subscribe", self._asked(events.stand))
        self._events.append(events)

    def _forget_events(self, events: AsyncEvents) -> None:
        if events in self._events:
            self._events.remove(events)


def new_call_id() -> str:
    """64 random bits: several clients may work in one session, where the ids of calls are unique."""
    return f"py-{secrets.token_hex(8)}"


def _batch_call(call: BatchCall) -> dict[str, Any]:
    if isinstance(call, Mapping):
        return {"call_id": new_call_id(), **call}
    name, arguments = call
    return {"name": name, "arguments": dict(arguments), "call_id": new_call_id()}


def _reply(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, Reply):
        raise TypeError(f"expected Ask.allow(), Ask.deny() or None from on_permission, got {reply!r}")
    return without_none(action=reply.action, scope=reply.scope, pattern=reply.pattern, message=reply.message)


def _answer(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, Answer):
        raise TypeError(f"expected Question.choose(), .say(), .cancel() or None from on_question, got {answer!r}")
    if answer.answer_ids is None and answer.answer is None:
        return {"cancelled": True}
    ids = list(answer.answer_ids) if answer.answer_ids is not None else None
    return without_none(answer_ids=ids, answer=answer.answer)


async def _maybe(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
