"""Finding, starting, losing and finding again: what happens around the connection."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR, socket
from threading import Thread
from typing import Any

import pytest
import toold
from conftest import PATIENCE, TOOLD, DaemonFolders
from toold import AsyncClient, Client, Event, NotRunning, StartFailed, socket_path
from toold.paths import System


PLACES = json.loads((Path(__file__).parents[3] / "proto/tests/socket.json").read_text())


class CaseSystem(System):
    """The files and folders of one case."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.uid = 7
        self.case = case

    def read(self, path: Path) -> str | None:
        file = self.case.get("files", {}).get(str(path))
        return file if file is None or isinstance(file, str) else json.dumps(file)

    def is_folder(self, path: Path) -> bool:
        return str(path) in self.case.get("folders", [])


@pytest.mark.parametrize("case", PLACES, ids=[case["case"] for case in PLACES])
def test_the_socket_is_found_as_in_the_table(case: dict[str, Any]) -> None:
    if case["socket"] is None:
        with pytest.raises(NotRunning):
            socket_path(case["environment"], CaseSystem(case))
    else:
        assert socket_path(case["environment"], CaseSystem(case)) == Path(case["socket"])


def test_a_client_starts_the_daemon_and_it_stays(folders: DaemonFolders) -> None:
    with Client(toold=TOOLD) as client:
        pid = client.request("daemon.status")["pid"]
    with Client(start=False) as client:
        assert client.request("daemon.status")["pid"] == pid
    log = folders.socket.with_name("toold.sock.log")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "serving" in "".join(path.read_text() for path in (folders.root / "state/toold/log").iterdir())


def test_clients_that_start_at_once_share_one_daemon(folders: DaemonFolders) -> None:
    async def start() -> set[int]:
        async def pid() -> int:
            async with AsyncClient(toold=TOOLD) as client:
                return int((await client.request("daemon.status"))["pid"])

        return set(await asyncio.gather(*(pid() for _ in range(5))))

    assert len(asyncio.run(start())) == 1


def test_the_program_is_found_in_path(folders: DaemonFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"relative:{folders.bin}")
    monkeypatch.setattr(sys, "executable", str(folders.root / "python"))
    assert toold.find_program() == folders.bin / "toold"
    with Client() as client:
        assert client.request("daemon.ping") == {}
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StartFailed, match="found no toold"):
        toold.find_program()


def test_a_daemon_that_does_not_start_is_quoted(folders: DaemonFolders) -> None:
    program = folders.root / "broken"
    program.write_text("#!/bin/sh\necho 'the dog ate it' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(StartFailed, match="exit status 3(.|\n)*the dog ate it"):
        Client(toold=program).connect()
    program.write_text("#!/bin/sh\nexec cat\n")
    with pytest.raises(StartFailed, match="does not answer after 0.2 s"):
        Client(toold=program, start_timeout=0.2).connect()


def test_nobody_is_started_when_that_is_not_wanted(folders: DaemonFolders) -> None:
    with pytest.raises(NotRunning, match=str(folders.socket)):
        Client(start=False).connect()
    assert not folders.socket.exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "is not the socket of a daemon"),
        (None, "closes each connection"),
    ],
)
def test_another_program_at_the_socket_is_recognised(folders: DaemonFolders, answer: bytes | None, words: str) -> None:
    folders.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket(AF_UNIX) as listener:
        listener.bind(str(folders.socket))
        listener.listen()

        def serve() -> None:
            kept = []
            while True:
                try:
                    stream, _ = listener.accept()
                except OSError:
                    break
                if answer is None:
                    stream.close()
                else:
                    stream.sendall(answer)
                    kept.append(stream)
            for stream in kept:
                stream.close()

        thread = Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(toold.TooldError, match=words):
                Client(toold=TOOLD, start_timeout=0.5).connect()
            # None was started in its folders.
            assert not folders.socket.with_name("toold.sock.log").exists()
        finally:
            listener.shutdown(SHUT_RDWR)
            thread.join()
            folders.socket.unlink()


def test_a_socket_whose_queue_is_full_is_waited_for(folders: DaemonFolders) -> None:
    folders.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socket(AF_UNIX) as listener, socket(AF_UNIX) as waiting:
        listener.bind(str(folders.socket))
        listener.listen(0)
        waiting.connect(str(folders.socket))
        with pytest.raises(StartFailed, match="accepts no connections"):
            Client(toold=TOOLD, start_timeout=0.3).connect()
        assert not folders.socket.with_name("toold.sock.log").exists()
        folders.socket.unlink()


def test_the_next_request_connects_again_in_the_same_session(client: Client, daemon: DaemonFolders) -> None:
    assert client.session is not None
    waiting = client.call("wait_for_ever")
    next(iter(waiting))
    daemon.stop()
    with pytest.raises((toold.Disconnected, toold.CallCancelled)):
        waiting.result()
    with pytest.raises(NotRunning):
        client.tools()
    daemon.start()
    assert client.execute("greet", {"name": "again"}).text == "hello again"
    bound = client.request("session.list")["sessions"]
    assert [session["session_id"] for session in bound if session["connections"]] == [client.session.session_id]


def pid_after_a_loss(client: Client) -> int:
    while True:
        try:
            return int(client.request("daemon.status")["pid"])
        except toold.Disconnected:
            pass  # The connection has just ended.


