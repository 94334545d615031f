"""Connects to the daemon, and starts one when none is running.

Any number of clients may do this at once: a lock decides which daemon serves, and the others exit with status 0.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from .connection import Connection
from .errors import Disconnected, NotRunning, RpcError, StartFailed, Unreachable
from .paths import find_program

# Seconds between two attempts to connect to a socket that nobody listens at yet.
RETRY_EVERY = 0.01
# The longest pause between two attempts.
RETRY_AT_LEAST_EVERY = 0.2
# Seconds until a second daemon is started, when the first one met another that was stopping, and exited.
START_AGAIN_AFTER = 0.3
# How long a running daemon may take to answer first, in seconds.
PATIENCE = 8.0
# Why there is no connection: nobody listens; the daemon is about to stop or hands its socket over; it is busy with
# other clients; or it is silent until the time is up.
Absent = Literal["nobody", "stop", "busy", "silent"]
# How much of the daemon's output an error shows, in bytes.
MAX_WORDS = 4096


async def connect(socket: Path) -> Connection:
    """Connects to the daemon. Raises `NotRunning` when nobody listens."""
    try:
        return await Connection.open(socket)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        raise NotRunning(f"no daemon is running at {socket}") from None
    except OSError as error:
        raise Unreachable(f"can't connect to {socket}: {error}") from error


async def reach(socket: Path) -> Connection:
    """Connects to a running daemon that answers, or to the one that replaces it meanwhile.

    Raises `NotRunning` when nobody listens.
    """
    deadline = time.monotonic() + PATIENCE
    before: Absent | None = None
    pause = RETRY_EVERY
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
        pause = min(2 * pause, RETRY_AT_LEAST_EVERY)


def _no_answer(socket: Path, met: Absent, patience: float) -> str:
    how = {
        "nobody": "does not answer",
        "silent": "listens and does not answer",
        "stop": "closes each connection before it answers; given up",
        "busy": "accepts no connections; given up",
    }[met]
    return f"the daemon at {socket} {how} after {patience:g} s"


async def connect_or_start(
    socket: Path, program: Path | None, patience: float, before_start: Callable[[], None]
) -> Connection:
    """Connects, and starts a daemon when none is running, unless `before_start` raises.

    Waits at most `patience` seconds for its first answer.
    """
    deadline = time.monotonic() + patience
    started: Started | None = None
    before: Absent | None = None
    pause = RETRY_EVERY
    while True:
        met = await _answering(socket, deadline, before)
        if isinstance(met, Connection):
            return met
        before = met
        if time.monotonic() >= deadline:
            words = started.words() if started is not None else ""
            raise StartFailed(_no_answer(socket, met, patience) + words)
        if met != "nobody":
            # A program listens, or did a moment ago, so no daemon is started.
            pause = min(2 * pause, RETRY_AT_LEAST_EVERY)
        elif started is None:
            before_start()
            started = Started(socket, program)
        else:
            status = started.process.poll()
            if status:
                raise StartFailed(f"{started.program} did not start: exit status {status}{started.words()}")
            if status == 0 and time.monotonic() - started.since >= START_AGAIN_AFTER:
                started = Started(socket, program)
        await asyncio.sleep(pause)


async def _answering(socket: Path, deadline: float, before: Absent | None) -> Connection | Absent:
    """A connection whose other end answers, else the obstacle; `before` if the time is up during the attempt."""
    try:
        connection = await connect(socket)
    except NotRunning:
        return "nobody"
    except Unreachable as error:
        # The queue of the socket is full.
        if isinstance(error.__cause__, BlockingIOError):
            return "busy"
        raise
    try:
        await asyncio.wait_for(connection.request("daemon.ping", {}), max(deadline - time.monotonic(), 0.001))
    except RpcError:
        pass  # An error is an answer too.
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
    """A daemon that this process has started, and that outlives the process."""

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
        # Otherwise it would stay a zombie when it ends before this process does.
        threading.Thread(target=self.process.wait, name="toold-reaper", daemon=True).start()

    def words(self) -> str:
        """The last lines that it wrote to the log, to append to an error."""
        try:
            with open(self._log, "rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - MAX_WORDS))
                words = log.read(MAX_WORDS).decode(errors="replace").strip()
        except OSError:
            return ""  # The caller's error matters more.
        return f"; it said:\n{words}" if words else ""
