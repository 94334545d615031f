"""Daemons for tests: each in folders of its own, stopped and looked after at the end."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from toold import Client

ROOT = Path(__file__).resolve().parents[3]
TOOLD = Path(os.environ.get("TOOLD", ROOT / "target/debug/toold"))
# No wait in any test is longer; what takes this long does not come.
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


class Place:
    """Folders for a daemon, and the environment that points to them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / "work"
        self.socket = root / "run/toold.sock"
        for name in ("config/toold/plugins", "state", "run", "work", "home"):
            (root / name).mkdir(parents=True)
        (root / "config/toold/plugins/tools.lua").write_text(PLUGIN)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_STATE_HOME": str(root / "state"),
            "TOOLD_SOCKET": str(self.socket),
            "LC_ALL": "C.UTF-8",
        }

    def configure(self, toml: str) -> None:
        (self.root / "config/toold/config.toml").write_text(toml)

    def processes(self) -> list[int]:
        """The processes whose environment names this place: its daemons, and what they started."""
        mark = f"TOOLD_SOCKET={self.socket}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and int(entry.name) != os.getpid():
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
            except OSError:
                continue  # It has ended, or is somebody else's.
        return found

    def stop(self) -> None:
        """Stops the daemon that serves here, if there is one, and checks that nothing is left."""
        left = []
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                left.append((pid, os.pidfd_open(pid)))
        if self.socket.exists():
            with Client(socket=self.socket, start=False) as client:
                client.request("daemon.shutdown", {"drain_ms": 0})
        for pid, process in left:
            ended, _, _ = select.select([process], [], [], PATIENCE)
            os.close(process)
            assert ended, f"process {pid} is left"
        assert not self.socket.exists(), "the socket is left"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """An environment in which no daemon runs yet; what a client starts there is stopped at the end."""
    # Not pytest's own folder: the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="toold-py-") as root:
        place = Place(Path(root).resolve())
        for name in list(os.environ):
            if name.startswith(("XDG_", "TOOLD_")):
                monkeypatch.delenv(name)
        for name, value in place.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(place.work)
        yield place
        place.stop()


class Daemon:
    """A daemon that runs, and can be stopped and started again."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.socket = place.socket
        self.work = place.work
        self.start()

    def start(self) -> None:
        Client(toold=TOOLD).connect().close()

    def stop(self) -> None:
        self.place.stop()


@pytest.fixture
def daemon(place: Place) -> Daemon:
    return Daemon(place)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client with a session in the work folder."""
    with Client(start=False) as client:
        client.open_session(daemon.work)
        yield client
