"""The paths of the daemon's socket and program."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import NotRunning, StartFailed

# More characters than any file that tells where a daemon is.
MAX_FILE = 64 << 10


class System:
    """The parts of the system that tell where the socket is."""

    def __init__(self) -> None:
        self.uid = os.geteuid()

    def read(self, path: Path) -> str | None:
        """The text of a file, if it can be read."""
        try:
            with path.open(encoding="utf-8") as file:
                return file.read(MAX_FILE)
        except (OSError, UnicodeDecodeError):
            return None

    def is_folder(self, path: Path) -> bool:
        return path.is_dir()


def socket_path(environ: Mapping[str, str] | None = None, system: System | None = None) -> Path:
    """The socket of the user's daemon, whether or not it is running.

    `$TOOLD_SOCKET`; else where the daemon of the state folder runs, as it has recorded there; else the first of
    `$XDG_RUNTIME_DIR/toold/toold.sock`, `/run/user/UID/toold/toold.sock` if there is such a folder, and
    `$XDG_STATE_HOME/toold/toold.sock` that is not the place of a running daemon with another database. An unset
    `$XDG_STATE_HOME` is `~/.local/state`. Empty and relative values count as unset.

    Raises `NotRunning` without a home folder, or when daemons with other databases run at all these places.
    """
    environ = os.environ if environ is None else environ
    system = System() if system is None else system

    def absolute(name: str) -> Path | None:
        value = environ.get(name, "")
        return Path(value) if os.path.isabs(value) else None

    if (socket := absolute("TOOLD_SOCKET")) is not None:
        return socket
    home = absolute("HOME")
    state_home = absolute("XDG_STATE_HOME") or (home / ".local/state" if home is not None else None)
    state = state_home / "toold" if state_home is not None else None
    if state is not None and (record := _running(state / "daemon.json", system)) is not None:
        return Path(record["socket"])
    runtime = absolute("XDG_RUNTIME_DIR")
    run_user = Path(f"/run/user/{system.uid}")
    folders = [
        runtime / "toold" if runtime is not None else None,
        run_user / "toold" if system.is_folder(run_user) else None,
        state,
    ]
    for folder in folders:
        if folder is None:
            continue
        record = _running(folder / "toold.sock.json", system)
        if state is None or record is None or record["database"] == str(state / "toold.db"):
            return folder / "toold.sock"
    if state is None:
        raise NotRunning("cannot tell where the socket is: set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME")
    raise NotRunning(f"daemons with other databases than {state / 'toold.db'} run at all usual places: set TOOLD_SOCKET")


def _running(path: Path, system: System) -> dict[str, Any] | None:
    """The running daemon that a record describes; `None` for a record that a killed daemon left."""
    try:
        record = json.loads(system.read(path) or "")
        pid, started, _, _ = int(record["pid"]), record.get("started"), record["socket"], record["database"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    boot_id = system.read(Path("/proc/sys/kernel/random/boot_id"))
    if record.get("boot_id") != (boot_id.strip() if boot_id is not None else None):
        return None
    # The 22nd field; the second is the name in parentheses, which may hold anything.
    fields = (system.read(Path(f"/proc/{pid}/stat")) or "").rpartition(")")[2].split()
    if started is not None and fields[19:20] != [str(started)]:
        return None
    return dict(record)


def find_program(environ: Mapping[str, str] | None = None) -> Path:
    """The `toold` that a client starts: the one beside the running interpreter, else the first in `PATH`."""
    environ = os.environ if environ is None else environ
    beside = Path(sys.executable).parent
    # A relative entry would run a program from the current folder, which anyone may have put there.
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    for folder in [beside, *folders]:
        program = folder / "toold"
        if program.is_file() and os.access(program, os.X_OK):
            return program
    raise StartFailed(f"found no toold beside {sys.executable} or in PATH; pass its path as toold=")
