"""A daemon in folders of its own, and clients of it, for programs that measure it from outside."""

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

RELEASE = str(Path(__file__).resolve().parents[2] / "target/release/toold")


class Client:
    """One connection, a JSON text per line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(str(path))
        self.lines = self.socket.makefile("rb")
        self.ids = itertools.count(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def send(self, method, params):
        number = next(self.ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return number

    def call(self, method, params):
        number = self.send(method, params)
        while True:
            line = self.lines.readline()
            if not line:
                raise ConnectionError("the daemon closed the connection")
            message = json.loads(line)
            # A batch that is wrong has a batch of errors as its answer, which nobody waits for.
            if isinstance(message, dict) and message.get("id") == number:
                return message

    def tool(self, name, **arguments):
        return self.call("tools.execute", {"name": name, "arguments": arguments})


class Daemon:
    """Serves until `stop`. `prepare` runs before the start."""

    def __init__(self, program, config, prepare=lambda daemon: None):
        self.home = Path(tempfile.mkdtemp(prefix="toold-bench-"))
        self.work = self.home / "work"
        self.plugins = self.home / "config/toold/plugins"
        self.state = self.home / "state"
        for folder in (self.work, self.plugins, self.state, self.home / "run"):
            folder.mkdir(parents=True)
        (self.home / "config/toold/config.toml").write_text(config)
        prepare(self)
        self.socket = self.home / "run/toold.sock"
        self.program = program
        self.start()

    def start(self):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_STATE_HOME": str(self.state),
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "TOOLD_LOG": "warn",
        }
        self.log = open(self.home / "log", "wb")
        command = [self.program, "serve", "--socket", str(self.socket)]
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.client().__exit__()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit(f"the daemon does not serve; its log is {self.home / 'log'}")
                time.sleep(0.05)

    def client(self):
        return Client(self.socket)

    def stop(self):
        """Ends it and removes its folders; gives its exit status."""
        ended = self.end()
        shutil.rmtree(self.home)
        return ended

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            ended = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise SystemExit("the daemon did not stop within 30 s")
        self.log.close()
        return ended
