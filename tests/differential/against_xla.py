"""What the partitioned programs send, beside what XLA's own partitioner makes of the same shardings.

PYTHONPATH=tests python -m tests.differential.against_xla     writes docs/collectives.md, in a minute or two
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from math import prod
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pyshardy  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from pyshardy.api.run import compiled_collectives  # noqa: E402
from pyshardy.costing.traffic import KindTotal  # noqa: E402

PAGE = Path(__file__).parents[2] / "docs/collectives.md"
MORE = {
    "uneven": "a reshape that splits shards unevenly gathers",
    "linear_solve": "a linear solver runs on whole matrices, each of which is gathered on its own",
}
"""Programs for which more bytes are sent than by XLA's partitioner, and why."""
_MUCH = 1.1
"""A program that sends more than so many times the bytes of XLA's partitioner is counted."""
HEAD = """# Collectives, compared with XLA's own partitioner

`PYTHONPATH=tests python -m tests.differential.against_xla` writes this page, with jaxlib {version}, from the programs in
`tests/programs` on eight devices. It compares the collectives that XLA compiles from the per-device program with those
that XLA's own partitioner makes of the same propagated program (`pyshardy.api.run.compiled_collectives`). A collective
in a loop counts once per round, on both sides, if XLA knows the trip count; otherwise the loop counts as one round, and
the numbers are marked ≥. Of a conditional, the branch that sends most counts. If a program sends more bytes in all than
with XLA's partitioner, the last column says why; a test refuses other cases.

{summary}

| program | kind | count | of XLA | bytes that each device sends | of XLA | why more |
| --- | --- | --: | --: | --: | --: | --- |
"""

Totals = tuple[KindTotal, ...]


@cache
def totals(name: str) -> tuple[Totals, Totals]:
    """The collectives of a program, ours and XLA's, per kind."""
    partition = pyshardy.partition(pyshardy.load(PROGRAMS[name].lower()))
    return compiled_collectives(partition, "local"), compiled_collectives(partition, "xla")


def sent(found: Totals) -> int:
    """Bytes that every device sends."""
    return sum(total.sent_bytes_per_device for total in found)


def is_lower_bound(found: Totals) -> bool:
    """Whether there is a loop of which XLA does not know the number of rounds."""
    return any(total.is_lower_bound for total in found)


def rows(name: str, ours: Totals, theirs: Totals) -> Iterator[str]:
    """The lines of the table for one program: one per kind, and one for all of them."""
    sides = [{total.kind: total for total in side} for side in (ours, theirs)]
    kinds = sorted(sides[0] | sides[1])
    lines = [(kind, *(side.get(kind, KindTotal(kind, 0, 0)) for side in sides)) for kind in kinds]
    if len(kinds) != 1:
        lines.append(("all" if kinds else "none", _sum(ours), _sum(theirs)))
    for kind, one, other in lines:
        numbers = one.count, other.count, one.sent_bytes_per_device, other.sent_bytes_per_device
        reason = MORE.get(name, "") if kind == lines[-1][0] and numbers[2] > numbers[3] else ""
        signs = ["≥ " if side.is_lower_bound else "" for side in (one, other)] * 2
        cells = [f"{sign}{number:,}" for sign, number in zip(signs, numbers)]
        yield f"| {name} | {kind} | " + " | ".join(cells) + f" | {reason} |"


def _sum(found: Totals) -> KindTotal:
    return KindTotal("all", sum(total.count for total in found), sent(found), is_lower_bound(found))


def summary(pairs: Sequence[tuple[int, int]]) -> str:
    """A sentence on the bytes of several programs, ours and XLA's."""
    ratios = [ours / theirs for ours, theirs in pairs if ours and theirs]
    mean = prod(ratios) ** (1 / len(ratios))
    more = sum(ratio > _MUCH for ratio in ratios)
    return (
        f"Of the {len(ratios)} programs that send anything on both sides, {more} {'sends' if more == 1 else 'send'} more "
        f"than {_MUCH} times the bytes of XLA's partitioner. The geometric mean is {mean:.2f}."
    )


def main() -> None:
    """Write the page."""
    from jaxlib.version import __version__
    from rich.progress import track

    lines, pairs = [], []
    for name in track(sorted(PROGRAMS), description="partitioning"):
        if reason := PROGRAMS[name].skip():
            raise SystemExit(f"{name} cannot be lowered here: {reason}")
        ours, theirs = totals(name)
        lines += rows(name, ours, theirs)
        pairs.append((sent(ours), sent(theirs)))
    PAGE.write_text(HEAD.format(version=__version__, summary=summary(pairs)) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
