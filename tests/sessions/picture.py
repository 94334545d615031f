#!/usr/bin/env python3
"""Takes pictures of `toolctl`, such as that of the README: a real screen in tmux, while an agent works and asks.

    picture.py --bin FOLDER --out FILE.svg [--size 100x26] [--approve]

With --approve, of `toolctl approve` in place of the full screen.

Needs tmux and the Python package `rich`, which turns the terminal's colours into SVG. Works in a home folder of its own,
and stops the daemon that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

SIZE = "100x26"
# No wait is longer, in seconds.
PATIENCE = 60.0
COUNT = """
hygge.register_tool{
  name = "count", description = "Counts to a number", parallelizable = true, permission = false,
  input_schema = {type = "object", properties = {to = {type = "integer"}}, required = {"to"}},
  execute = function(ctx, input)
    for i = 1, input.to do
      ctx.progress{message = "counting", progress = i, total = input.to}
      hygge.sleep("100ms")
    end
  end,
}
"""
# The frame around the screen and the letters, without the fonts that rich would load from the web.
FORMAT = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def until(what, ask):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.05)
    raise SystemExit(f"waited {PATIENCE:.0f} s in vain for {what}")


class Agent:
    """A client that acts for a model."""

    def __init__(self, path: Path, cwd: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.last = 0
        self.send("session.open", {"cwd": str(cwd), "role": "agent", "client": {"name": "claude", "version": "1"}})

    def send(self, method, params):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def call(self, name, arguments):
        self.send("tools.execute", {"name": name, "arguments": arguments})


def take(bin: Path, out: Path, width: int, height: int, approve: bool) -> None:
    root = Path(tempfile.mkdtemp(prefix="toold-picture-"))
    home, work = root / "you", root / "you/shop"
    plugins = home / ".config/toold/plugins"
    plugins.mkdir(parents=True)
    (plugins / "count.lua").write_text(COUNT)
    work.mkdir()
    subprocess.run(["git", "init", "-q", work], check=True)
    (work / "a.txt").write_text("here\n")
    environment = {"HOME": str(home), "PATH": f"{bin}:{os.environ['PATH']}", "TERM": "xterm-256color", "LANG": "C.UTF-8",
                   "COLORTERM": "truecolor", "SHELL": "/bin/sh"}
    # Regardless of XDG_RUNTIME_DIR.
    environment["TOOLD_SOCKET"] = str(root / "run/toold.sock")
    (root / "run").mkdir(mode=0o700)

    def run(*command, check=True):
        done = subprocess.run(command, env=environment, cwd=work, capture_output=True, text=True, check=check)
        return done.stdout

    def tmux(*arguments):
        return run("tmux", "-S", root / "tmux", "-f", "/dev/null", *arguments)

    daemon = None
    try:
        daemon = json.loads(run("toolctl", "status", "--json"))["pid"]
        run("toolctl", "workspaces", "allow", work)
        # Before there is a screen, nobody can be asked.
        command = "toolctl approve" if approve else "toolctl"
        tmux("new-session", "-d", "-x", str(width), "-y", str(height), command)
        ready = "waiting for prompts" if approve else r"toold \d[^\n]* up"
        until("the first picture", lambda: re.search(ready, tmux("capture-pane", "-p")))
        first, second = (Agent(root / "run/toold.sock", work) for _ in range(2))
        first.call("read", {"path": "a.txt"})
        # On a small screen, an ask would lie over everything else.
        asks = width >= 80
        if asks:
            first.call("bash", {"command": "git push origin main"})
        second.call("count", {"to": 500})
        calls = ("deny, with a reason",) if approve else (r"1:Calls 2|2 running",) if asks else ()
        for words in (*calls, *(("git push",) if asks else ()), *(() if approve else (r"[1-9]\d %",))):
            until(f"{words}, on the screen", lambda: re.search(words, tmux("capture-pane", "-p")))
        screen = tmux("capture-pane", "-p", "-e").rstrip("\n")
    finally:
        run("tmux", "-S", root / "tmux", "kill-server", check=False)
        if daemon:
            # A program that acts for a model, as this one does, may not stop a daemon by a request.
            os.kill(daemon, signal.SIGTERM)
            until("the end of the daemon", lambda: not Path(f"/proc/{daemon}").exists())
        shutil.rmtree(root)
    # Hide where the picture was taken, and keep the text to the right of the path in its column.
    gone = " " * (len(str(root)) - len("/home"))
    screen = re.sub(rf"{root}(\S*)", rf"/home\1{gone}", screen)
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=width, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text.from_ansi(screen), soft_wrap=True)
    out.write_text(console.export_svg(title="toolctl", code_format=FORMAT, unique_id="toolctl"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="the folder of toold and toolctl")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--size", default=SIZE, help="columns and rows")
    parser.add_argument("--approve", action="store_true", help="of `toolctl approve`")
    options = parser.parse_args()
    take(options.bin.resolve(), options.out, *map(int, options.size.split("x")), options.approve)
