#!/usr/bin/env python3
"""Keeps a daemon under load and asserts that nothing in it grows: memory, disk, descriptors, threads, tasks and sessions.

usage: tests/benches/soak.py [--seconds N] [--toold PROGRAM] [--plot FILE]

All figures must be level after the first fifth of the time, and memory must be within 20 MiB of the start again when all
clients have left. The clients open sessions and leave them, call built-ins and plugins, save plugins, write files, make long
results, subscribe, and send invalid input. --plot writes the curves as an SVG.
"""

import argparse
import os
import random
import sys
import threading
import time
from pathlib import Path

from driver import RELEASE, Daemon

MIB = 1 << 20
# Beyond the level of the first part, in the unit of each figure.
SLACK = {"memory": 24 * MIB, "disk": 40 * MIB, "descriptors": 40, "threads": 40, "sessions": 80, "machines": 12}
AT_END = 20 * MIB
EVERY = 2.0
PLUGIN = """-- revision {revision}
hygge.register_tool{{name = "{name}", description = "Works", parallelizable = true, input_schema = {{type = "object"}},
  execute = function(ctx, input)
    local rows = {{}}
    for i = 1, 500 do rows[i] = {{id = i, name = ("x"):rep(20)}} end
    ctx.progress("half way")
    return tostring(#rows)
  end}}
hygge.register_tool{{name = "{name}_hungry", description = "Takes too much", input_schema = {{type = "object"}},
  execute = function()
    local all = {{}}
    local ok = pcall(function() while true do all[#all + 1] = ("y"):rep(100000) .. #all end end)
    return tostring(ok)
  end}}
"""
CONFIG = """
[daemon]
max_unused_sessions = 50
[spool]
max_mib = 4
[audit]
max_rows = 20000
[[permission.rules]]
category = "shell"
pattern = "**"
action = "allow"
[[permission.rules]]
category = "file.write"
pattern = "**"
action = "allow"
"""


class Soaked(Daemon):
    def __init__(self, program):
        super().__init__(program, CONFIG, Soaked.fill)

    def fill(self):
        for number in range(8):
            self.save_plugin(number, 0)
        for number in range(300):
            (self.work / f"file{number}.txt").write_text("some text\nwith a needle\n" * 20)

    def save_plugin(self, number, revision):
        text = PLUGIN.format(name=f"work{number}", revision=revision)
        beside = self.home / f"plugin{number}-{threading.get_ident()}"
        beside.write_text(text)
        beside.rename(self.plugins / f"work{number}.lua")

    def disk(self):
        total = 0
        for folder, _, names in os.walk(self.state):
            for name in names:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
                except OSError:
                    pass
        return total

    def sample(self, client):
        status = client.call("daemon.status", {})["result"]
        return {
            "memory": status["memory_bytes"],
            "disk": self.disk(),
            "descriptors": status["open_files"],
            "threads": len(os.listdir(f"/proc/{self.process.pid}/task")),
            "sessions": status["sessions"],
            "machines": status["lua"]["machines"],
            "calls": status["calls"]["finished"],
        }


def work(daemon, number, over):
    """The work of one client until the time is over."""
    dice = random.Random(number)
    while not over.is_set():
        with daemon.client() as client:
            environment = {f"VARIABLE_{n}": "x" * 100 for n in range(10)}
            client.call("session.open", {"cwd": str(daemon.work), "env": environment})
            for _ in range(dice.randrange(5, 60)):
                if over.is_set():
                    return
                step(daemon, client, dice, number, dice.randrange(KINDS))


# Kinds of steps, and the one that takes all the memory that a script may have.
KINDS, HUNGRY = 16, 4


def step(daemon, client, dice, number, kind):
    if kind < 4:
        client.tool(f"work{dice.randrange(8)}")
    elif kind == HUNGRY:
        client.tool(f"work{dice.randrange(8)}_hungry")
    elif kind == 5:
        client.tool("grep", pattern="needle", max_results=50)
    elif kind == 6:
        client.tool("glob", pattern="*.txt")
    elif kind == 7:
        client.tool("write", path=f"own{number}.txt", content="y" * dice.randrange(100_000))
    elif kind == 8:
        client.tool("bash", command=f"yes | head -c {dice.randrange(400_000)}")
    elif kind == 9:
        daemon.save_plugin(dice.randrange(8), dice.random())
    elif kind == 10:
        answer = client.call("events.subscribe", {})
        client.tool("read", path="file1.txt")
        client.call("events.unsubscribe", {"subscription": answer["result"]})
    elif kind == 11:
        # Leaves in the middle of a call.
        with daemon.client() as other:
            other.send("tools.execute", {"name": "bash", "arguments": {"command": "sleep 30"}})
    elif kind == 12:
        client.socket.sendall(b"[1,1,1,1]\n{\"jsonrpc\": 2}\nnot json\n")
    elif kind == 13:
        client.call("audit.query", {"limit": 100})
    elif kind == 14:
        client.tool("no_such_tool")
    else:
        client.tool("read", path=f"file{dice.randrange(300)}.txt")


