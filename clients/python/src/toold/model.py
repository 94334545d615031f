"""The daemon's answers and events as Python objects. Ignores members that are newer than this package."""

from __future__ import annotations

import base64
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Scope = Literal["once", "session", "project", "always"]
Workspace = Literal["open", "pending", "none"]


def known(cls: type[T], wire: Mapping[str, Any], **others: Any) -> T:
    """An object of this class, from the members that it knows."""
    names = {f.name for f in fields(cls) if f.init}  # type: ignore[arg-type]
    return cls(**{**{name: wire[name] for name in names if name in wire}, **others})


@dataclass(frozen=True)
class Session:
    """The context of a conversation: its folder, its permissions, its calls."""

    session_id: str
    # With links resolved.
    cwd: str
    # Whether it existed before.
    resumed: bool
    # `name`, `version` and `protocol` of the daemon.
    server: dict[str, Any]
    # Whether its tools may work in the folder. `pending`: the first call that needs it asks for approval; `none`: the
    # session has no folder, and only tools that need none work.
    workspace: Workspace = "open"
    # Names of variables that this client may not set, and that have no effect.
    env_ignored: list[str] = field(default_factory=list)
    # Why the session ends with the daemon; `None` when it is stored.
    not_kept: str | None = None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Session:
        return known(cls, wire)


@dataclass(frozen=True)
class SharedSession:
    """A code with which an agent can join a session once."""

    # Pass it to `open_session` as `session_id`.
    code: str
    # In seconds.
    expires_in: int

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> SharedSession:
        return known(cls, wire)


@dataclass(frozen=True)
class Source:
    """The owner of a tool."""

    kind: str
    name: str
    path: str | None = None


@dataclass(frozen=True)
class Tool:
    """A tool's description."""

    name: str
    label: str
    description: str
    input_schema: dict[str, Any]
    source: Source
    parallelizable: bool
    permissions: list[str]
    cacheable: bool
    annotations: dict[str, bool]
    output_schema: dict[str, Any] | None = None
    timeout_ms: int | None = None
    version: str | None = None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Tool:
        return known(cls, wire, source=known(Source, wire["source"]))


@dataclass(frozen=True)
class Block:
    """A piece of a result. `type` is `text`, `image`, `audio` or `resource`, and determines the members."""

    type: str
    text: str | None = None
    # Base64, of images and sounds.
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None
    # Base64, of resources.
    blob: str | None = None
    # Of links to resources, which have neither `text` nor `blob`.
    name: str | None = None
    description: str | None = None
    # The `_meta` of a mounted MCP server.
    meta: Mapping[str, Any] | None = None

    def decoded(self) -> bytes:
        """The bytes of an image, a sound or a resource; empty if there are none."""
        return base64.b64decode(self.data or self.blob or "")


@dataclass(frozen=True)
class ToolResult:
    """The result of a call. With `is_error`, the tool ran and failed, and the content says why."""

    call_id: str
    content: list[Block]
    is_error: bool
    # For the user interface, not for the model.
    metadata: dict[str, Any]
    # Without the time spent waiting for approval and for other calls.
    duration_ms: int
    cached: bool
    # Matches the tool's `output_schema`.
    structured: Any = None

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> ToolResult:
        return known(cls, wire, content=[known(Block, block) for block in wire["content"]])

    @property
    def text(self) -> str:
        """The text blocks, one under another."""
        return "\n".join(block.text for block in self.content if block.type == "text" and block.text is not None)


@dataclass(frozen=True)
class Progress:
    """Progress of a running call. `kind` determines the members."""

    call_id: str
    # From 0, without gaps but those that `dropped` counts.
    seq: int
    # `output` (stream, text), `message` (text) or `update` (the others).
    kind: str
    stream: str | None = None
    text: str | None = None
    progress: float | None = None
    total: float | None = None
    message: str | None = None
    content: list[Block] | None = None
    details: dict[str, Any] | None = None
    # How many before this one were dropped, because they were not read in time.
    dropped: int = 0

    @classmethod
    def of(cls, wire: Mapping[str, Any], dropped: int = 0) -> Progress:
        content = wire.get("content")
        blocks = None if content is None else [known(Block, block) for block in content]
        return known(cls, wire, content=blocks, dropped=dropped + int(wire.get("dropped") or 0))


@dataclass(frozen=True)
class Event:
    """An event in the daemon. The members of its `kind` are in `data`: `event["tool"]`."""

    kind: str
    seq: int
    epoch: str
    # RFC 3339, UTC.
    at: str
    data: dict[str, Any]

    @classmethod
    def of(cls, wire: Mapping[str, Any]) -> Event:
        own = ("kind", "seq", "epoch", "at")
        data = {name: value for name, value in wire.items() if name not in own}
        return cls(wire["kind"], wire.get("seq", 0), wire.get("epoch", ""), wire.get("at", ""), data)

    def __getitem__(self, name: str) -> Any:
        return self.data[name]


