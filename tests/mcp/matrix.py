"""Real clients of the daemon with real servers behind it, as a table: what each pair does.

    matrix.py [--write] PROGRAMS NODE SUITE NPM_SERVERS PYTHON_SERVERS FASTMCP SDK_1 SDK_2 CLAUDE_CODE CODEX

SUITE is the folder with the node_modules of the Inspector, which holds both TypeScript SDKs; NPM_SERVERS a folder of
node_modules; PYTHON_SERVERS one of programs; the next three are Pythons with FastMCP and with each version of the official
SDK; the last two are the programs of the agents. `--write` replaces the table in README.md.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mounted import PATIENCE, Failed, Mounted, free_port, listens
from servers import git, known, toml

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "agents"))

from place import Place
from programs import ClaudeCode, Codex

ALLOW = '[[permission.rules]]\ncategory = "mcp"\npattern = "**"\naction = "allow"\n'
TITLES = {"list": "list", "call": "call", "progress": "progress", "cancel": "cancel", "elicitation": "elicitation", "grow": "a new tool"}


def started(port):
    """Waits until somebody listens there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if listens(port):
            return
        time.sleep(0.1)
    raise Failed("a server on HTTP does not start")


def whole(name):
    """The actions on matrix_server.py."""
    tool = lambda own: f"{name}_{own}"
    return {
        "list": tool("echo"),
        "call": {"name": tool("echo"), "arguments": {"text": "a b"}, "words": "echo: a b"},
        "progress": {"name": tool("steps"), "arguments": {}},
        "cancel": {"wait": tool("wait"), "running": tool("running"), "count": tool("cancelled")},
        "elicitation": tool("ask"),
        "grow": tool("grow"),
    }


def basic(tool, arguments, words):
    return {"list": tool, "call": {"name": tool, "arguments": arguments, "words": words}}


