"""The whole scene: a model, an agent, the daemon, and a person who answers and steers."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in import SCENE, StandIn
from toold import Client

HERE = Path(__file__).resolve().parent
TOOLD = Path(os.environ.get("TOOLD", HERE.parents[1] / "target/debug/toold"))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder to work in, and a daemon of the test's own, which ends with it."""
    with tempfile.TemporaryDirectory(prefix="toold-agent-") as name:
        root = Path(name).resolve()
        for below in ("config", "state", "home", "run", "work"):
            (root / below).mkdir()
        for variable in [v for v in os.environ if v.startswith(("XDG_", "TOOLD_"))]:
            monkeypatch.delenv(variable)
        monkeypatch.setenv("HOME", str(root / "home"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        monkeypatch.setenv("TOOLD_SOCKET", str(root / "run/toold.sock"))
        with Client(toold=TOOLD) as client:
            daemon = os.pidfd_open(client.request("daemon.status")["pid"])
            try:
                yield root / "work"
            finally:
                client.request("daemon.shutdown", {"drain_ms": 0})
                ended, _, _ = select.select([daemon], [], [], 30)
                os.close(daemon)
        assert ended, "the daemon does not end"
        assert not (root / "run/toold.sock").exists()


def test_a_model_works_a_person_permits_and_steers(folder: Path) -> None:
    (folder / "notes.txt").write_text("green tea\nblack coffee\n")
    gate = folder / "gate"
    os.mkfifo(gate)
    # Open to both sides, so that nobody waits for the other to come.
    opener = os.open(gate, os.O_RDWR)
    seen: list[str] = []
    with StandIn(SCENE) as model:
        agent = subprocess.Popen(
            [sys.executable, HERE / "agent.py", "--url", model.url, "Write the report"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
            cwd=folder,
        )
        # What takes this long does not come; its end is then the end of its lines.
        patience = threading.Timer(60, agent.kill)
        patience.start()
        assert agent.stdin is not None and agent.stdout is not None
        with agent, agent.stdin, agent.stdout:
            for line in agent.stdout:
                seen.append(line.rstrip())
                if line.startswith("?"):
                    agent.stdin.write("y\n")
                elif line.startswith("  bash: the first begins"):
                    agent.stdin.write("That is enough\n")
                elif line.startswith("!"):
                    os.write(opener, b"the gate is open\n")
        patience.cancel()
        os.close(opener)
        assert agent.returncode == 0, seen

    assert (folder / "report.txt").exists()
    shown = (HERE / "README.md").read_text().split("```text\n")[1].split("```")[0]
    assert seen == shown.splitlines()

    names = {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert {"bash", "grep", "read"} <= names
    told = model.requests[-1]["messages"]
    answers = {message["tool_call_id"]: message["content"] for message in told if message["role"] == "tool"}
    assert list(answers) == ["call_0_0", "call_0_1", "call_0_2", "call_1_0", "call_2_0", "call_2_1", "call_2_2"]
    assert "green tea" in answers["call_0_0"] and "notes.txt" in answers["call_0_1"]
    assert answers["call_0_2"].startswith("Error: ") and "no_such_file" in answers["call_0_2"]
    assert "the gate is open" in answers["call_2_0"]
    # What was skipped has its answer, and was not run.
    assert all(answers[call].startswith("Error: ") for call in ("call_2_1", "call_2_2"))
    assert not list(folder.glob("unwanted-*"))
    assert told[-1] == {"role": "user", "content": "That is enough"}