def verdicts(samples, first, start, end):
    """A description of the values that grew."""
    wrong = []
    settled = [sample for sample in samples if sample["time"] >= first]
    third = max(1, len(settled) // 3)
    for name, slack in SLACK.items():
        # The highest of the first third and of the last: single peaks of both count alike.
        early = max(sample[name] for sample in settled[:third])
        late = max(sample[name] for sample in settled[-third:])
        print(f"{name:>12}: at the start {start[name]:,}, level {early:,}, last {late:,}, without clients {end[name]:,}")
        if late > early + slack:
            wrong.append(f"{name} grew from {early:,} to {late:,} after the first {first:.0f} s")
    if end["memory"] > start["memory"] + AT_END:
        grown = (end["memory"] - start["memory"]) / MIB
        wrong.append(f"memory is {grown:.1f} MiB above the start when all clients have left")
    return wrong


def plot(samples, file):
    """Each figure as a curve of its own, from 0 to its highest."""
    names = ["memory", "disk", "descriptors", "threads", "sessions", "machines"]
    width, height, left, gap = 760, 70, 150, 14
    total = max(sample["time"] for sample in samples)
    parts = []
    for row, name in enumerate(names):
        top = row * (height + gap) + 20
        most = max(sample[name] for sample in samples) or 1
        points = " ".join(
            f"{left + sample['time'] / total * width:.1f},{top + height - sample[name] / most * height:.1f}"
            for sample in samples
        )
        shown = f"{most / MIB:.0f} MiB" if name in ("memory", "disk") else f"{most}"
        base = f'<line x1="{left}" y1="{top + height}" x2="{left + width}" y2="{top + height}" stroke="#bbb"/>'
        parts.append(
            f'<text x="10" y="{top + 20}" font-weight="bold">{name}</text><text x="10" y="{top + 38}">up to {shown}</text>'
            f'{base}<polyline points="{points}" fill="none" stroke="#2a6f97" stroke-width="1.5"/>'
        )
    bottom = len(names) * (height + gap) + 30
    parts.append(f'<text x="{left}" y="{bottom}">0 s</text><text x="{left + width - 40}" y="{bottom}">{total:.0f} s</text>')
    file.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {bottom + 12}" '
        f'font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=600)
    arguments.add_argument("--clients", type=int, default=12)
    arguments.add_argument("--toold", default=RELEASE)
    arguments.add_argument("--plot", type=Path)
    given = arguments.parse_args()

    daemon = Soaked(given.toold)
    over = threading.Event()
    failures = []

    def run(number):
        try:
            work(daemon, number, over)
        except Exception as error:
            failures.append(f"client {number}: {error!r}")
            over.set()

    with daemon.client() as watcher:
        # Warm: the Lua states of all plugins exist, and each kind of work was done, except work that takes much memory.
        watcher.call("session.open", {"cwd": str(daemon.work)})
        for number in range(8):
            watcher.tool(f"work{number}")
        with daemon.client() as first:
            first.call("session.open", {"cwd": str(daemon.work)})
            for kind in range(KINDS):
                if kind != HUNGRY:
                    step(daemon, first, random.Random(kind), 0, kind)
        start = daemon.sample(watcher)
        clients = [threading.Thread(target=run, args=(number,)) for number in range(given.clients)]
        for client in clients:
            client.start()
        began = time.monotonic()
        samples = [{"time": 0.0, **start}]
        while time.monotonic() - began < given.seconds and not over.is_set():
            time.sleep(EVERY)
            samples.append({"time": time.monotonic() - began, **daemon.sample(watcher)})
        over.set()
        for client in clients:
            client.join(130)
        # Memory that is released goes within a minute.
        until = time.monotonic() + 60
        while time.monotonic() < until:
            end = daemon.sample(watcher)
            samples.append({"time": time.monotonic() - began, **end})
            if end["memory"] <= start["memory"] + AT_END / 2:
                break
            time.sleep(EVERY)
    calls = end["calls"] - start["calls"]
    print(f"{given.clients} clients, {samples[-1]['time']:.0f} s, {calls:,} calls")
    loaded = [sample for sample in samples if sample["time"] <= given.seconds]
    wrong = failures or verdicts(loaded, given.seconds / 5, start, end)
    grown = max(0, end["memory"] - start["memory"])
    print(f"memory that stayed: {grown / MIB:.1f} MiB, {grown / max(1, calls / 100_000) / MIB:.1f} MiB for 100,000 calls")
    if given.plot:
        plot(samples, given.plot)
    if daemon.stop() != 0:
        wrong.append("the daemon did not end well")
    for words in wrong:
        print(f"FAILED: {words}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
