"""What can go wrong between a client and the daemon.

A tool that ran and has bad news is no error: its result has `is_error`. These are for requests that have
no answer (`Unreachable`, `RequestTimeout`, `TooLarge`) and for those that the daemon refused (`RpcError`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TooldError(Exception):
    """All that this package raises on its own account."""


class Unreachable(TooldError, ConnectionError):
    """No daemon could be reached, or the one that was has gone away."""


class NotRunning(Unreachable):
    """Nobody listens at the socket, and none was to be started."""


class StartFailed(Unreachable):
    """A daemon could not be started; the message has what it said."""


class Disconnected(Unreachable):
    """The connection ended while a request was in flight: whether it was carried out is not known."""


class NotRead(Disconnected):
    """The connection ended before the daemon read the request: it was not carried out.

    A client sends it to the daemon that took over, and raises this only when there is none, or it may not reconnect.
    """


class RequestTimeout(TooldError, TimeoutError):
    """The caller's own patience has ended. A tool's time-out is a result instead."""


class TooLarge(TooldError, ValueError):
    """Refused before it was sent: the daemon would not read so long a message."""


class RpcError(TooldError):
    """The daemon answered with an error. Its subclasses are what a program may want to tell apart."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: dict[str, Any] = dict(data or {})

    @property
    def kind(self) -> str:
        """The word for programs, such as `unknown_tool`; empty when there is none."""
        return str(self.data.get("kind", ""))


class InvalidArguments(RpcError):
    """The arguments do not fit the tool's schema."""

    @property
    def errors(self) -> list[dict[str, str]]:
        """Every problem: `path` is a JSON Pointer into the arguments, `message` is for the model."""
        return list(self.data.get("errors", []))


class UnknownTool(RpcError):
    """There is no such tool in the session's view."""

    @property
    def suggestions(self) -> list[str]:
        """Names that were perhaps meant, the nearest first."""
        return list(self.data.get("suggestions", []))


class PermissionsUnavailable(RpcError):
    """The permission engine failed or is closing. A "no" is never this, but a result with `is_error`."""


class ExecutionFailed(RpcError):
    """The tool could not be run: a panic, a missing dependency."""


class UnknownId(RpcError):
    """A session, request or subscription that there is not; `kind` says which."""


class Overloaded(RpcError):
    """A limit on calls is reached; the call did not run."""


class CallCancelled(RpcError):
    """The call was cancelled."""


_BY_CODE: dict[int, type[RpcError]] = {
    -32001: UnknownTool,
    -32002: PermissionsUnavailable,
    -32003: ExecutionFailed,
    -32004: UnknownId,
    -32005: Overloaded,
    -32800: CallCancelled,
}


def error_of(wire: Mapping[str, Any]) -> RpcError:
    """The exception for a JSON-RPC error object."""
    data = wire.get("data")
    data = data if isinstance(data, Mapping) else None
    code = int(wire.get("code", 0))
    kind = _BY_CODE.get(code, RpcError)
    if code == -32602 and data is not None and data.get("kind") == "invalid_args":
        kind = InvalidArguments
    return kind(code, str(wire.get("message", "")), data)
