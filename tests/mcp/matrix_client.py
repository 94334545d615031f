"""The official Python SDK, version 1 or 2, as a client of the daemon that uses mounted servers.

    matrix_client.py SERVERS TOOLCTL
    matrix_client.py SERVERS URL TOKEN

SERVERS is JSON: for each server the actions to try, and for each action its tool. Prints JSON: for each server and action
`ok`, or why it failed.
"""

import asyncio
import json
import os
import sys
import uuid

import mcp.types as types
from sdk_session import MAJOR, VERSION, opened

PATIENCE = 30


class News:
    def __init__(self):
        self.tools_changed = asyncio.Event()

    async def message(self, message):
        if "ToolListChangedNotification" in type(getattr(message, "root", message)).__name__:
            self.tools_changed.set()


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"color": "red"})


def connected(news, place, token):
    # The SDK passes few variables by default; the daemon is found by others here.
    callbacks = {"elicitation_callback": elicit, "message_handler": news.message}
    return opened(place, token, dict(os.environ), callbacks)


def text(result):
    failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
    words = " ".join(getattr(block, "text", "") for block in result.content)
    assert not failed, words
    return words


async def names(client):
    return [tool.name for tool in (await client.list_tools()).tools]


async def cancel(client, tools):
    before = int(text(await client.call_tool(tools["count"], {})))
    # The id that the call gets.
    number = getattr(client, "_request_id", None)
    call = asyncio.ensure_future(client.call_tool(tools["wait"], {}))
    await asyncio.sleep(0)

    async def running():
        return int(text(await client.call_tool(tools["running"], {}))) > 0

    await until(running)
    if MAJOR == 1:
        # This version does not tell the server by itself.
        params = types.CancelledNotificationParams(requestId=number)
        await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)

    async def ended():
        return int(text(await client.call_tool(tools["count"], {}))) > before

    await until(ended)


async def until(ask):
    for _ in range(PATIENCE * 10):
        if await ask():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("waited in vain")


async def grow(client, news, tool, prefix):
    name = f"grown{uuid.uuid4().hex[:6]}"
    if MAJOR == 1:
        news.tools_changed.clear()
        text(await client.call_tool(tool, {"name": name}))
        await asyncio.wait_for(news.tools_changed.wait(), PATIENCE)
    else:
        async with client.listen(tools_list_changed=True) as heard:
            text(await client.call_tool(tool, {"name": name}))
            async with asyncio.timeout(PATIENCE):
                async for _ in heard:
                    break
    listed = await names(client)
    assert f"{prefix}_{name}" in listed, f"{prefix}_{name} is not listed"
    assert "grown" in text(await client.call_tool(f"{prefix}_{name}", {}))


async def progress(client, tool):
    heard = []

    async def take(done, total, message):
        heard.append(done)

    text(await client.call_tool(tool["name"], tool["arguments"], progress_callback=take))
    assert heard and heard == sorted(heard), f"progress: {heard}"


async def act(client, news, server, action, given):
    if action == "list":
        listed = await names(client)
        assert given in listed, f"{given} is not listed"
    elif action == "call":
        assert given["words"] in text(await client.call_tool(given["name"], given["arguments"]))
    elif action == "progress":
        await progress(client, given)
    elif action == "cancel":
        await cancel(client, given)
    elif action == "elicitation":
        assert "red" in text(await client.call_tool(given, {}))
    else:
        await grow(client, news, given, server)


async def main():
    servers, place, *token = sys.argv[1:]
    news, done = News(), {}
    async with connected(news, place, token[0] if token else None) as client:
        for server, actions in json.loads(servers).items():
            for action, given in actions.items():
                try:
                    await asyncio.wait_for(act(client, news, server, action, given), 2 * PATIENCE)
                    done.setdefault(server, {})[action] = "ok"
                except Exception as error:
                    done.setdefault(server, {})[action] = f"{type(error).__name__}: {error}"[:300]
    print(json.dumps({"client": f"Python SDK {VERSION}", "done": done}))


asyncio.run(main())
