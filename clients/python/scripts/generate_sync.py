"""Makes `src/toold/sync.py` from `src/toold/aio.py`.

python scripts/generate_sync.py            writes the file
python scripts/generate_sync.py --check    fails when the file is not what would be written
"""

import ast
import io
import sys
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "src/toold"
HEADER = "# Made from aio.py by scripts/generate_sync.py: change that file, then run the script.\n"

# Methods that only the client for asyncio has.
ASYNC_ONLY = {"lend"}

NAMES = {
    "AsyncCall": "Call",
    "AsyncClient": "Client",
    "AsyncEvents": "Events",
    "ClientCore": "LoopCore",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    # Outside an event loop, `provide` can wait until the function is registered.
    "provide_later": "provide",
}

# Pieces that differ by more than these words. Each stands in aio.py once.
PIECES = [
    (
        '"""The client for asyncio. `scripts/generate_sync.py` makes `sync.py` from this file."""',
        '"""The client without asyncio, whose methods wait."""',
    ),
    ("from .calls import AsyncCall\n", ""),
    ("from .core import ClientCore, without_none\n", "from .core import without_none\n"),
    ("from .events import AsyncEvents\n", "from .loop import Call, Events, LoopCore\n"),
    ("A client of the daemon, for any number of requests at once", "A client of the daemon, for any number of threads"),
    (
        "Plain functions are called one at\n      a time in a thread. Return `None` to let another client answer.\n",
        "Plain functions are called one at\n      a time in a thread. Return `None` to let another client answer.\n\n"
        "    Callbacks and provided functions run in threads of their own, and may use the client. `Ctrl-C` during a call\n"
        "    cancels it.\n",
    ),
    (
        "        Raises `InvalidArguments`, `UnknownTool`, `CallCancelled` and the other `RpcError`s.",
        "        `on_progress` is called in this thread.\n\n"
        "        Raises `InvalidArguments`, `UnknownTool`, `CallCancelled` and the other `RpcError`s.",
    ),
    (
        "in the form of that provider.\n",
        "in the form of that provider.\n        `on_progress` is called in another thread, one call at a time.\n",
    ),
    ("The subscription starts with `async with`, or with the iteration.", "The subscription starts at once."),
    (
        "A decorator, for use before it connects.\n",
        "A decorator. Connects if\n        the client is not connected.\n",
    ),
]


def without_async_only(source: str) -> str:
    lines = source.splitlines(keepends=True)
    for node in reversed(list(ast.walk(ast.parse(source)))):
        if isinstance(node, ast.AsyncFunctionDef) and node.name in ASYNC_ONLY:
            end = node.end_lineno or node.lineno
            # With the empty line behind it.
            del lines[node.lineno - 1 : end + 1]
    return "".join(lines)


def without_asyncio(source: str) -> str:
    lines = source.splitlines(keepends=True)
    # From the end, so that the positions of earlier tokens stay right.
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        (row, start), (last, end) = token.start, token.end
        if token.type == tokenize.NAME:
            line = lines[row - 1]
            if token.string in ("async", "await"):
                lines[row - 1] = line[:start] + line[end:].removeprefix(" ")
            elif token.string in NAMES:
                lines[row - 1] = line[:start] + NAMES[token.string] + line[end:]
        elif token.type == tokenize.STRING and token.string.startswith('"""'):
            for number in range(row - 1, last):
                for before, after in {"async with": "with", **NAMES}.items():
                    lines[number] = lines[number].replace(f"`{before}", f"`{after}")
    return "".join(lines)


def generate() -> str:
    source = (PACKAGE / "aio.py").read_text()
    for before, after in PIECES:
        if source.count(before) != 1:
            sys.exit(f"aio.py should have this once: {before!r}")
        source = source.replace(before, after)
    module, rest = without_asyncio(without_async_only(source)).split("\n", 1)
    return f"{module}\n\n{HEADER}{rest}"


def main() -> None:
    target = PACKAGE / "sync.py"
    text = generate()
    if "--check" not in sys.argv[1:]:
        target.write_text(text)
    elif target.read_text() != text:
        sys.exit(f"{target} is not what scripts/generate_sync.py makes of aio.py: run the script")


main()
