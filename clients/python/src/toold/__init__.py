"""A client of toold, a daemon with one tool registry for all your agents and editors.

Use `Client`, or `AsyncClient` with asyncio. Both connect to the daemon's Unix socket, and start the daemon if it is not
running.
"""

from .aio import AsyncClient
from .aliases import BatchCall, BatchItem, Format, Listing, OnPermission, OnProgress, OnQuestion, Strategy
from .calls import AsyncCall
from .environment import TOOLCHAIN
from .errors import (
    CallCancelled,
    Disconnected,
    ExecutionFailed,
    InvalidArguments,
    NotRead,
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
from .events import AsyncEvents
from .loop import Call, Events
from .model import (
    Answer,
    Ask,
    AskPart,
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
from .paths import find_program, socket_path
from .provided_tool import Invocation, Output
from .sync import Client

__all__ = [
    "Answer",
    "Ask",
    "AskPart",
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
    "Listing",
    "NotRead",
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
