"""Peak memory of a program: how much, when, and which values are alive then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyshardy.costing.arguments import BACKWARD, CACHE, INPUTS, OPTIMIZER, PARAMETERS, argument_categories
from pyshardy.costing.compilers import ACCELERATOR, Compiler
from pyshardy.costing.flat import Flat
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernel, Kernels, all_kernels
from pyshardy.costing.lowering import lower
from pyshardy.costing.memory import Planner
from pyshardy.costing.memory_plan import MemoryPlan
from pyshardy.costing.program import CostProgram, OpOrigin, SourceLine
from pyshardy.rules.properties import PROGRAM_CONSTANTS

OUTPUTS, GRADIENTS, ACTIVATIONS = "results", "gradients", "activations"
TEMPORARIES, TABLES = "temporaries", "constants"
CATEGORIES = (PARAMETERS, OPTIMIZER, CACHE, INPUTS, OUTPUTS, GRADIENTS, ACTIVATIONS, TEMPORARIES, TABLES)
_MOST_POINTS = 512


@dataclass(frozen=True, slots=True)
class LiveValue:
    """Memory that is in use at the peak.

    Attributes:
        name: The argument or result, or JAX's name for the op that computes the value.
        category: One of `CATEGORIES`.
        shape: The shape on one device; None if it is not a single tensor.
        dtype: The element type.
        bytes: The size.
        source: The line that computes it; None for arguments, and if unknown.
        is_fixed: Whether it is there all the time: an argument, a result, or constants.
    """

    name: str
    category: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    source: SourceLine | None = None
    is_fixed: bool = False


@dataclass(frozen=True, slots=True)
class Peak:
    """The memory of one device.

    Attributes:
        bytes: The peak.
        argument_bytes: The bytes of arguments.
        output_bytes: The bytes of results, without those that reuse the memory of arguments.
        temporary_bytes: The peak of all other values.
        constant_bytes: The bytes of constant tables in the program.
        categories: The bytes at the peak by category, the largest first.
        live: The values alive at the peak, the largest first.
        curve: The bytes over the program, at regular positions.
        at: The position of the peak in the program, from 0 to 1.
    """

    bytes: int
    argument_bytes: int
    output_bytes: int
    temporary_bytes: int
    constant_bytes: int
    categories: tuple[tuple[str, int], ...]
    live: tuple[LiveValue, ...]
    curve: tuple[int, ...]
    at: float


def peak_bytes(program: CostProgram, compiler: Compiler = ACCELERATOR) -> int:
    """The peak memory of a program, in bytes."""
    return find_peak(program, lower(flatten(program, compiler), compiler), compiler, with_live=False).bytes


def find_peak(
    program: CostProgram,
    flat: Flat,
    compiler: Compiler,
    *,
    with_live: bool = True,
    block: Kernels | None = None,
    seconds_of: Callable[[Kernel], float] | None = None,
) -> Peak:
    """The memory of a program.

    Args:
        program: The program.
        flat: The same without calls, and with the ops that its compiler adds.
        compiler: What the compiler does.
        with_live: Whether to list the values alive at the peak.
        block: The kernels of `flat`, if they are known already.
        seconds_of: How long the compiler expects a kernel to take; for one that hides collectives.
    """
    block = fuse(flat, compiler) if block is None else block
    plan = Planner(flat, compiler, seconds_of).main(block, program.inputs)
    arguments, outputs, tables = fixed_bytes(program, flat, block)
    base = arguments + outputs + tables
    live = tuple(_Live(program, flat, block, plan).find()) if with_live else ()
    totals = [(name, sum(one.bytes for one in live if one.category == name)) for name in CATEGORIES]
    return Peak(
        bytes=base + plan.peak,
        argument_bytes=arguments,
        output_bytes=outputs,
        temporary_bytes=plan.peak,
        constant_bytes=tables,
        categories=tuple(sorted((pair for pair in totals if pair[1]), key=lambda pair: -pair[1])),
        live=live,
        curve=tuple(base + held for held in _thinned(plan.held)),
        at=plan.peak_at / max(1, len(plan.held) - 1),
    )


def fixed_bytes(program: CostProgram, flat: Flat, block: Kernels) -> tuple[int, int, int]:
    """The bytes that exist all the time: of arguments, of results with memory of their own, of constants."""
    arguments = sum([flat.tensors[value].bytes for value in block.arguments])
    return arguments, _output_bytes(program, flat, block), _table_bytes(flat, block)


def _output_bytes(program: CostProgram, flat: Flat, block: Kernels) -> int:
    aliased = {entry.alias for entry in program.inputs if entry.alias is not None}
    return sum(flat.tensors[value].bytes for place, value in enumerate(block.results) if place not in aliased)


def _table_bytes(flat: Flat, block: Kernels) -> int:
    """The bytes of constants, without those that have one number in all elements."""
    found = {
        value
        for kernel in all_kernels(block)
        for op in kernel.ops
        if op.kind.name in PROGRAM_CONSTANTS
        for value in op.results
        if value not in flat.uniform
    }
    return sum(flat.tensors[value].bytes for value in found)


def _thinned(held: Sequence[int]) -> Iterable[int]:
    """At most so many points of a curve, each the highest of those that it stands for."""
    step = -(-len(held) // _MOST_POINTS)
    return [max(held[start : start + step]) for start in range(0, len(held), step)] if step > 1 else held


class _Live:
    """Finds the values alive at the peak, also inside the kernel where the peak is."""

    def __init__(self, program: CostProgram, flat: Flat, block: Kernels, plan: MemoryPlan) -> None:
        self.program, self.flat, self.block, self.plan = program, flat, block, plan
        self.makers: dict[int, Kernel] = {}
        self.readers: dict[int, Kernel] = {}

    def find(self) -> list[LiveValue]:
        categories = argument_categories(self.program.inputs, self.flat)
        found = [
            self._value(entry.name, category, value, is_fixed=True)
            for entry, value, category in zip(self.program.inputs, self.block.arguments, categories)
        ]
        aliased = {entry.alias for entry in self.program.inputs if entry.alias is not None}
        for place, (name, value) in enumerate(zip(self.program.outputs, self.block.results)):
            if place not in aliased:
                found.append(self._value(name, OUTPUTS, value, is_fixed=True))
        tables = _table_bytes(self.flat, self.block)
        if tables:
            found.append(LiveValue("constants", TABLES, None, "", tables, is_fixed=True))
        self._add(self.plan, found)
        return sorted(found, key=lambda one: (-one.bytes, one.name))

    def _value(
        self, name: str, category: str, value: int, place: OpOrigin | None = None, is_fixed: bool = False
    ) -> LiveValue:
        tensor = self.flat.tensors[value]
        return LiveValue(
            name, category, tensor.shape, tensor.dtype, tensor.bytes, None if place is None else place.source, is_fixed
        )

    def _add(self, plan: MemoryPlan, found: list[LiveValue]) -> None:
        at = plan.peak_at
        for kernel in plan.kernels:
            self.makers.update((value, kernel) for value in kernel.writes)
            self.readers.update((value, kernel) for value in kernel.reads)
        made = {value for kernel in plan.kernels[: at + 1] for value in kernel.writes}
        for buffer in plan.buffers:
            if buffer.start <= at <= buffer.end:
                values = [value for value in buffer.values if value in made]
                found.append(self._temporary(values[-1] if values else buffer.values[0]))
        if at in plan.inner:
            self._add(max(plan.inner[at], key=lambda inner: inner.peak), found)

    def _temporary(self, value: int) -> LiveValue:
        maker, reader = self.makers.get(value), self.readers.get(value)
        place = None if maker is None else maker.root.place
        scope = None if place is None else place.scope
        last = None if reader is None or reader.root.place is None else reader.root.place.scope
        if scope is not None and BACKWARD in scope:
            category = GRADIENTS
        elif last is not None and BACKWARD in last:
            category = ACTIVATIONS
        else:
            category = TEMPORARIES
        name = scope or ("a value" if maker is None else maker.root.kind.name.partition(".")[2])
        return self._value(name, category, value, place)
