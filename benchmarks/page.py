"""Writes `docs/performance.md`: `python -m benchmarks.page` measures, and puts the figures between the words."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.compare import HEADINGS, LAYERS, all_rows, cells, environment, growth
from benchmarks.measure import PIPELINE, stages
from benchmarks.targets import GROWTH
from benchmarks.workloads import transformer
from pyshardy.ir.module import Module

WORDS = Path(__file__).parent / "page.md"
PAGE = Path(__file__).parent.parent / "docs/performance.md"
REPEAT = 5


def table(headings: tuple[str, ...], rows: list[list[str]]) -> str:
    """A table in Markdown; all columns but the first hold figures."""
    lines = [headings, ("---",) + ("--:",) * (len(headings) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stage_table(profile: dict[str, float], ops: int) -> str:
    """Where the time goes, per op; what takes less than a hundredth is added up."""
    whole = sum(profile.values())
    large = {name: time for name, time in profile.items() if time >= whole / 100}
    rest = {f"{len(profile) - len(large)} other passes": whole - sum(large.values()), "all": whole}
    rows = [
        [name, f"{time * 1000:.0f} ms", f"{time / ops * 1e6:.1f} µs", f"{time / whole:.0%}"]
        for name, time in (large | rest).items()
    ]
    return table(("stage", "time", "per op", "share"), rows)


def main() -> int:
    rows = all_rows(LAYERS, REPEAT)
    middle = LAYERS[1]
    ops = sorted(row.ops for row in rows if row.target == "pipeline")[1]
    profile = stages(Module.parse(transformer(middle)), PIPELINE, REPEAT)
    grown = growth(rows)
    assert grown is not None
    figures = {
        "environment": environment(),
        "ratios": table(HEADINGS, [cells(row) for row in rows]),
        "growth": f"{grown:.2f} (wanted: at most {GROWTH})",
        "stages": stage_table(profile, ops),
    }
    text = WORDS.read_text()
    for name, figure in figures.items():
        text = text.replace(f"{{{name}}}", figure)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
