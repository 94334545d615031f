"""Reaching the daemon, and starting one when there is none.

Any number of clients may do this at once: the daemons settle among themselves, by a lock, which one serves,
and the others end with status 0.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Literal

from .connection import Connection
from .errors import Disconnected, NotRunning, RpcError, StartFailed, Unreachable
from .paths import find_program

# Seconds between two looks at a socket that nobody listens at yet.
LOOK_EVERY = 0.01
# The longest pause. A program that closes each connection is no daemon that gives way to another.
LOOK_AT_LEAST_EVERY = 0.2
# A daemon that gave way to another may have met one that was stopping: then the next one is started.
START_AGAIN_AFTER = 0.3
# How long a daemon that is there may take to answer first, in seconds.
PATIENCE = 8.0
# Why there is no connection: nobody listens; the daemon was about to stop or hands its socket over; it is busy with
# others; or it is silent until time is up.
Absent = Literal["nobody", "stop", "busy", "silent"]
# How much of the daemon's own words an error shows, in bytes.
MAX_WORDS = 4096


async def connect(socket: Path) -> Connection:
    """Connects to the daemon that listens. Raises `NotRunning` when nobody does."""
    try:
        return await Connection.open(socket)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        raise NotRunning(f"no daemon is running at {socket}") from None
    except OSError as error:
        raise Unreachable(f"can't connect to {socket}: {error}") from error


async def reach(socket: Path) -> Connection:
    """Connects to a daemon that answers. One that hands its socket over meanwhile is followed by the next.

    Raises `NotRunning` when nobody listens.
    """
    deadline = time.monotonic() + PATIENCE
    before: Absent | None = None
    pause = LOOK_EVERY
    while True:
        met = await _answering(socket, deadline, before)
        if isinstance(met, Connection):
            return met
        if met == "nobody" and before is None:
            raise NotRunning(f"no daemon is running at {socket}")
        if time.monotonic() >= deadline:
            raise Unreachable(_no_answer(socket, met, PATIENCE))
        before = met
        await asyncio.sleep(pause)
        pause = min(2 * pause, LOOK_AT_LEAST_EVERY)


def _no_answer(socket: Path, met: Absent, patience: float) -> str:
    how = {
        "nobody": "does not answer",
        "silent": "listens and does not answer",
        "stop": "closes each connection before it answers; given up",
        "busy": "accepts no connections; given up",
    }[met]
    return f"the daemon at {socket} {how} after {patience:g} s"


async def connect_or_start(socket: Path, program: Path | None, patience: float) -> Connection:
    """Connects, and starts a daemon when there is none. Waits `patience` seconds at most for its first answer."""
    deadline = time.monotonic() + patience
    started: Started | None = None
    before: Absent | None = None
    pause = LOOK_EVERY
    while True:
        met = await _answering(socket, deadline, before)
        if isinstance(met, Connection):
            return met
        before = met
        if time.monotonic() >= deadline:
            words = started.words() if started is not None else ""
            raise StartFailed(_no_answer(socket, met, patience) + words)
        if met != "nobody":
            # Somebody listens, or did a moment ago: none is to be started.
            pause = min(2 * pause, LOOK_AT_LEAST_EVERY)
        elif started is None:
            started = Started(socket, program)
        else:
            status = started.process.poll()
            if status:
                raise StartFailed(f"{started.program} did not start: exit status {status}{started.words()}")
            if status == 0 and time.monotonic() - started.since >= START_AGAIN_AFTER:
                started = Started(socket, program)
        await asyncio.sleep(pause)


async def _answering(socket: Path, deadline: float, before: Absent | None) -> Connection | Absent:
    """A connection whose other end answers. When time is up in the middle of one more attempt, what was met `before`."""
    try:
        connection = await connect(socket)
    except NotRunning:
        return "nobody"
    except Unreachable as error:
        # So many connect at once that one has to wait for its turn.
        if isinstance(error.__cause__, BlockingIOError):
            return "busy"
        raise
    try:
        await asyncio.wait_for(connection.request("daemon.ping", {}), max(deadline - time.monotonic(), 0.001))
    except RpcError:
        pass  # Whatever it says, it speaks.
    except Disconnected:
        if connection.foreign is not None:
            raise Unreachable(
                f"{socket} is not the socket of a daemon: the program that listens there answered "
                f"{connection.foreign!r}; stop that program, or set TOOLD_SOCKET to another path"
            ) from None
        return "stop"
    except asyncio.TimeoutError:
        await connection.close()
        return before or "silent"
    except BaseException:
        await connection.close()
        raise
    return connection


class Started:
    """A daemon that this process has started. It goes on when the process ends."""

    def __init__(self, socket: Path, program: Path | None) -> None:
        self.program = program if program is not None else find_program()
        self.since = time.monotonic()
        self._log = socket.with_name(socket.name + ".log")
        try:
            self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            log = os.open(self._log, flags, 0o600)
        except OSError as error:
            raise StartFailed(f"can't write the daemon's log {self._log}: {error}") from error
        try:
            self._log_start = os.fstat(log).st_size
            self.process = subprocess.Popen(
                [self.program, "serve", "--detached"],
                env={**os.environ, "TOOLD_SOCKET": str(socket)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        except OSError as error:
            raise StartFailed(f"can't start {self.program}: {error}") from error
        finally:
            os.close(log)
        # Else it would stay a zombie when it ends before this process does.
        threading.Thread(target=self.process.wait, name="toold-reaper", daemon=True).start()

    def words(self) -> str:
        """The end of what it wrote to the log, to follow an error's own sentence."""
        try:
            with open(self._log, "rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - MAX_WORDS))
                words = log.read(MAX_WORDS).decode(errors="replace").strip()
        except OSError:
            return ""  # The error that gets these words matters more than they do.
        return f"; it said:\n{words}" if words else ""
