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
# The tests depend on everything, and only tests depend on what they share and on what makes schemas.
LEFT_OUT = {"toold-tests", "toold-test-kit", "toold-schemas"}
WIDTH, BOX_WIDTH, BOX_HEIGHT, ROW_HEIGHT, MARGIN = 860, 140, 46, 96, 14
# Where a line passes through a row; no crate has such a name.
GAP, GAP_WIDTH = "| ", 16

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


def rows(uses: dict[str, set[str]]) -> tuple[list[list[str]], list[list[str]]]:
    """Rows from the bottom up, and lines. A crate stands one row above the highest that it depends on. A line that is
    longer than a row passes through a gap in each row between, which has a place there as a crate has."""

    def height(name: str) -> int:
        return 1 + max((height(used) for used in uses[name]), default=-1)

    rows: list[list[str]] = [[] for _ in range(1 + max(map(height, uses)))]
    lines = []
    for name in sorted(uses):
        rows[height(name)].append(name)
        for used in sorted(uses[name]):
            between = range(height(name) - 1, height(used), -1)
            line = [name, *(f"{GAP}{name} {used} {level}" for level in between), used]
            for gap, level in zip(line[1:-1], between):
                rows[level].append(gap)
            lines.append(line)
    return rows, lines


def place(rows: list[list[str]], lines: list[list[str]]) -> dict[str, float]:
    """The middle of each crate and gap. They are ordered so that lines are short and seldom cross."""
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for line in lines:
        for user, used in zip(line, line[1:]):
            below.setdefault(user, []).append(used)
            above.setdefault(used, []).append(user)

    x: dict[str, float] = {}

    def spread(row: list[str]) -> None:
        widths = [GAP_WIDTH if name.startswith(GAP) else BOX_WIDTH for name in row]
        space = (WIDTH - sum(widths)) / len(row)
        left = space / 2
        for name, width in zip(row, widths):
            x[name] = round(left + width / 2, 1)
            left += width + space

    for row in rows:
        spread(row)
    for turn in range(24):
        neighbours = below if turn % 2 == 0 else above
        for row in rows if turn % 2 == 0 else reversed(rows):
            wanted = {}
            for name in row:
                near = [x[other] for other in neighbours.get(name, [])] or [x[name]]
                wanted[name] = round(sum(near) / len(near), 3)
            row.sort(key=lambda name: (wanted[name], name))
            spread(row)
    return x


def draw() -> str:
    folders, uses = crates()
    levels, lines = rows(without_shortcuts(uses))
    x = place(levels, lines)
    height = (len(levels) - 1) * ROW_HEIGHT + BOX_HEIGHT + 2 * MARGIN
    y = {
        name: height - MARGIN - BOX_HEIGHT / 2 - level * ROW_HEIGHT for level, row in enumerate(levels) for name in row
    }
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">',
        "<title>The crates of toold: each stands above those that it depends on</title>",
        f"<style>{STYLE}</style>",
    ]
    for line in lines:
        at = y[line[0]] + BOX_HEIGHT / 2
        path = f"M{x[line[0]]:g} {at:g}"
        for before, name in zip(line, line[1:]):
            is_gap = name.startswith(GAP)
            top = y[name] - BOX_HEIGHT / 2 - (0 if is_gap else 6)
            bend = (top - at) / 2
            path += f"C{x[before]:g} {at + bend:g} {x[name]:g} {top - bend:g} {x[name]:g} {top:g}"
            at = top
            if is_gap:
                at += BOX_HEIGHT
                path += f"V{at:g}"
        out.append(f'<path d="{path}"/>')
        out.append(f'<path class="head" d="M{x[line[-1]] - 4:g} {at - 1:g}h8l-4 7z"/>')
    for name in sorted(folders):
        folder = folders[name]
        kind = "client" if folder.startswith("clients") else "shared" if folder.startswith("proto") else "daemon"
        left, top = x[name] - BOX_WIDTH / 2, y[name] - BOX_HEIGHT / 2
        out.append(
            f'<g class="{kind}"><rect x="{left:g}" y="{top:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"/>'
            f'<text x="{x[name]:g}" y="{top + 20:g}">{escape(name)}</text>'
            f'<text class="folder" x="{x[name]:g}" y="{top + 36:g}">{escape(folder)}</text></g>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    picture = draw()
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture)
    elif not PICTURE.exists() or PICTURE.read_text() != picture:
        sys.exit("docs/crates.svg is not current: run docs/crates.py")
