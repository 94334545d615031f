"""The agents: how each is started with a scripted model, and how its model calls tools."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

from place import PATIENCE, Place, ScriptedModel


def script(turns: list) -> str:
    """A prompt of the model for a sub-agent, which gets these turns."""
    return f"do it: SCRIPT:{json.dumps([*turns, 'done'])}"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def markdown(name: str, **members) -> str:
    """A file of a skill or a sub-agent. JSON is YAML."""
    front = {"name": name, "description": "a test"} | members
    return "---\n" + "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items()) + "---\nYou help with tests.\n"


def manifest(name: str) -> str:
    """A plugin or an extension."""
    return json.dumps({"name": name, "version": "1.0.0", "description": "a test"})


def hooks_that_run(line: str) -> dict:
    return {"PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": line}]}]}


def server_that_is(line: str) -> dict:
    command, *arguments = line.split()
    return {"type": "stdio", "command": command, "args": arguments}


def with_members(file: Path, members: dict) -> None:
    """Adds to the objects of a JSON file."""
    current = json.loads(file.read_text()) if file.exists() else {}
    for name, value in members.items():
        current[name] = current.get(name, {}) | value
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(current))


class RunningAgent:
    """An agent with its model, in a process group of its own."""

    def __init__(self, place: Place, command: list[str], env: dict[str, str], model: ScriptedModel):
        self.model = model
        self.output = tempfile.TemporaryFile("w+", dir=place.root)
        self.process = subprocess.Popen(
            command, env=place.env | env, cwd=place.project, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, start_new_session=True,
        )

    def __enter__(self) -> RunningAgent:
        return self

    def __exit__(self, *_) -> None:
        # Also ends the programs that it started, such as MCP servers.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.model.close()
        self.output.close()

    def wait(self) -> str:
        """What it printed, after it has ended."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the agent did not end: {self.said()}") from None
        return self.said()

    def said(self) -> str:
        self.output.seek(0)
        return self.output.read()


class Agent:
    """One of the agents, as npm installs it."""

    name = ""
    # Its own modes that are tried, and the one for all other checks, which asks nothing.
    modes: list[str] = []
    mode = ""
    # Whether toold can confine its commands.
    confines = False
    # Whether its commands have the aliases of the person's shell.
    has_aliases = False
    # How its names of tools of toold begin, and those that it has by itself.
    prefix = ""
    own: list[str] = []

    def __init__(self, program: list[str]):
        self.program = program

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        """The command that starts it with the model at `url`, and variables of its environment."""
        raise NotImplementedError

    def shell(self, line: str) -> dict:
        """The turn of a model that runs a command with the agent's own tool."""
        raise NotImplementedError

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        """The turns of a model that replaces a line with the agent's own tools."""
        raise NotImplementedError

    def mcp(self, tool: str, arguments: dict) -> dict:
        """The turn of a model that calls a tool of toold."""
        raise NotImplementedError

    def write(self, file: Path) -> dict:
        """The turn of a model that writes a new file with the agent's own tool."""
        raise NotImplementedError

    def background(self, line: str) -> dict | None:
        """The same as `shell`, in the background; `None` for an agent that has no such commands."""
        raise NotImplementedError

    def watched(self, line: str) -> list[dict]:
        """The turns of a model that runs a command with a tool that reports its output while it runs; none without such a tool."""
        return []

    def sub_agent(self, turns: list) -> list[dict]:
        """The turns of a model that starts a sub-agent with these turns, and waits for it."""
        raise NotImplementedError

    def starting(self, place: Place) -> dict:
        """The ways in which a file of a skill or a sub-agent starts a program, by name: each takes a name and a line, writes the
        file, in a repository or an extension, and returns the turns of a model that uses it."""
        return {}

    def server(self, place: Place, command: list[str]) -> None:
        """Adds an MCP server `other` to the agent's configuration."""
        raise NotImplementedError

    def other(self, tool: str) -> dict:
        """The turn of a model that calls a tool of that server."""
        raise NotImplementedError

    def list_tools(self) -> list[dict]:
        """The turns of a model that learns all names of tools, if its requests do not name them."""
        return []

    def start(self, place: Place, turns: list) -> RunningAgent:
        model = ScriptedModel(place, turns)
        try:
            return RunningAgent(place, *self.command(place, model.url), model)
        except BaseException:
            model.close()
            raise

    def run(self, place: Place, turns: list) -> str:
        with self.start(place, turns) as running:
            return running.wait()

    def version(self) -> str:
        done = subprocess.run([*self.program, "--version"], capture_output=True, text=True, timeout=PATIENCE)
        found = re.search(r"\d+\.\d+\.\d+", done.stdout)
        assert found, done.stdout
        return found.group()


