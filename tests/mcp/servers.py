"""Mounts real MCP servers in a real daemon, and calls them: the reference servers of npm and PyPI, and a browser in which two
sessions see their own pages.

    servers.py PROGRAMS NODE NODE_MODULES PYTHON_PROGRAMS
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from mounted import PATIENCE, Failed, Mounted

PAGES = {"/one": "The first page", "/two": "The second page"}


class Pages(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        title = PAGES.get(self.path)
        page = f"<!doctype html><title>{title}</title><h1>{title}</h1><p>Here is {title.lower()}.</p>" if title else ""
        html = page.encode()
        self.send_response(200 if title else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(html)))
        self.end_headers()
        self.wfile.write(html)


def npm_server(node, modules, name, *args):
    return {"command": node, "args": [str(modules / name), *args]}


def servers(node, modules, programs, chromium, place):
    """The sections of the configuration, by name."""
    reference = lambda name, *args: npm_server(node, modules, f"@modelcontextprotocol/server-{name}/dist/index.js", *args)
    python = lambda name, *args: {"command": str(programs / f"mcp-server-{name}"), "args": list(args)}
    browser = ["--headless", "--isolated", "--no-sandbox", "--executable-path", chromium, "--output-dir", str(place / "shots")]
    return {
        "everything": reference("everything"),
        "files": reference("filesystem", str(place / "files")),
        "memory": reference("memory") | {"env": {"MEMORY_FILE_PATH": str(place / "memory.jsonl")}},
        "thinking": reference("sequential-thinking") | {"scope": "session"},
        "git": python("git", "--repository", str(place / "repository")),
        "time": python("time", "--local-timezone", "UTC"),
        "fetch": python("fetch", "--allow-private-ips"),
        "browser": npm_server(node, modules, "@playwright/mcp/cli.js", *browser) | {"scope": "session"},
    }


def toml(sections):
    lines = []
    for name, section in sections.items():
        lines.append(f"[mcp.servers.{name}]")
        for key, value in ({"start_timeout_ms": 60_000} | section).items():
            table = isinstance(value, dict)
            value = "{ " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in value.items()) + " }" if table else json.dumps(value)
            lines.append(f"{key} = {value}")
    return "\n".join(lines) + "\n"


def known(mounted, wire, names):
    """Waits until the tools of all servers are in the list; returns how many each has."""
    end = time.monotonic() + 2 * PATIENCE
    while time.monotonic() < end:
        listed = {server["name"]: server for server in wire.call("mcp.servers", {})["servers"]}
        failed = [f"{name}: {server['error']}" for name, server in listed.items() if server["state"] == "failed"]
        if failed:
            raise Failed("; ".join(failed))
        counts = {name: len(listed[name]["tools"]) for name in names}
        if all(counts.values()):
            return counts
        time.sleep(0.1)
    raise Failed(f"not all servers list their tools: {counts}")


def call(wire, tool, **arguments):
    result = wire.call("tools.execute", {"name": tool, "arguments": arguments})
    text = "".join(block.get("text", "") for block in result["content"])
    if result["is_error"]:
        raise Failed(f"{tool}: {text}")
    return text


def expect(words, text):
    if words not in text:
        raise Failed(f"expected {words!r} in {text!r}")


def thought(wire, number, words):
    text = call(
        wire, "thinking_sequentialthinking",
        thought=words, thoughtNumber=number, totalThoughts=3, nextThoughtNeeded=number < 3,
    )
    return json.loads(text)["thoughtHistoryLength"]


def git(place, *args):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", *identity, *args], cwd=place, check=True, stdout=subprocess.DEVNULL)


def main():
    programs, node, modules, pythons = sys.argv[1:]
    chromium = shutil.which("chromium")
    if chromium is None:
        raise Failed("chromium is not installed")
    site = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{site.server_port}"
    temporary = tempfile.TemporaryDirectory(prefix="toold-servers-")
    place = Path(temporary.name).resolve()
    (place / "files").mkdir()
    (place / "files" / "note.txt").write_text("a note\n")
    (place / "repository").mkdir()
    git(place / "repository", "init", "-q")
    git(place / "repository", "commit", "-q", "--allow-empty", "-m", "the first commit")
    sections = servers(str(Path(node).absolute()), Path(modules).absolute(), Path(pythons).absolute(), chromium, place)
    mounted = Mounted(programs, toml(sections))
    began = time.monotonic()

    def step(words):
        print(f"{time.monotonic() - began:5.1f} s  {words}", flush=True)

    try:
        one, two = mounted.connect(), mounted.connect()
        for name, count in known(mounted, one, sections).items():
            step(f"{name}: {count} tools")

        expect("a b c", call(one, "everything_echo", message="a b c"))
        expect("5", call(one, "everything_get_sum", a=2, b=3))
        expect("a note", call(one, "files_read_text_file", path=str(place / "files" / "note.txt")))
        entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        call(one, "memory_create_entities", entities=[entity])
        expect("writes programs", call(two, "memory_read_graph"))
        expect("the first commit", call(one, "git_git_log", repo_path=str(place / "repository")))
        expect("21:00", call(one, "time_convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"))
        expect("the first page", call(one, "fetch_fetch", url=f"{base}/one"))
        step("everything, files, memory, git, time and fetch were called; two sessions share the memory")

        lengths = [thought(one, 1, "a"), thought(one, 2, "b"), thought(two, 1, "c"), thought(one, 3, "d")]
        if lengths != [1, 2, 1, 3]:
            raise Failed(f"the thoughts of two sessions are mixed: {lengths}")
        step("thinking: each session has thoughts of its own")

        # Both at once.
        asked = [
            (wire, wire.send("tools.execute", {"name": "browser_browser_navigate", "arguments": {"url": base + path}}))
            for wire, path in ((one, "/one"), (two, "/two"))
        ]
        for wire, request in asked:
            if wire.wait(request)["is_error"]:
                raise Failed("a browser did not open its page")
        for wire, path in ((two, "/two"), (one, "/one"), (two, "/two")):
            expect(PAGES[path], call(wire, "browser_browser_snapshot"))
            expect(PAGES[path], call(wire, "browser_browser_evaluate", function="() => document.title"))
        running = next(s for s in one.call("mcp.servers", {})["servers"] if s["name"] == "browser")["instances"]
        if len({instance["pid"] for instance in running}) != 2:
            raise Failed(f"expected two browsers: {running}")
        step("browser: two sessions at once, each with its own page")
    except BaseException:
        print(mounted.log(), file=sys.stderr)
        raise
    finally:
        mounted.end()
        site.shutdown()
        temporary.cleanup()
    print("all real servers work")


if __name__ == "__main__":
    main()
