"""Estimates beside what XLA for H100 and for v5e compiles, ahead of time: memory and collectives of whole steps.

From `tests/`: `python -m cost.compiled` prints the table, `python -m cost.compiled --write` puts it into `docs/cost.md`.
The compilers have to be installed; their answers are kept, so that only the first run takes half an hour.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil, floor
from typing import Any, NamedTuple

import jax

import pyshardy
from programs import PROGRAMS
from pyshardy.compilers.ask import ask
from pyshardy.core.mesh import Mesh
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.known_errors import known_error
from pyshardy.costing.traffic import KindTotal
from pyshardy.report.confirmation import memory_peak
from pyshardy.runtime.hlo import hlo_kinds

from .published import PAGE
from .steps import AT_HAND, HELD_OUT, Step

START, END = "<!-- written by python -m cost.compiled --write -->", "<!-- end of compiled steps -->"
ALLOWED = 0.05
"""By how much the counts and the bytes of collectives may differ."""


class Chip(NamedTuple):
    """A chip and its compiler."""

    name: str
    platform: str
    compiler: str


CHIPS = Chip("h100", "cuda", "cuda:h100:8"), Chip("v5e", "tpu", "tpu:v5e:2x4")
Kinds = dict[str, tuple[int, int]]
"""The number of collectives and the bytes that a device sends, by kind."""


class Compared(NamedTuple):
    """An estimate beside a compiled program.

    Attributes:
        compiled_bytes: The peak memory of the compiled program; 0 if the compiler says that it does not fit.
        own_bytes: The estimate from pyshardy's partitioned program.
        other_bytes: The estimate from the compiler's partitioned program.
        compiled, own, other: The same of collectives.
        conflicts: Whether the estimate from pyshardy's program says that shardings conflict.
    """

    compiled_bytes: int
    own_bytes: int
    other_bytes: int
    compiled: Kinds
    own: Kinds
    other: Kinds
    conflicts: bool = False


def kinds_of(found: pyshardy.Cost) -> Kinds:
    """The collectives of an estimate."""
    kinds: Kinds = {}
    for row in found.estimate.collectives:
        count, sent = kinds.get(row.kind, (0, 0))
        kinds[row.kind] = count + row.count, sent + row.sent_bytes_per_device
    return kinds


def compare(load: Callable[[str], Any], chip: Chip) -> Compared:
    """A program, lowered for a platform, beside what the compiler of a chip makes of it.

    Raises:
        ShardyError: The compiler refuses the program.
    """
    module = pyshardy.load(load(chip.platform).text())  # without places, so that any caller finds the answer again
    answer = ask(module, chip.compiler, to_the_end=True)
    totals: tuple[KindTotal, ...] = hlo_kinds(answer.compiled or "")
    own, other = (
        pyshardy.cost(pyshardy.propagate(module, compiler=compiler), chip.name) for compiler in ("none", chip.compiler)
    )
    compiled = {total.kind: (total.count, total.sent_bytes_per_device) for total in totals}
    peak = memory_peak(answer.memory or {})
    conflicts = own.estimate.memory_error == known_error(find_hardware(chip.name), is_compilers=False, conflicts=True)
    return Compared(peak, own.peak_bytes, other.peak_bytes, compiled, kinds_of(own), kinds_of(other), conflicts)


def is_near(compiled: Kinds, estimated: Kinds, place: int) -> bool:
    """Whether the counts (place 0) or the bytes (place 1) of all collectives together are within 5 %."""
    whole, found = (sum(one[place] for one in kinds.values()) for kinds in (compiled, estimated))
    return abs(found - whole) <= ALLOWED * whole


def error(compiled: int, estimated: int) -> float:
    """The estimate over the compiled figure, less one."""
    return estimated / compiled - 1


def known_range(rows: Iterable[tuple[int, int]]) -> tuple[float, float]:
    """Between which factors of the estimate nine of ten compiled steps are, outwards to a percent.

    Args:
        rows: Compiled and estimated bytes.
    """
    ratios = sorted(compiled / estimated for compiled, estimated in rows)
    out = len(ratios) // 20  # of twenty, one is left out at either end
    return floor(100 * ratios[out] + 1e-6) / 100, ceil(100 * ratios[-1 - out] - 1e-6) / 100


def corpus() -> Iterator[tuple[str, Callable[[str], Any]]]:
    """The test programs on eight devices, of a few KiB each; their memory says nothing."""
    for name, program in PROGRAMS.items():
        if program.skip() is None and Mesh(program.mesh_axes).size == 8 and not program.in_process:
            yield name, lambda platform, program=program: pyshardy.load(program.lower())


def compared(programs: Iterable[tuple[str, Callable[[str], Any]]], chip: Chip) -> dict[str, Compared]:
    """Programs beside a compiler; those that it refuses are named and left out."""
    found = {}
    for name, load in programs:
        try:
            found[name] = compare(load, chip)
        except pyshardy.ShardyError as refused:
            print(f"{name}, {chip.name}: {refused}".splitlines()[0], file=sys.stderr)
    return found


def loads(steps: Sequence[Step]) -> Iterator[tuple[str, Callable[[str], Any]]]:
    return ((step.name, step.load) for step in steps)


SETS = "steps at hand", "steps held out", "test programs"
Results = dict[str, dict[str, dict[str, Compared]]]
"""By chip, by set, by program."""


OWN, OTHER = "pyshardy's program", "the compiler's program"
AGREE, CONFLICT = "all, shardings agree", "all, shardings conflict"


def memory_table(found: Results) -> list[str]:
    lines = [
        "| chip | steps | estimated from | median error | within 15 % | nine of ten need, times the estimate |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for chip, sets in found.items():
        groups = {name: list(sets[name].values()) for name in SETS[:2]}
        rows = groups["all"] = [row for rows in groups.values() for row in rows]
        sides = dict.fromkeys(groups, ((OWN, 1), (OTHER, 2)))
        groups |= {CONFLICT: [row for row in rows if row.conflicts], AGREE: [row for row in rows if not row.conflicts]}
        for name, rows in groups.items():
            for what, place in sides.get(name, ((OWN, 1),)) if rows else ():
                pairs = [(row[0], row[place]) for row in rows]
                errors = [abs(error(*pair)) for pair in pairs]
                within = f"{sum(one <= 0.15 for one in errors)} of {len(errors)}"
                low, high = known_range(pairs)
                median = f"{statistics.median(errors):.0%}"
                lines.append(f"| {chip} | {name} | {what} | {median} | {within} | {low:.2f} to {high:.2f} |")
    return lines


def collective_table(found: Results) -> list[str]:
    lines = [
        "| chip | programs | estimated from | count within 5 % | bytes within 5 % |",
        "|---|---|---|---|---|",
    ]
    for chip, sets in found.items():
        for name, rows in sets.items():
            for what, place in (("pyshardy's program", 4), ("the compiler's program", 5)):
                near = [
                    f"{sum(is_near(row.compiled, row[place], part) for row in rows.values())} of {len(rows)}"
                    for part in (0, 1)
                ]
                lines.append(f"| {chip} | {name} | {what} | {near[0]} | {near[1]} |")
    return lines


def _ratio(kinds: Kinds, compiled: Kinds) -> str:
    """Counts and bytes of all collectives over those compiled."""
    parts = []
    for place in (0, 1):
        whole, part = (sum(one[place] for one in given.values()) for given in (compiled, kinds))
        parts.append("none" if not whole and not part else "more" if not whole else f"{part / whole:.2f}")
    return ", ".join(parts)


def step_table(found: Results) -> list[str]:
    """Every step with its errors, good or bad."""
    lines = [
        "| step | " + " | ".join(f"{chip} GiB | error | of the compiler's | collectives" for chip in found) + " |",
        "|---|" + "---|" * 4 * len(found),
    ]
    for name in SETS[:2]:
        for step in next(iter(found.values()))[name]:
            cells = []
            for sets in found.values():
                row = sets[name].get(step)
                if row is None:
                    cells += ["refused", "", "", ""]
                    continue
                cells += [
                    f"{row.compiled_bytes / 2**30:.2f}",
                    f"{error(row.compiled_bytes, row.own_bytes):+.0%}",
                    f"{error(row.compiled_bytes, row.other_bytes):+.0%}",
                    _ratio(row.own, row.compiled),
                ]
            lines.append(f"| {step} | " + " | ".join(cells) + " |")
    return lines


def page_text(found: Results) -> str:
    """All tables in Markdown."""
    text = "Counts and bytes of collectives are those of the estimate from pyshardy's program over the compiled ones."
    return "\n".join(
        [*memory_table(found), "", *collective_table(found), "", text, "", *step_table(found)]
    )  # fmt: skip


def results() -> Results:
    """All programs on all chips."""
    return {
        chip.name: dict(zip(SETS, (compared(one, chip) for one in (loads(AT_HAND), loads(HELD_OUT), corpus()))))
        for chip in CHIPS
    }


def write(found: Results) -> None:
    """Put the tables into the page between their marks."""
    head, _, rest = PAGE.read_text().partition(START)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{START}\n{page_text(found)}\n{END}{tail}")


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", 8)  # the test programs are lowered on a mesh of devices
    if sys.argv[1:] == ["--write"]:
        write(results())
    else:
        print(page_text(results()))
