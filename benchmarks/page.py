"""Writes `docs/performance.md`: `make performance-page` measures, and puts the figures between the words.

    python -m benchmarks.page [--interpreted TREE] [--stages]

Without arguments it shows what it runs with; `TREE` is another copy of this repository, whose core is not compiled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.compare import HEADINGS, LAYERS, REPEAT, all_rows, cells, environment, growth_of
from benchmarks.measure import PIPELINE, stages
from benchmarks.targets import GROWTH
from benchmarks.workloads import transformer
from pyshardy.ir.module import Module

WORDS = Path(__file__).parent / "page.md"
PAGE = Path(__file__).parent.parent / "docs/performance.md"


def table(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table in Markdown; all columns but the first hold figures."""
    lines = [headings, ("---",) + ("--:",) * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stage_table(profile: dict[str, float], interpreted: dict[str, float], ops: int) -> str:
    """Where the time goes, per op; what takes less than a hundredth is added up."""
    whole = sum(profile.values())
    large = {name: time for name, time in profile.items() if time >= whole / 100}
    rest = f"{len(profile) - len(large)} other passes"
    rows = []
    for name, time in (large | {rest: whole - sum(large.values()), "all": whole}).items():
        all_interpreted = sum(interpreted.values())
        others = all_interpreted - sum(interpreted[one] for one in large)
        slow = all_interpreted if name == "all" else others if name == rest else interpreted[name]
        per_op = [f"{seconds / ops * 1e6:.1f} µs" for seconds in (time, slow)]
        rows.append([name, f"{time * 1000:.0f} ms", per_op[0], f"{time / whole:.0%}", per_op[1]])
    return table(("stage", "time", "per op", "share", "per op, interpreted"), rows)


def measured_stages() -> dict[str, float]:
    """The stages of the second size."""
    return stages(Module.parse(transformer(LAYERS[1])), PIPELINE, REPEAT // 3)


def stages_of(tree: str) -> dict[str, float]:
    """The same, measured by another copy of this repository."""
    command = [sys.executable, "-m", "benchmarks.page", "--stages"]
    result = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(result.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interpreted", default=".", metavar="TREE")
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    if options.stages:
        print(json.dumps(measured_stages()))
        return 0
    rows = all_rows(LAYERS, REPEAT)
    grown = growth_of(LAYERS, REPEAT)
    ops = sorted(row.ops for row in rows if row.target == "pipeline")[1]
    assert grown is not None
    figures = {
        "environment": environment(),
        "ratios": table(HEADINGS, [cells(row) for row in rows]),
        "growth": f"{grown:.2f} (wanted: at most {GROWTH})",
        "stages": stage_table(measured_stages(), stages_of(options.interpreted), ops),
    }
    text = WORDS.read_text()
    for name, figure in figures.items():
        text = text.replace(f"{{{name}}}", figure)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
