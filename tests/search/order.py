"""Does our price put people's plans into the order of the compilers' programs? Pairs of plans of one program.

From `tests`, with the compilers installed:

    python -m search.order --write                                  # the table of docs/search.md: about half an hour
    python -m search.order --programs routed --chips h100
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from search.compare import MESHES
from search.page import markdown, write_part
from search.written import COMPILERS, Way, options_parser, written

import pyshardy
from pyshardy.compilers.ask import ask
from pyshardy.report.confirmation import memory_peak
from pyshardy.runtime.hlo import hlo_kinds

CLEAR = 1.03
"""A ratio of two compiled figures from which on they have an order."""
MOST = 8
"""The number of plans of a program that are compiled."""
FIGURES = "sent", "peak", "seconds"


class Both(NamedTuple):
    """One figure of a plan.

    Attributes:
        own: As we estimate it, without a compiler.
        compiled: As the compiler's program has it; for seconds our price of that program.
    """

    own: float
    compiled: float


Figures = dict[str, Both]
"""The figures of a plan, by their names."""


def chosen(ways: Sequence[Way], most: int = MOST) -> list[Way]:
    """Plans of different estimated times, spread over all that there are, the fastest first."""
    others = list({f"{way.seconds:.3g}": way for way in ways}.values())
    step = max(1.0, (len(others) - 1) / (most - 1))
    return [others[round(place * step)] for place in range(min(most, len(others)))]


def figures(module: pyshardy.Module, chip: str) -> Figures:
    """The figures of a plan."""
    own = pyshardy.cost(module, chip)
    answer = ask(module, COMPILERS[chip], to_the_end=True)
    theirs = pyshardy.cost(pyshardy.partition(module, compiler=COMPILERS[chip]), chip)
    sent = sum(total.sent_bytes_per_device for total in hlo_kinds(answer.compiled or ""))
    return {
        "sent": Both(sum(row.sent_bytes_per_device for row in own.estimate.collectives), sent),
        "peak": Both(own.peak_bytes, memory_peak(answer.memory or {})),
        "seconds": Both(own.step_seconds, theirs.step_seconds),
    }


def pairs(plans: Sequence[Both]) -> tuple[int, int]:
    """How many pairs of plans have a clear order by the compiler's figures, and how many of these our figures order so.

    >>> pairs([Both(1, 10), Both(2, 20), Both(3, 20.1), Both(1.5, 30)])
    (3, 5)
    """
    clear = [
        (one.own - other.own) * (one.compiled - other.compiled) > 0
        for one, other in combinations(plans, 2)
        if max(one.compiled, other.compiled) > CLEAR * min(one.compiled, other.compiled)
    ]
    return sum(clear), len(clear)


def orders(programs: Sequence[str], chips: Sequence[str], mesh: str) -> Iterator[tuple[str, str, list[Figures]]]:
    """The figures of the plans of every program and chip."""
    for program in programs:
        for chip in chips:
            found = []
            for way in chosen(written(program, MESHES[mesh], chip)):
                try:
                    found.append(figures(way.module, chip))
                except pyshardy.ShardyError as refused:
                    print(f"{program}, {chip}, {way.name}: {refused}".splitlines()[0], flush=True)
            yield program, chip, found


def table(found: Sequence[tuple[str, str, list[Figures]]]) -> str:
    """The pairs in the right order of those that have one, by program and chip."""
    rows, sums = [], dict.fromkeys(FIGURES, (0, 0))
    for program, chip, plans in found:
        counts = {name: pairs([plan[name] for plan in plans]) for name in FIGURES}
        sums = {name: (sums[name][0] + right, sums[name][1] + all) for name, (right, all) in counts.items()}
        rows.append([program, chip, len(plans), *(f"{right} of {all}" for right, all in counts.values())])
    total = [f"**{right} of {all}**" for right, all in sums.values()]
    rows.append(["**all**", "", sum(len(plans) for *_, plans in found), *total])
    return markdown(["program", "chip", "plans", "bytes sent", "memory", "time"], rows)


def main() -> None:
    options = options_parser().parse_args()
    found = []
    for row in orders(options.programs.split(","), options.chips.split(","), options.mesh):
        found.append(row)
        print(row[0], row[1], {name: pairs([plan[name] for plan in row[2]]) for name in FIGURES}, flush=True)
        for plan in row[2]:
            print(
                "   ", ", ".join(f"{name} {one.own:.4g} {one.compiled:.4g}" for name, one in plan.items()), flush=True
            )
    text = table(found)
    print(text)
    if options.write:
        write_part("order", text)


if __name__ == "__main__":
    main()
