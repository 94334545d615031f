#!/usr/bin/env python3
"""Real agents with the hooks of toold, against a scripted model.

    run.py --bin DIR [--codex PROGRAM...] [--gemini PROGRAM...] [--opencode PROGRAM...]

For each agent: a command that a rule allows runs, one that a rule denies does not, and the audit log has both; without a
daemon, the agent's own rules decide. Nothing is asked of any network but loopback. The folders are below the current one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RULES = """
[[permission.rules]]
category = "shell"
pattern = "touch allowed"
action = "allow"

[[permission.rules]]
category = "shell"
pattern = "touch denied"
action = "deny"
"""


class Place:
    """Folders of one run: a home, a project, a daemon's socket."""

    def __init__(self, bin_dir: Path):
        self.root = Path(tempfile.mkdtemp(prefix="toold-agents-", dir=Path.cwd()))
        self.home, self.project = self.root / "home", self.root / "project"
        config = self.home / ".config/toold/config.toml"
        for folder in (config.parent, self.project, self.root / "run"):
            folder.mkdir(parents=True)
        config.write_text(RULES)
        self.toolctl = bin_dir / "toolctl"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "TOOLD_SOCKET": str(self.root / "run/toold.sock"),
            "LC_ALL": "C.UTF-8",
        }

    def ctl(self, *arguments: str) -> str:
        command = [str(self.toolctl), *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (command, done)
        return done.stdout

    def close(self) -> None:
        subprocess.run([str(self.toolctl), "stop"], env=self.env, capture_output=True, timeout=60)
        shutil.rmtree(self.root)


class ScriptedModel:
    """The model on a port of loopback."""

    def __init__(self, place: Place, turns: list):
        script, port_file = place.root / "script.json", place.root / "port"
        script.write_text(json.dumps(turns))
        port_file.unlink(missing_ok=True)
        self.process = subprocess.Popen([sys.executable, str(HERE / "model.py"), str(port_file), str(script)])
        deadline = time.monotonic() + 30
        while not (port_file.exists() and port_file.read_text()):
            assert self.process.poll() is None and time.monotonic() < deadline, "the model did not start"
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{port_file.read_text()}"

    def __enter__(self) -> "ScriptedModel":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait()


def run_codex(place: Place, program: list[str], turns: list) -> str:
    with ScriptedModel(place, turns) as model:
        config = place.home / ".codex/config.toml"
        config.parent.mkdir(exist_ok=True)
        config.write_text(
            'model = "gpt-5.6-sol"\nmodel_provider = "scripted"\nsandbox_mode = "danger-full-access"\n'
            f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
        )
        # A person trusts new hooks; for automation, this flag does.
        command = [*program, "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check", "go"]
        return run_agent(place, command, {})


def run_gemini(place: Place, program: list[str], turns: list) -> str:
    with ScriptedModel(place, turns) as model:
        settings = place.home / ".gemini/settings.json"
        settings.parent.mkdir(exist_ok=True)
        current = json.loads(settings.read_text()) if settings.exists() else {}
        current["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
        settings.write_text(json.dumps(current))
        env = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model.url}
        return run_agent(place, [*program, "--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-p", "go"], env)


def run_opencode(place: Place, program: list[str], turns: list) -> str:
    with ScriptedModel(place, turns) as model:
        config = place.home / ".config/opencode/opencode.json"
        config.parent.mkdir(exist_ok=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{model.url}/v1", "apiKey": "none"},
            "models": {"scripted": {"name": "scripted"}},
        }
        names = {"model": "local/scripted", "small_model": "local/scripted"}
        config.write_text(json.dumps({"provider": {"local": provider}, "autoupdate": False} | names))
        return run_agent(place, [*program, "run", "go"], {"OPENCODE_DISABLE_MODELS_FETCH": "1"})


def run_agent(place: Place, command: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=place.env | env, cwd=place.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120,
    )
    return done.stdout


def check(agent: str, run, program: list[str], tool, bin_dir: Path) -> None:
    place = Place(bin_dir)
    try:
        place.ctl("agents", "install", agent, "--hooks", "--yes")
        place.ctl("status")
        # Rules decide in folders in which agents may work.
        place.ctl("workspaces", "allow", str(place.project))
        said = run(place, program, [tool("touch allowed"), tool("touch denied"), "done"])
        assert (place.project / "allowed").exists(), said
        assert not (place.project / "denied").exists(), said
        audit = place.ctl("audit", "--json")
        assert agent in audit and "touch denied" in audit, audit
        listed = json.loads(place.ctl("agents", "list", "--json"))["agents"]
        [of_agent] = [found for found in listed if found["agent"] == agent]
        assert of_agent["last_hook"]["problem"] is None, listed
        print(f"{agent}: allowed and denied by rules")
        place.ctl("stop")
        said = run(place, program, [tool("touch denied"), "done"])
        assert (place.project / "denied").exists(), said
        assert not (place.root / "run/toold.sock").exists(), "a hook started a daemon"
        print(f"{agent}: without a daemon, its own rules decide")
    finally:
        place.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", type=Path, required=True, help="where toold and toolctl are")
    parser.add_argument("--codex", nargs="+")
    parser.add_argument("--gemini", nargs="+")
    parser.add_argument("--opencode", nargs="+")
    given = parser.parse_args()
    bin_dir = given.bin.resolve()
    if given.codex:
        check("codex", run_codex, given.codex, lambda line: {"tool": "exec_command", "input": {"cmd": line}}, bin_dir)


    def shell(name: str):
        return lambda line: {"tool": name, "input": {"command": line, "description": "a test"}}

    if given.gemini:
        check("gemini", run_gemini, given.gemini, shell("run_shell_command"), bin_dir)
    if given.opencode:
        check("opencode", run_opencode, given.opencode, shell("bash"), bin_dir)


if __name__ == "__main__":
    main()
