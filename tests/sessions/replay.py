#!/usr/bin/env python3
"""Replays recorded terminal sessions, and shows where they differ from the programs' behaviour now.

    replay.py --bin FOLDER [--update] SESSION...

Each session runs in a home folder of its own, with the `toold` and `toolctl` of FOLDER in PATH, and stops the daemon that
its commands started. A session is a text file. The first character of a line is its kind:

    # words      a remark
    % command    a preparation: run by bash, must succeed, prints nothing. $REPO is the folder of the sources
    $ command    run by bash; the indented lines under it are its output, from both streams
    > more       the next line of the command above
    @ command    run in a terminal of 80 columns and 24 lines, which the lines below talk to
    : keys       typed there; <Enter>, <Esc>, <C-g>, <M-x> and the like are keys
    & key text   typed there, and again when the terminal does not show the text within two seconds
    ? text       waits until the terminal shows this; `^text` at the start of a line
    =            the indented lines under it are the contents of the terminal

`[status N]` is printed behind a command that failed. What differs from run to run (the home folder, ids, times) is
replaced by fixed examples, so that --update writes the same text each time.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
# The longest wait, in seconds.
PATIENCE = 60.0
INDENT = "    "
KEY = re.compile(r"<((?:[CM]-)?(?:[A-Za-z]|Enter|Esc|Tab|Up|Down|BSpace))>")
KEY_NAMES = {"Esc": "Escape"}

STEADY = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "2026-01-31T12:00:00Z"),
    (r"loaded at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ?", "loaded at 2026-01-31 12:00:00Z"),
    (r"\b\d\d:\d\d:\d\d\b", "12:00:00"),
    (r"\b\d+(\.\d+)? ms\b", "3 ms"),
    (r"\bpid(=| )\d+", r"pid\g<1>4242"),
    (r"\bgrant_[0-9a-f]+_(\d+)", r"grant_0a1b2c3d_\1"),
    (r"\b[0-9a-f]{7} \d{4}-\d\d-\d\d\b", "0fc6411 2026-01-31"),
    (r"\b[0-9a-f]{32}\b", "0123456789abcdef0123456789abcdef"),
]


class SessionFolders:
    """Folders for one session, and the programs that run in them."""

    def __init__(self, bin: Path) -> None:
        # Short, because the path of a socket must be.
        self.root = Path(tempfile.mkdtemp(prefix="toold-session-")).resolve()
        self.home = self.root / "you"
        self.home.mkdir()
        temporary = self.root / "tmp"
        temporary.mkdir()
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{bin.resolve()}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "REPO": str(REPO),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "NO_COLOR": "1",
            # Killed editors leave files there.
            "TMPDIR": str(temporary),
            "TMUX_TMPDIR": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.has_terminal = False

    def run(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE,
            text=True,
            errors="replace",
        )
        return done.returncode, done.stdout

    def tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", *arguments],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            timeout=PATIENCE,
            text=True,
        )
        if done.returncode != 0:
            raise RuntimeError(f"tmux {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    def open_terminal(self, command: str) -> None:
        self.close_terminal()
        self.has_terminal = True
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", command)
        self.tmux("set-option", "-g", "escape-time", "0")

    def close_terminal(self) -> None:
        if self.has_terminal:
            self.has_terminal = False
            subprocess.run(["tmux", "kill-server"], env=self.environment, capture_output=True, timeout=PATIENCE)

    def press(self, keys: str) -> None:
        at = 0
        for key in KEY.finditer(keys):
            if key.start() > at:
                self.tmux("send-keys", "-l", keys[at : key.start()])
            self.tmux("send-keys", KEY_NAMES.get(key[1], key[1]))
            at = key.end()
        if at < len(keys):
            self.tmux("send-keys", "-l", keys[at:])

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def press_until(self, key: str, text: str) -> None:
        """For prompts that take no key until there was time to read them."""
        pressed = 0.0

        def shown() -> bool:
            nonlocal pressed
            if time.monotonic() - pressed > 2:
                self.press(key)
                pressed = time.monotonic()
            return text in self.screen()

        if not until(shown):
            raise RuntimeError(f"the terminal never showed {text!r}, but:\n{self.screen()}")

    def wait_for(self, text: str) -> None:
        seen = ""

        def shown() -> bool:
            nonlocal seen
            seen = self.screen()
            if text.startswith("^"):
                return any(line.startswith(text[1:]) for line in seen.splitlines())
            return text in seen

        if not until(shown):
            raise RuntimeError(f"the terminal never showed {text!r}, but:\n{seen}")

    def processes(self) -> list[int]:
        """Processes with this home folder: the daemon, and those that it and the session's commands left behind."""
        mark = f"HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # It has ended, or is somebody else's.
        return found

    def leave(self) -> None:
        """Stops the daemon, checks that nothing is left, and removes the folders."""
        self.close_terminal()
        self.run("toolctl --no-start stop")
        gone = until(lambda: not self.processes())
        left = self.processes()
        shutil.rmtree(self.root)
        if not gone:
            raise RuntimeError(f"processes are left: {left}")

    def steady(self, text: str) -> list[str]:
        """The lines of an output, without the values that differ from run to run."""
        text = text.replace(str(self.home), "/home/you")
        for pattern, words in STEADY:
            text = re.sub(pattern, words, text)
        lines = [line.rstrip() for line in text.splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def until(condition: Callable[[], bool]) -> bool:
    """Polls, because no event reports changes of another process's screen."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def play(lines: list[str], place: SessionFolders) -> list[str]:
    """Runs the lines; gives them with their output now."""
    played: list[str] = []
    at = 0

    def output(text: str) -> None:
        nonlocal at
        while at < len(lines) and (lines[at].startswith(INDENT) or not lines[at]):
            at += 1
        played.extend(f"{INDENT}{line}".rstrip() for line in place.steady(text))
        # A blank line separates groups, where the text had one.
        if at < len(lines) and not lines[at - 1]:
            played.append("")

    while at < len(lines):
        line = lines[at]
        played.append(line)
        at += 1
        mark, rest = line[:1], line[2:]
        if mark in ("$", "%", "@"):
            while at < len(lines) and lines[at].startswith(">"):
                played.append(lines[at])
                rest += "\n" + lines[at][2:]
                at += 1
        if mark == "$":
            status, said = place.run(rest)
            output(f"{said.rstrip()}\n[status {status}]" if status else said)
        elif mark == "%":
            status, said = place.run(rest)
            if status != 0:
                raise RuntimeError(f"{rest}: status {status}: {said}")
        elif mark == "@":
            place.open_terminal(rest)
        elif mark == ":":
            place.press(rest)
        elif mark == "&":
            key, _, text = rest.partition(" ")
            place.press_until(key, text)
        elif mark == "?":
            place.wait_for(rest)
        elif mark == "=":
            output(place.screen())
        elif mark not in ("#", ""):
            raise RuntimeError(f"line {at} is of no kind: {line!r}")
    return played


def replay(path: Path, bin: Path, update: bool) -> bool:
    """Whether the session went as recorded; with `update` it is recorded again."""
    recorded = path.read_text().splitlines()
    place = SessionFolders(bin)
    try:
        played = play(recorded, place)
    finally:
        place.leave()
    while played and not played[-1]:
        played.pop()
    if update:
        path.write_text("\n".join(played) + "\n")
    if update or played == recorded:
        print(f"ok    {path.name}")
        return True
    print(f"FAIL  {path.name}")
    for line in difflib.unified_diff(recorded, played, "recorded", "now", lineterm=""):
        print(f"      {line}")
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="the folder of toold and toolctl")
    parser.add_argument("--update", action="store_true", help="record the output of now")
    parser.add_argument("sessions", nargs="+", type=Path)
    options = parser.parse_args()
    results = [replay(path, options.bin, options.update) for path in options.sessions]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
