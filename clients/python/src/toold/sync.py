"""The client without asyncio, whose methods wait."""

# Made from aio.py by scripts/generate_sync.py: change that file, then run the script.

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, overload

from .aliases import BatchCall, BatchItem, F, Format, Listing, OnPermission, OnProgress, OnQuestion, Path_, Strategy
from .core import without_none
from .errors import error_of
from .loop import Call, Events, LoopCore
from .model import Session, SharedSession, Tool, ToolResult
from .provided_tool import provided_tool


class Client:
    """A client of the daemon, for any number of threads.

    It connects with `with`, or at its first request, and starts a daemon when none is running. When the
    connection is lost, requests in flight raise `Disconnected`, because the client cannot know whether they were
    carried out. The next request reconnects, and restores the session, events, prompts and provided tools. A client
    that has events, prompts or provided tools also reconnects by itself.

    - `socket`: where the daemon listens; see `toold.socket_path`.
    - `toold`: the program to start; else the one beside the interpreter, or in `PATH`.
    - `start`: whether to start a daemon; `start_timeout` is how many seconds its first answer may take.
    - `timeout`: how many seconds an ordinary request may take. Tool calls have the daemon's limits instead.
    - `on_permission`, `on_question`: called with each permission request or question. Plain functions are called one at
      a time in a thread. Return `None` to let another client answer.

    Callbacks and provided functions run in threads of their own, and may use the client. `Ctrl-C` during a call
    cancels it.
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
        self._core = LoopCore(
            socket=socket,
            toold=toold,
            start=start,
            start_timeout=start_timeout,
            timeout=timeout,
            reconnect=reconnect,
            on_permission=on_permission,
            on_question=on_question,
        )
        self._name = name
        self.socket = self._core.socket

    @property
    def session(self) -> Session | None:
        """The session that this client is bound to, once it has opened one."""
        return self._core.session

    # The connection.

    def connect(self) -> Client:
        """Connects now. Raises `Unreachable` on failure."""
        self._core.connect()
        return self

    def close(self) -> None:
        """Closes the connection; the daemon cancels this client's calls. The session stays."""
        self._core.close()

    def __enter__(self) -> Client:
        self._core.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> Any:
        """Makes any request of the protocol, and returns its result as JSON.

        Waits for `timeout` seconds, by default the client's own `timeout`. Raises `RpcError`, `Unreachable`,
        `RequestTimeout`.
        """
        return self._core.request(method, params or {}, timeout)

    # Sessions.

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
        """Opens a session, or resumes the one with this id, and binds this client to it, also after a reconnect.

        `cwd` defaults to this process's current folder, or to the session's own when you resume it. Use the role
        `agent` for a client that acts for a model: it cannot answer permission requests. `tools` narrows the tools that
        the session sees, by globs: `{"enable": [...], "disable": [...]}`.

        Commands get the variables of this process by which programs find their toolchains (`toold.TOOLCHAIN`), as they
        are at each connection. `env` adds to them, and wins. The role `agent` offers all variables; the daemon accepts
        those that the process was started with, without secrets. The session lists the ignored ones (`env_ignored`),
        and says whether its tools may work in the folder (`workspace`); a warning is logged if they may not.
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
        return self._core.open_session(params)

    def share_session(self, session_id: str | None = None) -> SharedSession:
        """Makes a code with which an agent can join a session once; by default this client's own session.

        The agent passes the code to `open_session` as `session_id`. A client that acts for a model may not share
        sessions.
        """
        return SharedSession.of(self.request("session.share", without_none(session_id=session_id)))

    def close_session(self) -> None:
        """Ends the session that this client is bound to, and cancels its calls."""
        self._core.close_session()

    # Tools.

    @overload
    def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        mode: Listing | None = None,
    ) -> list[Tool]: ...
    @overload
    def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        mode: Listing | None = None,
        format: Format,
    ) -> list[dict[str, Any]]: ...
    def tools(
        self,
        query: str | None = None,
        *,
        source: str | None = None,
        names: Sequence[str] | None = None,
        mode: Listing | None = None,
        format: Format | None = None,
    ) -> list[Tool] | list[dict[str, Any]]:
        """Lists the tools, sorted by name; with a `format`, as that provider's API expects them.

        With the `mode` "deferred" these are the pinned tools, `tools_search` and `tools_call`.
        """
        wanted = list(names) if names is not None else None
        params = without_none(query=query, source=source, names=wanted, mode=mode, format=format)
        answer = self.request("tools.list", params)
        return list(answer["tools"]) if format is not None else [Tool.of(tool) for tool in answer["tools"]]

    def search(self, query: str, *, limit: int = 10, schemas: bool = False) -> list[dict[str, Any]]:
        """Finds tools by words, the best first: dicts with `name`, `description` and `source`.

        The description is one sentence. With `schemas` it is the whole, and there is an `input_schema`.
        """
        answer = self.request("tools.search", {"query": query, "limit": limit, "schemas": schemas})
        return list(answer["tools"])

    def schema(self, name: str) -> Tool:
        """Returns one tool. Raises `UnknownTool`."""
        return Tool.of(self.request("tools.schema", {"name": name}))

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
        """Calls a tool and returns a handle at once.

        `timeout` limits the tool: when it expires, the result has `is_error` and the output so far. With `detach` the
        call goes on when this client disconnects. Raises only `ValueError`, for a `call_id` that is in flight;
        `Call.result` raises the rest.
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
        return self._core.call(params)

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
        """Calls a tool and waits for its result; cancelling the wait cancels the call.

        `on_progress` is called in this thread.

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
        with call:
            if on_progress is not None:
                for progress in call:
                    self._core.report(on_progress, progress)
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
        calls: Sequence[BatchCall],
        *,
        strategy: Strategy = "auto",
        session_id: str | None = None,
        on_progress: OnProgress | None = None,
        format: Format | None = None,
    ) -> list[BatchItem] | list[dict[str, Any]]:
        """Calls several tools. The results are in the order of the calls; a call that fails has its error there.

        With a `format`, the calls and the results are blocks in the form of that provider.
        `on_progress` is called in another thread, one call at a time.
        """
        blocks: list[Any] = list(calls)
        ids: list[str] | None = None
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
        results = self._core.batch(params, ids, on_progress)
        if format is not None:
            return results
        return [ToolResult.of(r["result"]) if r.get("error") is None else error_of(r["error"]) for r in results]

    def cancel(self, call_id: str, *, session_id: str | None = None) -> bool:
        """Cancels a call of the session, whichever client made it. False when it is not in flight."""
        answer = self.request("tools.cancel", without_none(call_id=call_id, session_id=session_id))
        return bool(answer["cancelled"])

    def interrupt(self, *, session_id: str | None = None) -> int:
        """Lets the session's running calls end and skips those that wait. Returns how many were skipped."""
        answer = self.request("tools.interrupt", without_none(session_id=session_id))
        return int(answer["skipped"])

    # Events and provided tools.

    def events(
        self,
        kinds: Sequence[str] | str | None = None,
        *,
        session_id: str | None = None,
        since: int | None = None,
        epoch: str | None = None,
    ) -> Events:
        """Events of all kinds or some, of all sessions or one; `since` replays those that the daemon still holds.

        The subscription starts at once.
        """
        names = [kinds] if isinstance(kinds, str) else None if kinds is None else list(kinds)
        params = without_none(kinds=names, session_id=session_id, since=since, epoch=epoch)
        return self._core.events(params)

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
        """Provides a function as a tool while this client is connected. A decorator. Connects if
        the client is not connected.

        The docstring becomes the description, and the type hints become the schema. A parameter annotated with
        `toold.Invocation` gets the call. Plain functions run in threads. The caller sees exceptions as errors.
        """

        def register(function: F) -> F:
            self._core.provide(provided_tool(function, **options))
            return function

        return register if function is None else register(function)

    def withdraw(self, name: str) -> None:
        """Withdraws a provided tool; its running calls fail."""
        self._core.withdraw(name)


def new_call_id() -> str:
    """64 random bits, since call ids are unique in a session, and several clients may share one."""
    return f"py-{secrets.token_hex(8)}"


def _batch_call(call: BatchCall) -> dict[str, Any]:
    if isinstance(call, Mapping):
        return {"call_id": new_call_id(), **call}
    name, arguments = call
    return {"name": name, "arguments": dict(arguments), "call_id": new_call_id()}
