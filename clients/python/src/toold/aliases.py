"""Names for the types of parameters and results that both clients share."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar, Union

from .errors import RpcError
from .model import Answer, Ask, Progress, Question, Reply, ToolResult

F = TypeVar("F", bound=Callable[..., Any])

Path_ = Union[str, "os.PathLike[str]"]
Format = Literal["anthropic", "openai", "openai_responses", "gemini", "mcp"]
# Which tools a list shows.
Listing = Literal["all", "deferred"]
# A number runs units of so many calls, one unit after another.
Strategy = Union[Literal["auto", "sequential", "parallel"], int]
# One call of a batch: a name and its arguments, or `{"name", "arguments", "call_id"}`.
BatchCall = Union[tuple[str, Mapping[str, Any]], Mapping[str, Any]]
# The result of one call of a batch. Errors are returned, not raised, so that an error hides no other call's result.
BatchItem = Union[ToolResult, RpcError]
OnPermission = Callable[[Ask], Union[Reply, None, Awaitable[Union[Reply, None]]]]
OnQuestion = Callable[[Question], Union[Answer, None, Awaitable[Union[Answer, None]]]]
OnProgress = Callable[[Progress], Any]
