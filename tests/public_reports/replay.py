"""Replays public reports: what pyshardy offers for a program, beside what the thread found.

`PYTHONPATH=tests:. python -m public_reports.replay` writes `docs/public-reports.md`, with compilers where they are
installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

from public_reports.programs import REPORTS, Report

import pyshardy
from pyshardy.core.text import format_bytes

COMPILERS = {"none": "pyshardy", "tpu:v5e:2x4": "v5e", "cuda:h100:8": "H100"}
CHIP = "h100"
AS_GOOD = 1.05
"""A way is as good as the thread's if it costs at most this much more."""
_NOTHING = 1024
"""Bytes that count as none."""


@dataclass(frozen=True)
class Replayed:
    """What a program costs: as it was asked about, as the thread mended it, and with the best way that is offered.

    Bytes that every device sends; for reports on memory, the peak memory of a device.

    Attributes:
        before: As it was asked about.
        mended: As the thread mended it.
        offered: With the best of the ways that are offered; the same as before if there is none.
        ways: The ways in words.
    """

    before: int
    mended: int
    offered: int
    ways: tuple[str, ...]

    @property
    def has_fix(self) -> bool:
        """Whether the thread's way helps here: partitioners and compilers have learned since."""
        return self.before > AS_GOOD * self.mended + _NOTHING

    @property
    def is_as_good(self) -> bool:
        """Whether a way is offered that is as good as the thread's."""
        return self.offered <= AS_GOOD * self.mended + _NOTHING


def load(report: Report, mended: bool) -> pyshardy.Module:
    """The program of a report."""
    function, arguments = report.program(mended)
    return pyshardy.load(function.lower(*arguments))


def replay(report: Report, compiler: str = "none") -> Replayed:
    """What a report costs, and what is offered."""
    modules = [load(report, mended) for mended in (False, True)]
    return _by_memory(modules) if report.by_memory else _by_traffic(modules, compiler)


def _by_traffic(modules: Sequence[pyshardy.Module], compiler: str) -> Replayed:
    first, mended = (pyshardy.partition(module, compiler=compiler) for module in modules)
    sent = [part.traffic.sent_bytes_per_device for part in (first, mended)]
    ways = [(way.text, way.sent_bytes) for story in first.hints() for way in story.ways]
    ways += [(remedy.what_helps, remedy.sent_bytes[1]) for remedy in first.remedies()]
    return Replayed(*sent, min([sent[0], *(found for _, found in ways)]), tuple(text for text, _ in ways))


def _by_memory(modules: Sequence[pyshardy.Module]) -> Replayed:
    held = [pyshardy.cost(module, CHIP).peak_bytes for module in modules]
    found = [one for one in pyshardy.doctor(modules[0], hardware=CHIP).findings if one.after is not None]
    least = min([held[0], *(one.after.bytes for one in found if one.after is not None)])
    return Replayed(*held, least, tuple(one.cure for one in found))


PAGE = Path(__file__).resolve().parents[2] / "docs/public-reports.md"
HEAD = """\
# Public reports, replayed

`PYTHONPATH=tests:. python -m public_reports.replay` writes this page from the programs in `tests/public_reports`. Each
is the smallest program of a public question on sharding, on eight devices: what it sends as it was asked about, what it
sends with the way out that the thread found, and what it sends with the best way that pyshardy offers, by
`partition(...).hints()` and `.remedies()`; for reports on memory, what a device holds, and what `doctor` offers. Bytes
are those that every device sends. "pyshardy" is its own partitioner, the others are XLA's. A way is as good if it costs
at most 5 % more than the thread's.

{summary}

| report | by | as asked | the thread's way | the best way offered | |
| --- | --- | --: | --: | --: | --- |
"""


def rows() -> Iterator[tuple[Report, str, Replayed]]:
    """All reports with all partitioners."""
    for report in REPORTS:
        for compiler in ("none",) if report.by_memory else COMPILERS:
            yield report, compiler, replay(report, compiler)


def line(report: Report, compiler: str, found: Replayed) -> str:
    """A line of the table."""
    name = f"[{report.name}]({report.url})" if report.url else report.name
    word = "nothing to mend" if not found.has_fix else "as good" if found.is_as_good else "**worse**"
    cells = (format_bytes(size) for size in (found.before, found.mended, found.offered))
    by = "memory" if report.by_memory else COMPILERS[compiler]
    return f"| {name} | {by} | {' | '.join(cells)} | {word} |"


def main() -> None:
    """Write the page."""
    from rich.progress import track

    total = sum(1 if report.by_memory else len(COMPILERS) for report in REPORTS)
    found = list(track(rows(), description="replaying", total=total))
    asked = [one for one in found if one[2].has_fix]
    good = sum(one[2].is_as_good for one in asked)
    summary = (
        f"Of {len(REPORTS)} reports, in {len(found)} rows, the thread's way still saves something in {len(asked)}. In "
        f"{good} of these, a way that is as good or better is offered."
    )
    PAGE.write_text(HEAD.format(summary=summary) + "\n".join(line(*one) for one in found) + "\n")


if __name__ == "__main__":
    main()
