"""The variables that a client passes to `session.open`, so that commands find the toolchains that the client finds.

The daemon's own environment is that of whichever client started it, perhaps days ago: a virtual environment that was
activated since is known to the client alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from .model import Session

# Variables by which programs find their toolchains; a final `*` stands for any text. All clients of toold pass the same
# ones.
TOOLCHAIN = (
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYENV_VERSION",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "JAVA_HOME",
    "SDKMAN_DIR",
    "GEM_HOME",
    "RBENV_VERSION",
    "ASDF_DIR",
    "MISE_DATA_DIR",
    "NIX_PATH",
    "SSH_AUTH_SOCK",
    "LANG",
    "LC_*",
    "TZ",
)


def passed_on(role: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Of these variables those that a client of this role passes.

    A person's frontend passes the toolchain's, a client that acts for a model all but those of toold itself; the daemon
    takes out secrets. What is not UTF-8 is left out.
    """
    agent = role == "agent"
    return {
        name: value
        for name, value in environment.items()
        if (not name.startswith("TOOLD_") if agent else _is_of_toolchain(name)) and _is_text(name + value)
    }


def lacks(session: Session, role: str | None, own: Collection[str]) -> list[str]:
    """Says what a session lacks, in words for a log; `own` are the variables that the caller named."""
    # An agent's secrets are ignored too, as they should be, and so is what a program below a tool passes by itself.
    expected = [name for name in session.env_ignored if name in own or (role == "agent" and _is_of_toolchain(name))]
    said = []
    if expected:
        said.append(
            f"these variables have no effect, since this client may not set them: {', '.join(expected)}; "
            "a person can allow them with [agents] env in the configuration"
        )
    if session.workspace == "pending":
        said.append(
            f"no person has opened {session.cwd} to this client yet, so the first call that needs the folder asks; "
            f"to allow it: toolctl workspaces allow {shlex.quote(session.cwd)}"
        )
    elif session.workspace == "none":
        said.append("the session has no folder to work in; a person can allow one: toolctl workspaces allow DIR")
    return said


def _is_of_toolchain(name: str) -> bool:
    return any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in TOOLCHAIN)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
