"""The whole scene: a model, an agent, the daemon, and a person who answers and steers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in import SCENE, StandIn

HERE = Path(__file__).resolve().parent
TOOLD = Path(os.environ.get("TOOLD", HERE.parents[1] / "target/debug/toold"))


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder to work in, and a daemon that runs as long as the test."""
    harness = subprocess.Popen(
        [TOOLD.parent / "toold-test-daemon"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert harness.stdin is not None and harness.stdout is not None
    try:
        harness.stdin.write('{"serve": true}\n')
        harness.stdin.flush()
        paths = json.loads(harness.stdout.readline())
        for variable in [v for v in os.environ if v.startswith(("XDG_", "TOOLD_"))]:
            monkeypatch.delenv(variable)
        for name, value in paths["environment"].items():
            monkeypatch.setenv(name, value)
        yield Path(paths["work"])
        harness.stdin.write('"stop"\n')
        harness.stdin.flush()
        assert "error" not in (answer := json.loads(harness.stdout.readline())), answer
    finally:
        harness.communicate()


def test_a_model_works_a_person_permits_and_steers(folder: Path) -> None:
    (folder / "notes.txt").write_text("green tea\nblack coffee\n")
    gate = folder / "gate"
    os.mkfifo(gate)
    # Open for reading and writing, so that neither side waits for the other.
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
        # An agent that takes this long is stuck; killing it ends its output.
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
    sent = model.requests[-1]["messages"]
    answers = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert list(answers) == ["call_0_0", "call_0_1", "call_0_2", "call_1_0", "call_2_0", "call_2_1", "call_2_2"]
    assert "green tea" in answers["call_0_0"] and "notes.txt" in answers["call_0_1"]
    assert answers["call_0_2"].startswith("Error: ") and "no_such_file" in answers["call_0_2"]
    assert "the gate is open" in answers["call_2_0"]
    # Skipped calls have an answer, and did not run.
    assert all(answers[call].startswith("Error: ") for call in ("call_2_1", "call_2_2"))
    assert not list(folder.glob("unwanted-*"))
    assert sent[-1] == {"role": "user", "content": "That is enough"}
