#!/usr/bin/env python3
"""Real agents with toold, against a scripted model.

    run.py --bin DIR [--claude-code PROGRAM...] [--codex PROGRAM...] [--gemini PROGRAM...] [--opencode PROGRAM...]
           [--copilot PROGRAM...] [--qwen-code PROGRAM...] [--only CHECK...] [--without CHECK...]

For each agent that is given: what rules decide, also about other names of a command and about programs that a repository's
files start, what a person is asked and answers in another frontend, what happens to a hook that waits, an edit that is undone, tools
of toold by MCP, commands that run confined, copies of toolctl that decide nothing, tools that the agent has by itself, and
what holds in each of its modes, which is compared with the table in AGENTS.md; UPDATE=1 writes the table. With Codex and Gemini
CLI: both at once. Nothing is asked of any network but loopback. The folders are below the current one.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

from alone import (
    RULES, asked_and_answered, by_mcp, edit_undone, files_start_what_is_allowed, grants_itself_nothing, other_names_of_commands,
    own_tools_left_out, prompt_passes_hooks, rules_decide, waiting_allows_nothing,
)
from confined import confined
from modes import modes_hold
from place import HERE, Place
from programs import KINDS, Agent
from together import one_grant

ALONE = {"rules": rules_decide, "names": other_names_of_commands, "files": files_start_what_is_allowed,
         "asked": asked_and_answered, "waits": waiting_allows_nothing, "undone": edit_undone, "mcp": by_mcp, "modes": modes_hold,
         "confined": confined, "grants": grants_itself_nothing, "own": own_tools_left_out}


def time_hook(bin_dir: Path) -> None:
    with Place(bin_dir, RULES) as place:
        command = [sys.executable, str(HERE / "hook_time.py"), str(place.toolctl), str(place.project)]
        subprocess.run(command, env=place.env, cwd=place.project, check=True, timeout=300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="where toold and toolctl are")
    for kind in KINDS:
        parser.add_argument(f"--{kind.name}", nargs="+", metavar="PROGRAM")
    checks = [*ALONE, "prompt", "together", "time"]
    parser.add_argument("--only", nargs="+", choices=checks, default=checks, help="only these checks")
    parser.add_argument("--without", nargs="+", choices=checks, default=[], help="not these checks")
    given = parser.parse_args()
    # An end from outside, too, stops the programs and removes the folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    # The output of the programs that this one starts stands among its own.
    sys.stdout.reconfigure(line_buffering=True)
    bin_dir = given.bin.resolve()
    agents: list[Agent] = []
    for kind in KINDS:
        if program := getattr(given, kind.name.replace("-", "_")):
            agents.append(kind(program))
            print(f"{kind.name} {agents[-1].version()}")

    def check(name: str, run, *agents: Agent) -> None:
        if name not in given.only or name in given.without:
            return
        began = time.monotonic()
        run(*agents, bin_dir)
        names = " and ".join(agent.name for agent in agents)
        print(f"{names or 'toolctl'}: {name} ({time.monotonic() - began:.1f} s)")

    for agent in agents:
        for name, run in ALONE.items():
            check(name, run, agent)
        if agent.name in ("claude-code", "codex"):
            check("prompt", prompt_passes_hooks, agent)
    pair = [agent for agent in agents if agent.name in ("codex", "gemini")]
    if len(pair) == 2:
        check("together", one_grant, *pair)
    check("time", time_hook)


if __name__ == "__main__":
    main()
