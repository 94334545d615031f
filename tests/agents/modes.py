"""What holds in each mode of an agent, with its prompt given on the command line: a table, which AGENTS.md has."""

from __future__ import annotations

import re
from pathlib import Path

from place import HERE, Place
from programs import Agent

TABLE = HERE.parents[1] / "clients/toolctl/AGENTS.md"

RULES = "".join(
    f'[[permission.rules]]\ncategory = "shell"\npattern = "touch {verdict}*"\naction = "{verdict}"\n'
    for verdict in ("allow", "deny", "ask")
)


def modes_hold(agent: Agent, bin_dir: Path) -> None:
    """The rows of this agent in the table say what happened here, and there are no others."""
    tried = agent.version()
    usual = agent.mode
    of_agent = re.compile(rf"\| {re.escape(agent.name)} \S+ \| `\S+` \| (runs|does not run) ")
    rows = [line for line in TABLE.read_text().splitlines() if of_agent.match(line)]
    for mode in agent.modes:
        agent.mode = mode
        with Place(bin_dir, RULES) as place:
            (place.project / ".git/hooks").mkdir(parents=True)
            place.ctl("agents", "install", agent.name, "--hooks", "--yes")
            hook = place.project / ".git/hooks/pre-commit"
            lines = [agent.shell(f"touch {name}") for name in ("allow1", "deny1", "ask1", "other1")]
            said = agent.run(place, [*lines, agent.write(hook), "done"])
            files = [place.project / name for name in ("allow1", "deny1", "ask1", "other1")] + [hook]
            held = " | ".join("runs" if file.exists() else "does not run" for file in files)
        row = f"| {agent.name} {tried} | `{mode}` | {held} |"
        assert row in rows, f"AGENTS.md has another row than this: {row}\n{said}"
        rows.remove(row)
    assert not rows, f"AGENTS.md has rows that were not tried: {rows}"
    agent.mode = usual
