#!/usr/bin/env python3
"""Records the pictures of the README: real sessions of the real programs in tmux. One is an SVG that plays itself.

    docs/record.py --bin FOLDER             docs/demo.svg, which moves
    docs/record.py --bin FOLDER --screen    clients/toolctl/screen.svg and screen-80x24.svg, the full screen of toolctl

FOLDER has toold and toolctl. Needs tmux and git. The session works in a home folder of its own, and stops the daemon that
it started.

The screen is read ten times a second. Each screen that differs from the one before is a frame; each line that differs from
all others is stored once. A style sheet shows one frame after the other, and no script runs, so the picture plays where
images may not run scripts. Readers who asked their system for less motion see the last frame.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from html import escape
from pathlib import Path

DEMO, SCREENS = (84, 17), {"screen": (104, 30), "screen-80x24": (80, 24)}
# In seconds: how often the screen is read, how long nothing may change in the picture, how long its end stays, and the
# longest wait for a text.
STEP, LONGEST, END, PATIENCE = 0.1, 1.6, 4.0, 60.0
# In pixels.
CELL, LINE, MARGIN, BAR = 8.4, 18, 14, 26

# A command as four agents report it to their hooks.
FORCE = "git push --force origin main"
HOOKS = {
    "claude-code": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": FORCE}},
    "codex": {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": FORCE}},
    "gemini": {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command", "tool_input": {"command": FORCE}},
    "cursor": {"hook_event_name": "beforeShellExecution", "command": FORCE},
}

# The colours of the terminal, in the order of their numbers: on a light and on a dark page.
NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"]
LIGHT = ["#24292f", "#cf222e", "#116329", "#7d4e00", "#0969da", "#8250df", "#1b7c83", "#57606a"]
DARK = ["#6e7681", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#c9d1d9"]


class Session:
    """A shell in tmux, with folders and a daemon of its own."""

    def __init__(self, bin: Path, size: tuple[int, int]) -> None:
        self.columns, self.rows = size
        # Short: a socket's path must be.
        self.root = Path(tempfile.mkdtemp(prefix="toold-record-")).resolve()
        self.home, self.work = self.root / "you", self.root / "you/shop"
        self.work.mkdir(parents=True)
        (self.root / "run").mkdir(mode=0o700)
        self.socket = self.root / "run/toold.sock"
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{bin}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "TOOLD_SOCKET": str(self.socket),
        }
        self.daemon: int | None = None
        self.frames: list[tuple[float, str]] = []
        self.recorded = threading.Event()

    def run(self, *command: str | Path, check: bool = True) -> str:
        done = subprocess.run(command, env=self.environment, cwd=self.work, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise SystemExit(f"{command}: {done.stderr}")
        return done.stdout

    def tmux(self, *arguments: str) -> str:
        return self.run("tmux", "-S", self.root / "tmux", "-f", "/dev/null", *arguments)

    def start(self) -> None:
        self.tmux("new-session", "-d", "-x", str(self.columns), "-y", str(self.rows), "exec env PS1='$ ' bash --norc --noprofile")
        self.tmux("set-option", "-g", "status", "off")
        self.wait_for(r"^\$")
        threading.Thread(target=self.record, daemon=True).start()

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def wait_for(self, pattern: str) -> None:
        end = time.monotonic() + PATIENCE
        while not re.search(pattern, self.screen(), re.MULTILINE):
            if time.monotonic() > end:
                raise SystemExit(f"the terminal never showed {pattern!r}, but:\n{self.screen()}")
            time.sleep(0.03)

    def wait_until_pushed(self) -> None:
        end = time.monotonic() + PATIENCE
        while "main" not in self.run("git", "ls-remote", "origin", check=False):
            if time.monotonic() > end:
                raise SystemExit("the agent's push never came")
            time.sleep(0.1)

    def settled(self) -> str:
        """The last frame, once nothing has changed for a second."""
        while time.monotonic() - self.frames[-1][0] < 1.0:
            time.sleep(STEP)
        return self.frames[-1][1]

    def type(self, text: str) -> None:
        """As fast as a person who knows what to type."""
        for letter in text:
            self.tmux("send-keys", "-l", letter)
            time.sleep(0.035)
        time.sleep(0.3)
        self.tmux("send-keys", "Enter")

    def clear(self) -> None:
        self.tmux("send-keys", "C-l")
        time.sleep(0.2)

    def record(self) -> None:
        while not self.recorded.is_set():
            try:
                seen = self.tmux("capture-pane", "-p", "-e", ";", "display-message", "-p", "#{cursor_x} #{cursor_y} #{cursor_flag}")
            except SystemExit:
                return  # The session is over.
            if not self.frames or self.frames[-1][1] != seen:
                self.frames.append((time.monotonic(), seen))
            time.sleep(STEP)

    def end(self) -> None:
        self.recorded.set()
        time.sleep(2 * STEP)
        self.run("tmux", "-S", self.root / "tmux", "kill-server", check=False)
        if self.daemon:
            # A program that acts for a model, as this one does, may not stop a daemon by a request.
            os.kill(self.daemon, signal.SIGTERM)
            while Path(f"/proc/{self.daemon}").exists():
                time.sleep(0.05)
        shutil.rmtree(self.root)


# Passes what comes on stdin to a socket.
RELAY = """import socket, sys
daemon = socket.socket(socket.AF_UNIX)
daemon.connect(sys.argv[1])
for line in sys.stdin.buffer:
    daemon.sendall(line)
