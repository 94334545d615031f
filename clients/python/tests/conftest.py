"""Daemons for tests: each in folders of its own, stopped and checked for leftovers at the end."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toold import Client

ROOT = Path(__file__).resolve().parents[3]
TOOLD = Path(os.environ.get("TOOLD", ROOT / "target/debug/toold"))
HARNESS = TOOLD.parent / "toold-test-daemon"
# In seconds. No test waits longer for anything.
PATIENCE = 30.0

PLUGIN = """
hygge.register_tool{
  name = "greet", description = "Greets somebody", parallelizable = true,
  input_schema = {
    type = "object",
    properties = {name = {type = "string"}, times = {type = "integer", minimum = 1}},
    required = {"name"}, additionalProperties = false,
  },
  execute = function(ctx, input)
    for i = 1, input.times or 1 do
      ctx.progress{message = "greeting", progress = i, total = input.times or 1}
    end
    ctx.output("written\\n")
    return "hello " .. input.name
  end,
}
hygge.register_tool{
  name = "wait_for_ever", description = "Waits until it is stopped", parallelizable = true,
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "wait_in_line", description = "Waits, and nothing runs beside it",
  input_schema = {type = "object"},
  execute = function(ctx) ctx.progress("waiting") hygge.sleep("1h") end,
}
hygge.register_tool{
  name = "fail", description = "Fails", input_schema = {type = "object"},
  execute = function() error("out of luck") end,
}
"""


class DaemonFolders:
    """Folders for a daemon, made and removed by `toold-test-daemon`, and the environment that points to them."""

    def __init__(self) -> None:
        self._harness = subprocess.Popen([HARNESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        paths = self._ask({"plugins": {"tools.lua": PLUGIN}})
        self.root = Path(paths["root"])
        self.work = Path(paths["work"])
        self.plugins = Path(paths["plugins"])
        # Holds a link to `toold`.
        self.bin = Path(paths["bin"])
        self.socket = Path(paths["socket"])
        self.environment: dict[str, str] = paths["environment"]

    def configure(self, toml: str) -> None:
        (self.root / "config/toold/config.toml").write_text(toml)

    def start(self) -> None:
        """Starts a daemon here."""
        self._ask("start")

    def stop(self) -> None:
        """Stops the daemon that runs here, if there is one, and checks that nothing is left."""
        self._ask("stop")

    def kill(self) -> None:
        """Kills the daemon that runs here."""
        self._ask("kill")

    def remove(self) -> None:
        assert self._harness.stdin is not None and self._harness.stdout is not None
        self._harness.stdin.close()
        self._harness.stdout.close()
        assert self._harness.wait() == 0, "processes or folders were left, see the output"

    def _ask(self, request: Any) -> Any:
        assert self._harness.stdin is not None and self._harness.stdout is not None
        self._harness.stdin.write(json.dumps(request) + "\n")
        self._harness.stdin.flush()
        answer = json.loads(self._harness.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> Iterator[DaemonFolders]:
    """An environment in which no daemon runs yet; one that a client starts there is stopped at the end."""
    folders = DaemonFolders()
    for name in list(os.environ):
        if name.startswith(("XDG_", "TOOLD_")):
            monkeypatch.delenv(name)
    for name, value in folders.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folders.work)
    try:
        yield folders
        folders.stop()
    finally:
        folders.remove()


@pytest.fixture
def daemon(folders: DaemonFolders) -> DaemonFolders:
    """A daemon that runs, and can be stopped and started again."""
    folders.start()
    return folders


@pytest.fixture
def client(daemon: DaemonFolders) -> Iterator[Client]:
    """A client with a session in the work folder."""
    with Client(start=False) as client:
        client.open_session(daemon.work)
        yield client
