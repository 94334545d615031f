"""What a run of agents needs: folders with a daemon, a scripted model, and a person at a frontend."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Seconds for each wait of a test. An agent that hangs fails after this.
PATIENCE = 120


def until(what: str, found):
    """The first result of `found` that is true. Fails after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not (result := found()):
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)
    return result


class Place:
    """Folders of one run: a home, a project in which agents may work, a daemon's socket."""

    def __init__(self, bin_dir: Path, config: str):
        self.root = Path(tempfile.mkdtemp(prefix="toold-agents-", dir=Path.cwd()))
        self.home, self.project = self.root / "home", self.root / "project"
        file = self.home / ".config/toold/config.toml"
        for folder in (file.parent, self.project, self.root / "run"):
            folder.mkdir(parents=True)
        file.write_text(config)
        self.toolctl = bin_dir / "toolctl"
        self.socket = self.root / "run/toold.sock"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "TOOLD_SOCKET": str(self.socket),
            "LC_ALL": "C.UTF-8",
            # Whatever else an agent fetches, such as updates and statistics, fails at once: nobody listens there.
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def __enter__(self) -> Place:
        try:
            # Rules decide in folders in which agents may work.
            self.ctl("workspaces", "allow", str(self.project))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        try:
            subprocess.run([str(self.toolctl), "stop"], env=self.env, capture_output=True, timeout=60)
        finally:
            shutil.rmtree(self.root)

    def ctl(self, *arguments: str) -> str:
        """The output of toolctl, which counts as a person here."""
        command = [str(self.toolctl), *arguments]
        done = subprocess.run(
            command, env=self.env, cwd=self.project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60,
        )
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    def kill(self, program: str, word: str) -> None:
        """Kills the processes of this program that have this word among their arguments and belong to this run."""
        killed = 0
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                variables = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if words[0].endswith(f"/{program}") and word in words[1:] and f"TOOLD_SOCKET={self.socket}" in variables:
                os.kill(int(process.name), signal.SIGKILL)
                killed += 1
        assert killed, f"no {program} {word} runs"

    def audit(self) -> list[dict]:
        return json.loads(self.ctl("audit", "--json"))["entries"]


class ScriptedModel:
    """The model on a port of loopback."""

    def __init__(self, place: Place, turns: list):
        folder = Path(tempfile.mkdtemp(prefix="model-", dir=place.root))
        script, port_file = folder / "script.json", folder / "port"
        self.requests = folder / "requests"
        script.write_text(json.dumps(turns))
        self.process = subprocess.Popen([sys.executable, str(HERE / "model.py"), str(port_file), str(script)])
        try:
            written = lambda: port_file.exists() and port_file.read_text()
            until("the model's port", lambda: self.process.poll() is not None or written())
            assert self.process.poll() is None, "the model did not start"
        except BaseException:
            self.close()
            raise
        self.url = f"http://127.0.0.1:{port_file.read_text()}"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Person:
    """A person's frontend, which is told of each ask."""

    def __init__(self, place: Place):
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.settimeout(PATIENCE)
        self.stream.connect(str(place.socket))
        self.lines = self.stream.makefile("r", encoding="utf-8")
        self.last_id = 0
        self.events: list[dict] = []
        self.call("session.open", cwd=str(place.project), client={"name": "desk"})
        self.call("permissions.subscribe")

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *_) -> None:
        self.lines.close()
        self.stream.close()

    def read(self) -> dict:
        line = self.lines.readline()
        assert line, "toold closed the connection"
        return json.loads(line)

    def call(self, method: str, **params) -> dict:
        self.last_id += 1
        request = {"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}
        self.stream.sendall(json.dumps(request).encode() + b"\n")
        while (message := self.read()).get("id") != self.last_id:
            self.events.append(message)
        assert "result" in message, (request, message)
        return message["result"]

    def asked(self) -> dict:
        """The next ask. Waits for it."""
        while True:
            message = self.events.pop(0) if self.events else self.read()
            if message.get("method") == "permissions.event" and message["params"]["result"]["type"] == "asked":
                return message["params"]["result"]["request"]

    def pending(self) -> list[dict]:
        return self.call("permissions.pending")["asks"]

    def reply(self, ask: dict, action: str, **more) -> None:
        self.call("permissions.reply", request_id=ask["request_id"], action=action, **more)

    def other_asks(self) -> list[dict]:
        """The asks that came and were not taken with `asked`."""
        self.call("daemon.status")
        events = [event["params"]["result"] for event in self.events if event.get("method") == "permissions.event"]
        return [event["request"] for event in events if event["type"] == "asked"]