"""


class Agent:
    """A client that acts for a model. It is a program of its own, which begins after the terminal and which this one is not
    above: an agent that ran before could have made the terminal, whose person would have to give a code."""

    def __init__(self, session: Session) -> None:
        relay = ["setsid", "--fork", sys.executable, "-c", RELAY, str(session.socket)]
        self.stdin = subprocess.Popen(relay, stdin=subprocess.PIPE).stdin
        self.last = 0
        self.send("session.open", {"cwd": str(session.work), "role": "agent", "client": {"name": "claude", "version": "1"}})

    def send(self, method: str, params: dict) -> None:
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def call(self, name: str, arguments: dict) -> None:
        self.send("tools.execute", {"name": name, "arguments": arguments})


def hooks(session: Session) -> None:
    """Four agents ask before they run the same command, each through its own hook."""
    for agent, call in HOOKS.items():
        payload = {"session_id": f"s-{agent}", "cwd": str(session.work), "permission_mode": "default", "tool_use_id": agent} | call
        command = ["toolctl", "hook", agent]
        subprocess.run(command, input=json.dumps(payload), env=session.environment, cwd=session.work, capture_output=True, text=True)


def prepare(session: Session) -> None:
    """A repository in which an agent works."""
    (session.work / "prices.txt").write_text("green tea  4.20\n")
    for command in (
        "git init -q -b main . && git init -q --bare ../origin.git && git remote add origin ../origin.git",
        "git add prices.txt && git -c user.name=you -c user.email=you@example.com commit -q -m 'Sell tea'",
    ):
        session.run("sh", "-c", command)
    session.daemon = json.loads(session.run("toolctl", "status", "--json"))["pid"]
    session.run("toolctl", "workspaces", "allow", session.work)
    session.run("toolctl", "permissions", "grant", "file.write", f"{session.work}/**")


def show_screen(session: Session) -> None:
    """The full screen, while one call of an agent runs and another one waits."""
    prepare(session)
    test = session.work / "test.sh"
    test.write_text("#!/bin/sh\necho 12 of 40 tests pass\nexec sleep 600\n")
    test.chmod(0o755)
    session.run("toolctl", "permissions", "grant", "shell", "./test.sh")
    session.start()
    session.type("toolctl")
    session.wait_for("1:Calls")
    agent = Agent(session)
    for name, arguments in (
        ("read", {"path": "prices.txt"}),
        ("edit", {"path": "prices.txt", "old": "4.20", "new": "4.40"}),
        ("bash", {"command": "git diff --stat"}),
        ("bash", {"command": "./test.sh"}),
    ):
        agent.call(name, arguments)
        time.sleep(1.0)
    session.wait_for("12 of 40")
    agent.call("bash", {"command": "git push -q origin main"})
    session.wait_for("deny, with a reason")
    time.sleep(1.5)


def play(session: Session) -> None:
    """What the moving picture shows."""
    prepare(session)
    session.start()
    session.type("toolctl approve    # an agent in another window wants to push")
    session.wait_for(r"approve.*\n\S")
    time.sleep(0.8)
    agent = Agent(session)
    agent.call("bash", {"command": "git push -q origin main"})
    session.wait_for("git push -q")
    time.sleep(1.6)
    session.tmux("send-keys", "y")
    session.wait_until_pushed()
    time.sleep(1.0)
    session.tmux("send-keys", "Escape")
    session.wait_for(r"^\$\s*\Z")
    session.clear()
    session.type("toolctl permissions grant --deny shell 'git push --force *'    # one rule ...")
    session.wait_for(r"\n\$\s*\Z")
    time.sleep(0.8)
    hooks(session)
    session.type("toolctl audit -n 4    # ... stops four agents")
    session.wait_for(r"cursor[^$]*\n\$\s*\Z")
    time.sleep(2.0)
    session.clear()
    agent.call("read", {"path": "prices.txt"})
    agent.call("edit", {"path": "prices.txt", "old": "4.20", "new": "0.00"})
    time.sleep(1.0)
    session.type("toolctl undo    # an edit of an agent, taken back")
    session.wait_for(r"\[y/N\]|\?")
    time.sleep(1.6)
    session.tmux("send-keys", "y")
    session.wait_for(r"\n\$\s*\Z")
    session.type("cat prices.txt")
    session.wait_for(r"4\.20\n\$")
    time.sleep(0.5)


# A piece of a line: where it starts, its text, its classes.
Piece = tuple[int, str, str]


def pieces(line: str, state: dict[str, str]) -> list[Piece]:
    """A line's text by colours. The state goes on in the next line, as on a terminal."""
    found: list[Piece] = []
    column = 0
    for text, codes in re.findall(r"([^\x1b]*)(?:\x1b\[([0-9;]*)m)?", line):
        classes = " ".join(filter(None, (state["colour"], state["weight"])))
        # Blanks are not drawn, and what follows them has a place of its own.
        for word in re.finditer(r"\S+(?: \S+)*", text):
            found.append((column + word.start(), word[0], classes))
        column += len(text)
        for code in codes.split(";") if codes is not None else []:
            if code in ("", "0"):
                state.update(colour="", weight="")
            elif code in ("1", "2"):
                state["weight"] = "b" if code == "1" else "d"
            elif code == "22":
                state["weight"] = ""
            elif code == "39":
                state["colour"] = ""
            elif re.fullmatch("[39][0-7]", code):
                state["colour"] = f"c{code[1]}"
    return found


