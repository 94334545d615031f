"""A server on the official Python SDK, 1.x or 2.x.

`sdk_server.py` is on stdio, `sdk_server.py PORT` on Streamable HTTP, and `sdk_server.py PORT sse` on HTTP with SSE.
"""

import sys
from typing import Annotated

from pydantic import BaseModel

port = int(sys.argv[1]) if len(sys.argv) > 1 else None
transport = sys.argv[2] if len(sys.argv) > 2 else "streamable-http"
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


if on_http:
    from mcp.server.mcpserver.resolve import Elicit, Resolve

    def pick() -> Elicit[Color]:
        return Elicit("Which color?", Color)

    @server.tool()
    def ask(color: Annotated[Color, Resolve(pick)]) -> str:
        """Has a person asked for a color before it is called."""
        return f"accept: {color.color}"

else:

    @server.tool()
    async def ask(ctx: Context) -> str:
        """Asks a person for a color."""
        answer = await ctx.elicit("Which color?", Color)
        return f"{answer.action}: {answer.data.color if answer.action == 'accept' else ''}"


@server.tool()
def fail() -> str:
    """Always fails; the SDK chooses the message."""
    raise ValueError("on purpose")


if port is None:
    server.run("stdio")
else:
    server.run(transport, **on_http)
