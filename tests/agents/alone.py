"""One agent: by its hooks, by MCP, and without a daemon."""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path

from place import Person, Place, until
from programs import Agent

RULES = """
[[permission.rules]]
category = "shell"
pattern = "touch allowed"
action = "allow"

[[permission.rules]]
category = "shell"
pattern = "touch denied"
action = "deny"

[[permission.rules]]
category = "file.write"
pattern = "**/project/notes.txt"
action = "allow"
"""


def asks_toold(*agents: Agent) -> str:
    return "".join(f'[agents.{agent.name}]\nask = "toold"\n' for agent in agents)


def rules_decide(agent: Agent, bin_dir: Path) -> None:
    """A command that a rule allows runs, one that a rule denies does not, also where the session starts the daemon."""
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        said = agent.run(place, [agent.shell("touch allowed"), agent.shell("touch denied"), "done"])
        assert (place.project / "allowed").exists(), said
        assert not (place.project / "denied").exists(), said
        outcomes = [(row["agent"], row["outcome"]) for row in place.audit()]
        assert sorted(outcomes) == [(agent.name, "denied"), (agent.name, "ok")], (outcomes, said)
        listed = json.loads(place.ctl("agents", "list", "--json"))["agents"]
        [of_agent] = [found for found in listed if found["agent"] == agent.name]
        assert of_agent["last_hook"]["problem"] is None, listed
        place.ctl("stop")
        said = agent.run(place, [agent.shell("touch denied"), "done"])
        assert not (place.project / "denied").exists(), said
        assert place.socket.exists(), "the start of the session started no daemon"


def other_names_of_commands(agent: Agent, bin_dir: Path) -> None:
    """A command that a rule denies does not run by an alias, of which the first command has no file yet, nor by another tool."""
    turns = agent.watched("touch denied")
    if agent.has_aliases:
        turns += [agent.shell("made denied"), agent.shell("touch allowed"), agent.shell("made denied")]
    if not turns:
        return
    with Place(bin_dir, RULES) as place:
        (place.home / ".bashrc").write_text("alias made='touch'\n")
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        said = agent.run(place, [*turns, "done"])
        assert not (place.project / "denied").exists(), said
        [reason] = {row["outcome"] for row in place.audit()} - {"ok"}
        assert reason == "denied", (place.audit(), said)


STARTS = "".join(
    f'[[permission.rules]]\ncategory = "shell"\npattern = "touch {verdict}-*"\naction = "{verdict}"\n'
    for verdict in ("allow", "deny")
)


def files_start_what_is_allowed(agent: Agent, bin_dir: Path) -> None:
    """A file of a skill or a sub-agent starts a program only if a rule allows the program."""
    with Place(bin_dir, STARTS) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        names = [(verdict, way) for verdict in ("allow", "deny", "other") for way in agent.starting(place)]
        if not names:
            return
        turns = [
            turn for verdict, way in names
            for turn in agent.starting(place)[way](f"{way}-{verdict}", f"touch {verdict}-{way}")
        ]
        said = agent.run(place, [*turns, "done"])
        made = {path.name for path in place.project.glob("*-*")}
        assert made == {f"allow-{way}" for verdict, way in names if verdict == "allow"}, (made, place.audit(), said)


def asked_and_answered(agent: Agent, bin_dir: Path) -> None:
    """A person is asked in another frontend. The command runs after yes, and not after no."""
    with Place(bin_dir, asks_toold(agent)) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        turns = [agent.shell("touch yes"), agent.shell("touch no"), "done"]
        with Person(place) as person, agent.start(place, turns) as running:
            for target, action in (("touch yes", "allow"), ("touch no", "deny")):
                ask = person.asked()
                shown = (ask["agent"], ask["category"], ask["target"], ask["cwd"])
                assert shown == (agent.name, "shell", target, str(place.project)), ask
                assert not (place.project / target.removeprefix("touch ")).exists(), "it did not wait"
                person.reply(ask, action)
            said = running.wait()
        assert (place.project / "yes").exists(), said
        assert not (place.project / "no").exists(), said


class DeadSocket:
    """Takes the place of the daemon's socket, and closes each connection."""

    def __init__(self, place: Place):
        place.socket.unlink()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(place.socket))
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                self.listener.accept()[0].close()
            except OSError:
                return


def waiting_allows_nothing(agent: Agent, bin_dir: Path) -> None:
    """Nothing that happens while a person is asked is a yes: a pause, another level, another socket, the end of the daemon or of
    the hook."""

    def other_level(place: Place, person: Person, ask: dict) -> None:
        for level in ("operate", "read"):
            place.ctl("level", level, "--session", ask["session_id"])
        person.reply(ask, "deny")

    def other_socket(place: Place, *_) -> None:
        DeadSocket(place)
        place.kill("toold", "serve")

    changes = {
        "pause": lambda place, *_: place.ctl("pause"),
        "level": other_level,
        "socket": other_socket,
        "daemon": lambda place, *_: place.kill("toold", "serve"),
        "hook": lambda place, *_: place.kill("toolctl", "hook"),
    }
    for name, change in changes.items():
        with Place(bin_dir, asks_toold(agent)) as place:
            place.ctl("agents", "install", agent.name, "--hooks", "--yes")
            with Person(place) as person, agent.start(place, [agent.shell("touch never"), "done"]) as running:
                change(place, person, person.asked())
                said = running.wait()
            assert not (place.project / "never").exists(), (name, said)


