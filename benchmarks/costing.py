"""How long estimates take: of the example with 24 and 96 layers, for eight devices and for thousands.

    python -m benchmarks.costing [--write]

Each figure is the least of several, in seconds of the processor (nothing runs in parallel), of `pyshardy.cost` on a
program that is partitioned already; beside it
that of the whole way from the propagated program. `--write` puts the table into docs/cost.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import NamedTuple

import pyshardy
from pyshardy.examples import transformer
from pyshardy.ir.mesh_sizes import with_mesh_sizes
from pyshardy.ir.module import Module

MESHES = {8: {"data": 4, "model": 2}, 4096: {"data": 512, "model": 8}}
LAYERS = (24, 96)
TARGETS = {24: 1.0, 96: 3.0}
"""Seconds that the estimate of a program of so many layers may take."""
GROWTH = 1.2
"""How much longer it may take for 4,096 devices than for eight: as long, but for the scatter of measurements."""
START, END = "<!-- written by python -m benchmarks.costing --write -->", "<!-- end of timings -->"
_PAGE = Path(__file__).parents[1] / "docs/cost.md"


class Timing(NamedTuple):
    """Seconds for one program on one mesh.

    Attributes:
        layers: Of the example.
        devices: Of the mesh.
        estimate: Of the estimate of a partitioned program.
        partitioned: Of partitioning it and estimating.
    """

    layers: int
    devices: int
    estimate: float
    partitioned: float


def example(layers: int) -> Module:
    """The example with so many layers, whose batch 4,096 devices can share."""
    return pyshardy.load(transformer.lower(transformer.Config(layers=layers, batch=1024)))


def timing(module: Module, layers: int, devices: int, repeat: int = 3) -> Timing:
    """Time the ways to an estimate."""
    propagation = pyshardy.propagate(with_mesh_sizes(module, MESHES[devices]))
    partition = pyshardy.partition(propagation)
    return Timing(
        layers,
        devices,
        least(lambda: pyshardy.cost(partition, "v5p"), repeat),
        least(lambda: pyshardy.cost(pyshardy.partition(propagation), "v5p"), 1),
    )


def least(run: Callable[[], object], repeat: int) -> float:
    """The least seconds of the processor that something takes."""
    found = []
    for _ in range(repeat):
        start = process_time()
        run()
        found.append(process_time() - start)
    return min(found)


def missed(timings: list[Timing]) -> list[str]:
    """What takes longer than it should."""
    found = []
    few = {one.layers: one.estimate for one in timings if one.devices == min(MESHES)}
    for one in timings:
        where = f"{one.layers} layers on {one.devices} devices take"
        if one.estimate >= TARGETS[one.layers]:
            found.append(f"{where} {one.estimate:.2f} s, more than {TARGETS[one.layers]:.0f}")
        ratio = one.estimate / few.get(one.layers, one.estimate)
        if ratio > GROWTH:
            found.append(f"{where} {ratio:.2f} times as long as on {min(MESHES)}")
    return found


def table(timings: list[Timing]) -> str:
    """The timings in Markdown."""
    lines = [
        "| layers | devices | estimate s | target | partitioned first s |",
        "|---|---|---|---|---|",
    ]
    for one in timings:
        lines.append(
            f"| {one.layers} | {one.devices:,} | {one.estimate:.2f} | {TARGETS[one.layers]:.0f} | "
            f"{one.partitioned:.2f} |"
        )
    return "\n".join(lines)


def main() -> int:
    timings = []
    for layers in LAYERS:
        module = example(layers)
        timings += [timing(module, layers, devices) for devices in MESHES]
    text = table(timings)
    print(text)
    if "--write" in sys.argv:
        head, _, rest = _PAGE.read_text().partition(START)
        _PAGE.write_text(f"{head}{START}\n{text}\n{END}{rest.partition(END)[2]}")
    for reason in missed(timings):
        print(reason)
    return 1 if missed(timings) else 0


if __name__ == "__main__":
    sys.exit(main())
