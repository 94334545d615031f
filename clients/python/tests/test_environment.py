"""The variables of sessions, and folders that the user has not opened."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DaemonFolders
from toold import Ask, Client, Reply
from toold.environment import TOOLCHAIN, passed_on

AGENT = """
import json, sys
from toold import Client
own = json.loads(sys.argv[2])
with Client(start=False, name="agent") as client:
    session = client.open_session(sys.argv[1], role="agent", env=own)
    result = client.execute("bash", {"command": "env"})
    print(json.dumps([session.workspace, session.env_ignored, result.text]))
"""
ALLOW = '[[permission.rules]]\ncategory = "shell"\npattern = "**"\naction = "allow"\n'


def test_a_person_s_client_passes_the_toolchain_and_its_own_variables(
    daemon: DaemonFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/a/venv")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("SOMETHING", "else")
    monkeypatch.setenv("GOPATH", "/a/go")
    with Client(start=False, on_permission=lambda ask: ask.allow()) as client:
        session = client.open_session(daemon.work, env={"GOPATH": "/other/go", "MINE": "1"})
        assert (session.workspace, session.env_ignored) == ("open", [])
        output = set(client.execute("bash", {"command": "env"}).text.splitlines())
        assert {"VIRTUAL_ENV=/a/venv", "LC_TIME=C", "GOPATH=/other/go", "MINE=1"} <= output
        assert not any(line.startswith("SOMETHING=") for line in output)


def test_the_variables_are_those_of_each_connection(daemon: DaemonFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(start=False, on_permission=lambda ask: ask.allow()) as client:
        monkeypatch.setenv("VIRTUAL_ENV", "/before")
        client.open_session(daemon.work)
        monkeypatch.setenv("VIRTUAL_ENV", "/after")
        daemon.stop()
        daemon.start()
        assert "/after" in client.execute("bash", {"command": "env"}).text


def run_agent(
    daemon: DaemonFolders, cwd: Path, own: str = "{}", **environment: str
) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-c", AGENT, str(cwd), own],
        cwd=daemon.work,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def test_an_agent_passes_what_it_was_started_with_but_no_secrets(daemon: DaemonFolders) -> None:
    daemon.stop()
    daemon.configure(ALLOW)
    daemon.start()
    ended = run_agent(daemon, daemon.work, VIRTUAL_ENV="/a/venv", SOMETHING="else", GITHUB_TOKEN="ghp_" + "x" * 36)
    assert "VIRTUAL_ENV=/a/venv" in ended.stdout and "SOMETHING=else" in ended.stdout
    assert "ghp_" not in ended.stdout and '"GITHUB_TOKEN"' in ended.stdout
    # A secret that is not passed on needs no warning.
    assert ended.stderr == ""


def test_variables_that_an_agent_may_not_set_are_named_in_a_warning(daemon: DaemonFolders) -> None:
    daemon.stop()
    daemon.configure(ALLOW)
    daemon.start()
    ended = run_agent(daemon, daemon.work, '{"NODE_OPTIONS": "--evil"}')
    assert "--evil" not in ended.stdout and '"NODE_OPTIONS"' in ended.stdout
    assert "NODE_OPTIONS" in ended.stderr and "[agents] env" in ended.stderr


def test_a_folder_that_no_person_opened_waits_for_one(daemon: DaemonFolders, caplog: pytest.LogCaptureFixture) -> None:
    documents = daemon.root / "home/documents"
    documents.mkdir()
    (documents / "letter.txt").write_text("dear reader\n")
    asks: list[Ask] = []

    def allow(ask: Ask) -> Reply:
        asks.append(ask)
        return ask.allow("session")

    with Client(start=False, on_permission=allow), Client(start=False, name="agent") as agent:
        with caplog.at_level(logging.WARNING, "toold"):
            assert agent.open_session(documents, role="agent").workspace == "pending"
        assert [record.getMessage() for record in caplog.records if "workspaces allow" in record.getMessage()]
        assert "dear reader" in agent.execute("read", {"path": "letter.txt"}).text
    assert len(asks) == 1 and asks[0].is_for_workspace
    assert asks[0].reason is not None and f"use {documents} as a workspace of agent" in asks[0].reason


def test_an_ask_to_read_one_file_is_for_no_workspace(daemon: DaemonFolders) -> None:
    asks: list[Ask] = []

    def deny(ask: Ask) -> Reply:
        asks.append(ask)
        return ask.deny()

    with Client(start=False, on_permission=deny) as client:
        client.open_session(daemon.work)
        client.execute("read", {"path": "/etc/hostname"})
        client.execute("read", {"path": str(daemon.root / "home/x")})
    assert asks and not any(ask.is_for_workspace for ask in asks)


def test_a_session_that_is_shared_is_joined_by_its_code_once(daemon: DaemonFolders) -> None:
    with Client(start=False) as person, Client(start=False, name="agent") as agent:
        own = person.open_session(daemon.work)
        shared = person.share_session()
        assert shared.expires_in > 0
        joined = agent.open_session(session_id=shared.code, role="agent")
        assert (joined.session_id, joined.cwd, joined.resumed) == (own.session_id, own.cwd, True)
        assert person.share_session(own.session_id).code != shared.code


def test_what_is_not_text_is_left_out() -> None:
    odd = os.fsdecode(b"\xff")
    assert passed_on(None, {"PATH": odd, "LANG": "C", "HOME": "/"}) == {"LANG": "C"}
    assert passed_on("agent", {"A": odd, odd: "a", "TOOLD_LOG": "x", "HOME": "/"}) == {"HOME": "/"}
    assert len(set(TOOLCHAIN)) == len(TOOLCHAIN)
