#!/usr/bin/env python3
"""Draws how the crates of the workspace depend on each other, from `cargo metadata`.

    docs/crates.py            writes docs/crates.svg
    docs/crates.py --check    fails when docs/crates.svg is not current

A crate stands above all that it depends on. A line that follows from others is left out: when a depends on b and b on c,
there is no line from a to c.
"""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/crates.svg"
# The tests depend on everything.
LEFT_OUT = {"toold-tests"}
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, MARGIN = 860, 150, 46, 92, 14

STYLE = """
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #1f2328; text-anchor: middle; }
  .folder { font: 11px ui-monospace, Menlo, Consolas, monospace; fill: #59636e; }
  rect { fill: #f6f8fa; stroke: #818b98; rx: 6px; }
  .client rect { fill: #ddf4ff; }
  .shared rect { fill: #fff8c5; }
  path { fill: none; stroke: #818b98; stroke-width: 1.3; }
  .head { fill: #818b98; stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .folder { fill: #9198a1; }
    rect { fill: #212830; stroke: #656c76; }
    .client rect { fill: #0c2d4d; }
    .shared rect { fill: #3a2d05; }
  }
"""


def crates() -> tuple[dict[str, str], dict[str, set[str]]]:
    """The folder of each crate, and the crates of the workspace that it depends on."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]
    folders = {
        package["name"]: str(Path(package["manifest_path"]).parent.relative_to(ROOT))
        for package in packages
        if package["name"] not in LEFT_OUT
    }
    uses = {
        package["name"]: {
            dependency["name"]
            for dependency in package["dependencies"]
            if dependency["kind"] is None and dependency["name"] in folders
        }
        for package in packages
        if package["name"] in folders
    }
    return folders, uses


def without_shortcuts(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    def reached(name: str) -> set[str]:
        return uses[name].union(*(reached(used) for used in uses[name]))

    return {
        name: {used for used in all_used if not any(used in reached(other) for other in all_used - {used})}
        for name, all_used in uses.items()
    }


def rows(uses: dict[str, set[str]]) -> list[list[str]]:
    """Rows from the bottom up: a crate stands one above the highest that it depends on."""

    def height(name: str) -> int:
        return 1 + max((height(used) for used in uses[name]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, uses)))]
    for name in sorted(uses):
        rows[height(name)].append(name)
    return rows


def place(rows: list[list[str]], uses: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """The middle of each box. Crates of a row are ordered so that lines are short and seldom cross."""
    users = {name: {user for user, used in uses.items() if name in used} for name in uses}
    x = {name: (index + 0.5) / len(row) for row in rows for index, name in enumerate(row)}
    for round in range(24):
        neighbours = uses if round % 2 == 0 else users
        for row in rows if round % 2 == 0 else reversed(rows):
            wanted = {name: sum(x[n] for n in neighbours[name]) / len(neighbours[name]) if neighbours[name] else x[name]
                      for name in row}
            for index, name in enumerate(sorted(row, key=lambda name: (round_to(wanted[name]), name))):
                x[name] = (index + 0.5) / len(row)
    height = len(rows) * ROW_HEIGHT
    return {
        name: (round_to(x[name] * WIDTH, 1), height - MARGIN - BOX_HEIGHT / 2 - level * ROW_HEIGHT)
        for level, row in enumerate(rows)
        for name in row
    }


def round_to(value: float, digits: int = 6) -> float:
    """The same on every machine."""
    return round(value, digits)


def draw() -> str:
    folders, uses = crates()
    lines = without_shortcuts(uses)
    levels = rows(uses)
    at = place(levels, lines)
    height = len(levels) * ROW_HEIGHT - (ROW_HEIGHT - BOX_HEIGHT) + 2 * MARGIN
    shift = height - len(levels) * ROW_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">',
        "<title>The crates of toold: each stands above those that it depends on</title>",
        f"<style>{STYLE}</style>",
    ]
    for user in sorted(lines):
        for used in sorted(lines[user]):
            (x1, y1), (x2, y2) = at[user], at[used]
            y1, y2 = y1 + shift + BOX_HEIGHT / 2, y2 + shift - BOX_HEIGHT / 2 - 6
            bend = (y2 - y1) / 2
            out.append(f'<path d="M{x1:g} {y1:g}C{x1:g} {y1 + bend:g} {x2:g} {y2 - bend:g} {x2:g} {y2:g}"/>')
            out.append(f'<path class="head" d="M{x2 - 4:g} {y2 - 1:g}h8l-4 7z"/>')
    for name in sorted(at):
        (x, y), folder = at[name], folders[name]
        kind = "client" if folder.startswith("clients") else "shared" if folder.startswith("proto") else "daemon"
        left, top = x - BOX_WIDTH / 2, y + shift - BOX_HEIGHT / 2
        out.append(
            f'<g class="{kind}"><rect x="{left:g}" y="{top:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/>'
            f'<text x="{x:g}" y="{top + 20:g}">{escape(name)}</text>'
            f'<text class="folder" x="{x:g}" y="{top + 36:g}">{escape(folder)}</text></g>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    picture = draw()
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture)
    elif not PICTURE.exists() or PICTURE.read_text() != picture:
        sys.exit("docs/crates.svg is not current: run docs/crates.py")
