#!/usr/bin/env python3
"""Undoes six commands in a repository of 20,000 files, byte for byte, and measures what being able to do so costs a command.

usage: tests/benches/undo.py [--files N] [--rounds N] [--toold PROGRAM]

The cost is the difference between a command in the repository and the same command in a session that is not recorded, since
its folder is the home folder. Fails if anything is not as it was before, or if the goals are missed: at p50 10 ms more, at
p95 30.
"""

import argparse
import hashlib
import os
import statistics
import subprocess
import sys
import time

from driver import RELEASE, Daemon

RULES = "".join(
    f'[[permission.rules]]\ncategory = "{category}"\npattern = "**"\naction = "allow"\n'
    for category in ("shell", "file.read", "file.write")
)
PER_FOLDER = 50
FORMATTER = """import pathlib
for path in pathlib.Path("src/0040").iterdir():
    path.write_text(path.read_text().replace("  ", " ").rstrip() + "\\n")
"""
COMMANDS = [
    "rm -rf src/0001",
    "sed -i s/line/LINE/ src/0010/*",
    "mv src/0020 moved",
    "chmod 600 src/0030/*",
    "git checkout -- .",
    "python3 format.py",
]


def make(repository, files):
    for number in range(files // PER_FOLDER):
        folder = repository / f"src/{number:04}"
        folder.mkdir(parents=True)
        for name in range(PER_FOLDER):
            (folder / f"{name}.txt").write_text(f"line  {number} {name}\n" * 40)
    os.symlink("src/0001", repository / "link")
    (repository / "format.py").write_text(FORMATTER)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *command], check=True)
    # What `git checkout -- .` throws away.
    for name in range(PER_FOLDER):
        (repository / f"src/0050/{name}.txt").write_text("not committed\n")


def state(repository):
    """The kind, the mode and the content of everything in the repository but Git's own folder."""
    found = {}
    for folder, folders, files in os.walk(repository):
        if ".git" in folders:
            folders.remove(".git")
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if os.path.islink(path):
                content = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            else:
                content = ""
            found[path] = (mode, content)
    return found


def run(client, command):
    """Runs a command; gives its result and its milliseconds."""
    started = time.perf_counter()
    answer = client.tool("bash", command=command)
    took = (time.perf_counter() - started) * 1000
    assert not answer.get("result", {"is_error": True})["is_error"], (command, answer)
    return answer["result"], took


def undone(daemon, client, command):
    before = state(daemon.work)
    result, took = run(client, command)
    assert "not_undoable" not in result.get("metadata", {}), result
    after = state(daemon.work)
    changed = sum(before.get(path) != after.get(path) for path in before.keys() | after.keys())
    assert changed, command
    started = time.perf_counter()
    answer = client.call("files.undo", {"call_id": result["call_id"]})
    undo = (time.perf_counter() - started) * 1000
    assert "result" in answer, (command, answer)
    now = state(daemon.work)
    wrong = [path for path in before.keys() | now.keys() if before.get(path) != now.get(path)]
    print(f"{command:34} {took:7.0f} ms, {changed:4} changes, undone in {undo:5.0f} ms: {'the same' if not wrong else wrong[:5]}")
    return not wrong


def until_undoable(client):
    """Waits until the folder has been looked at for the first time."""
    started = time.monotonic()
    while True:
        result, _ = run(client, "touch probe")
        if "not_undoable" not in result.get("metadata", {}):
            return time.monotonic() - started
        assert time.monotonic() - started < 60, result
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--toold", default=RELEASE)
    arguments = parser.parse_args()
    daemon = Daemon(arguments.toold, RULES, lambda daemon: make(daemon.work, arguments.files))
    try:
        with daemon.client() as client, daemon.client() as plain:
            for each, folder in ((client, daemon.work), (plain, daemon.home)):
                assert "result" in each.call("session.open", {"cwd": str(folder)})
            print(f"{arguments.files} files; undoable {until_undoable(client):.1f} s after the first command")
            held = all([undone(daemon, client, command) for command in COMMANDS])
            command = f"echo more >> {daemon.work}/src/0000/0.txt"
            recorded, alone = [], []
            for _ in range(arguments.rounds):
                recorded.append(run(client, command)[1])
                alone.append(run(plain, command)[1])
            for name, at, goal in (("p50", 49, 10), ("p95", 94, 30)):
                with_undo, without = (statistics.quantiles(times, n=100)[at] for times in (recorded, alone))
                more = with_undo - without
                held &= more <= goal
                words = "held" if more <= goal else "missed"
                print(f"{name}: {with_undo:.1f} ms, {without:.1f} not recorded: {more:.1f} ms more (at most {goal}: {words})")
    finally:
        daemon.stop()
    sys.exit(not held)


if __name__ == "__main__":
    main()
