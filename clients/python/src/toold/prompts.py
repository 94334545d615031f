"""Callbacks that answer permission requests and questions."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from .connection import Connection
from .errors import Disconnected, RpcError, UnknownId
from .threads import in_thread

logger = logging.getLogger("toold")


class Prompt(Protocol):
    @property
    def request_id(self) -> str: ...
    @property
    def over(self) -> threading.Event: ...


P = TypeVar("P", bound=Prompt)


class Responder(Generic[P]):
    """Answers permission requests or questions by a callback.

    Plain functions are called one at a time, each in a thread; coroutine functions at once, each in a task
    that is cancelled when its answer is no longer needed.
    """

    def __init__(
        self,
        subject: str,
        callback: Callable[[P], Any],
        prompt_of: Callable[[dict[str, Any], threading.Event], P],
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

    async def restore(self, connection: Connection) -> None:
        for request_id in list(self._open):
            self._close(request_id)
        await connection.request(f"{self._subject}.subscribe", {}, functools.partial(self._item, connection))

    def end(self) -> None:
        for request_id in list(self._open):
            self._close(request_id)

    def _item(self, connection: Connection, item: dict[str, Any]) -> None:
        if item.get("type") != "asked":
            self._close(item.get("request_id", ""))
            return
        request = item["request"]
        if known := self._open.get(request["request_id"]):
            # Others wait for the answer than before. A callback that runs goes on with what it was given.
            self._open[request["request_id"]] = (self._prompt_of(request, known[0].over), known[1])
            return
        prompt = self._prompt_of(request, threading.Event())
        task = asyncio.create_task(self._answer(connection, prompt), name=f"toold-prompt-{prompt.request_id}")
        self._open[prompt.request_id] = (prompt, task)
        task.add_done_callback(lambda _: self._open.pop(prompt.request_id, None))

    def _close(self, request_id: str) -> None:
        prompt, task = self._open.pop(request_id, (None, None))
        if prompt is not None:
            prompt.over.set()
        # A thread cannot be stopped: the next prompt waits until it is done.
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
                    prompt, _ = self._open[prompt.request_id]
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
            pass  # Another client answered first, or the call is over.
        except RpcError as error:
            logger.error("the daemon refused an answer for %s: %s", self._subject, error)
