"""What holds in each mode of an agent, with its prompt given on the command line: a table, which AGENTS.md has."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from place import HERE, Place
from programs import Agent

TABLE = HERE.parents[1] / "clients/toolctl/AGENTS.md"
BEGIN, END = "<!-- modes -->\n", "<!-- end of modes -->"
COLUMNS = (
    "allowed", "denied", "asked about", "no rule", "protected write", "allowed in a sub-agent", "denied in a sub-agent",
    "denied in the background", "allowed tool of MCP", "denied tool of MCP", "its edit", "confined",
)

RULES = "".join(
    f'[[permission.rules]]\ncategory = "{category}"\npattern = "{pattern}{verdict}*"\naction = "{verdict}"\n'
    for category, pattern in (("shell", "touch "), ("mcp", "other/"))
    for verdict in ("allow", "deny", "ask")
) + '[[permission.rules]]\ncategory = "file.write"\npattern = "**/project/notes.txt"\naction = "allow"\n'
FREE = '[permission]\nlevel = "develop"\n'


def modes_hold(agent: Agent, bin_dir: Path) -> None:
    """The rows of this agent in the table say what happened here, and there are no others."""
    usual, rows = agent.mode, []
    for agent.mode in agent.modes:
        cells = [agent.name, agent.version(), f"`{agent.mode}`", *held(agent, bin_dir), confined(agent, bin_dir)]
        rows.append(f"| {cells[0]} {' | '.join(cells[1:])} |")
    agent.mode = usual
    text = TABLE.read_text()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    of_agent = re.compile(rf"\| {re.escape(agent.name)} \S+ \|")
    written = [line for line in table.splitlines()[2:] if of_agent.match(line)]
    if os.environ.get("UPDATE"):
        lines = table.splitlines()[2:]
        before_agent = next((at for at, line in enumerate(lines) if of_agent.match(line)), len(lines))
        others = [line for line in lines if not of_agent.match(line)]
        others[before_agent:before_agent] = rows
        head = ["| agent and version tried | mode | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
        table = "\n".join([*head, *others]) + "\n"
        TABLE.write_text(before + BEGIN + table + END + after)
        return
    assert written == rows, "AGENTS.md has other rows than these: " + "\n".join(["", *rows])


def held(agent: Agent, bin_dir: Path) -> list[str]:
    with Place(bin_dir, RULES) as place:
        (place.project / ".git/hooks").mkdir(parents=True)
        hook, notes = place.project / ".git/hooks/pre-commit", place.project / "notes.txt"
        notes.write_text("first\nsecond\n")
        agent.server(place, [sys.executable, str(HERE / "server.py"), str(place.root)])
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        touch = lambda *names: [agent.shell(f"touch {name}") for name in names]
        background = agent.background("touch deny3")
        turns = [
            *touch("allow1", "deny1", "ask1", "other1"), agent.write(hook), *([background] if background else []),
            *agent.sub_agent(touch("allow2", "deny2")), agent.other("allow"), agent.other("deny"),
            *agent.edit(notes, "second", "changed"), "done",
        ]
        with agent.start(place, turns) as running:
            said = running.wait()
            asked = running.model.requests.read_text()
        decisions = [decision for row in place.audit() for decision in row.get("decisions", [])]
        denied = {decision["target"] for decision in decisions if decision["verdict"] == "deny"}
        runs = lambda name: "runs" if (place.project / name).exists() else "does not run"
        # A file that is not there proves something only if toold denied it.
        if runs("allow2") == "runs":
            assert "touch deny2" in denied, (agent.mode, said, asked[-4000:])
        edit = "undone"
        if notes.read_text() == "first\nsecond\n":
            edit = "does not run"
        else:
            place.ctl("undo", "--yes")
            assert notes.read_text() == "first\nsecond\n", said
        names = ["allow1", "deny1", "ask1", "other1", ".git/hooks/pre-commit", "allow2", "deny2"]
        cells = [*map(runs, names), runs("deny3") if background else "none", runs("../mcp-allow"), runs("../mcp-deny"), edit]
        assert "does not run" in (cells[9], cells[6]), cells
        return cells


def confined(agent: Agent, bin_dir: Path) -> str:
    """How a script runs that no rule is about, where a level frees it."""
    if not agent.confines:
        return "never"
    with Place(bin_dir, FREE) as place:
        (place.project / "build.sh").write_text("echo built > built; echo x > ../outside\n")
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        said = agent.run(place, [agent.shell("sh build.sh"), "done"])
        assert not (place.root / "outside").exists(), said
        return "what a level frees" if (place.project / "built").exists() else "does not run"
