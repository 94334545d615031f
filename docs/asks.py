#!/usr/bin/env python3
"""Records one request for permission in the clients that run in a terminal, with the real programs in tmux.

    docs/asks.py --bin FOLDER       writes docs/asks/NAME.svg, and the texts in docs/asks.md

FOLDER has toold and toolctl. Needs tmux, git, Neovim and Emacs. The pictures of the page, docs/page/ask-*.png, are taken by its
tests with PICTURES=1, and that of VS Code by .ci/vscode_workbench with UPDATE=1.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path

from record import Agent, Session, draw, prepare

ROOT = Path(__file__).resolve().parents[1]
LINE = "git push -q origin main"
NVIM = """
vim.opt.runtimepath:prepend("ROOT/clients/nvim")
vim.o.statusline = "%f %m%=%{v:lua.require'toold'.statusline()}"
require("toold").setup({})
"""
EMACS = """
(setq inhibit-startup-screen t)
(menu-bar-mode -1)
(add-to-list 'load-path "ROOT/clients/emacs")
(require 'toold)
(toold-mode 1)
(toold-request "daemon.ping")
"""

# For each client: its columns and rows, what is typed, what its terminal shows when it is ready, and with the request.
CLIENTS = {
    "approve": ((84, 18), "toolctl approve", r"waiting for", "deny, with a reason"),
    "screen": ((84, 24), "toolctl", "1:Calls", "deny, with a reason"),
    "nvim": ((84, 22), "nvim -u ~/init.lua -i NONE -n prices.txt", "toold", "Deny, and say why"),
    "emacs": ((84, 22), "emacs -Q -nw -l ~/init.el prices.txt", "toold", "deny with"),
    "call": ((84, 18), f"toolctl call bash command='{LINE}'", "deny, with a reason", "deny, with a reason"),
}
TITLES = {
    "approve": "toolctl approve in a terminal",
    "screen": "the full screen of toolctl",
    "nvim": "Neovim",
    "emacs": "Emacs",
    "call": "toolctl call, in the terminal that calls",
}


def picture(bin: Path, name: str) -> None:
    size, line, ready, asked = CLIENTS[name]
    session = Session(bin, size)
    try:
        (session.home / ".config/toold").mkdir(parents=True)
        for file, text in (("init.lua", NVIM), ("init.el", EMACS)):
            (session.home / file).write_text(text.replace("ROOT", str(ROOT)))
        prepare(session)
        session.start()
        session.type(line)
        session.wait_for(ready)
        if name == "nvim":
            # It connects with its first request.
            session.type(":Tool read path=prices.txt")
            session.wait_for("read done")
            session.tmux("send-keys", "C-w", "o")
        # Its request ends with its connection.
        agent = Agent(session)
        if name != "call":
            agent.call("bash", {"command": LINE})
        session.wait_for(asked)
        seen = session.settled()
        folder = ROOT / "docs/asks"
        folder.mkdir(exist_ok=True)
        title = f"A request for permission to run {LINE}: {TITLES[name]}"
        (folder / f"{name}.svg").write_text(draw(session, [(0.0, seen)], title))
    finally:
        session.end()


def form(bin: Path) -> str:
    """The same request as a form of MCP, in words: the message, then the answers."""
    session = Session(bin, (84, 10))
    try:
        (session.home / ".config/toold").mkdir(parents=True)
        (session.home / ".config/toold/config.toml").write_text("[mcp.clients.claude]\napprove = true\n")
        prepare(session)
        mcp = subprocess.Popen(["toolctl", "mcp"], env=session.environment, cwd=session.work, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
        assert mcp.stdin and mcp.stdout

        def send(**message: object) -> None:
            mcp.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            mcp.stdin.flush()

        information = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
                       "clientInfo": {"name": "claude", "version": "1"}}
        send(id=1, method="initialize", params=information)
        mcp.stdout.readline()
        send(method="notifications/initialized")
        send(id=2, method="tools/call", params={"name": "bash", "arguments": {"command": LINE}})
        while (asked := json.loads(mcp.stdout.readline())).get("method") != "elicitation/create":
            pass
        mcp.kill()
        mcp.wait()
        answers = asked["params"]["requestedSchema"]["properties"]["decision"]["enum"]
        text = "\n".join([asked["params"]["message"], "", *(f"( ) {answer}" for answer in answers)])
        return text.replace(str(session.home), "/home/you")
    finally:
        session.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="the folder of toold and toolctl")
    parser.add_argument("clients", nargs="*", help=f"only these of {', '.join(CLIENTS)}, form")
    options = parser.parse_args()
    for name in options.clients or [*CLIENTS, "form"]:
        if name != "form":
            picture(options.bin.resolve(), name)
            continue
        page = ROOT / "docs/asks.md"
        text = re.sub(r"(<!-- form -->\n```text\n).*?(```)", lambda found: f"{found[1]}{form(options.bin.resolve())}\n{found[2]}",
                      page.read_text(), flags=re.DOTALL)
        page.write_text(text)


if __name__ == "__main__":
    main()
