#!/usr/bin/env python3
"""The memory of five MCP clients with five servers each: through one toold that mounts them, and without it.

    mcp_memory.py PROGRAMS NODE NODE_MODULES PYTHON_PROGRAMS

The servers are real ones: three in Node, two in Python. Every client lists the tools and calls one of each server before
memory is measured: that of all processes on both ways, clients' bridges and the daemon included. Shared memory counts once
(PSS). `.ci/mcp_servers --memory` installs the servers and runs this.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "mcp"))
from mounted import Mounted  # noqa: E402
from servers import git, known, servers, toml  # noqa: E402

CLIENTS = 5
CALLS = {
    "everything": ("echo", {"message": "hello"}),
    "files": ("list_allowed_directories", {}),
    "memory": ("read_graph", {}),
    "git": ("git_status", {"repo_path": "REPOSITORY"}),
    "time": ("get_current_time", {"timezone": "UTC"}),
}


class McpClient:
    """A client that starts a server on stdin and stdout."""

    def __init__(self, command, environment, folder):
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment, cwd=folder
        )
        self.last = 0
        info = {"name": "mcp_memory", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self.send({"method": "notifications/initialized"})
        self.request("tools/list", {})

    def send(self, message):
        self.server.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.server.stdin.flush()

    def request(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while line := self.server.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                assert "error" not in message, message
                return message["result"]
        raise AssertionError(f"the server ended at {method}")

    def call(self, tool, arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result

    def end(self):
        self.server.stdin.close()
        self.server.terminate()
        self.server.wait()


def memory(pids):
    """The PSS of these processes and of all that they started, in bytes."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue  # It has ended.
        children.setdefault(int(parent), []).append(int(stat.parent.name))
    total, left = 0, list(pids)
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def direct(sections, calls, environment, folder):
    """After each client: the memory of all its servers and of those of the clients before it."""
    clients, sums = [], []
    try:
        for _ in range(CLIENTS):
            for name, (tool, arguments) in calls.items():
                section = sections[name]
                command = [section["command"], *section["args"]]
                clients.append(McpClient(command, environment | section.get("env", {}), folder))
                clients[-1].call(tool, arguments)
            sums.append(memory(client.server.pid for client in clients))
    finally:
        for client in clients:
            client.end()
    return sums


def through_toold(programs, sections, calls, folder):
    mounted, clients, sums = Mounted(programs, toml(sections)), [], []
    try:
        known(mounted, mounted.connect(), sections)
        for _ in range(CLIENTS):
            clients.append(McpClient([f"{programs}/toolctl", "mcp"], mounted.environment, folder))
            for name, (tool, arguments) in calls.items():
                clients[-1].call(f"{name}_{tool}", arguments)
            sums.append(memory([mounted.daemon.pid, *(client.server.pid for client in clients)]))
    finally:
        for client in clients:
            client.end()
        mounted.end()
    return sums


def main():
    programs, node, modules, pythons = (str(Path(path).absolute()) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="toold-memory-") as folder:
        place = Path(folder).resolve()
        for name in ("files", "repository", "home"):
            (place / name).mkdir()
        git(place / "repository", "init", "-q")
        everything = servers(node, Path(modules), Path(pythons), "", place)
        sections = {name: everything[name] for name in CALLS}
        calls = {
            name: (tool, {key: str(place / "repository") if value == "REPOSITORY" else value for key, value in given.items()})
            for name, (tool, given) in CALLS.items()
        }
        # As the daemon starts them.
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place / "home")}
        alone = direct(sections, calls, environment, folder)
        shared = through_toold(programs, sections, calls, folder)
    print("clients   direct      through toold   of direct")
    for clients, (without, with_it) in enumerate(zip(alone, shared), 1):
        print(f"{clients:7} {without / 1e6:8.0f} MB {with_it / 1e6:15.0f} MB {with_it / without:11.2f} x")


main()
