"""The code in the README does what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import DaemonFolders

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)


def test_the_examples_print_what_stands_under_them(folders: DaemonFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{folders.bin}:{folders.environment['PATH']}")
    (folders.work / "notes.txt").write_text("green tea\nblack coffee\n")
    text = README.read_text()
    examples = list(EXAMPLE.finditer(text))
    assert len(examples) == text.count("```python") > 5, "each example has its output"
    names: dict[str, Any] = {"__name__": "readme"}
    for example in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example["code"], README, "exec"), names)
        assert printed.getvalue() == example["output"], example["code"]
