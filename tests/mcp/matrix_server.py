"""A server with a tool for each thing that clients do, on FastMCP or on the official Python SDK, 1.x or 2.x.

`matrix_server.py` is on stdio, `matrix_server.py PORT` on Streamable HTTP.
"""

import asyncio
import sys

from pydantic import BaseModel

try:
    from fastmcp import Context, FastMCP as Server

    KIND = "fastmcp"
except ImportError:
    try:
        from mcp.server.mcpserver import Context, MCPServer as Server

        KIND = "sdk2"
    except ImportError:
        from mcp.server.fastmcp import Context, FastMCP as Server

        KIND = "sdk1"

port = int(sys.argv[1]) if len(sys.argv) > 1 else None
server = Server("matrix", host="127.0.0.1", port=port or 0) if KIND == "sdk1" else Server("matrix")
waiting = {"running": 0, "cancelled": 0}


class Color(BaseModel):
    color: str


@server.tool()
def echo(text: str) -> str:
    """Says it again."""
    return f"echo: {text}"


@server.tool()
async def steps(ctx: Context) -> str:
    """Tells how far it is."""
    for step in range(3):
        await ctx.report_progress(step + 1, 3)
        # The TypeScript SDKs lose progress that arrives in one piece with the result.
        await asyncio.sleep(0.2)
    return "done"


@server.tool()
async def wait() -> str:
    """Waits to be cancelled."""
    waiting["running"] += 1
    try:
        await asyncio.sleep(120)
    except BaseException:
        waiting["cancelled"] += 1
        raise
    finally:
        waiting["running"] -= 1
    return "waited"


@server.tool()
def running() -> str:
    """How many calls wait."""
    return str(waiting["running"])


@server.tool()
def cancelled() -> str:
    """How many calls were cancelled."""
    return str(waiting["cancelled"])


def grown() -> str:
    """Was added while the server ran."""
    return "grown"


async def add_and_tell(name, ctx):
    if KIND == "fastmcp":
        from fastmcp.tools import Tool

        server.add_tool(Tool.from_function(grown, name=name))
    else:
        server.add_tool(grown, name=name)
    tell = getattr(ctx, "notify_tools_changed", None) or ctx.session.send_tool_list_changed
    await tell()


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Adds a tool."""
    await add_and_tell(name, ctx)
    return "added"


if KIND == "sdk2":
    from typing import Annotated

    from mcp.server.mcpserver.resolve import Elicit, Resolve

    def pick() -> Elicit[Color]:
        return Elicit("Which color?", Color)

    @server.tool()
    def ask(color: Annotated[Color, Resolve(pick)]) -> str:
        """Has a person asked before it is called."""
        return f"answer: {color.color}"

else:

    @server.tool()
    async def ask(ctx: Context) -> str:
        """Asks a person."""
        answer = await ctx.elicit("Which color?", Color)
        return f"answer: {answer.data.color}" if answer.action == "accept" else answer.action


if KIND == "sdk1":
    # Without this, the SDK declares that the list never changes.
    from mcp.server.lowlevel import NotificationOptions

    declare = server._mcp_server.create_initialization_options
    server._mcp_server.create_initialization_options = lambda *_, **__: declare(NotificationOptions(tools_changed=True))

if port is None:
    server.run("stdio")
elif KIND == "sdk1":
    server.run("streamable-http")
else:
    server.run("streamable-http", host="127.0.0.1", port=port)
