"""Errors between a client and the daemon.

A tool that ran and failed is not an error here: its result has `is_error`. These are for requests without an answer
(`Unreachable`, `RequestTimeout`, `TooLarge`) and for those that the daemon refused (`RpcError`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TooldError(Exception):
    """The base of all exceptions of this package."""


class Unreachable(TooldError, ConnectionError):
    """The client could not reach a daemon, or lost the connection."""


class NotRunning(Unreachable):
    """No daemon listens at the socket, and the client may not start one."""


class StartFailed(Unreachable):
    """The daemon could not be started; the message has its output."""


class Disconnected(Unreachable):
    """The connection ended while a request was in flight, which may or may not have been carried out."""


class NotRead(Disconnected):
    """The connection ended before the daemon read the request, which was not carried out.

    A client sends it to the daemon that took over, and raises this only if there is none, or with `reconnect=False`.
    """


class RequestTimeout(TooldError, TimeoutError):
    """The client's own timeout has expired. The timeout of a tool is a result instead."""


class TooLarge(TooldError, ValueError):
    """The request is longer than the daemon accepts, and was not sent."""


class RpcError(TooldError):
    """The daemon answered with an error. The subclasses are the errors that a program may want to handle."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data: dict[str, Any] = dict(data or {})

    @property
    def kind(self) -> str:
        """The kind of the error for programs, such as `unknown_tool`; empty if there is none."""
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
        """Similar names, the closest match first."""
        return list(self.data.get("suggestions", []))


class PermissionsUnavailable(RpcError):
    """The permission engine failed or is closing. A denied call is not this error, but a result with `is_error`."""


class ExecutionFailed(RpcError):
    """The tool could not run, because of a panic or a missing dependency."""


class UnknownId(RpcError):
    """There is no such session, request or subscription; `kind` says which."""


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
