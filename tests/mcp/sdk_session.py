"""A session of the official Python SDK, version 1 or 2, with the daemon."""

import importlib.metadata
from contextlib import AsyncExitStack, asynccontextmanager

from mcp import ClientSession, StdioServerParameters

VERSION = importlib.metadata.version("mcp")
MAJOR = int(VERSION.split(".")[0])


@asynccontextmanager
async def opened(place, token, environment, callbacks):
    """Over HTTP to the URL `place` with a token, or over the program `place`, `toolctl`, with a token of None. The program
    gets `environment`; with None, the few variables that the SDK passes by default."""
    headers = {"Authorization": f"Bearer {token}"}
    async with AsyncExitStack() as stack:
        server = StdioServerParameters(command=place, args=["mcp"], env=environment)
        if MAJOR == 1:
            from mcp.client.stdio import stdio_client
            from mcp.client.streamable_http import streamablehttp_client

            streams = streamablehttp_client(place, headers=headers) if token else stdio_client(server)
            read, write, *_ = await stack.enter_async_context(streams)
            session = await stack.enter_async_context(ClientSession(read, write, **callbacks))
            await session.initialize()
            yield session
            return
        from mcp import Client

        if token:
            from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

            http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
            server = streamable_http_client(place, http_client=http)
        yield await stack.enter_async_context(Client(server, **callbacks))