def test_a_daemon_that_a_person_stopped_is_not_started_again(folders: DaemonFolders) -> None:
    with Client(toold=TOOLD) as client, Client(start=False) as person:
        person.request("daemon.shutdown")
        with pytest.raises(NotRunning, match="stopped by a person"):
            while True:
                pid_after_a_loss(client)
        # Once it has ended, the user starts it, which this client notices by itself.
        folders.stop()
        folders.start()
        assert client.execute("greet", {"name": "x"}).text == "hello x"


def test_a_daemon_that_is_killed_again_and_again_is_started_three_times_a_minute(folders: DaemonFolders) -> None:
    with Client(toold=TOOLD) as client:
        for _ in range(3):
            pid = client.request("daemon.status")["pid"]
            folders.kill()
            assert pid_after_a_loss(client) != pid
        folders.kill()
        with pytest.raises(StartFailed, match="three times within a minute"):
            pid_after_a_loss(client)
        # Others may: this one follows.
        folders.start()
        assert client.execute("greet", {"name": "x"}).text == "hello x"


def test_a_client_that_must_not_reconnect_does_not(daemon: DaemonFolders) -> None:
    with Client(start=False, reconnect=False) as client:
        events = client.events()
        daemon.stop()
        # Messages that the daemon sent while it stopped may still arrive.
        with pytest.raises(toold.Disconnected):
            while events.next(PATIENCE):
                pass
        daemon.start()
        with pytest.raises(toold.Disconnected):
            client.tools()


def test_events_go_on_with_the_next_daemon(client: Client, daemon: DaemonFolders) -> None:
    with client.events(["session.opened", "call.finished"]) as events:
        client.execute("greet", {"name": "x"})
        before = events.next(PATIENCE)
        daemon.stop()
        daemon.start()
        # Nothing is asked of the client: it comes back by itself.
        opened: Event = events.next(PATIENCE)
        while opened.kind != "session.opened":
            opened = events.next(PATIENCE)
        assert before.epoch != opened.epoch
        client.execute("greet", {"name": "y"})
        while (event := events.next(PATIENCE)).kind != "call.finished":
            pass
        assert event["tool"] == "greet"


def test_events_end_with_a_client_that_waits_for_a_daemon(client: Client, daemon: DaemonFolders) -> None:
    events = client.events("call.finished")
    daemon.stop()
    client.close()
    assert list(events) == []

    async def scene() -> None:
        async with AsyncClient(toold=TOOLD) as waiting:
            async with waiting.events("call.finished") as events:
                await asyncio.to_thread(daemon.stop)
                await waiting.close()
                assert [event async for event in events] == []

    asyncio.run(scene())


def test_a_session_is_resumed_where_a_link_led(daemon: DaemonFolders) -> None:
    link = daemon.root / "link"
    link.symlink_to(daemon.work)
    with Client(start=False) as client:
        assert client.open_session(link).cwd == str(daemon.work)
        daemon.stop()
        daemon.start()
        assert client.execute("greet", {"name": "x"}).text == "hello x"


def test_a_client_is_not_waited_for_in_its_own_thread(daemon: DaemonFolders) -> None:
    client: Client
    failures: list[BaseException] = []

    async def permit(ask: toold.Ask) -> toold.Reply:
        try:
            client.tools()
        except RuntimeError as error:
            failures.append(error)
        return ask.allow()

    with Client(start=False, on_permission=permit) as client:
        client.open_session(daemon.work)
        assert not client.execute("bash", {"command": "touch made"}).is_error
    assert "use AsyncClient there" in str(failures[0])


def test_what_is_cancelled_here_is_cancelled_there(daemon: DaemonFolders) -> None:
    async def scene() -> None:
        async with AsyncClient(start=False) as client, client.events(["call.started", "call.finished"]) as events:
            task = asyncio.create_task(client.execute("wait_for_ever"))
            assert (await anext(events)).kind == "call.started"
            task.cancel()
            finished = await asyncio.wait_for(anext(events), PATIENCE)
            assert (finished.kind, finished["outcome"]) == ("call.finished", "cancelled")

    asyncio.run(scene())


def test_the_async_client_does_all_at_once(daemon: DaemonFolders) -> None:
    async def scene() -> list[str]:
        async with AsyncClient(start=False) as client:
            await client.open_session(daemon.work)
            call = client.call("greet", {"name": "one", "times": 3})
            reported = [progress.kind async for progress in call]
            assert reported == ["update", "update", "update", "output"]
            results = await asyncio.gather(*(client.execute("greet", {"name": str(n)}) for n in range(50)))
            assert (await call.result()).text == "hello one"
            seen: list[str] = []

            async def see(progress: toold.Progress) -> None:
                seen.append(progress.kind)

            await client.execute("greet", {"name": "x"}, on_progress=see)
            assert seen == ["update", "output"]
            return [result.text for result in results]

    assert asyncio.run(scene()) == [f"hello {n}" for n in range(50)]


def test_a_client_that_is_not_closed_does_not_keep_the_process(daemon: DaemonFolders) -> None:
    script = "import toold; client = toold.Client(start=False); print(client.execute('greet', {'name': 'x'}).text)"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("hello x\n", "", 0)


def test_ctrl_c_cancels_the_call_that_is_waited_for(client: Client, daemon: DaemonFolders) -> None:
    script = "import toold; print(toold.Client(start=False).execute('wait_for_ever'))"
    with client.events(["call.started", "call.finished"]) as events:
        process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
        assert events.next(PATIENCE).kind == "call.started"
        os.kill(process.pid, 2)
        assert events.next(PATIENCE)["outcome"] == "cancelled"
        _, words = process.communicate(timeout=PATIENCE)
    assert words.rstrip().endswith(b"KeyboardInterrupt")
