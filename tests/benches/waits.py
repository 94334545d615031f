#!/usr/bin/env python3
"""Measures how long other clients wait while a hostile or careless one works.

usage: tests/benches/waits.py [--seconds N] [--toold PROGRAM]

Each load runs for the given time. Meanwhile one client pings, one reads a file, one calls a plugin, and one connects again
each time; while the database works, clients also open sessions, ask the audit log, and grant and revoke. The longest
wait of any of them may be above the longest wait without a load by the goal of the load, at most.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import sqlite3
import sys
import time

from driver import RELEASE, Daemon

LENGTH = 15 << 20
STRETCHES = {
    "find": 'return tostring((("a"):rep(60)):find((".-"):rep(30) .. "b"))',
    "gmatch": 'for _ in (("a"):rep(60)):gmatch((".-"):rep(30) .. "b") do end return ""',
    "gsub": 'return (("a"):rep(60)):gsub((".-"):rep(30) .. "b", "")',
    "match": 'return tostring((("x"):rep(60)):match((".*"):rep(20) .. "y"))',
    "quick": 'return "quick"',
}
TOOL = (
    'hygge.register_tool{{name = "{name}", description = "Works", parallelizable = true, timeout = "10m",'
    ' input_schema = {{type = "object"}}, execute = function() {body} end}}\n'
)
CALL = '{"jsonrpc":"2.0","id":7,"method":"tools.execute","params":{"name":"read","arguments":{"path":'


def filled(head, piece, tail):
    return (head + piece * ((LENGTH - len(head) - len(tail)) // len(piece)) + tail).encode()


def messages():
    """Messages that are 15 MiB long, and longer when they are parsed, with their names."""
    yield "a batch of numbers", filled("[", "1,", "1]")
    yield "a batch of objects", filled("[", "{},", "1]")
    yield "numbers", filled(CALL + "[", "1,", "1]}}}")
    yield "as many numbers as are taken", (CALL + "[" + "1," * 1_700_000 + "1]}}}").encode()
    yield "objects", filled(CALL + "[", '{"a":1},', "1]}}}")
    yield "strings", filled(CALL + "[", '"",', "1]}}}")
    yield "one string", filled(CALL + '"', "a", '"}}}')
    yield "escapes", filled(CALL + '"', "\\u0041", '"}}}')
    yield "depth", filled(CALL, "[", "}}}")
    request = '{"jsonrpc":"2.0","id":%d,"method":"rpc.discover"}'
    yield "10,000 times rpc.discover", ("[" + ",".join(request % n for n in range(10_000)) + "]").encode()


ROWS = 1_000_000
INSERT = """
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {rows})
INSERT INTO audit (at, call_id, session_id, tool, source, client, connection, decisions, outcome, duration_ms,
input_bytes, output_bytes)
SELECT unixepoch() * 1000 - {rows} + n, 'call_' || n, 'session_' || (n % 50), 'read', 'builtin:toold', 'test', 1, '[]',
'ok', 1, 10, 10 FROM c
"""


class Measured(Daemon):
    """With `rows` in its audit log, of which it keeps so many."""

    def __init__(self, program, rows=0, keeps=1_000_000):
        super().__init__(program, f"[audit]\nmax_rows = {keeps}\n", Measured.fill)
        if rows:
            # Its own tables, filled while it does not run.
            self.end()
            with contextlib.closing(sqlite3.connect(self.state / "toold/toold.db")) as database, database:
                database.execute("PRAGMA synchronous = off")
                database.execute(INSERT.format(rows=rows))
            # Data that the system has not written yet would be written within the daemon's next checkpoint.
            os.sync()
            self.start()

    def fill(self):
        (self.work / "a.txt").write_text("here\n")
        for name, body in STRETCHES.items():
            (self.plugins / f"{name}.lua").write_text(TOOL.format(name=name, body=body))


def flood(daemon, message, until):
    """Sends a message again and again, and reads the answers."""
    with daemon.client() as client:
        while time.monotonic() < until:
            client.socket.sendall(message + b"\n")
            if not client.lines.readline():
                raise ConnectionError("the daemon closed the connection")


def stretch(daemon, name, until):
    with daemon.client() as client:
        number = client.send("tools.execute", {"name": name})
        time.sleep(max(0, until - time.monotonic()))
        client.call("$/cancelRequest", {"id": number})


def probe(daemon, kind, until, waits):
    """Calls until the time is over; puts the longest wait and the median, in milliseconds."""
    measured = []
    client = daemon.client()
    client.call("session.open", {"cwd": str(daemon.work)})
    while time.monotonic() < until or not measured:
        began = time.monotonic()
        if kind == "ping":
            answer = client.call("daemon.ping", {})
        elif kind == "open":
            answer = client.call("session.open", {"cwd": str(daemon.work)})
        elif kind == "audit":
            answer = client.call("audit.query", {"session_id": "session_7", "limit": 3})
        elif kind == "grant":
            grant = {"category": "shell", "pattern": "true", "scope": "always", "action": "deny"}
            answer = client.call("permissions.grant", grant)
            client.call("permissions.revoke", {"id": answer["result"]["id"]})
        elif kind == "read":
            answer = client.tool("read", path="a.txt")
        elif kind == "plugin":
            answer = client.tool("quick")
        else:
            with daemon.client() as fresh:
                answer = fresh.call("daemon.ping", {})
        measured.append((time.monotonic() - began) * 1000)
        if "result" not in answer or answer["result"].get("is_error"):
            raise RuntimeError(f"{kind}: {answer}")
        time.sleep(0.002)
    measured.sort()
    waits.put((kind, measured[-1], measured[len(measured) // 2]))


def scan(daemon, until):
    """Looks through the whole audit log again and again."""
    with daemon.client() as client:
        while time.monotonic() < until:
            client.call("audit.query", {"tool": "never_called"})


CALLS = ["ping", "read", "plugin", "connect"]
STORED = ["read", "open", "audit", "grant"]


def measure(daemon, seconds, loads, kinds):
    """The longest wait of each probe beside these loads, each a function with its arguments."""
    # Processes: threads of this interpreter would wait for one another.
    until = time.monotonic() + seconds
    waits = multiprocessing.Queue()
    started = [multiprocessing.Process(target=load[0], args=(daemon, *load[1:], until)) for load in loads]
    started += [multiprocessing.Process(target=probe, args=(daemon, kind, until, waits)) for kind in kinds]
    for process in started:
        process.start()
    found = [waits.get(timeout=seconds + 120) for _ in kinds]
    for process in started:
        process.join(120)
        if process.exitcode != 0:
            raise SystemExit(f"a client failed beside {loads}")
    return {kind: (longest, median) for kind, longest, median in found}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--toold", default=RELEASE)
    arguments.add_argument("--json", action="store_true", help="one object for each load")
    given = arguments.parse_args()

    wrong, alone = [], {}

    def row(daemon, name, goal, loads, kinds):
        found = measure(daemon, given.seconds, loads, kinds)
        longest = max(wait for wait, _ in found.values())
        floor = alone.setdefault(tuple(kinds), longest)
        if given.json:
            print(json.dumps({"beside": name, "goal_ms": goal, "waits_ms": found}))
        else:
            waits = "".join(f"  {kind} {found[kind][0]:7.1f} ({found[kind][1]:.1f})" for kind in kinds)
            print(f"{name:<36}{waits}", flush=True)
        if longest > floor + goal:
            wrong.append(f"beside {name} others waited {longest:.0f} ms; {floor:.0f} ms alone, and {goal} ms more are allowed")

    def ended(daemon):
        if daemon.stop() != 0:
            wrong.append("the daemon did not end well")

    if not given.json:
        print("the longest wait in ms, and the median")
    daemon = Measured(given.toold)
    row(daemon, "nothing", 0, [], CALLS)
    row(daemon, "four patterns", 50, [(stretch, name) for name in ("find", "gmatch", "gsub", "match")], CALLS)
    for name, message in messages():
        row(daemon, f"one: {name}", 300, [(flood, message)], CALLS)
        row(daemon, f"four: {name}", 300, [(flood, message)] * 4, CALLS)
    row(daemon, "nothing, stored", 0, [], STORED)
    ended(daemon)
    daemon = Measured(given.toold, ROWS, 1_000)
    row(daemon, f"pruning of {ROWS:,} rows", 30, [], STORED)
    ended(daemon)
    daemon = Measured(given.toold, ROWS)
    row(daemon, f"four scans of {ROWS:,} rows", 30, [(scan,)] * 4, STORED)
    ended(daemon)
    for words in wrong:
        print(f"FAILED: {words}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
