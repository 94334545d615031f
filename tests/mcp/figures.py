"""Figures of the daemon as an MCP server beside other servers, in one run on one machine.

usage: figures.py TOOLD TOOLCTL NODE FILESYSTEM_SERVER_JS MCP_HUB_JS PYTHON_WITH_FASTMCP [CALLS]

Each client session uses five servers. A program that serves many (the daemon, mcp-hub) has five reference filesystem
servers mounted; of those that serve one client over stdio, each session starts five of its own. See README.md beside
this file for the meaning of the columns. Build TOOLD and TOOLCTL with `--release`.
"""

import json
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

# The servers run in a folder of the test's own. A virtual environment is recognised by its link, so the link stays.
TOOLD, TOOLCTL, NODE, FILESYSTEM, HUB, PYTHON = (os.path.abspath(path) for path in sys.argv[1:7])
CALLS = int(sys.argv[7]) if len(sys.argv) > 7 else 2000
SERVERS = 5
SESSIONS = 5
STARTS = 5
PATIENCE = 60

FASTMCP = """
from fastmcp import FastMCP

server = FastMCP("figures")


@server.tool()
def hello(name: str) -> str:
    return f"hello {name}"


server.run(show_banner=False)
"""

PLUGIN = """
hygge.register_tool{name = "hello", description = "Says hello", permission = false, parallelizable = true,
  input_schema = {type = "object", properties = {name = {type = "string"}}, required = {"name"}},
  execute = function(ctx, input) return "hello " .. input.name end}
"""


class NotReady(Exception):
    pass


class Stdio:
    """A server that this client starts."""

    def __init__(self, command, env, cwd):
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, cwd=cwd)
        self.pids = [self.child.pid]

    def send(self, text):
        self.child.stdin.write(text + b"\n")
        self.child.stdin.flush()

    def receive(self):
        return self.child.stdout.readline()

    def close(self):
        self.child.stdin.close()
        self.child.wait(PATIENCE)


class Sse:
    """The older transport on HTTP: a stream of events that says where to post to."""

    def __init__(self, port, path):
        self.pids = []
        self.stream = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
        self.lines = self.stream.makefile("rb")
        self.messages = queue.Queue()
        status = self.lines.readline()
        if b" 200 " not in status:
            self.stream.close()
            raise NotReady(status)
        threading.Thread(target=self.read, daemon=True).start()
        self.path = self.messages.get(timeout=PATIENCE).decode()
        self.posts = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.posts.connect()
        self.posts.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read(self):
        try:
            for line in self.lines:
                if line.startswith(b"data: "):
                    self.messages.put(line[6:].strip())
        except OSError:
            pass

    def send(self, text):
        self.posts.request("POST", self.path, text, {"Content-Type": "application/json"})
        answer = self.posts.getresponse()
        assert answer.status in (200, 202), answer.status
        answer.read()

    def receive(self):
        return self.messages.get(timeout=PATIENCE)

    def close(self):
        self.stream.shutdown(socket.SHUT_RDWR)
        self.stream.close()
        self.posts.close()


