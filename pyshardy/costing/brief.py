"""Time and memory of a program without the tables of `estimate`, for comparing many programs.

A program with many equal layers may have three of them: the first, the last, and one that stands for all in between.
Every further layer adds the time of the one in between, and the memory that it keeps for later. What gradients need
that run late, to hide collectives, is that of the three layers: it does not grow with the layers for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.compilers import Compiler, assumed
from pyshardy.costing.counting import count_kernels
from pyshardy.costing.estimate import straggling
from pyshardy.costing.flat import Flat
from pyshardy.costing.joining import joined
from pyshardy.costing.kernels import Kernel, Kernels
from pyshardy.costing.launches import launches_of
from pyshardy.costing.memory import Planner
from pyshardy.costing.memory_plan import MemoryPlan
from pyshardy.costing.peak import fixed_bytes
from pyshardy.costing.program import CostInput, CostOp, CostProgram
from pyshardy.costing.topology import Topology


class Brief(NamedTuple):
    """Time and memory of a program.

    Attributes:
        seconds: The time of one run.
        bytes: The peak memory, without holes between buffers.
        communication_seconds: The time of all collectives, with waiting for the slowest device.
    """

    seconds: float
    bytes: float
    communication_seconds: float = 0.0


class Part(NamedTuple):
    """The position of an op in the layers.

    Attributes:
        op: A number that the same op has in all layers of a stretch.
        more: The number of further layers that the layer of the op stands for; 0 if it stands for itself only.
    """

    op: int
    more: int


NOWHERE = Part(-1, 0)
"""The position of an op outside all layers."""
_MOST_OPS = 1 << 32
"""Ops without a known position have numbers further from 0 than this."""
PartOf = Callable[[CostOp], Part | None]


def brief_estimate(
    program: CostProgram,
    topology: Topology,
    model: CollectiveModel = CollectiveModel.FORMULA,
    compiler: Compiler | None = None,
    part_of: PartOf = lambda op: NOWHERE,
) -> Brief:
    """Time and memory of one run of a program.

    Args:
        program: The program of one device.
        topology: The chip, and where the mesh lies.
        model: The model of collectives.
        compiler: What the compiler does; by default, the compiler that is assumed for the chip.
        part_of: The position of an op; None if it is where its operands are.
    """
    compiler = compiler or assumed(topology.hardware)
    launches = launches_of(program, topology, model, replace(compiler, joins=frozenset()))
    program, flat, block = launches.program, launches.flat, launches.block
    scheduler = launches.scheduler()
    parts = _parts(block.kernels, part_of)
    counts = sorted({part.more for part in parts if part.more})
    left_out = [frozenset(at for at, part in enumerate(parts) if part.more == count) for count in counts]
    blocks = [(block, program.inputs), *(_without(block, program.inputs, parts, kernels) for kernels in left_out)]
    whole, *others = [joined(one, compiler.joins, compiler.joined_bytes) for one, _ in blocks]
    totals, *shorter = [scheduler.block(one) for one in (whole, *others)]
    seconds, sending = totals.seconds, totals.communication_seconds
    for count, less in zip(counts, shorter):
        seconds += count * (totals.seconds - less.seconds)
        sending += count * (totals.communication_seconds - less.communication_seconds)
    waiting = seconds * straggling(count_kernels(block), topology)
    seconds, sending = seconds + waiting, sending + waiting
    base = sum(fixed_bytes(program, flat, block)) + _further_bytes(program, flat, block, parts)
    if not counts:
        return Brief(
            seconds, base + Planner(flat, compiler, scheduler.kernel).main(whole, program.inputs).peak, sending
        )
    plans = [Planner(flat, replace(compiler, hides=frozenset())).main(*one) for one in blocks]
    late = 0
    if compiler.hides:
        late = Planner(flat, compiler, scheduler.kernel).main(whole, program.inputs).peak - plans[0].peak
    return Brief(seconds, base + _peak(plans, counts) + max(0, late), sending)


def _without(
    block: Kernels, inputs: Sequence[CostInput], parts: Sequence[Part], left_out: Collection[int]
) -> tuple[Kernels, list[CostInput]]:
    """A block without some kernels and their results, with what is known of its arguments.

    Kernels that read these results read those of the previous layer instead.
    """
    latest: dict[int, Kernel] = {}
    instead: dict[int, int] = {}
    kept = []
    for at, (kernel, part) in enumerate(zip(block.kernels, parts)):
        if at in left_out:
            before = latest.get(part.op)
            instead.update(zip(kernel.writes, () if before is None else before.writes))
            continue
        latest[part.op] = kernel
        if not instead.keys().isdisjoint(kernel.reads):
            kernel = kernel._replace(reads=tuple([instead.get(value, value) for value in kernel.reads]))
        kept.append(kernel)
    made = {value for at in left_out for value in block.kernels[at].writes}
    results = [place for place, value in enumerate(block.results) if value not in made]
    place_of = {place: new for new, place in enumerate(results)}
    aliases = [None if entry.alias is None else place_of.get(entry.alias) for entry in inputs]
    kept_block = block._replace(kernels=tuple(kept), results=tuple([block.results[place] for place in results]))
    return kept_block, [entry._replace(alias=alias) for entry, alias in zip(inputs, aliases)]


def _parts(kernels: Sequence[Kernel], part_of: PartOf) -> list[Part]:
    """The position of every kernel; if it is unknown, that of the kernels it reads from, else of those that read it."""
    own = [part_of(kernel.root) for kernel in kernels]
    reader: dict[int, Part] = {}
    for kernel, part in zip(reversed(kernels), reversed(own)):
        if part is not None:
            reader.update((value, part) for value in kernel.reads)
    maker: dict[int, Part] = {}
    found = []
    nearby = 0
    for kernel, part in zip(kernels, own):
        nearby = nearby + 1 if part is None else 0
        if part is None:
            part = next((maker[value] for value in reversed(kernel.reads) if value in maker), None)
            if part is None:
                part = next((reader[value] for value in kernel.writes if value in reader), NOWHERE)
            part = part._replace(op=-nearby * _MOST_OPS - part.op)
        found.append(part)
        maker.update((value, part) for value in kernel.writes)
    return found


def _further_bytes(program: CostProgram, flat: Flat, block: Kernels, parts: Sequence[Part]) -> float:
    """The arguments and results of the layers for which one stands."""
    more: dict[int, int] = {}
    made: dict[int, int] = {}
    for kernel, part in zip(block.kernels, parts):
        more.update((value, min(part.more, more.get(value, part.more))) for value in kernel.reads)
        made.update((value, part.more) for value in kernel.writes)
    aliased = {entry.alias for entry in program.inputs if entry.alias is not None}
    arguments = sum(flat.tensors[value].bytes * more.get(value, 0) for value in block.arguments)
    return arguments + sum(
        flat.tensors[value].bytes * made.get(value, more.get(value, 0))
        for place, value in enumerate(block.results)
        if place not in aliased
    )


def _peak(plans: Sequence[MemoryPlan], counts: Sequence[int]) -> float:
    """The peak memory beside arguments and results; every further layer adds what the one in the middle adds.

    Args:
        plans: The memory of the program, and of the program without the middle layers of each count.
        counts: The number of further layers that each of these stands for.
    """
    whole, *others = plans
    held = list(whole.held)
    places = {kernel.writes: at for at, kernel in enumerate(whole.kernels)}
    places[()] = len(whole.kernels)
    for plan, count in zip(others, counts):
        added = [0] * len(held)
        for kernel, less in zip((*plan.kernels, None), plan.held):
            at = places[kernel.writes if kernel is not None else ()]
            added[at] = max(0, count * (whole.held[at] - less))
        held = [one + more for one, more in zip(held, added)]
    return max(held)
