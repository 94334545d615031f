"""The paths of the daemon's socket and program."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .errors import NotRunning, StartFailed


def socket_path(environ: Mapping[str, str] | None = None) -> Path:
    """The socket's path: `$TOOLD_SOCKET`, else below `$XDG_RUNTIME_DIR`, `$XDG_STATE_HOME` or `~/.local/state`.

    Empty and relative values count as unset. Raises `NotRunning` without a home folder.
    """
    environ = os.environ if environ is None else environ

    def absolute(name: str) -> Path | None:
        value = environ.get(name, "")
        return Path(value) if os.path.isabs(value) else None

    if (socket := absolute("TOOLD_SOCKET")) is not None:
        return socket
    folder = absolute("XDG_RUNTIME_DIR") or absolute("XDG_STATE_HOME")
    if folder is None:
        home = absolute("HOME")
        if home is None:
            raise NotRunning("cannot tell where the socket is: set TOOLD_SOCKET, XDG_RUNTIME_DIR or HOME")
        folder = home / ".local/state"
    return folder / "toold/toold.sock"


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
