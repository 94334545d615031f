"""One connection: JSON-RPC 2.0, one text per line, over a Unix socket."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM
from socket import socket as _System
from typing import Any, NamedTuple

from .errors import Disconnected, NotRead, TooLarge, error_of

logger = logging.getLogger("toold")

# The longest message that the daemon reads and sends, in bytes.
MAX_MESSAGE = 16 * 1024 * 1024

Item = Callable[[Any], None]


class _Waiting(NamedTuple):
    method: str
    answer: asyncio.Future[Any]
    # For a subscription: gets its items as soon as the answer is read.
    on_item: Item | None


class _Socket(_System):
    """A socket that can be read to its end when it cannot be written to.

    asyncio would close it at once, and lose answers that have arrived, and the notice that another daemon takes over.
    """

    def send(self, data: Any, flags: int = 0) -> int:
        try:
            return super().send(data, flags)
        except (BrokenPipeError, ConnectionResetError):
            return len(data)

    def sendmsg(self, buffers: Iterable[Any], *others: Any) -> int:
        parts = list(buffers)
        try:
            return super().sendmsg(parts, *others)
        except (BrokenPipeError, ConnectionResetError):
            return sum(len(part) for part in parts)


class Connection:
    """The requests in flight and the subscriptions of one stream. Belongs to the event loop that opened it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, _Waiting] = {}
        self._subscriptions: dict[str, Item] = {}
        self._last_id = 0
        self._drain = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        # Called with the params of each `tools.progress` and their size on the wire in bytes.
        self.on_progress: Callable[[dict[str, Any], int], None] = lambda _params, _size: None
        # Called once, when the stream has ended.
        self.on_closed: Callable[[], None] = lambda: None
        self.lost: str | None = None
        # Why the daemon ends, which it says after all its answers: "restart", "stop", "signal" or "idle".
        self.closing: str | None = None
        # The first thing that was received, if it is not a message.
        self.foreign: str | None = None
        self._speaks = False

    @classmethod
    async def open(cls, socket: Path) -> Connection:
        own = _Socket(AF_UNIX, SOCK_STREAM)
        try:
            own.setblocking(False)
            await asyncio.get_running_loop().sock_connect(own, str(socket))
            _check_connected(own)
            reader, writer = await asyncio.open_unix_connection(sock=own, limit=MAX_MESSAGE + 4096)
        except BaseException:
            own.close()
            raise
        connection = cls(reader, writer)
        connection._reading = asyncio.create_task(connection._read(), name="toold-reader")
        return connection

    async def request(self, method: str, params: Mapping[str, Any], on_item: Item | None = None) -> Any:
        """Sends a request and waits for its answer; cancelling the wait cancels the request.

        With `on_item` it is a subscription, whose items go there without a gap after the answer.
        """
        if self.lost is not None:
            raise NotRead(self.lost)
        self._last_id += 1
        request_id = self._last_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        data = _encode(message)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = _Waiting(method, answer, on_item)
        try:
            await self._send(data)
            return await answer
        except asyncio.CancelledError:
            self.notify("$/cancelRequest", {"id": request_id})
            raise
        finally:
            self._waiting.pop(request_id, None)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a notification. It is lost if the connection is lost."""
        if self.lost is None and not self._writer.is_closing():
            self._writer.write(_encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def forget(self, subscription: str) -> None:
        """Ignores items of this subscription from now on."""
        self._subscriptions.pop(subscription, None)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._end("the connection was closed")

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        try:
            # Two tasks must not drain at once in older versions of asyncio.
            async with self._drain:
                await self._writer.drain()
        except OSError:
            # The rest of the input says why, and whether the request was read.
            return

    async def _read(self) -> None:
        reason = "the daemon closed the connection"
        try:
            while line := await self._reader.readline():
                if not self._speaks and not _is_message(line):
                    self.foreign = line[:200].decode(errors="replace").strip()
                    return
                self._speaks = True
                self._take(line)
        except (OSError, ValueError) as error:
            # A ValueError is a line over the limit: where the next message begins is unknown.
            reason = f"the connection to the daemon is gone: {error}"
        finally:
            self._end(reason)

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            logger.warning("the daemon sent invalid JSON: %r", line[:200])
            return
        if not isinstance(message, dict):
            logger.warning("the daemon sent JSON that is not a message: %r", line[:200])
        elif "method" in message:
            self._notified(message["method"], message.get("params") or {}, len(line))
        else:
            self._answered(message)

    def _answered(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message.get("id"), None)  # type: ignore[arg-type]
        error = message.get("error")
        if waiting is None:
            if message.get("id") is None:
                logger.warning("the daemon could not read a message: %s", error)
            return
        if error is None and waiting.on_item is not None:
            self._subscriptions[message["result"]] = waiting.on_item
        if waiting.answer.done():
            return
        if error is None:
            waiting.answer.set_result(message.get("result"))
        else:
            waiting.answer.set_exception(error_of(error))

    def _notified(self, method: str, params: dict[str, Any], size: int) -> None:
        if method == "daemon.closing":
            self.closing = str(params.get("reason"))
        elif method == "tools.progress":
            self.on_progress(params, size)
        elif (on_item := self._subscriptions.get(params.get("subscription", ""))) is not None:
            on_item(params.get("result"))

    def _end(self, reason: str) -> None:
        if self.lost is not None:
            return
        self.lost = reason
        self._writer.close()
        waiting, self._waiting = self._waiting, {}
        for request in waiting.values():
            if not request.answer.done():
                request.answer.set_exception(self._unanswered(request.method, reason))
        self._subscriptions.clear()
        self.on_closed()

    def _unanswered(self, method: str, reason: str) -> Disconnected:
        if self.closing is not None:
            return NotRead("the daemon has ended before the request was read")
        return Disconnected(f"{reason}; whether {method} was carried out is not known, so it is not sent again")


def _check_connected(socket: _System) -> None:
    """Raises `BlockingIOError` when the socket's queue is full.

    asyncio considers a Unix socket connected then.
    """
    try:
        socket.getpeername()
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            raise BlockingIOError(errno.EAGAIN, "its queue of connections is full") from None
        raise


def _is_message(line: bytes) -> bool:
    try:
        message = json.loads(line)
    except ValueError:
        return False
    return isinstance(message, (dict, list))


def _encode(message: Mapping[str, Any]) -> bytes:
    data = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    if len(data) > MAX_MESSAGE:
        raise TooLarge(f"the request has {len(data)} bytes, and the daemon accepts at most {MAX_MESSAGE}")
    return data
