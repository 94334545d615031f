"""The code in the README does what the README says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import TOOLD, Place

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<output>.*?)```", re.DOTALL)


def test_the_examples_print_what_stands_under_them(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    bin = place.root / "bin"
    bin.mkdir()
    (bin / "toold").symlink_to(TOOLD)
    monkeypatch.setenv("PATH", f"{bin}:{place.environment['PATH']}")
    (place.work / "notes.txt").write_text("green tea\nblack coffee\n")
    text = README.read_text()
    examples = list(EXAMPLE.finditer(text))
    assert len(examples) == text.count("```python") > 5, "each example has its output"
    names: dict[str, Any] = {"__name__": "readme"}
    for example in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example["code"], README, "exec"), names)
        assert printed.getvalue() == example["output"], example["code"]
