#!/usr/bin/env python3
"""How long a hook takes for what a rule decides, beside `toolctl --version`: the median of 50 runs of each.

    hook_time.py TOOLCTL CWD

toold takes this process for an agent, since it starts hooks as one. So it is a program of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

RUNS = 50


def seconds(command: list[str], stdin: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, input=stdin, capture_output=True, text=True, check=True, timeout=60)
    return time.perf_counter() - began


def event(cwd: str, number: int) -> str:
    named = {"session_id": "timed", "tool_use_id": f"call_{number}", "cwd": cwd, "permission_mode": "default"}
    tool = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "touch allowed"}}
    return json.dumps(tool | named)


def main() -> None:
    toolctl, cwd = sys.argv[1:]
    hooks = [seconds([toolctl, "hook", "codex"], event(cwd, number)) for number in range(RUNS)]
    starts = [seconds([toolctl, "--version"], "") for _ in range(RUNS)]
    hook, start = (statistics.median(times) * 1000 for times in (hooks, starts))
    print(f"hook: {hook:.1f} ms p50 of {RUNS}; toolctl --version: {start:.1f} ms")


if __name__ == "__main__":
    main()