class ClaudeCode(Agent):
    name = "claude-code"
    prefix = "mcp__toold__"
    own = ["question", "skill", "subagent", "web_fetch", "web_search"]
    modes = ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
    mode = "bypassPermissions"
    confines = True
    has_aliases = True

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        env = {
            "ANTHROPIC_API_KEY": "sk-ant-none", "ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # It refuses to skip its prompts as root elsewhere.
            "IS_SANDBOX": "1", "SHELL": "/bin/bash",
        }
        return [*self.program, "-p", "go", "--permission-mode", self.mode], env

    def shell(self, line: str) -> dict:
        return {"tool": "Bash", "input": {"command": line, "description": "a test"}}

    def write(self, file: Path) -> dict:
        return {"tool": "Write", "input": {"file_path": str(file), "content": "x"}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        # It edits only what it has read.
        read = {"tool": "Read", "input": {"file_path": str(file)}}
        return [read, {"tool": "Edit", "input": {"file_path": str(file), "old_string": old, "new_string": new}}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"tool": f"mcp__toold__{tool}", "input": arguments}

    def background(self, line: str) -> dict:
        return {"tool": "Bash", "input": {"command": line, "description": "a test", "run_in_background": True}}

    def sub_agent(self, turns: list) -> list[dict]:
        kind = {"description": "a test", "subagent_type": "general-purpose", "run_in_background": False}
        return [{"tool": "Agent", "input": kind | {"prompt": script(turns)}}]

    def starting(self, place: Place) -> dict:
        # In other folders, it starts none of these. The trust is that of the repository around the folder.
        subprocess.run(["git", "init", "-q"], cwd=place.project, env=place.env, check=True, timeout=PATIENCE)
        with_members(place.home / ".claude.json", {"projects": {str(place.project): {"hasTrustDialogAccepted": True}}})

        def of_agent(name: str, **members) -> list[dict]:
            write(place.project / f".claude/agents/deep/{name}.md", markdown(name, **members))
            kind = {"description": "a test", "subagent_type": name, "run_in_background": False}
            return [{"tool": "Agent", "input": kind | {"prompt": script([self.shell(f"true {name}")])}}]

        def of_skill(name: str, line: str) -> list[dict]:
            write(place.project / f".claude/skills/{name}/SKILL.md", markdown(name, hooks=hooks_that_run(line)))
            return [{"tool": "Skill", "input": {"skill": name}}, self.shell("true")]

        def plugin(name: str, line: str) -> None:
            folder = place.project / f".claude/skills/{name}"
            write(folder / ".claude-plugin/plugin.json", manifest(name))
            write(folder / "skills/state/SKILL.md", markdown("state") + f"State: !`{line}`\n")
            write(folder / "agents/helper.md", markdown("helper", skills=[f"{name}:state"]))

        def of_plugin(name: str, line: str) -> list[dict]:
            plugin(name, line)
            return [{"tool": "Skill", "input": {"skill": f"{name}:state"}}]

        def of_agent_of_plugin(name: str, line: str) -> list[dict]:
            plugin(name, line)
            kind = {"description": "a test", "subagent_type": f"{name}:helper", "run_in_background": False}
            return [{"tool": "Agent", "input": kind | {"prompt": script([self.shell(f"true {name}")])}}]

        return {
            "hooks": lambda name, line: of_agent(name, hooks=hooks_that_run(line)),
            "mcp": lambda name, line: of_agent(name, mcpServers=[{name: server_that_is(line)}]),
            "skill": of_skill,
            "plugin": of_plugin,
            "agent-of-plugin": of_agent_of_plugin,
        }

    def server(self, place: Place, command: list[str]) -> None:
        entry = {"type": "stdio", "command": command[0], "args": command[1:]}
        with_members(place.home / ".claude.json", {"mcpServers": {"other": entry}})

    def other(self, tool: str) -> dict:
        return {"tool": f"mcp__other__{tool}", "input": {}}


class Codex(Agent):
    name = "codex"
    prefix = "mcp__toold__"
    own = ["subagent"]
    modes = ["on-request", "never"]
    mode = "never"

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        provider = f'{{name = "scripted", base_url = "{url}/v1", wire_api = "responses"}}'
        settings = [
            'model="gpt-5.6-sol"', 'model_provider="scripted"', 'sandbox_mode="danger-full-access"',
            f"model_providers.scripted={provider}", f'approval_policy="{self.mode}"',
        ]
        flags = [flag for setting in settings for flag in ("-c", setting)]
        # A person trusts new hooks; for automation, this flag does.
        return [*self.program, "exec", *flags, "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "go"], {}

    def shell(self, line: str) -> dict:
        return {"tool": "exec_command", "input": {"cmd": line}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        patch = f"*** Begin Patch\n*** Update File: {file.name}\n@@\n-{old}\n+{new}\n*** End Patch"
        return [{"tool": "apply_patch", "text": patch}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"namespace": "mcp__toold", "tool": tool, "input": arguments}

    def write(self, file: Path) -> dict:
        return {"tool": "apply_patch", "text": f"*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch"}

    def list_tools(self) -> list[dict]:
        return [{"tool": "exec", "text": "text(Object.keys(tools))"}]

    def background(self, line: str) -> dict:
        # It goes on while the model does.
        return {"tool": "exec_command", "input": {"cmd": line, "yield_time_ms": 1}}

    def sub_agent(self, turns: list) -> list[dict]:
        named = {"task_name": "t1", "message": script(turns), "fork_turns": "none"}
        wait = {"namespace": "collaboration", "tool": "wait_agent", "input": {"timeout_ms": 30000}}
        return [{"namespace": "collaboration", "tool": "spawn_agent", "input": named}, wait]

    def server(self, place: Place, command: list[str]) -> None:
        file = place.home / ".codex/config.toml"
        file.parent.mkdir(exist_ok=True)
        text = file.read_text() if file.exists() else ""
        file.write_text(f"{text}\n[mcp_servers.other]\ncommand = {json.dumps(command[0])}\nargs = {json.dumps(command[1:])}\n")

    def other(self, tool: str) -> dict:
        return {"namespace": "mcp__other", "tool": tool, "input": {}}


class Gemini(Agent):
    name = "gemini"
    prefix = "mcp_toold_"
    own = ["question", "skill", "subagent", "web_fetch", "web_search"]
    modes = ["default", "auto_edit", "plan", "yolo"]
    mode = "yolo"

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        settings = place.home / ".gemini/settings.json"
        settings.parent.mkdir(exist_ok=True)
        current = json.loads(settings.read_text()) if settings.exists() else {}
        current["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
        settings.write_text(json.dumps(current))
        env = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url}
        return [*self.program, "--approval-mode", self.mode, "--skip-trust", "-m", "gemini-2.5-flash", "-p", "go"], env

    def shell(self, line: str) -> dict:
        return {"tool": "run_shell_command", "input": {"command": line, "description": "a test"}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        replaced = {"file_path": str(file), "old_string": old, "new_string": new, "instruction": "a test"}
        return [{"tool": "replace", "input": replaced}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"tool": f"mcp_toold_{tool}", "input": arguments}

    def background(self, line: str) -> dict:
        return {"tool": "run_shell_command", "input": {"command": line, "description": "a test", "is_background": True}}

    def sub_agent(self, turns: list) -> list[dict]:
        return [{"tool": "invoke_agent", "input": {"agent_name": "generalist", "prompt": script(turns)}}]

    def starting(self, place: Place) -> dict:
        def of_agent(folder: Path, name: str, line: str) -> list[dict]:
            server = {key: value for key, value in server_that_is(line).items() if key != "type"}
            write(folder / f"agents/{name}.md", markdown(name, mcp_servers={name: server}))
            return [{"tool": "invoke_agent", "input": {"agent_name": name, "prompt": script([self.shell(f"true {name}")])}}]

        def of_extension(name: str, line: str) -> list[dict]:
            folder = place.home / f".gemini/extensions/{name}"
            write(folder / "gemini-extension.json", manifest(name))
            return of_agent(folder, name, line)

        return {"mcp": lambda name, line: of_agent(place.home / ".gemini", name, line), "extension": of_extension}

    def server(self, place: Place, command: list[str]) -> None:
        entry = {"command": command[0], "args": command[1:]}
        with_members(place.home / ".gemini/settings.json", {"mcpServers": {"other": entry}})

    def other(self, tool: str) -> dict:
        return {"tool": f"mcp_other_{tool}", "input": {}}

    def write(self, file: Path) -> dict:
        return {"tool": "write_file", "input": {"file_path": str(file), "content": "x"}}


class Opencode(Agent):
    name = "opencode"
    prefix = "toold_"
    own = ["question", "skill", "subagent", "web_fetch"]
    # Its main agents.
    modes = ["plan", "build"]
    mode = "build"

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        config = place.home / ".config/opencode/opencode.json"
        config.parent.mkdir(exist_ok=True)
        current = json.loads(config.read_text()) if config.exists() else {}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
            "models": {"scripted": {"name": "scripted"}},
        }
        current |= {"model": "local/scripted", "small_model": "local/scripted"}
        current |= {"provider": {"local": provider}, "autoupdate": False}
        config.write_text(json.dumps(current))
        # It installs packages for plugins beside its configuration, and would try for a minute.
        npm = {"NPM_CONFIG_OFFLINE": "true", "NPM_CONFIG_FETCH_RETRIES": "0"}
        return [*self.program, "run", "--agent", self.mode, "go"], npm | {"OPENCODE_DISABLE_MODELS_FETCH": "1"}

    def shell(self, line: str) -> dict:
        return {"tool": "bash", "input": {"command": line, "description": "a test"}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        # It edits only what it has read.
        read = {"tool": "read", "input": {"filePath": str(file)}}
        return [read, {"tool": "edit", "input": {"filePath": str(file), "oldString": old, "newString": new}}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"tool": f"toold_{tool}", "input": arguments}

    def background(self, line: str) -> None:
        return None

    def sub_agent(self, turns: list) -> list[dict]:
        return [{"tool": "task", "input": {"description": "a test", "prompt": script(turns), "subagent_type": "general"}}]

    def server(self, place: Place, command: list[str]) -> None:
        entry = {"type": "local", "command": command, "enabled": True}
        with_members(place.home / ".config/opencode/opencode.json", {"mcp": {"other": entry}})

    def other(self, tool: str) -> dict:
        return {"tool": f"other_{tool}", "input": {}}

    def write(self, file: Path) -> dict:
        return {"tool": "write", "input": {"filePath": str(file), "content": "x"}}


class Copilot(Agent):
    name = "copilot"
    prefix = "toold-"
    own = ["question", "skill", "subagent", "web_fetch"]
    # Without one of its options, and with it.
    modes = ["default", "allow-all-tools"]
    mode = "allow-all-tools"

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        # A provider of one's own needs no login.
        env = {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_PROVIDER_TYPE": "openai",
            "COPILOT_MODEL": "gpt-4", "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
        }
        flags = [] if self.mode == "default" else [f"--{self.mode}"]
        return [*self.program, "-p", "go", "--no-color", *flags], env

    def shell(self, line: str) -> dict:
        return {"tool": "bash", "input": {"command": line, "description": "a test"}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        # With models of OpenAI, it edits by patches alone.
        return [{"tool": "apply_patch", "text": f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"tool": f"toold-{tool}", "input": arguments}

    def background(self, line: str) -> dict:
        return {"tool": "bash", "input": {"command": line, "description": "a test", "mode": "async"}}

    def sub_agent(self, turns: list) -> list[dict]:
        kind = {"description": "a test", "name": "test", "agent_type": "general-purpose"}
        return [{"tool": "task", "input": kind | {"prompt": script(turns)}}]

    def starting(self, place: Place) -> dict:
        def of_agent(folder: str, ending: str, name: str, line: str) -> list[dict]:
            servers = {name: server_that_is(line) | {"type": "local", "tools": ["*"]}}
            write(place.project / folder / f"{name}{ending}", markdown(name, **{"mcp-servers": servers}))
            kind = {"description": "a test", "name": "test", "agent_type": name}
            return [{"tool": "task", "input": kind | {"prompt": script([self.shell(f"true {name}")])}}]

        # It looks for them in a repository.
        subprocess.run(["git", "init", "-q"], cwd=place.project, env=place.env, check=True, timeout=PATIENCE)
        return {
            "mcp": lambda name, line: of_agent(".github/agents", ".agent.md", name, line),
            "claude": lambda name, line: of_agent(".claude/agents", ".md", name, line),
        }

    def server(self, place: Place, command: list[str]) -> None:
        entry = {"type": "local", "command": command[0], "args": command[1:], "tools": ["*"]}
        with_members(place.home / ".copilot/mcp-config.json", {"mcpServers": {"other": entry}})

    def other(self, tool: str) -> dict:
        return {"tool": f"other-{tool}", "input": {}}

    def write(self, file: Path) -> dict:
        return {"tool": "apply_patch", "text": f"*** Begin Patch\n*** Add File: {file}\n+x\n*** End Patch\n"}


class QwenCode(Agent):
    name = "qwen-code"
    prefix = "mcp__toold__"
    own = ["question", "skill", "subagent", "web_fetch"]
    modes = ["plan", "default", "auto-edit", "yolo"]
    mode = "yolo"

    def command(self, place: Place, url: str) -> tuple[list[str], dict[str, str]]:
        settings = place.home / ".qwen/settings.json"
        settings.parent.mkdir(exist_ok=True)
        current = json.loads(settings.read_text()) if settings.exists() else {}
        current["security"] = {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}}
        current["general"] = {"enableAutoUpdate": False}
        current["privacy"] = {"usageStatisticsEnabled": False}
        settings.write_text(json.dumps(current))
        env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}
        return [*self.program, "--auth-type", "openai", "--approval-mode", self.mode, "-p", "go"], env

    def shell(self, line: str) -> dict:
        return {"tool": "run_shell_command", "input": {"command": line, "description": "a test", "is_background": False}}

    def edit(self, file: Path, old: str, new: str) -> list[dict]:
        # It edits only what it has read.
        read = {"tool": "read_file", "input": {"file_path": str(file)}}
        return [read, {"tool": "edit", "input": {"file_path": str(file), "old_string": old, "new_string": new}}]

    def mcp(self, tool: str, arguments: dict) -> dict:
        return {"tool": f"mcp__toold__{tool}", "input": arguments}

    def write(self, file: Path) -> dict:
        return {"tool": "write_file", "input": {"file_path": str(file), "content": "x"}}

    def background(self, line: str) -> dict:
        return {"tool": "run_shell_command", "input": {"command": line, "description": "a test", "is_background": True}}

    def watched(self, line: str) -> list[dict]:
        found = {"tool": "tool_search", "input": {"query": "select:monitor"}}
        arguments = {"command": line, "description": "a test"}
        return [found, {"tool": "tool_call", "input": {"name": "monitor", "arguments": arguments}}]

    def sub_agent(self, turns: list) -> list[dict]:
        kind = {"description": "a test", "subagent_type": "general-purpose"}
        return [{"tool": "agent", "input": kind | {"prompt": script(turns)}}]

    def starting(self, place: Place) -> dict:
        def of_agent(name: str, folder: Path = place.project / ".qwen", **members) -> list[dict]:
            write(folder / f"agents/{name}.md", markdown(name, **members))
            kind = {"description": "a test", "subagent_type": name, "run_in_background": False}
            return [{"tool": "agent", "input": kind | {"prompt": script([self.shell(f"true {name}")])}}]

        def of_skill(name: str, line: str) -> list[dict]:
            write(place.project / f".qwen/skills/{name}/SKILL.md", markdown(name, hooks=hooks_that_run(line)))
            return [{"tool": "skill", "input": {"skill": name}}, self.shell("true")]

        def of_extension(name: str, line: str) -> list[dict]:
            # The extension is linked, and its files are elsewhere.
            link, folder = place.home / f".qwen/extensions/{name}", place.root / f"linked/{name}"
            write(link / ".qwen-extension-install.json", json.dumps({"type": "link", "source": str(folder)}))
            write(folder / "qwen-extension.json", manifest(name))
            return of_agent(name, folder, hooks=hooks_that_run(line))

        def executor(line: str) -> dict:
            command, *arguments = line.split()
            return {"kind": "acp", "command": command, "args": arguments}

        return {
            "hooks": lambda name, line: of_agent(name, hooks=hooks_that_run(line)),
            "mcp": lambda name, line: of_agent(name, mcpServers={name: server_that_is(line)}),
            "executor": lambda name, line: of_agent(name, executor=executor(line)),
            "extension": of_extension,
            "skill": of_skill,
        }

    def server(self, place: Place, command: list[str]) -> None:
        entry = {"command": command[0], "args": command[1:]}
        with_members(place.home / ".qwen/settings.json", {"mcpServers": {"other": entry}})

    def other(self, tool: str) -> dict:
        return {"tool": f"mcp__other__{tool}", "input": {}}


KINDS = (ClaudeCode, Codex, Gemini, Opencode, Copilot, QwenCode)
