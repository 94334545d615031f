"""Functions that a client provides as tools: their registration on each connection, and their calls."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
from typing import Any

from .connection import Connection
from .errors import Disconnected, TooldError, UnknownId
from .provided_tool import Invocation, ProvidedTool, to_wire
from .threads import in_thread

logger = logging.getLogger("toold")

# How much progress of one running function may wait to be sent. More is dropped.
MAX_PROGRESS = 1024


class ProvidedTools:
    """The functions that a client provides as tools, and the calls of them that run."""

    def __init__(self) -> None:
        self._tools: dict[str, ProvidedTool] = {}
        self._subscriptions: dict[str, str] = {}
        self._open: dict[str, tuple[Invocation, asyncio.Task[None], bool]] = {}

    def __bool__(self) -> bool:
        return bool(self._tools)

    def add(self, tool: ProvidedTool) -> None:
        if tool.name in self._tools:
            raise ValueError(f"this client provides a tool named {tool.name} already")
        self._tools[tool.name] = tool

    def remove(self, name: str) -> None:
        self._tools.pop(name, None)

    async def register(self, connection: Connection, tool: ProvidedTool) -> None:
        params = {"tools": [tool.spec]}
        on_item = functools.partial(self._item, connection, tool)
        self._subscriptions[tool.name] = await connection.request("tools.provide", params, on_item)

    async def register_once(self, connection: Connection, tool: ProvidedTool) -> None:
        # A connection that was made meanwhile has it already.
        if tool.name not in self._subscriptions:
            await self.register(connection, tool)

    async def unregister(self, connection: Connection, name: str) -> None:
        subscription = self._subscriptions.pop(name, None)
        if subscription is not None:
            connection.forget(subscription)
            await connection.request("tools.unprovide", {"subscription": subscription})

    async def restore(self, connection: Connection) -> None:
        self._subscriptions.clear()
        for tool in self._tools.values():
            await self.register(connection, tool)

    async def move(self, connection: Connection) -> None:
        """Provides all of them again in a new session, since each belongs to the session that it was provided in."""
        for tool in list(self._tools.values()):
            await self.unregister(connection, tool.name)
            await self.register(connection, tool)

    def end(self) -> None:
        for invocation_id in list(self._open):
            self._cancel(invocation_id)

    def _item(self, connection: Connection, tool: ProvidedTool, item: dict[str, Any]) -> None:
        invocation_id = item["invocation_id"]
        if item.get("cancelled"):
            self._cancel(invocation_id)
            return
        waiting: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def report(progress: dict[str, Any]) -> None:
            # The loop may be closed by now; then nobody listens.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(put, progress)

        def put(progress: dict[str, Any]) -> None:
            if waiting.qsize() < MAX_PROGRESS:
                waiting.put_nowait(progress)

        invocation = Invocation(item, report)
        task = asyncio.create_task(self._run(connection, tool, invocation, item.get("arguments") or {}, waiting))
        self._open[invocation_id] = (invocation, task, inspect.iscoroutinefunction(tool.function))
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
        tool: ProvidedTool,
        invocation: Invocation,
        given: dict[str, Any],
        waiting: asyncio.Queue[dict[str, Any] | None],
    ) -> None:
        own = {"invocation_id": invocation.invocation_id}

        async def send_all() -> None:
            # One after another, or they could overtake each other and the result.
            while (progress := await waiting.get()) is not None:
                await connection.request("tools.provide_progress", {**own, **progress})

        sender = asyncio.create_task(send_all())
        try:
            try:
                arguments = tool.arguments(invocation, given)
                if inspect.iscoroutinefunction(tool.function):
                    result = await tool.function(**arguments)
                else:
                    result = await in_thread(tool.function, **arguments)
                answer = {"result": to_wire(result)}
            except Exception as error:
                logger.info("the provided tool %s failed", tool.name, exc_info=True)
                answer = {"error": f"{type(error).__name__}: {error}"}
            # After the progress of the function, which comes through the loop too.
            asyncio.get_running_loop().call_soon(waiting.put_nowait, None)
            await asyncio.gather(sender, return_exceptions=True)
            if not invocation.cancelled.is_set():
                await connection.request("tools.provide_result", {**own, **answer})
        except (UnknownId, Disconnected):
            pass  # The call is over.
        except TooldError as error:
            logger.error("the daemon refused the result of the provided tool %s: %s", tool.name, error)
        finally:
            sender.cancel()
