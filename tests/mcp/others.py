"""Mounts MCP servers that others wrote in a real daemon, and calls them.

    others.py TOOLD NODE FILESYSTEM_SERVER PYTHON_WITH_SDK...
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mounted import free_port, listens

PATIENCE = 60
HERE = Path(__file__).resolve().parent


class Client:
    """One message a line, answers by id; other messages are stored."""

    def __init__(self, path, cwd):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rb")
        self.next = 0
        self.kept = []
        if cwd is not None:
            self.call("session.open", {"cwd": str(cwd), "client": {"name": "others"}})

    def request(self, method, params):
        self.next += 1
        message = {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")
        return self.next

    def wait(self, wanted):
        for at, message in enumerate(self.kept):
            if wanted(message):
                return self.kept.pop(at)
        while True:
            line = self.lines.readline()
            assert line, "the daemon is gone"
            message = json.loads(line)
            if wanted(message):
                return message
            self.kept.append(message)

    def answer(self, request):
        message = self.wait(lambda message: message.get("id") == request)
        assert "error" not in message, message
        return message["result"]

    def call(self, method, params):
        return self.answer(self.request(method, params))

    def tool(self, name, **arguments):
        return self.call("tools.execute", {"name": name, "arguments": arguments})

    def notification(self, method):
        return self.wait(lambda message: message.get("method") == method)["params"]


def until(what, ask):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited in vain: {what}")


def text(result):
    return "".join(block.get("text", "") for block in result["content"])


def on_http(python, name, port, transport, path):
    with open(path, "a") as log:
        command = [python, str(HERE / "sdk_server.py"), name, str(port), transport]
        return subprocess.Popen(command, stdout=log, stderr=log, cwd=path.parent)


def check_files(client, folder):
    (folder / "note.txt").write_text("hello\n")
    read = client.tool("files_read_text_file", path=str(folder / "note.txt"))
    assert not read["is_error"] and "hello" in text(read), read
    written = client.tool("files_write_file", path=str(folder / "new.txt"), content="x")
    assert not written["is_error"] and (folder / "new.txt").read_text() == "x", written
    outside = client.tool("files_read_text_file", path="/etc/hostname")
    assert outside["is_error"] and "denied" in text(outside).lower(), outside
    allowed = text(client.tool("files_list_allowed_directories"))
    assert str(folder) in allowed, allowed
    listed = client.call("tools.list", {"source": "mcp"})["tools"]
    reading = next(tool for tool in listed if tool["name"] == "files_read_text_file")
    assert reading["annotations"]["read_only"] and reading["label"], reading


def check_sdk(client, name):
    added = client.tool(f"{name}_add", a=2, b=3)
    assert text(added) == "5" and added["structured"] == {"result": 5}, added
    request = client.request(
        "tools.execute", {"name": f"{name}_count", "arguments": {"n": 3}, "progress": True}
    )
    progress = [client.notification("tools.progress")["message"] for _ in range(3)]
    assert progress == ["at 1", "at 2", "at 3"], progress
    assert text(client.answer(request)) == "counted to 3"
    failed = client.tool(f"{name}_fail")
    assert failed["is_error"] and "fail" in text(failed), failed
    request = client.request("tools.execute", {"name": f"{name}_ask", "arguments": {}})
    asked = until_asked(client)
    client.call("questions.reply", {"request_id": asked["request_id"], "content": {"color": "red"}})
    answered = client.answer(request)
    assert text(answered) == "accept: red", answered


def check_offers(mcp, client, name):
    """Resources, a template with completion, a prompt, and a change that reaches a subscriber."""
    uri = f"{name}://all"
    assert any(resource["uri"] == uri for resource in mcp.call("resources/list", {})["resources"])
    template = f"{name}://one/{{name}}"
    templates = mcp.call("resources/templates/list", {})["resourceTemplates"]
    assert any(listed["uriTemplate"] == template for listed in templates), templates

    def read(uri):
        return mcp.call("resources/read", {"uri": uri})["contents"][0]["text"]

    assert (read(uri), read(f"{name}://one/a")) == ("each note", "the note a")
    argument = {"name": "name", "value": "a"}
    completed = mcp.call("completion/complete", {"ref": {"type": "ref/resource", "uri": template}, "argument": argument})
    assert completed["completion"]["values"] == ["a1", "a2"], completed
    prompt = mcp.call("prompts/get", {"name": f"{name}_greet", "arguments": {"name": "Ann"}})
    assert prompt["messages"][0]["content"]["text"] == "Say hello to Ann.", prompt
    if name.startswith("sse"):
        # The server on the SDK 2.x tells changes to clients of 2026-07-28 only, which this transport does not have.
        return
    mcp.call("resources/subscribe", {"uri": uri})
    assert text(client.tool(f"{name}_change", text="new")) == "changed"
    assert mcp.notification("notifications/resources/updated")["uri"] == uri
    assert read(uri) == "new"
    mcp.call("resources/unsubscribe", {"uri": uri})


class Agent(Client):
    """A client that speaks MCP, and has a model."""

    def __init__(self, path, cwd):
        super().__init__(path, None)
        self.call("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {"sampling": {}},
            "clientInfo": {"name": "agent", "version": "1"}, "_meta": {"toold/default-cwd": str(cwd)},
        })
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def tool(self, name, **arguments):
        return self.call("tools/call", {"name": name, "arguments": arguments})


def check_requests(agent, person, name, folder):
    """Roots, sampling and log messages of a server on the SDK."""
    roots = agent.tool(f"{name}_roots")
    assert text(roots) == folder.as_uri(), roots
    request = agent.request("tools/call", {"name": f"{name}_sample", "arguments": {}})
    while (event := person.notification("permissions.event")["result"])["type"] != "asked":
        pass
    ask = event["request"]
    assert ask["target"] == f"{name}/sampling" and "How warm is it?" in ask["reason"], ask
    assert not any(message.get("method") == "sampling/createMessage" for message in agent.kept)
    person.call("permissions.reply", {"request_id": ask["request_id"], "action": "allow"})
    asked = agent.wait(lambda message: message.get("method") == "sampling/createMessage")
    answer = {"role": "assistant", "content": {"type": "text", "text": "warm"}, "model": "m", "stopReason": "endTurn"}
    agent.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
    assert text(sampled := agent.answer(request)) == "m: warm", sampled
    agent.tool(f"{name}_log", text="it is full")
    logged = agent.notification("notifications/message")
    assert logged == {"level": "warning", "logger": f"{name}/disk", "data": "it is full"}, logged


def check_loss(client, name, again):
    """A server on HTTP that goes and comes back; `again` starts it."""
    gone = client.tool(f"{name}_add", a=1, b=1)
    # The end of an open stream is noticed before the call, or during it.
    reasons = ("can't be reached", "is not available", "was lost")
    assert gone["is_error"] and any(reason in text(gone) for reason in reasons), gone
    assert f"{name}_add" in json.dumps(client.call("tools.list", {"source": "mcp"}))
    again()
    restarted = client.call("mcp.restart", {"name": name})["servers"][0]
    assert restarted["state"] == "running", restarted
    assert text(client.tool(f"{name}_add", a=1, b=1)) == "2"


def until_asked(client):
    while True:
        event = client.notification("questions.event")["result"]
        if event["type"] == "asked":
            return event["request"]


def main(toold, node, files, *pythons):
    with tempfile.TemporaryDirectory(prefix="toold-others-") as temporary:
        root = Path(temporary).resolve()
        for name in ["config/toold", "state", "run", "home", "work", "allowed"]:
            (root / name).mkdir(parents=True)
        servers = {"files": {"command": os.path.abspath(node), "args": [os.path.abspath(files), str(root / "allowed")]}}
        started, names = {}, []

        def start(name):
            python, port, transport = remote[name]
            started[name] = on_http(python, name, port, transport, root / f"{name}.log")

        def listening(name):
            until(f"{name} listens", lambda: started[name].poll() is None and listens(remote[name][1]))

        remote = {}
        for at, python in enumerate(pythons, 1):
            python = str(Path(python).absolute())
            servers[f"pipe{at}"] = {"command": python, "args": [str(HERE / "sdk_server.py"), f"pipe{at}"]}
            remote[f"web{at}"] = (python, free_port(), "streamable-http")
            remote[f"sse{at}"] = (python, free_port(), "sse")
            servers[f"web{at}"] = {"url": f"http://127.0.0.1:{remote[f'web{at}'][1]}/mcp", "headers": {"X-Test": "1"}}
            servers[f"sse{at}"] = {"type": "sse", "url": f"http://127.0.0.1:{remote[f'sse{at}'][1]}/sse"}
            names += [f"pipe{at}", f"web{at}", f"sse{at}"]
        for name in remote:
            start(name)
        for name in remote:
            listening(name)
        (root / "home/mcp.json").write_text(json.dumps({"mcpServers": servers}))
        (root / "config/toold/config.toml").write_text(
            '[mcp]\nimport = ["~/mcp.json"]\n'
            '[[permission.rules]]\ncategory = "mcp"\npattern = "**"\naction = "allow"\n'
        )
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "TOOLD_SOCKET": str(root / "run/toold.sock"),
        }
        log = open(root / "log", "w")
        daemon = subprocess.Popen([toold, "serve"], env=environment, stdin=subprocess.DEVNULL, stderr=log)
        try:
            path = root / "run/toold.sock"
            until("the daemon listens", path.exists)
            client = Client(path, root / "work")
            client.call("questions.subscribe", {})
            person = Client(path, root / "work")
            person.call("permissions.subscribe", {})
            agent = Agent(path, root / "work")

            def running():
                listed = client.call("mcp.servers", {})["servers"]
                failed = [server for server in listed if server["state"] == "failed"]
                assert not failed, failed
                return len(listed) == len(servers) and all(server["state"] == "running" for server in listed) and listed

            for server in until("all servers run", running):
                print(f"{server['name']}: MCP {server['protocol']} over {server['transport']}, {len(server['tools'])} tools")
            check_files(client, root / "allowed")
            for name in names:
                check_sdk(client, name)
                check_requests(agent, person, name, root / "work")
                print(f"{name}: structured results, progress, errors, a form, roots, sampling and a log")
                check_offers(agent, client, name)
                print(f"{name}: resources, a template, completion and a prompt")
            for name in remote:
                started[name].kill()
                started[name].wait()

                def again():
                    start(name)
                    listening(name)

                check_loss(client, name, again)
                print(f"{name}: went and came back")
        except BaseException:
            sys.stdout.write((root / "log").read_text())
            for name in started:
                sys.stdout.write((root / f"{name}.log").read_text())
            raise
        finally:
            for server in started.values():
                server.kill()
                server.wait()
            daemon.terminate()
            status = daemon.wait(PATIENCE)
            assert status == 0, f"the daemon ended with {status}"
    print("all went well")


main(*sys.argv[1:])
