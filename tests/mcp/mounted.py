"""A daemon in folders of its own that mounts MCP servers, and logs in to one of them without a browser.

For the scripts that test it with servers and authorization servers of others.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60


class Failed(Exception):
    pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Wire:
    """One connection to the daemon."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r")
        self.last = 0

    def close(self):
        # The socket stays open as long as its file.
        self.lines.close()
        self.socket.close()

    def send(self, method, params):
        self.last += 1
        message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.socket.sendall((json.dumps(message) + "\n").encode())
        return self.last

    def call(self, method, params):
        return self.wait(self.send(method, params))

    def wait(self, wanted):
        """The result of a request. It drops the answers to others."""
        while True:
            try:
                line = self.lines.readline()
            except TimeoutError:
                raise Failed(f"no answer to request {wanted} within {PATIENCE} s") from None
            if not line:
                raise Failed("the daemon closed the connection")
            message = json.loads(line)
            if message.get("id") == wanted and "method" not in message:
                if "error" in message:
                    raise Failed(message["error"]["message"])
                return message["result"]
            if message.get("method") == "questions.event":
                self.answer(message["params"]["result"])

    def answer(self, event):
        """Sends a form back as it is shown, as a person does who agrees with what is filled in."""
        if event["type"] == "asked":
            self.send("questions.reply", {"request_id": event["request"]["request_id"], "content": {}})


class Mounted:
    """The daemon and its folders. Logins are those at the server `s`."""

    def __init__(self, programs, configuration):
        self.programs = programs
        self.folder = tempfile.mkdtemp(prefix="toold-mounted-")
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": self.path("home"),
            "XDG_CONFIG_HOME": self.path("config"),
            "XDG_STATE_HOME": self.path("state"),
            "TOOLD_SOCKET": self.path("run", "toold.sock"),
            "CREDENTIALS_DIRECTORY": self.path("credentials"),
            "NO_COLOR": "1",
        }
        for name in ("home", "config/toold", "state", "run", "credentials", "work"):
            os.makedirs(self.path(name))
        # The key of the file with the secrets, as systemd gives it to a service.
        with open(self.path("credentials", "toold-secrets"), "w") as key:
            key.write("the key of this test")
        rule = '[[permission.rules]]\ncategory = "mcp"\npattern = "**"\naction = "allow"\n'
        with open(self.path("config", "toold", "config.toml"), "w") as config:
            config.write(configuration + "\n" + rule)
        self.start()

    def start(self):
        with open(self.path("log"), "a") as log:
            self.daemon = subprocess.Popen(
                [os.path.join(self.programs, "toold"), "serve"],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            )

    def stop(self):
        self.daemon.terminate()
        self.daemon.wait()

    def end(self):
        self.stop()
        shutil.rmtree(self.folder)

    def log(self):
        with open(self.path("log")) as log:
            return log.read()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def connect(self):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                wire = Wire(self.environment["TOOLD_SOCKET"])
                break
            except OSError:
                if time.monotonic() > end or self.daemon.poll() is not None:
                    raise Failed("the daemon does not start") from None
                time.sleep(0.05)
        wire.call("session.open", {"cwd": self.path("work"), "client": {"name": "mounted"}})
        wire.call("questions.subscribe", {})
        return wire

    def toolctl(self, *arguments):
        done = subprocess.run(
            [os.path.join(self.programs, "toolctl"), *arguments],
            env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        )
        if done.returncode != 0:
            raise Failed(f"toolctl {' '.join(arguments)}: {done.stderr}")
        return done.stdout + done.stderr

    def login(self, follow):
        """Logs in: `follow` goes from the page to the address that it redirects to, as a browser does."""
        login = subprocess.Popen(
            [os.path.join(self.programs, "toolctl"), "mcp", "login", "s", "--no-browser"],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        page, why = login.stdout.readline().strip(), ""
        try:
            if page:
                follow(page)
        except Failed as failed:
            why = f"{failed}: "
        try:
            _, said = login.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            login.kill()
            _, said = login.communicate()
        if why or login.returncode != 0:
            raise Failed(f"the login failed: {why}{said}")

    def server(self, wire):
        return wire.call("mcp.servers", {})["servers"][0]


def needs_login(text):
    return text is not None and "toolctl mcp login" in text


def text_of(result):
    return result["content"][0].get("text", "") if result["content"] else ""


if __name__ == "__main__":
    sys.exit("this is a module of other scripts")
