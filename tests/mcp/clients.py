"""The official Python SDK as a client of the daemon: list, call, progress, elicitation, cancel, news of changes.

usage: clients.py TOOLCTL PLUGIN_FOLDER [URL TOKEN]

Without a URL over `toolctl mcp`, which finds the daemon of this script's environment with the few variables that the SDK
passes on. Runs on versions 1 and 2 of the SDK: the older and the newer revisions of the protocol.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import mcp.types as types
from sdk_session import MAJOR, VERSION, opened

TOOLCTL, PLUGINS = sys.argv[1], Path(sys.argv[2])
URL, TOKEN = (sys.argv[3], sys.argv[4]) if len(sys.argv) > 3 else (None, None)
PATIENCE = 30


class News:
    """The server's notifications."""

    def __init__(self):
        self.tools_changed = asyncio.Event()
        self.logged = []

    async def message(self, message):
        if "ToolListChangedNotification" in type(getattr(message, "root", message)).__name__:
            self.tools_changed.set()

    async def log(self, params):
        self.logged.append(params.data)


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"username": "somebody", "email": "some@body.example"})


def connected(news):
    callbacks = {"elicitation_callback": elicit, "logging_callback": news.log, "message_handler": news.message}
    return opened(URL or TOOLCTL, TOKEN, None, callbacks)


def text(result):
    failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
    assert not failed, result
    return result.content[0].text


def daemon(count):
    """A count of calls in the daemon of this script's environment."""
    command = [TOOLCTL, "--no-start", "status", "--json"]
    shown = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)
    return json.loads(shown.stdout)["calls"][count]


def in_flight():
    return daemon("in_flight")


async def until(what, ask):
    for _ in range(PATIENCE * 20):
        if ask():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}")


async def cancel(client):
    """Gives a call up while it runs."""
    # Calls of clients that were asked something and never came back wait for them for a while.
    before = in_flight()
    call = asyncio.ensure_future(client.call_tool("wait_long", {}))
    await until("the call runs", lambda: in_flight() > before)
    if MAJOR == 1:
        # This version does not tell the server by itself.
        params = types.CancelledNotificationParams(requestId=client._request_id - 1)
        await client.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await until("the call has ended", lambda: in_flight() <= before)


async def hear_of_change(client, news, marker):
    """Saves a plugin as a person does, and hears of it."""
    plugin = PLUGINS / f"late_{marker}.lua"
    text = f'hygge.register_tool{{name = "late_{marker}", description = "x", permission = false, execute = function() return "late" end}}\n'
    if MAJOR == 1:
        news.tools_changed.clear()
        plugin.write_text(text)
        await asyncio.wait_for(news.tools_changed.wait(), PATIENCE)
    else:
        async with client.listen(tools_list_changed=True) as heard:
            plugin.write_text(text)
            async with asyncio.timeout(PATIENCE):
                async for _ in heard:
                    break
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert f"late_{marker}" in names, names


async def main():
    news = News()
    async with connected(news) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"read", "bash", "test_simple_text", "tools_call"} <= tools.keys(), sorted(tools)
        started = daemon("started")
        assert "simple text" in text(await client.call_tool("test_simple_text", {}))
        assert daemon("started") > started, "the call went to another daemon"
        heard = []

        async def progress(done, total, message):
            heard.append((done, total))

        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        assert heard == [(0, 100), (50, 100), (100, 100)], heard
        assert "somebody" in text(await client.call_tool("test_elicitation", {"message": "Who?"}))
        resources = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "test://static-text" in resources, resources
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        assert "arg1='a'" in prompt.messages[0].content.text
        await cancel(client)
        await hear_of_change(client, news, f"{MAJOR}_{'http' if URL else 'stdio'}")
    print(f"mcp {VERSION} over {'HTTP' if URL else 'toolctl mcp'}: all is well")


asyncio.run(asyncio.wait_for(main(), 120))