class Matrix:
    def __init__(self, programs, node, suite, npm, pythons, fastmcp, sdk1, sdk2, claude_code, codex):
        self.node, self.suite = str(Path(node).absolute()), Path(suite).absolute()
        self.programs = Path(programs).absolute()
        # Not resolved: a Python of a virtual environment is a link.
        self.pythons = {"fastmcp": fastmcp, "sdk1": sdk1, "sdk2": sdk2}
        self.pythons = {name: str(Path(path).absolute()) for name, path in self.pythons.items()}
        self.agents = [ClaudeCode([claude_code]), Codex([self.node, codex])]
        self.temporary = tempfile.TemporaryDirectory(prefix="toold-matrix-")
        self.place = Path(self.temporary.name).resolve()
        (self.place / "note.txt").write_text("a note\n")
        git(self.place, "init", "-q")
        git(self.place, "commit", "-q", "--allow-empty", "-m", "the first commit")
        self.http = []
        self.sections, self.actions = {}, {}
        script = str(HERE / "matrix_server.py")
        for name, python in self.pythons.items():
            # `ctx.elicit` of FastMCP 4 needs a revision with sessions.
            more = {"protocol": "legacy"} if name == "fastmcp" else {}
            self.add(name, {"command": python, "args": [script], "parallel": True} | more, whole(name))
            if name != "fastmcp":
                self.add_http(f"{name}http", python, script)
        reference = lambda name: str(Path(npm).absolute() / f"@modelcontextprotocol/server-{name}/dist/index.js")
        python = lambda name: str(Path(pythons).absolute() / f"mcp-server-{name}")
        sum_of = {"name": "everything_get_sum", "arguments": {"a": 2, "b": 3}, "words": "5"}
        long = {"name": "everything_trigger_long_running_operation", "arguments": {"duration": 1, "steps": 3}}
        everything = {"list": "everything_echo", "call": sum_of, "progress": long}
        self.add("everything", {"command": self.node, "args": [reference("everything")]}, everything)
        files = {"command": self.node, "args": [reference("filesystem"), str(self.place)]}
        read = basic("files_read_text_file", {"path": str(self.place / "note.txt")}, "a note")
        self.add("files", files, read)
        memory = {"command": self.node, "args": [reference("memory")], "env": {"MEMORY_FILE_PATH": str(self.place / "memory.jsonl")}}
        self.add("memory", memory, basic("memory_read_graph", {}, "entities"))
        repository = {"command": python("git"), "args": ["--repository", str(self.place)]}
        self.add("git", repository, basic("git_git_log", {"repo_path": str(self.place)}, "the first commit"))
        clock = {"command": python("time"), "args": ["--local-timezone", "UTC"]}
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        self.add("time", clock, basic("time_convert_time", noon, "21:00"))
        port = free_port()
        self.run_beside([sys.executable, "-m", "http.server", "-b", "127.0.0.1", "-d", str(self.place), str(port)], port)
        page = basic("fetch_fetch", {"url": f"http://127.0.0.1:{port}/note.txt"}, "a note")
        self.add("fetch", {"command": python("fetch"), "args": ["--ignore-robots-txt", "--allow-private-ips"]}, page)

    def add(self, name, section, actions):
        self.sections[name], self.actions[name] = section, actions

    def add_http(self, name, python, script):
        port = free_port()
        self.run_beside([python, script, str(port)], port)
        self.add(name, {"url": f"http://127.0.0.1:{port}/mcp", "parallel": True}, whole(name))

    def run_beside(self, command, port):
        self.http.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        started(port)

    def clients(self, url, token):
        """The name of each client and the command that runs it."""
        toolctl, servers = str(self.programs / "toolctl"), json.dumps(self.actions)
        for over, place in (("stdio", [toolctl]), ("HTTP", [url, token])):
            for python in ("sdk1", "sdk2"):
                yield over, [self.pythons[python], str(HERE / "matrix_client.py"), servers, *place]
            for major in ("1", "2"):
                yield over, [self.node, str(HERE / "matrix_client.mjs"), major, str(self.suite), servers, *place]

    def inspect(self, environment, url, token):
        """The Inspector's command line lists and calls."""
        script = self.suite / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        base = [self.node, str(script), "--cli", "--quiet"]
        environment = environment | {"PATH": f"{Path(self.node).parent}:{environment['PATH']}"}
        header = ["--transport", "http", "--header", f"Authorization: Bearer {token}"]
        # It passes few of its variables to the programs that it starts.
        own = [f"{name}={environment[name]}" for name in ("TOOLD_SOCKET", "XDG_STATE_HOME", "XDG_CONFIG_HOME")]
        stdio = ["env", *own, str(self.programs / "toolctl"), "mcp"]

        def ask(place, *more):
            ran = subprocess.run(
                [*base, *place, *more], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=2 * PATIENCE,
            )
            return ran.stdout + ran.stderr

        for over, place in (("stdio", stdio), ("HTTP", [url, *header])):
            done = {}
            listed = ask(place, "--method", "tools/list")
            for server, actions in self.actions.items():
                tool, call = f'"{actions["list"]}"', actions["call"]
                arguments = [word for name, value in call["arguments"].items() for word in ("--tool-arg", f"{name}={value}")]
                said = ask(place, "--method", "tools/call", "--tool-name", call["name"], *arguments)
                done[server] = {
                    "list": "ok" if tool in listed else listed[-300:],
                    "call": "ok" if call["words"] in said else said[-300:],
                }
            version = json.loads((script.parents[3] / "package.json").read_text())["version"]
            yield f"Inspector {version}", over, done

    def ask_agents(self):
        """Each agent's model, which is scripted, calls a tool of each server. One server at a time, and it is known before: an
        agent lists the tools once, and Codex offers its model none of MCP when there are many."""
        # Their folders are below the current one.
        os.chdir(self.place)
        for agent in self.agents:
            done = {}
            for server, section in self.sections.items():
                call = self.actions[server]["call"]
                with Place(self.programs, ALLOW + toml({server: section})) as place:
                    place.ctl("mcp", "test", server)
                    place.ctl("agents", "install", agent.name, "--profile", "all", "--yes")
                    said = agent.run(place, [agent.mcp(call["name"], call["arguments"]), "done"])
                    outcomes = {row["tool"]: row["outcome"] for row in place.audit()}
                outcome = outcomes.get(call["name"])
                done[server] = {"call": "ok" if outcome == "ok" else f"{outcome}: {said[-300:]}"}
            yield f"{agent.name} {agent.version()}", "stdio", done

    def run(self):
        mounted = Mounted(str(self.programs), '[mcp]\nlisten = "127.0.0.1:0"\n' + toml(self.sections))
        try:
            wire = mounted.connect()
            known(mounted, wire, self.sections)
            url = wire.call("daemon.status", {})["mcp_url"]
            # A client of a stateless revision is asked only while no other frontend is there.
            wire.close()
            token = mounted.toolctl("mcp", "token").strip()
            for over, command in self.clients(url, token):
                ran = subprocess.run(
                    command, env=mounted.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900
                )
                if not ran.stdout.strip().startswith("{"):
                    raise Failed(f"{command[:3]}: {ran.stdout}{ran.stderr}")
                answer = json.loads(ran.stdout)
                yield answer["client"], over, answer["done"]
            yield from self.inspect(mounted.environment, url, token)
        except BaseException:
            print(mounted.log()[-4000:], file=sys.stderr)
            raise
        finally:
            mounted.end()
        yield from self.ask_agents()

    def end(self):
        for server in self.http:
            server.terminate()
            server.wait()
        self.temporary.cleanup()


def cell(done):
    failed = [TITLES[action] for action, result in done.items() if result != "ok"]
    good = len(done) - len(failed)
    return f"{good} of {len(done)}" + (f", not {', '.join(failed)}" if failed else "")


def table(rows, servers):
    lines = ["| client | " + " | ".join(servers) + " |", "|---" * (len(servers) + 1) + "|"]
    for client, over, done in rows:
        cells = [cell(done[server]) for server in servers]
        lines.append(f"| {client}, {over} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    matrix = Matrix(*arguments)
    rows, failures = [], []
    try:
        for client, over, done in matrix.run():
            rows.append((client, over, done))
            for server, actions in done.items():
                for action, result in actions.items():
                    if result != "ok":
                        failures.append(f"{client} over {over}, {server}, {action}: {result}")
            print(f"{client} over {over}: " + ", ".join(f"{server} {cell(own)}" for server, own in done.items()), flush=True)
        servers = list(matrix.actions)
    finally:
        matrix.end()
    made = table(rows, servers)
    print(f"\n{made}\n")
    print("\n".join(failures))
    if "--write" in sys.argv:
        readme = HERE / "README.md"
        text = readme.read_text()
        new = re.sub(r"(<!-- matrix -->\n).*?(<!-- /matrix -->)", lambda m: f"{m[1]}{made}\n{m[2]}", text, flags=re.S)
        if new == text and made not in text:
            raise Failed(f"{readme} has no place for the table")
        readme.write_text(new)
    if failures:
        raise Failed(f"{len(failures)} cells of the table failed")


if __name__ == "__main__":
    os.umask(0o077)
    main()
