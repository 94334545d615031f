"""Python functions as tools: the schema from type hints, and the results in the form of the protocol."""

from __future__ import annotations

import dataclasses
import inspect
import json
import threading
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from .model import Block

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array"},
    Any: {},
    object: {},
}


@dataclasses.dataclass(frozen=True)
class Output:
    """A full result of a provided tool. A string or any other JSON value is often enough."""

    content: str | Sequence[Block] = ""
    is_error: bool = False
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    structured: Any = None


class Invocation:
    """The call that a provided function runs for: a parameter annotated with this type gets it."""

    def __init__(self, wire: Mapping[str, Any], report: Callable[[dict[str, Any]], None]) -> None:
        self.invocation_id: str = wire["invocation_id"]
        self.call_id: str = wire.get("call_id", "")
        self.session_id: str = wire.get("session_id", "")
        # The folder that the caller works in, which may differ from this process's.
        self.cwd: str = wire.get("cwd", "")
        # Set when the call is cancelled: nobody waits for the result any more.
        self.cancelled = threading.Event()
        self._report = report

    def message(self, text: str) -> None:
        """Sends the caller a message, from any thread; never waits."""
        self._report({"kind": "message", "text": text})

    def output(self, text: str, stream: Literal["stdout", "stderr"] = "stdout") -> None:
        """Sends the caller a piece of output."""
        self._report({"kind": "output", "stream": stream, "text": text})

    def update(self, progress: float | None = None, total: float | None = None, message: str | None = None) -> None:
        """Reports how far the call is."""
        members = {"progress": progress, "total": total, "message": message}
        self._report({"kind": "update", **{name: value for name, value in members.items() if value is not None}})


@dataclasses.dataclass(frozen=True)
class ProvidedTool:
    """A function and its description as a tool."""

    function: Callable[..., Any]
    # As `tools.provide` takes it.
    spec: dict[str, Any]
    # The parameter that gets the `Invocation`.
    wants_invocation: str | None

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    def arguments(self, invocation: Invocation, given: Mapping[str, Any]) -> dict[str, Any]:
        arguments = dict(given)
        if self.wants_invocation is not None:
            arguments[self.wants_invocation] = invocation
        return arguments


def provided_tool(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    schema: Mapping[str, Any] | None = None,
    label: str | None = None,
    parallelizable: bool = False,
    timeout: float | None = None,
    annotations: Mapping[str, bool] | None = None,
) -> ProvidedTool:
    """Describes a function as a tool. Raises `TypeError` for a parameter that its hints do not describe."""
    hints = get_type_hints(function, include_extras=True)
    wants = [parameter for parameter, hint in hints.items() if hint is Invocation and parameter != "return"]
    if description is None:
        description = inspect.getdoc(function)
    if not description:
        raise TypeError(f"{function.__name__} has no docstring: a tool needs a description")
    tool: dict[str, Any] = {
        "name": name or function.__name__,
        "description": description,
        "input_schema": dict(schema) if schema is not None else schema_of(function),
        "parallelizable": parallelizable,
        "annotations": dict(annotations or {}),
    }
    if label is not None:
        tool["label"] = label
    if timeout is not None:
        tool["timeout_ms"] = round(timeout * 1000)
    return ProvidedTool(function, tool, wants[0] if wants else None)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The JSON Schema of a function's parameters."""
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    others = False
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, Any)
        if hint is Invocation:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            others = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"{parameter.name} of {function.__name__}: arguments are passed by name only")
        try:
            described = _describe(hint)
        except TypeError as error:
            raise TypeError(f"{parameter.name} of {function.__name__}: {error}; give a schema=") from None
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default) and parameter.default is not None:
            described = {**described, "default": parameter.default}
        properties[parameter.name] = described
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": others}
    if required:
        schema["required"] = required
    return schema


def _describe(hint: Any) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        described = _describe(arguments[0])
        for extra in arguments[1:]:
            if isinstance(extra, str):
                described["description"] = extra
            elif isinstance(extra, Mapping):
                described.update(extra)
        return described
    if origin is None and hint in _PLAIN:
        return dict(_PLAIN[hint])
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_describe(each) for each in arguments]}
    if origin is list or isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return {"type": "array", "items": _describe(arguments[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return {"type": "object", "additionalProperties": _describe(arguments[1])}
    if typing.is_typeddict(hint):
        members = get_type_hints(hint, include_extras=True)
        properties = {name: _describe(_bare(member)) for name, member in members.items()}
        required = [name for name in members if name in hint.__required_keys__]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    raise TypeError(f"no JSON Schema is known for {hint!r}")


def _bare(hint: Any) -> Any:
    """A member of a `TypedDict` without `Required` and `NotRequired`, which are no part of 3.10."""
    named = getattr(get_origin(hint), "_name", None)
    return get_args(hint)[0] if named in ("Required", "NotRequired") else hint


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def to_wire(given: Any) -> Any:
    """A result in the form of `tools.provide_result`. Raises `TypeError` for a value that JSON cannot hold."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given
    if isinstance(given, Block):
        given = Output([given])
    if isinstance(given, Output):
        content = given.content if isinstance(given.content, str) else [_block(block) for block in given.content]
        full = {"content": content, "is_error": given.is_error, "metadata": dict(given.metadata)}
        return full if given.structured is None else {**full, "structured": given.structured}
    text = json.dumps(given, ensure_ascii=False, allow_nan=False)
    return {"content": text, "structured": given} if isinstance(given, dict) else text


def _block(block: Block) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(block).items() if value is not None}
