"""A client of toold, the daemon that holds one tool registry for every agent and editor.

`Client` waits, `AsyncClient` awaits; both connect over the daemon's Unix socket and start it when there is none.
"""

from .aio import AsyncClient, BatchCall, BatchItem, Format, OnPermission, OnProgress, OnQuestion, Strategy
from .calls import AsyncCall
from .environment import TOOLCHAIN
from .errors import (
    CallCancelled,
    Disconnected,
    ExecutionFailed,
    InvalidArguments,
    NotRunning,
    Overloaded,
    PermissionsUnavailable,
    RequestTimeout,
    RpcError,
    StartFailed,
    TooLarge,
    TooldError,
    UnknownId,
    UnknownTool,
    Unreachable,
)
from .lend import Invocation, Output
from .model import (
    Answer,
    Ask,
    Block,
    Event,
    Option,
    Progress,
    Question,
    Reply,
    Scope,
    Session,
    SharedSession,
    Source,
    Suggestion,
    Tool,
    ToolResult,
    Workspace,
)
from .place import find_program, socket_path
from .standing import AsyncEvents
from .sync import Call, Client, Events

__all__ = [
    "Answer",
    "Ask",
    "AsyncCall",
    "AsyncClient",
    "AsyncEvents",
    "BatchCall",
    "BatchItem",
    "Block",
    "Call",
    "CallCancelled",
    "Client",
    "Disconnected",
    "Event",
    "Events",
    "ExecutionFailed",
    "Format",
    "InvalidArguments",
    "Invocation",
    "NotRunning",
    "OnPermission",
    "OnProgress",
    "OnQuestion",
    "Option",
    "Output",
    "Overloaded",
    "PermissionsUnavailable",
    "Progress",
    "Question",
    "Reply",
    "RequestTimeout",
    "RpcError",
    "Scope",
    "Session",
    "SharedSession",
    "Source",
    "StartFailed",
    "Strategy",
    "Suggestion",
    "TOOLCHAIN",
    "TooLarge",
    "Tool",
    "ToolResult",
    "TooldError",
    "UnknownId",
    "UnknownTool",
    "Unreachable",
    "Workspace",
    "find_program",
    "socket_path",
]
