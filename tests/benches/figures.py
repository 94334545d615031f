#!/usr/bin/env python3
"""Runs every benchmark and writes the goals that they report into README.md and goals.svg beside this file.

usage: tests/benches/figures.py [--quick] [--from FOLDER]

--quick takes few rounds of an unoptimised build, to see that it runs; then nothing is written. --from takes the outputs that an
earlier run kept (below target/figures) instead of running anything.
"""

import platform
import subprocess
import sys
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEPT = ROOT / "target/figures"
PACKAGES = ["toold-tests", "toold-lua", "toold-builtins"]
BENCHES = ["daemon", "load", "lua", "search"]
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def run(quick):
    KEPT.mkdir(parents=True, exist_ok=True)
    for bench in BENCHES:
        if quick and bench == "lua":
            # It has no quick way: how long endless programs take does not get less.
            continue
        # Unoptimised, since the tests have built that already, and only whether it runs is of interest.
        # With the features of all packages together, as there; figures are taken of release builds, with the features of
        # the benches' packages.
        packages = [f"--package={package}" for package in PACKAGES]
        of = ["--profile", "dev", "--workspace"] if quick else ["--profile", "dist", *packages]
        command = ["cargo", "bench", "--locked", *of, "--bench", bench, "--", *(["--quick"] if quick else [])]
        print("$", " ".join(command), flush=True)
        output = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(output, flush=True)
        (KEPT / f"{bench}.txt").write_text(output)


def goals(outputs):
    """The lines `goal G1 | what | value | unit | demand | held`, in the order of the goals' numbers."""
    found = []
    for line in "\n".join(outputs.values()).splitlines():
        if line.startswith("goal G"):
            name, what, value, unit, demand, held = (part.strip() for part in line.removeprefix("goal ").split("|"))
            found.append((int(name[1:]), what, float(value), unit, demand, held))
    return sorted(found, key=lambda goal: goal[0])


def table(found):
    rows = [f"| G{n} | {what} | {value:g} {unit} | {demand} | {held} |" for n, what, value, unit, demand, held in found]
    return "\n".join(["| | what | figure | goal | |", "|---|---|---|---|---|", *rows])


def picture(found):
    """How far each figure is from its goal: a bar to the left of the line holds it."""
    height, middle, width = 22, 620, 300
    rows = []
    for index, (n, what, value, _, demand, held) in enumerate(found):
        wanted = float(demand.split()[-1])
        distance = value / wanted if demand.startswith("at most") else wanted / max(value, 1e-9)
        y = 40 + index * height
        end = middle * 1.0 + max(-1.0, min(1.0, (distance - 1.0))) * width / 2
        left, right = sorted([middle, end])
        color = "#2e8b57" if held == "held" else "#c0392b"
        rows.append(
            f'<text x="10" y="{y + 14}">G{n} {escape(what)}</text>'
            f'<rect x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" height="{height - 6}" fill="{color}"/>'
        )
    tall = 50 + len(found) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{tall}" font-family="sans-serif" font-size="12">'
        f'<rect width="800" height="{tall}" fill="white"/>'
        f'<text x="{middle - 150}" y="20">better</text><text x="{middle - 12}" y="20">goal</text>'
        f'<text x="{middle + 110}" y="20">worse</text>{"".join(rows)}'
        f'<line x1="{middle}" y1="28" x2="{middle}" y2="{tall - 10}" stroke="black"/></svg>\n'
    )


def machine():
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    cores = sum(line.startswith("processor") for line in open("/proc/cpuinfo"))
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return f"Of commit {commit.stdout.strip()}, on {cores} x {cpu}, Linux {platform.release()}."


def main():
    arguments = sys.argv[1:]
    if "--from" in arguments:
        kept = Path(arguments[arguments.index("--from") + 1])
    else:
        kept = KEPT
        run("--quick" in arguments)
    if "--quick" in arguments:
        return
    outputs = {bench: (kept / f"{bench}.txt").read_text() for bench in BENCHES}
    found = goals(outputs)
    assert found, "no benchmark reported a goal"
    details = "\n".join(f"### {bench}\n\n```\n{text.strip()}\n```\n" for bench, text in outputs.items())
    written = f"{BEGIN}\n{machine()}\n\n{table(found)}\n\n![How far each is from its goal](goals.svg)\n\n{details}\n{END}"
    readme = HERE / "README.md"
    text = readme.read_text()
    readme.write_text(text[: text.index(BEGIN)] + written + text[text.index(END) + len(END) :])
    (HERE / "goals.svg").write_text(picture(found))


main()