class Client:
    """A session with one server, which has listed its tools."""

    def __init__(self, way):
        self.way = way
        self.next = 0
        info = {"name": "figures", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": info})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def send(self, message):
        self.way.send(json.dumps(message).encode())

    def ask(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            answer = json.loads(self.way.receive())
            if answer.get("id") == self.next and "method" not in answer:
                assert "error" not in answer, answer
                assert not answer["result"].get("isError"), answer
                return answer["result"]

    def call(self, name, arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def close(self):
        self.way.close()


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
        # Shared memory counts once in all.
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


class Case:
    """A row of the table."""

    def __init__(self, name, call, everyone):
        self.name = name
        # A tool and its arguments.
        self.timed = call
        # A call of each of the five servers.
        self.everyone = everyone
        self.shared = []

    def start(self):
        """The processes that all sessions share."""

    def stop(self):
        """Ends it."""

    def session(self):
        """The clients of one session, each with its tools listed."""
        raise NotImplementedError

    def of_all(self, way):
        """A session with one program for all servers, which may listen before it knows their tools."""
        while True:
            try:
                client = Client(way())
            except NotReady:
                time.sleep(0.005)
                continue
            if {tool for tool, _ in self.everyone} <= set(client.tools):
                return [client]
            client.close()

    def use(self, clients):
        for at, (tool, arguments) in enumerate(self.everyone):
            clients[at % len(clients)].call(tool, arguments)


class Own(Case):
    """A server for one client: each session starts its own."""

    def __init__(self, name, call, command, env, cwd):
        super().__init__(name, call, [call] * SERVERS)
        self.command, self.env, self.cwd = command, env, cwd

    def session(self):
        # As clients do it: all at once, and then each is spoken to.
        ways = [Stdio(self.command, self.env, self.cwd) for _ in range(SERVERS)]
        return [Client(way) for way in ways]


class Daemon(Case):
    def __init__(self, name, call, everyone, env, cwd):
        super().__init__(name, call, everyone)
        self.env, self.cwd = env, cwd

    def start(self):
        self.child = subprocess.Popen([TOOLD, "serve"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.shared = [self.child.pid]
        wait(lambda: Path(self.env["TOOLD_SOCKET"]).exists())

    def stop(self):
        self.child.terminate()
        self.child.wait(PATIENCE)

    def session(self):
        return self.of_all(lambda: Stdio([TOOLCTL, "mcp"], self.env, self.cwd))


class Hub(Case):
    def __init__(self, name, everyone, config, env, cwd):
        super().__init__(name, everyone[0], everyone)
        self.config, self.env, self.cwd = config, env, cwd

    def start(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = [NODE, HUB, "--port", str(self.port), "--config", self.config]
        nothing = subprocess.DEVNULL
        self.child = subprocess.Popen(command, env=self.env, cwd=self.cwd, stdout=nothing, stderr=nothing)
        self.shared = [self.child.pid]
        wait(self.is_there)

    def is_there(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def session(self):
        return self.of_all(lambda: Sse(self.port, "/mcp"))


def wait(is_so):
    before = time.monotonic()
    while not is_so():
        assert time.monotonic() - before < PATIENCE, "waited in vain"
        time.sleep(0.005)


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def ms(seconds):
    return f"{seconds * 1000:.0f} ms"


def close(sessions):
    for session in sessions:
        for client in session:
            client.close()


def measure(case):
    cold, warm = [], []
    # The first run makes things that are made once: compiled scripts and cached lists of tools.
    for _ in range(STARTS + 1):
        before = time.perf_counter()
        case.start()
        try:
            sessions = [case.session()]
            cold.append(time.perf_counter() - before)
            before = time.perf_counter()
            sessions.append(case.session())
            warm.append(time.perf_counter() - before)
            close(sessions)
        finally:
            case.stop()
    case.start()
    try:
        times, memory = [], []
        sessions = [case.session()]
        case.use(sessions[0])
        client = sessions[0][0]
        for at in range(CALLS // 10 + CALLS):
            before = time.perf_counter()
            client.call(*case.timed)
            if at >= CALLS // 10:
                times.append(time.perf_counter() - before)
        times.sort()
        for count in (1, SESSIONS):
            while len(sessions) < count:
                sessions.append(case.session())
                case.use(sessions[-1])
            pids = [pid for session in sessions for client in session for pid in client.way.pids]
            memory.append(resident([*case.shared, *pids]) / 1024)
        close(sessions)
    finally:
        case.stop()
    print(
        f"| {case.name} | {ms(median(cold[1:]))} | {ms(median(warm[1:]))} | {times[len(times) // 2] * 1e6:.0f} µs "
        f"| {times[len(times) * 99 // 100] * 1e6:.0f} µs | {memory[0]:.0f} MB | {memory[1]:.0f} MB |",
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
        command = [NODE, FILESYSTEM, str(work)]
        names = [f"f{at}" for at in range(SERVERS)]
        mounted = "".join(
            f"[mcp.servers.{name}]\ncommand = {json.dumps(NODE)}\nargs = {json.dumps(command[1:])}\n" for name in names
        )
        leave = '[[permission.rules]]\ncategory = "mcp"\npattern = "**"\naction = "allow"\n'
        (root / "config/toold/config.toml").write_text(mounted + leave)
        servers = {name: {"command": NODE, "args": command[1:]} for name in names}
        (root / "hub.json").write_text(json.dumps({"mcpServers": servers}))
        (root / "fast.py").write_text(FASTMCP)
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "TOOLD_SOCKET": str(root / "run/toold.sock"),
        }
        hello = ("hello", {"name": "you"})
        read = {"path": str(work / "file.txt")}
        mounts = [(f"{name}_read_text_file", read) for name in names]
        hub = [(f"{name}__read_text_file", read) for name in names]
        own = ("read_text_file", read)
        print(f"{CALLS} calls, {os.cpu_count()} cores\n")
        print("| server | cold start | next session | call p50 | p99 | 1 session | 5 sessions |")
        print("|---|---|---|---|---|---|---|")
        for case in [
            Daemon("toold, a Lua tool", hello, mounts, env, work),
            Daemon("toold, the built-in `read`", ("read", read), mounts, env, work),
            Daemon("toold, a mounted filesystem server", mounts[0], mounts, env, work),
            Hub("mcp-hub, a mounted filesystem server", hub, str(root / "hub.json"), env, work),
            Own("the filesystem server itself", own, command, env, work),
            Own("FastMCP itself", hello, [PYTHON, str(root / "fast.py")], env, work),
        ]:
            measure(case)


main()