def at_home(screen: str, home: str) -> str:
    """With the home folder of a person, in as many columns; also where a path is cut, at its end or at its beginning."""

    def replaced(found: re.Match[str]) -> str:
        return f"/home/you{found[1]}".ljust(len(found[0]))

    cut = "|".join(re.escape(home[:length]) for length in range(len(home), len("/tmp/"), -1))
    screen = re.sub(f"(?:{cut})()…", replaced, screen)

    def replaced_if_it_fits(found: re.Match[str]) -> str:
        return replaced(found) if len(replaced(found)) == len(found[0]) else found[0]

    screen = re.sub(rf"…[^\s/]*/{Path(home).name}(\S*)", replaced_if_it_fits, screen)
    return re.sub(rf"{re.escape(home)}(\S*)", replaced, screen)


def draw(session: Session, frames: list[tuple[float, str]], title: str) -> str:
    """The frames as one picture that plays itself."""
    home = str(session.home)
    width, height = round(session.columns * CELL + 2 * MARGIN), session.rows * LINE + 2 * MARGIN + BAR
    lines: dict[tuple[Piece, ...], int] = {}
    film: list[str] = []
    starts: list[float] = []
    at = 0.0
    for index, (begin, seen) in enumerate(frames):
        following = frames[index + 1][0] if index + 1 < len(frames) else begin + END
        *screen, cursor = at_home(seen, home).rstrip("\n").split("\n")
        state = {"colour": "", "weight": ""}
        used = []
        for row, line in enumerate(screen):
            if drawn := tuple(pieces(line, state)):
                number = lines.setdefault(drawn, len(lines))
                used.append(f'<use href="#l{number}" y="{row * LINE}"/>')
        x, y, visible = map(int, cursor.split())
        if visible:
            used.append(f'<rect class="cursor" x="{x * CELL:.1f}" y="{y * LINE + 2}" width="{CELL}" height="{LINE - 3}"/>')
        film.append(f'<g transform="translate(0 {index * height})">{"".join(used)}</g>')
        starts.append(at)
        at += min(following - begin, LONGEST) if index + 1 < len(frames) else END
    keys = "".join(
        f"{100 * start / at:.3f}%{{transform:translateY({-index * height}px)}}" for index, start in enumerate(starts)
    )
    last = -(len(frames) - 1) * height
    texts = []
    for drawn, number in lines.items():
        spans = "".join(
            f'<tspan x="{column * CELL:.1f}" textLength="{len(text) * CELL:.1f}"'
            + (f' class="{classes}"' if classes else "")
            + f">{escape(text)}</tspan>"
            for column, text, classes in drawn
        )
        texts.append(f'<text id="l{number}" y="{LINE - 5}">{spans}</text>')

    def colours(values: list[str]) -> str:
        return "".join(f".c{number}{{fill:{value}}}" for number, value in enumerate(values))

    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>{title}</title>
