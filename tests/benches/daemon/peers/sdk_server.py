"""A server of one tool on the official Python SDK, 1.x or 2.x, on stdio."""

try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server.mcpserver import MCPServer as Server

server = Server("bench", log_level="ERROR")


@server.tool()
def noop(text: str) -> str:
    return text


server.run()
