"""An agent whose own commands toold confines where no person allowed them."""

from __future__ import annotations

import json
from pathlib import Path

from place import Place
from programs import Agent

RULES = """
[permission]
level = "develop"

[[permission.rules]]
category = "shell"
pattern = "touch ../ruled"
action = "allow"

[[permission.rules]]
category = "file.write"
pattern = "**/ruled"
action = "allow"
"""

# Each command, and whether it runs in a mode that asks, where nobody can answer.
LINES = [
    ("sh build.sh", True),
    ("touch ../ruled", True),
    ("mkdir -p deep && cd deep", True),
    ("echo x > where", True),
    ("sh denied.sh", False),
    ("sh asked.sh", False),
    ("mytool x; touch unknown", False),
]


def confined(agent: Agent, bin_dir: Path) -> None:
    """What a level frees runs, and changes nothing outside; the agent's own rules, the folder and the exit status are as ever."""
    if not agent.confines:
        return
    usual, agent.mode = agent.mode, "default"
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        settings = place.home / ".claude/settings.json"
        current = json.loads(settings.read_text())
        current["permissions"] = {"deny": ["Bash(sh denied.sh)"], "ask": ["Bash(sh asked.sh)"]}
        settings.write_text(json.dumps(current))
        (place.project / ".git").mkdir()
        (place.project / "build.sh").write_text("echo built > built; echo x > ../outside; exit 7\n")
        for name in ("denied", "asked"):
            (place.project / f"{name}.sh").write_text(f"echo x > {name}\n")
        said = agent.run(place, [*(agent.shell(line) for line, _ in LINES), "done"])
        there = {str(file.relative_to(place.root)) for file in place.root.rglob("*")}
        expected = ["project/built", "ruled", "project/deep/where"]
        assert all(name in there for name in expected), (there, said)
        refused = ["outside", "project/denied", "project/asked", "project/unknown"]
        assert not any(name in there for name in refused), (there, said)
        listed = json.loads(place.ctl("agents", "list", "--json"))["agents"]
        assert [found["confines"] for found in listed if found["agent"] == agent.name] == [True], listed
        # A repository takes the prefix away: then nothing is free, and the agent asks, which nobody can answer. On a busy machine,
        # Claude Code runs its first command before it has these settings: that is confined as before.
        for name in ("built", "deep/where"):
            (place.project / name).unlink()
        (place.project / ".claude").mkdir(exist_ok=True)
        (place.project / ".claude/settings.json").write_text(json.dumps({"env": {"CLAUDE_CODE_SHELL_PREFIX": ""}}))
        said = agent.run(place, [agent.shell("sh build.sh"), "done"])
        assert not (place.root / "outside").exists(), said
    agent.mode = usual