def edit_undone(agent: Agent, bin_dir: Path) -> None:
    """An edit by the agent's own tool is undone by toolctl."""
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        notes = place.project / "notes.txt"
        notes.write_text("first\nsecond\n")
        said = agent.run(place, [*agent.edit(notes, "second", "changed"), "done"])
        assert notes.read_text() == "first\nchanged\n", said
        place.ctl("undo", "--yes")
        assert notes.read_text() == "first\nsecond\n", said


def by_mcp(agent: Agent, bin_dir: Path) -> None:
    """The same with tools of toold that the agent calls by MCP. Each call is judged once, though the hooks see it, too."""
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--profile", "all", "--yes")
        notes = place.project / "notes.txt"
        lines = ("touch allowed", "touch denied", "touch yes", "touch no")
        commands = [agent.mcp("bash", {"command": line}) for line in lines]
        write = agent.mcp("write", {"path": "notes.txt", "content": "by MCP\n"})
        with Person(place) as person, agent.start(place, [*commands, write, "done"]) as running:
            for target, action in (("touch yes", "allow"), ("touch no", "deny")):
                ask = person.asked()
                assert ask["target"] == target, ask
                person.reply(ask, action)
            said = running.wait()
        made = sorted(path.name for path in place.project.iterdir())
        assert made == ["allowed", "notes.txt", "yes"], (made, said)
        rows = sorted((row["tool"], row["outcome"]) for row in place.audit())
        assert rows == [("bash", "denied")] * 2 + [("bash", "ok")] * 2 + [("write", "ok")], (rows, said)
        place.ctl("undo", "--yes")
        assert not notes.exists()


def own_tools_left_out(agent: Agent, bin_dir: Path) -> None:
    """The profile of an installation leaves out the tools of toold that the agent has by itself."""
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--yes")
        with agent.start(place, [*agent.list_tools(), "done"]) as running:
            said = running.wait()
            requests = running.model.requests.read_text()
        is_there = lambda tool: re.search(rf"{agent.prefix}{tool}\b", requests) is not None
        assert is_there("todo"), (said, requests[-4000:])
        assert not [tool for tool in agent.own if is_there(tool)], requests[-4000:]


# A script of an agent runs copies of toolctl and links to it, which no rule knows. Each says why it may not decide.
COPIES = """
cp TOOLCTL copy && ln -s TOOLCTL link
./copy permissions grant shell 'rm *' > said-1 2>&1
./link permissions grant shell 'rm *' > said-2 2>&1
env -i HOME="$HOME" TOOLD_SOCKET=SOCKET ./copy permissions grant shell 'rm *' > said-3 2>&1
(setsid ./copy permissions grant shell 'rm *' > part 2>&1; mv part said-4) &
until [ -e said-4 ]; do sleep 0.05; done
"""


def grants_itself_nothing(agent: Agent, bin_dir: Path) -> None:
    """The daemon knows a copy of toolctl that the agent runs by the agent above it."""
    with Place(bin_dir, RULES) as place:
        place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        lines = COPIES.replace("TOOLCTL", str(place.toolctl)).replace("SOCKET", str(place.socket))
        (place.project / "copies.sh").write_text(lines)
        later = "./copy permissions grant shell 'rm *' > said-5 2>&1"
        said = agent.run(place, [agent.shell("sh copies.sh"), agent.shell(later), "done"])
        answers = {file.name: file.read_text() for file in place.project.glob("said-*")}
        assert len(answers) >= 4 and all("agent" in answer for answer in answers.values()), (answers, said)
        assert json.loads(place.ctl("permissions", "list", "--json"))["grants"] == [], answers


ADVICE = """
hygge.register_hook("pre_message", {name = "advice"}, function(event)
  if event.message:find("forbidden") then return {decision = "deny", reason = "not in this house"} end
  return {decision = "modify", system_prompt_append = "the advice for: " .. event.message}
end)
"""


def prompt_passes_hooks(agent: Agent, bin_dir: Path) -> None:
    """The prompt of a person passes through the `pre_message` hook of a plugin, and the model reads what the hook adds."""
    with Place(bin_dir, RULES) as place:
        plugin = place.home / ".config/toold/plugins/advice.lua"
        plugin.parent.mkdir(exist_ok=True)
        plugin.write_text(ADVICE)
        until("the plugin", lambda: "advice" in place.ctl("plugins", "list"))
        installed = place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        assert "advice" in installed, installed
        shown = place.ctl("plugins", "show", "advice")
        with agent.start(place, ["done"]) as running:
            said = running.wait()
            requests = running.model.requests.read_text()
        assert "the advice for: go" in requests, (said, requests[:2000], installed, shown)
