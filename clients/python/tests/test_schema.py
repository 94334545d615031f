"""The schema from the type hints of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from toold import Block, Invocation, Output
from toold.provided_tool import provided_tool, schema_of, to_wire


class Point(TypedDict):
    x: float
    y: float


class Named(Point, total=False):
    name: str


def plain(text: str, count: int = 3, *, loud: bool = False, ratio: float = 0.5) -> None: ...
def nested(lines: list[str], table: dict[str, list[int]], rows: Sequence[Mapping[str, float]]) -> None: ...
def choices(mode: Literal["a", "b"], either: Union[int, str], perhaps: Optional[str] = None) -> None: ...
def new_union(value: int | None) -> None: ...
def described(city: Annotated[str, "The city's name"], n: Annotated[int, {"minimum": 1}] = 1) -> None: ...
def typed(point: Named) -> None: ...
def loose(anything: Any, bare, items: list, **others: str) -> None: ...  # type: ignore[no-untyped-def, type-arg]
def with_call(call: Invocation, text: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "properties", "required"),
    [
        (
            plain,
            {
                "text": {"type": "string"},
                "count": {"type": "integer", "default": 3},
                "loud": {"type": "boolean", "default": False},
                "ratio": {"type": "number", "default": 0.5},
            },
            ["text"],
        ),
        (
            nested,
            {
                "lines": {"type": "array", "items": {"type": "string"}},
                "table": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                },
                "rows": {
                    "type": "array",
                    "items": {"type": "object", "additionalProperties": {"type": "number"}},
                },
            },
            ["lines", "table", "rows"],
        ),
        (
            choices,
            {
                "mode": {"enum": ["a", "b"]},
                "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "perhaps": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            ["mode", "either"],
        ),
        (new_union, {"value": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, ["value"]),
        (
            described,
            {
                "city": {"type": "string", "description": "The city's name"},
                "n": {"type": "integer", "minimum": 1, "default": 1},
            },
            ["city"],
        ),
        (
            typed,
            {
                "point": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": "number"}, "name": {"type": "string"}},
                    "required": ["x", "y"],
                    "additionalProperties": False,
                }
            },
            ["point"],
        ),
        (with_call, {"text": {"type": "string"}}, ["text"]),
    ],
)
def test_hints_become_a_schema(
    function: Callable[..., Any], properties: dict[str, Any], required: list[str]
) -> None:
    schema = schema_of(function)
    assert schema == {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def test_what_has_no_hint_takes_anything() -> None:
    schema = schema_of(loose)
    assert schema["properties"] == {"anything": {}, "bare": {}, "items": {"type": "array"}}
    assert schema["additionalProperties"] is True


def test_a_hint_that_json_does_not_know_is_named() -> None:
    def strange(good: str, bad: bytes) -> None:
        """Strange"""

    with pytest.raises(TypeError, match="bad of strange.*give a schema="):
        provided_tool(strange)
    assert provided_tool(strange, schema={"type": "object"}).spec["input_schema"] == {"type": "object"}


def test_arguments_without_names_are_refused() -> None:
    def spread(*words: str) -> None:
        """Spread"""

    with pytest.raises(TypeError, match="words of spread"):
        provided_tool(spread)


def test_a_tool_has_a_description() -> None:
    with pytest.raises(TypeError, match="no docstring"):
        provided_tool(plain)
    assert provided_tool(plain, description="Plain").spec["description"] == "Plain"


@pytest.mark.parametrize(
    ("given", "wire"),
    [
        (None, ""),
        ("text", "text"),
        (3, "3"),
        ([1, "ü"], '[1, "ü"]'),
        ({"a": 1}, {"content": '{"a": 1}', "structured": {"a": 1}}),
        (Output("bad", is_error=True), {"content": "bad", "is_error": True, "metadata": {}}),
        (
            Block("image", data="AA==", mime_type="image/png"),
            {
                "content": [{"type": "image", "data": "AA==", "mime_type": "image/png"}],
                "is_error": False,
                "metadata": {},
            },
        ),
    ],
)
def test_results_go_as_the_wire_wants_them(given: object, wire: object) -> None:
    assert to_wire(given) == wire


def test_what_json_cannot_hold_is_no_result() -> None:
    for bad in (object(), float("nan"), {1, 2}):
        with pytest.raises((TypeError, ValueError)):
            to_wire(bad)
