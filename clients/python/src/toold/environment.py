"""The variables that a client passes to `session.open`, so that commands find the toolchains that the client finds.

The daemon has the environment of the client that started it, perhaps days ago. Only the client knows a virtual
environment that was activated since.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from .model import Session

# Variables by which programs find their toolchains; a final `*` matches any text. All clients of toold pass the same
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
    """The variables that a client of this role passes.

    A person's frontend passes those of the toolchain, a client that acts for a model all but those of toold itself. The
    daemon removes secrets. Variables that are not UTF-8 are not passed.
    """
    agent = role == "agent"
    return {
        name: value
        for name, value in environment.items()
        if (not name.startswith("TOOLD_") if agent else _is_of_toolchain(name)) and _is_text(name + value)
    }


def lacks(session: Session, role: str | None, own: Collection[str]) -> list[str]:
    """Warnings about what a session lacks, for a log; `own` are the variables that the caller named."""
    # An agent's secrets are ignored too, as they should be, and so is what a program below a tool passes by itself.
    expected = [name for name in session.env_ignored if name in own or (role == "agent" and _is_of_toolchain(name))]
    warnings = []
    if expected:
        warnings.append(
            f"these variables have no effect, since this client may not set them: {', '.join(expected)}; "
            "set [agents] env in the configuration to allow them"
        )
    if session.workspace == "pending":
        warnings.append(
            f"this client may not work in {session.cwd} yet, so the first call that needs it asks for approval; "
            f"to allow it: toolctl workspaces allow {shlex.quote(session.cwd)}"
        )
    elif session.workspace == "none":
        warnings.append("the session has no folder to work in; allow one with: toolctl workspaces allow DIR")
    if session.not_kept is not None:
        warnings.append(session.not_kept)
    return warnings


def _is_of_toolchain(name: str) -> bool:
    return any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in TOOLCHAIN)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
