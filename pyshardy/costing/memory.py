"""Plans the memory of a program: when values are alive, and which memory they share.

Arguments and results have memory of their own, or share it where arguments are donated. An intermediate value lives
from the kernel that computes it to the last kernel that reads it. It may reuse the memory of an operand that dies
there, or of a result that is written later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pyshardy.costing.compilers import Compiler
from pyshardy.costing.flat import Flat
from pyshardy.costing.heap import heap_bytes
from pyshardy.costing.hiding import hidden, is_beside
from pyshardy.costing.kernels import UPDATING, Kernel, Kernels
from pyshardy.costing.late_loops import with_late_loops
from pyshardy.costing.memory_plan import Buffer, MemoryPlan
from pyshardy.costing.order import ordered
from pyshardy.costing.overwriting import with_copies
from pyshardy.costing.program import CostInput, CostTensor
from pyshardy.costing.tiles import tiled_values
from pyshardy.rules.properties import PROGRAM_CONSTANTS

_SMALL_PART = 100_000
"""A buffer smaller than this fraction of all is not put into the memory of results: that would save nothing."""


class _Slot:
    """Memory that exists all the time, with the intervals in which it is in use."""

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self.busy: list[tuple[int, int, int]] = []
        self.mask = 0

    def take(self, start: int, end: int, value: int) -> None:
        """Use the memory for a value from one kernel to another; -1 is before the first kernel."""
        self.busy.append((start, end, value))
        self.mask |= ((1 << (end - start + 1)) - 1) << (start + 1)

    def takes(self, start: int, end: int, shared: Iterable[int]) -> bool:
        """Whether the memory is free. In one kernel a value may follow another only if the kernel works in place."""
        for first, last, value in self.busy:
            if start <= last and first <= end:
                is_handed_on = (last == start and value in shared) or (first == end and -1 in shared)
                if not is_handed_on:
                    return False
        return True


class Planner:
    """Plans the memory of the blocks of a program.

    Args:
        flat: The program.
        compiler: What the compiler does.
        seconds_of: How long the compiler expects a kernel to take; for one that hides collectives.
    """

    def __init__(self, flat: Flat, compiler: Compiler, seconds_of: Callable[[Kernel], float] | None = None) -> None:
        self.seconds_of = seconds_of if compiler.hides else None
        self.tensors, self.compiler = list(flat.tensors), compiler
        self.constants = flat.constants
        self.tiled: Mapping[int, int] = {}

    def main(self, block: Kernels, inputs: Sequence[CostInput]) -> MemoryPlan:
        """The plan of the main function, whose results may reuse the memory of donated arguments."""
        if self.compiler.tiles:
            self.tiled = tiled_values(block, self.tensors)
        aliases = {entry.alias: place for place, entry in enumerate(inputs) if entry.alias is not None}
        slots: list[tuple[int, int | None]] = []
        homes: dict[int, int] = {}
        for place, value in enumerate(block.results):
            argument = block.arguments[aliases[place]] if place in aliases else None
            slots.append((self.size(value), argument))
            homes.setdefault(value, place)
        plan = self._plan(block, slots, homes)
        if not self.compiler.packs:
            return plan
        return plan._replace(
            packed=heap_bytes(plan, [tensor.bytes for tensor in self.tensors], self.compiler.alignment)
        )

    def size(self, value: int) -> int:
        """The bytes of a value, rounded up to tiles and to the alignment."""
        alignment = self.compiler.alignment
        return -(-self.tiled.get(value, self.tensors[value].bytes) // alignment) * alignment

    def _new(self, tensor: CostTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def _inner(self, kernel: Kernel) -> tuple[MemoryPlan, ...]:
        """The plans of the blocks inside a loop or a conditional."""
        plans = []
        for place, block in enumerate(kernel.inner):
            is_body = kernel.root.is_loop and place == 1
            slots: list[tuple[int, int | None]] = []
            homes: dict[int, int] = {}
            if is_body or not kernel.root.is_loop:
                for index, value in enumerate(block.results):
                    slots.append((self.size(value), block.arguments[index] if is_body else None))
                    homes.setdefault(value, index)
            plans.append(self._plan(block, slots, homes))
        return tuple(plans)

    def _hidden(self, kernels: Sequence[Kernel], kept: Collection[int]) -> tuple[Sequence[Kernel], Mapping[int, int]]:
        """Kernels in the order in which collectives hide behind them, and where each of these collectives has ended."""
        ends: Mapping[int, int] = {}
        hides = self.compiler.hides
        if self.seconds_of is not None and any(is_beside(kernel, hides) for kernel in kernels):
            saved = {value for one in kernels for value in one.writes}.difference(kept) if self.compiler.saves else None
            kernels, ends = hidden(kernels, [self.seconds_of(kernel) for kernel in kernels], self.size, hides, saved)
        return with_late_loops(kernels, ends) if self.compiler.delays_loops else (kernels, ends)

    def _plan(self, block: Kernels, slots: list[tuple[int, int | None]], homes: dict[int, int]) -> MemoryPlan:
        kernels: Sequence[Kernel] = block.kernels
        if self.compiler.copies_overwritten:
            pairs = [(argument, value) for (_, argument), value in zip(slots, block.results) if argument is not None]
            kernels, moved = with_copies(kernels, pairs, self.tensors, self._new)
            homes = {moved.get(value, value): place for value, place in homes.items()}
            block = block._replace(results=tuple([moved.get(value, value) for value in block.results]))
        kept = {*block.results, *block.arguments}
        kernels = ordered(kernels, self.compiler.order, self.size, kept, block.arguments)
        kernels, ends = self._hidden(kernels, kept)
        end = len(kernels)
        inner = {at: self._inner(kernel) for at, kernel in enumerate(kernels) if kernel.inner}
        last: dict[int, int] = {}
        made: dict[int, int] = {}
        for at, kernel in enumerate(kernels):
            for value in kernel.reads:
                last[value] = at
            for value in kernel.writes:
                made[value] = at
        for at, after in ends.items():  # a collective holds what it reads until it ends, where its result is not there
            for value in kernels[at].reads:
                if value not in kernels[at].in_place or last[value] > at:
                    last[value] = max(last[value], after - 1)
        for value in block.results:
            last[value] = end
        places = _Places(self, kernels, made, last, end)
        fixed = places.slots(slots, homes)
        buffers = places.buffers(fixed)
        held = [0] * (end + 1)
        for buffer in buffers:
            held[buffer.start] += buffer.bytes
            if buffer.end + 1 <= end:
                held[buffer.end + 1] -= buffer.bytes
        total = 0
        for at, change in enumerate(held):
            total += change
            held[at] = total
        for at, plans in inner.items():
            held[at] += max((plan.peak for plan in plans), default=0)
        return MemoryPlan(tuple(kernels), tuple(buffers), tuple(held), inner)


class _Places:
    """Chooses memory for the values of one block."""

    def __init__(
        self, planner: Planner, kernels: Sequence[Kernel], made: dict[int, int], last: dict[int, int], end: int
    ) -> None:
        self.planner, self.kernels, self.made, self.last, self.end = planner, kernels, made, last, end
        self.is_placed: set[int] = set()
        parts = planner.compiler.in_parts
        made_in_parts = [] if parts is None else [one for one in kernels if _is_in_parts(one, parts)]
        self.parts = frozenset(value for one in made_in_parts for value in one.writes)

    def _in_place(self, kernel: Kernel) -> frozenset[int]:
        """The operands in whose memory a kernel may write; a slice or a scatter updates what it has to."""
        return kernel.in_place if kernel.root.kind.name in UPDATING else kernel.in_place - self.parts

    def slots(self, slots: list[tuple[int, int | None]], homes: Mapping[int, int]) -> list[_Slot]:
        """The memory that exists all the time, with results in theirs where possible."""
        found = []
        for size, argument in slots:
            slot = _Slot(size)
            if argument is not None and argument in self.last:
                slot.take(-1, self.last[argument], argument)
            found.append(slot)
        for value, place in homes.items():
            if value not in self.made:
                continue
            start = self.made[value]
            if found[place].takes(start, self.end, self._in_place(self.kernels[start])):
                found[place].take(start, self.end, value)
                self.is_placed.add(value)
        return found

    def buffers(self, fixed: Sequence[_Slot]) -> list[Buffer]:
        """The memory of all other values; the largest ones take free slots first."""
        found = self._chains()
        small = sum(buffer.bytes for buffer in found) // _SMALL_PART
        slots = sorted(fixed, key=lambda slot: slot.bytes)
        always = ((1 << (self.end + 1)) - 1) << 1
        free = [slot for slot in slots if slot.mask & always != always]
        rest = []
        for buffer in sorted(found, key=lambda one: (-one.bytes, one.start)):
            slot = None if buffer.bytes < small else self._slot(buffer, slots, free)
            if slot is None:
                rest.append(buffer)
            else:
                slot.take(buffer.start, buffer.end, buffer.values[-1])
        return sorted(rest, key=lambda one: (one.start, one.values))

    def _slot(self, buffer: Buffer, slots: Sequence[_Slot], free: Sequence[_Slot]) -> _Slot | None:
        """The smallest slot that is free for a buffer; only those in `free` are not always taken."""
        shared = self._in_place(self.kernels[buffer.start])
        if buffer.end < self.end and buffer.values[-1] in self._in_place(self.kernels[buffer.end]):
            shared = shared | {-1}
        inside = ((1 << (buffer.end - buffer.start + 1)) - 1) << (buffer.start + 1)
        if shared:  # at its ends a buffer may meet another one that is handed on
            inside &= ~((1 << (buffer.start + 1)) | (1 << (buffer.end + 1)))
        slots = free if inside else slots
        for place in range(bisect_left(slots, buffer.bytes, key=lambda slot: slot.bytes), len(slots)):
            slot = slots[place]
            if not slot.mask & inside and (not shared or slot.takes(buffer.start, buffer.end, shared)):
                return slot
        return None

    def _chains(self) -> list[Buffer]:
        """The chains of values that reuse one another's memory."""
        ends: dict[int, list[int]] = {}
        chains: list[list[int]] = []
        for at, kernel in enumerate(self.kernels):
            for index, value in enumerate(kernel.writes):
                if value in self.is_placed or kernel.root.kind.name in PROGRAM_CONSTANTS:
                    continue
                previous = self._taken_over(kernel, index, value, at, ends)
                if previous is None:
                    chains.append([value])
                    ends[value] = chains[-1]
                else:
                    chain = ends.pop(previous)
                    chain.append(value)
                    ends[value] = chain
        return [self._buffer(chain) for chain in chains]

    def _taken_over(self, kernel: Kernel, index: int, value: int, at: int, ends: Mapping[int, list[int]]) -> int | None:
        """The operand whose memory a result reuses."""
        if kernel.root.is_loop:
            candidates: Iterable[int] = kernel.root.operands[index : index + 1]
            operands = kernel.root.operands
            if operands.index(operands[index]) < index:  # another part of the state starts from the value itself
                return None
        else:
            candidates = sorted(self._in_place(kernel))
        size = self.planner.size(value)
        for operand in candidates:
            if operand in ends and self.last.get(operand) == at and self.planner.size(operand) == size:
                return operand
        return None

    def _buffer(self, chain: list[int]) -> Buffer:
        start, last = self.made[chain[0]], self.made[chain[-1]]
        end = max(last, self.last.get(chain[-1], last))
        return Buffer(tuple(chain), self.planner.size(chain[-1]), start, min(end, self.end))


def _is_in_parts(kernel: Kernel, names: Collection[str]) -> bool:
    """Whether a compiler returns what a kernel writes as one of several results."""
    return len(kernel.writes) > 1 or bool(kernel.inner) or kernel.root.kind.name in names