@dataclass(frozen=True)
class Reply:
    """An answer to a permission request, from `Ask.allow` or `Ask.deny`."""

    action: Literal["allow", "deny"]
    scope: Scope | None = None
    pattern: str | None = None
    message: str | None = None
    # The answer is for all `parts` of the request.
    all_parts: bool = False


@dataclass(frozen=True)
class Suggestion:
    """A pattern that you can allow, and for how long."""

    scope: Scope
    pattern: str


@dataclass(frozen=True)
class AskPart:
    """One of the things that a call asks for."""

    category: str
    target: str


@dataclass(frozen=True)
class Ask:
    """A permission request of a call."""

    request_id: str
    session_id: str
    call_id: str
    # `file.read`, `file.write`, `shell`, `network`, `mcp`, `agent` or `plugin`.
    category: str
    # A path, one simple command, a host and port, or a name.
    target: str
    tool: str
    source: Source
    cwd: str
    suggestions: list[Suggestion]
    asked_at: str
    expires_at: str
    call_ids: list[str] = field(default_factory=list)
    reason: str | None = None
    # The whole command line that contains the target.
    command: str | None = None
    # The change that would be written, as a unified diff.
    diff: str | None = None
    # The plugins between the caller and this request.
    chain: list[str] = field(default_factory=list)
    # The program whose session the call belongs to, as it named itself.
    agent: str | None = None
    # All that wait for the answer, when several do; they may change until the answer.
    agents: list[str] = field(default_factory=list)
    # Everything that the call asks for, with this request as number `part`, from 1; empty when that is this alone.
    parts: list[AskPart] = field(default_factory=list)
    part: int | None = None
    # Set as soon as no answer is needed any more: another client gave it, or the call has ended.
    over: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    @classmethod
    def of(cls, wire: Mapping[str, Any], over: threading.Event) -> Ask:
        suggestions = [known(Suggestion, each) for each in wire.get("suggestions", [])]
        parts = [known(AskPart, each) for each in wire.get("parts", [])]
        return known(cls, wire, source=known(Source, wire["source"]), suggestions=suggestions, parts=parts, over=over)

    @property
    def is_for_workspace(self) -> bool:
        """Whether a client asks for a folder to work in, and not for one file.

        `reason` names the client and the folder. Every other request to read suggests patterns. All answers but those
        for the session are remembered for this client and folder.
        """
        return self.category == "file.read" and not self.suggestions

    def allow(self, scope: Scope = "once", pattern: str | None = None) -> Reply:
        """Allows it once, or for the scope and for everything that the pattern matches.

        The pattern must be one of the suggestions; by default it is exactly the target.
        """
        return Reply("allow", scope, pattern)

    def allow_all_parts(self, scope: Scope = "once") -> Reply:
        """Allows everything in `parts`, each exactly as shown."""
        return Reply("allow", scope, all_parts=True)

    def deny(self, message: str | None = None, scope: Scope = "once") -> Reply:
        """Denies it. The model sees the message."""
        return Reply("deny", scope, None, message)


@dataclass(frozen=True)
class Option:
    """One of the answers that a question offers."""

    id: str
    label: str
    description: str | None = None


@dataclass(frozen=True)
class Answer:
    """An answer to a question, from `Question.choose`, `Question.say` or `Question.cancel`."""

    answer_ids: tuple[str, ...] | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Question:
    """A question that a tool asks you."""

    request_id: str
    session_id: str
    question: str
    options: list[Option]
    call_id: str | None = None
    # Whether more than one option may be chosen.
    multiple: bool = False
    # Whether free text is allowed as the answer.
    allow_other: bool = False
    asked_at: str | None = None
    expires_at: str | None = None
    # Set as soon as no answer is needed any more.
    over: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    @classmethod
    def of(cls, wire: Mapping[str, Any], over: threading.Event) -> Question:
        return known(cls, wire, options=[known(Option, each) for each in wire.get("options", [])], over=over)

    def choose(self, *options: Option | str) -> Answer:
        """Answers with one or more options, or their ids."""
        return Answer(answer_ids=tuple(o.id if isinstance(o, Option) else o for o in options))

    def say(self, words: str) -> Answer:
        """Answers with free text, if the question allows it."""
        return Answer(answer=words)

    def cancel(self) -> Answer:
        """Ends the question without an answer."""
        return Answer()