<style>
text{{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#24292f;white-space:pre}}
.page{{fill:#f6f8fa;stroke:#d1d9e0}}.cursor{{fill:#24292f;opacity:.45}}.b{{font-weight:700}}.d{{opacity:.6}}
{colours(LIGHT)}
@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}.page{{fill:#0d1117;stroke:#3d444d}}.cursor{{fill:#e6edf3}}
{colours(DARK)}}}
.film{{animation:play {at:.1f}s step-end infinite}}
@keyframes play{{{keys}}}
@media (prefers-reduced-motion:reduce){{.film{{animation:none;transform:translateY({last}px)}}}}
</style>
<defs>
{chr(10).join(texts)}
<clipPath id="screen"><rect width="{width - 2 * MARGIN}" height="{session.rows * LINE}"/></clipPath>
</defs>
<rect class="page" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>
<g><circle cx="20" cy="18" r="5.5" fill="#ff5f57"/><circle cx="38" cy="18" r="5.5" fill="#febc2e"/><circle cx="56" cy="18" r="5.5" fill="#28c840"/></g>
<g transform="translate({MARGIN} {MARGIN + BAR})" clip-path="url(#screen)"><g class="film">
{chr(10).join(film)}
</g></g>
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="the folder of toold and toolctl")
    parser.add_argument("--screen", action="store_true", help="the full screen of toolctl")
    options = parser.parse_args()
    root = Path(__file__).resolve().parents[1]

    def recorded(size: tuple[int, int], shown: Callable[[Session], None]) -> Session:
        session = Session(options.bin.resolve(), size)
        try:
            (session.home / ".config/toold/plugins").mkdir(parents=True)
            shown(session)
        finally:
            session.end()
        return session

    if options.screen:
        title = "The full screen of toolctl: one call of an agent runs, and another one waits for an approval"
        for name, size in SCREENS.items():
            session = recorded(size, show_screen)
            (root / f"clients/toolctl/{name}.svg").write_text(draw(session, session.frames[-1:], title))
    else:
        session = recorded(DEMO, play)
        title = "A terminal: a push of an agent is approved, one rule stops four agents, and an edit is taken back"
        (root / "docs/demo.svg").write_text(draw(session, session.frames, title))


if __name__ == "__main__":
    main()
