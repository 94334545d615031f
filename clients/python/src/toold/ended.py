"""Whether a daemon serves a socket again after one has ended there.

Nothing connects: a connection would make a service manager start a daemon that a person has stopped.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from .errors import NotRunning, StartFailed

# A daemon that ended is started again at most so often, within so many seconds.
MAX_STARTS = 3
STARTS_WITHIN = 60.0

Identity = tuple[int, int, int]


class EndedDaemon:
    """The daemon whose connection at this socket has just ended."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        # That of the ended daemon, if it left it or had none of its own.
        self._left = _identity(socket)
        # The process that holds the lock, as long as the ended daemon does.
        self._holder = _lock_holder(socket)

    def is_followed(self) -> bool:
        """Whether another daemon has followed it. Reads some small files."""
        now, holder = _identity(self._socket), _lock_holder(self._socket)
        return (now is not None and now != self._left) or (holder is not None and holder != self._holder)


class Restarts:
    """When a client started daemons in place of those that had ended."""

    def __init__(self) -> None:
        self._starts: deque[float] = deque()

    def count(self) -> None:
        """Counts one more. Raises `StartFailed` if there were too many."""
        now = time.monotonic()
        while self._starts and now - self._starts[0] > STARTS_WITHIN:
            self._starts.popleft()
        if len(self._starts) >= MAX_STARTS:
            raise StartFailed(
                "toold has ended three times within a minute, and is not started again before that is over: "
                "`toolctl doctor` shows why"
            )
        self._starts.append(now)


def stopped() -> NotRunning:
    return NotRunning("toold was stopped by a person: `toolctl start`")


def _identity(socket: Path) -> Identity | None:
    try:
        facts = socket.lstat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_ctime_ns


def _lock_holder(socket: Path) -> int | None:
    """The process that holds the lock of a daemon, as `/proc/locks` tells it.

    Lines are such as `1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF`, with the inode after the device. Trying the
    lock instead would keep it from a daemon that is starting.
    """
    try:
        inode = f":{socket.with_name(socket.name + '.lock').stat().st_ino}"
        locks = Path("/proc/locks").read_text()
    except OSError:
        return None
    for line in locks.splitlines():
        words = line.split()
        if len(words) > 5 and words[1] == "FLOCK" and words[5].endswith(inode):
            return int(words[4])
    return None
