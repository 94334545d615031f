"""Figures of the daemon as an MCP server beside other servers, in one run on one machine.

usage: figures.py TOOLD TOOLCTL NODE FILESYSTEM_SERVER_JS PYTHON_WITH_FASTMCP [CALLS]

For each server: the time from its start to its answer to `tools/list`, the median and the 99th percentile of
calls one after another, and the resident memory of all its processes with 1 and with 5 clients. FastMCP is that
of the official SDK when the package `fastmcp` is not there. Build TOOLD and TOOLCTL with `--release`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The servers run in a folder of the test's own. A link is what a virtual environment is known by, so it stays.
TOOLD, TOOLCTL, NODE, FILESYSTEM, PYTHON = (os.path.abspath(path) for path in sys.argv[1:6])
CALLS = int(sys.argv[6]) if len(sys.argv) > 6 else 2000

FASTMCP = """
try:
    from fastmcp import FastMCP as Server
except ImportError:
    try:
        from mcp.server.fastmcp import FastMCP as Server
    except ImportError:
        from mcp.server import MCPServer as Server
server = Server("figures")

@server.tool()
def hello(name: str) -> str:
    return f"hello {name}"

server.run()
"""

PLUGIN = """
hygge.register_tool{name = "hello", description = "Says hello", permission = false, parallelizable = true,
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input) return "hello " .. input.name end}
"""


class Client:
    def __init__(self, command, env, cwd):
        self.began = time.perf_counter()
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
        self.next = 0
        info = {"name": "figures", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = self.ask("tools/list", {})["tools"]
        self.listed = time.perf_counter() - self.began

    def send(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def ask(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            answer = json.loads(self.child.stdout.readline())
            if answer.get("id") == self.next:
                assert "error" not in answer, answer
                return answer["result"]

    def close(self):
        self.child.stdin.close()
        self.child.wait(10)


def resident(pids):
    """Kilobytes, of these processes and all below them."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                pass
    wanted = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in wanted and pid not in wanted}:
        wanted |= more
    total = 0
    for pid in wanted:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        # What processes share counts once in all.
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def measure(name, command, call, env, cwd, shared=()):
    starts = []
    for _ in range(5):
        client = Client(command, env, cwd)
        starts.append(client.listed)
        client.close()
    client = Client(command, env, cwd)
    for _ in range(CALLS // 10):
        client.ask("tools/call", call)
    times = []
    for _ in range(CALLS):
        before = time.perf_counter()
        client.ask("tools/call", call)
        times.append(time.perf_counter() - before)
    times.sort()
    one = resident([client.child.pid, *shared])
    others = [Client(command, env, cwd) for _ in range(4)]
    for other in others:
        other.ask("tools/call", call)
    five = resident([client.child.pid, *shared, *(other.child.pid for other in others)])
    for each in [client, *others]:
        each.close()
    print(
        f"| {name} | {sorted(starts)[2] * 1000:.0f} ms | {times[len(times) // 2] * 1e6:.0f} µs "
        f"| {times[len(times) * 99 // 100] * 1e6:.0f} µs | {one / 1024:.0f} MB | {five / 1024:.0f} MB |",
        flush=True,
    )


def main():
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        work = root / "work"
        for below in ["config/toold/plugins", "state", "run", "home", "work"]:
            (root / below).mkdir(parents=True)
        (work / "file.txt").write_text("hello\n")
        (root / "config/toold/plugins/hello.lua").write_text(PLUGIN)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "TOOLD_SOCKET": str(root / "run/toold.sock"),
        }
        print("| server | start to tools/list | call p50 | p99 | 1 client | 5 clients |")
        print("|---|---|---|---|---|---|")
        daemon = subprocess.Popen([TOOLD, "serve"], env=env, stderr=subprocess.DEVNULL)
        try:
            while not (root / "run/toold.sock").exists():
                time.sleep(0.01)
            hello = {"name": "hello", "arguments": {"name": "you"}}
            read = {"name": "read", "arguments": {"path": "file.txt"}}
            measure("toold, a Lua tool", [TOOLCTL, "mcp"], hello, env, work, [daemon.pid])
            measure("toold, read a file", [TOOLCTL, "mcp"], read, env, work, [daemon.pid])
        finally:
            daemon.terminate()
            daemon.wait(20)
        read = {"name": "read_text_file", "arguments": {"path": str(work / "file.txt")}}
        measure("filesystem server, read a file", [NODE, FILESYSTEM, str(work)], read, env, work)
        (root / "fast.py").write_text(FASTMCP)
        measure("FastMCP, a tool", [PYTHON, str(root / "fast.py")], hello, env, work)


main()
