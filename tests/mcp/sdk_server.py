"""A server on the official Python SDK, 1.x or 2.x.

`sdk_server.py NAME` is on stdio, `sdk_server.py NAME PORT` on Streamable HTTP, and `sdk_server.py NAME PORT sse` on HTTP with
SSE. Its resources are `NAME://all` and `NAME://one/{name}`.
"""

import sys
from typing import Annotated

from mcp import types
from pydantic import BaseModel

name = sys.argv[1]
port = int(sys.argv[2]) if len(sys.argv) > 2 else None
transport = sys.argv[3] if len(sys.argv) > 3 else "streamable-http"
try:
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("sdk")
    on_http = {"host": "127.0.0.1", "port": port}
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP

    server = FastMCP("sdk", host="127.0.0.1", port=port or 0)
    on_http = {}


class Color(BaseModel):
    color: str


QUESTION = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="How warm is it?"))


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def count(n: int, ctx: Context) -> str:
    """Counts, and tells how far it is."""
    for i in range(n):
        await ctx.report_progress(i + 1, n, f"at {i + 1}")
    return f"counted to {n}"


notes = {"all": "each note"}


@server.resource(f"{name}://all", mime_type="text/plain")
def every_note() -> str:
    """All notes."""
    return notes["all"]


@server.resource(f"{name}://one/{{name}}", mime_type="text/plain")
def note(name: str) -> str:
    """One note."""
    return f"the note {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Say hello to {name}."


@server.completion()
async def complete(ref, argument, context):
    return types.Completion(values=[f"{argument.value}1", f"{argument.value}2"])


@server.tool()
async def change(text: str, ctx: Context) -> str:
    """Changes a resource."""
    notes["all"] = text
    if on_http:
        await ctx.notify_resource_updated(f"{name}://all")
    else:
        await ctx.session.send_resource_updated(f"{name}://all")
    return "changed"


if not on_http:
    # FastMCP of the SDK 1.x has no subscriptions: they are added below it.
    lowlevel = server._mcp_server
    capabilities = lowlevel.get_capabilities

    def with_subscriptions(*given):
        declared = capabilities(*given)
        declared.resources.subscribe = True
        return declared

    lowlevel.get_capabilities = with_subscriptions

    @lowlevel.subscribe_resource()
    async def subscribe(uri):
        print("subscribed to", uri, file=sys.stderr)

    @lowlevel.unsubscribe_resource()
    async def unsubscribe(uri):
        print("unsubscribed from", uri, file=sys.stderr)


if on_http:
    from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample

    def pick() -> Elicit[Color]:
        return Elicit("Which color?", Color)

    @server.tool()
    def ask(color: Annotated[Color, Resolve(pick)]) -> str:
        """Has a person asked for a color before it is called."""
        return f"accept: {color.color}"

    @server.tool()
    def roots(listed: Annotated[types.ListRootsResult, Resolve(ListRoots)]) -> str:
        """The folders of the client."""
        return " ".join(str(root.uri) for root in listed.roots)

    def warmth() -> Sample:
        return Sample([QUESTION], max_tokens=10)

    @server.tool()
    def sample(answer: Annotated[types.CreateMessageResult, Resolve(warmth)]) -> str:
        """Has the client's model asked before it is called."""
        return f"{answer.model}: {answer.content.text}"

else:

    @server.tool()
    async def ask(ctx: Context) -> str:
        """Asks a person for a color."""
        answer = await ctx.elicit("Which color?", Color)
        return f"{answer.action}: {answer.data.color if answer.action == 'accept' else ''}"

    @server.tool()
    async def roots(ctx: Context) -> str:
        """The folders of the client."""
        listed = await ctx.session.list_roots()
        return " ".join(str(root.uri) for root in listed.roots)

    @server.tool()
    async def sample(ctx: Context) -> str:
        """Asks the client's model."""
        answer = await ctx.session.create_message(messages=[QUESTION], max_tokens=10)
        return f"{answer.model}: {answer.content.text}"


@server.tool()
async def log(text: str, ctx: Context) -> str:
    """Logs a warning."""
    await ctx.session.send_log_message(level="warning", data=text, logger="disk", related_request_id=ctx.request_id)
    return "logged"


@server.tool()
def fail() -> str:
    """Always fails; the SDK chooses the message."""
    raise ValueError("on purpose")


if port is None:
    server.run("stdio")
else:
    server.run(transport, **on_http)
