"""Estimates the time of a single kernel: its arithmetic or its memory traffic, whichever takes longer."""

from __future__ import annotations

from enum import Enum
from math import ceil, floor, log2
from typing import NamedTuple

from pyshardy.costing.hardware import Hardware
from pyshardy.costing.kernels import Kernel
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.costing.work import Work, is_cumulative, work_of
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import CUSTOM_CALL

_SLICING = frozenset(op_names("stablehlo.", "slice dynamic_slice gather"))
_UPDATING = frozenset(op_names("stablehlo.", "dynamic_update_slice scatter"))


class Bound(Enum):
    """What limits the time of a kernel."""

    MATRIX = "products"
    VECTOR = "other arithmetic"
    MEMORY = "memory traffic"
    FLOOR = "launching kernels"


class Price(NamedTuple):
    """The cost of one run of a kernel.

    Attributes:
        seconds: The time.
        flops: The floating-point operations.
        transcendentals: The evaluations of functions such as the exponential.
        bytes: The bytes read and written.
        bound: What limits the time.
        is_known: Whether the cost of all its ops is known.
    """

    seconds: float
    flops: float
    transcendentals: float
    bytes: int
    bound: Bound
    is_known: bool


def multiplied(kind: CostKind) -> str:
    """The element type that an op multiplies: that of its first operand; in a kernel, of its first with numbers.

    Kernels often have operands first that say where their data lies.
    """
    types = [tensor.dtype for tensor in kind.operands]
    if kind.name != CUSTOM_CALL:
        return types[0]
    return next((dtype for dtype in types if dtype.startswith(("f", "bf"))), types[0] if types else "f32")


class Roofline:
    """The cost of kernels on a chip; equal kernels on the same shapes are priced once.

    Args:
        hardware: The chip.
        tensors: The type of every value.
    """

    def __init__(self, hardware: Hardware, tensors: list[CostTensor]) -> None:
        self.hardware, self.tensors = hardware, tensors
        self._work: dict[CostKind, Work] = {}
        self._found: dict[tuple[object, ...], Price] = {}
        self._rates: dict[str, float] = {}

    def price(self, kernel: Kernel) -> Price:
        """The cost of a kernel without inner blocks or collectives."""
        reads = [(value, self.tensors[value]) for value in kernel.reads]
        written = [self.tensors[value].bytes for value in kernel.writes]
        key = (tuple([op.kind for op in kernel.ops]), tuple([tensor.bytes for _, tensor in reads]), tuple(written))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._price(kernel)
        return found

    def work(self, kind: CostKind) -> Work:
        """The work of an op, computed once per kind."""
        found = self._work.get(kind)
        if found is None:
            found = self._work[kind] = work_of(kind)
        return found

    def _price(self, kernel: Kernel) -> Price:
        hardware = self.hardware
        matrix = vector = hard = solver = matrix_s = 0.0
        is_known = True
        for op in kernel.ops:
            work = self.work(op.kind)
            is_known = is_known and work.is_known
            hard += work.transcendentals
            if work.is_solver:
                solver += work.flops
            elif work.is_matrix:
                matrix += work.flops
                matrix_s += work.flops / (self._rate(multiplied(op.kind)) * hardware.matrix_efficiency)
            else:
                vector += work.flops
        moved = round(self.work(kernel.root.kind).bytes) or self._bytes(kernel)
        memory_s = moved * self._passes(kernel.root.kind) / hardware.bytes_per_s(is_product=bool(matrix))
        rate = hardware.vector_flops_per_s
        vector_s = 0.0 if rate is None else (vector + hard + solver / hardware.solver_efficiency) / rate
        times = ((matrix_s, Bound.MATRIX), (vector_s, Bound.VECTOR), (memory_s, Bound.MEMORY))
        seconds, bound = max(times, key=lambda pair: pair[0])
        if seconds < hardware.kernel_floor_s:
            seconds, bound = hardware.kernel_floor_s, Bound.FLOOR
        if not moved and not matrix and not vector and not hard and not solver:
            seconds = 0.0
        return Price(seconds, matrix + vector + solver, hard, moved, bound, is_known)

    def _rate(self, dtype: str) -> float:
        if dtype not in self._rates:
            self._rates[dtype] = self.hardware.matrix_flops_per_s(dtype)
        return self._rates[dtype]

    def _passes(self, kind: CostKind) -> float:
        """How often a kernel moves what it reads and writes through memory."""
        if kind.name == "stablehlo.sort" and kind.operands:
            return self._sort_passes(kind)
        return self.hardware.scan_passes / 2 if is_cumulative(kind) else 1.0

    def _sort_passes(self, kind: CostKind) -> float:
        """The passes of a bitonic sort: steps over distances within a tile share one pass, others take one each.

        XLA sorts the positions along with a single array, so that equal elements keep their order.
        """
        tile = self.hardware.sort_tile_bytes
        dim: int = kind.fact("dimension", -1)  # type: ignore[assignment]
        length = (kind.operands[0].shape or (1,))[dim]
        if tile is None or length < 2:
            return 1.0
        size = sum(tensor.bytes for tensor in kind.operands) / max(1, kind.operands[0].elements)
        more = 4.0 if len(kind.operands) == 1 else 0.0
        stages, near = ceil(log2(length)), floor(log2(tile / (size + more)))
        return (size + more) / size * (1 + sum(stage - near + 1 for stage in range(near + 1, stages + 1)))

    def _bytes(self, kernel: Kernel) -> int:
        """The bytes that a kernel reads and writes; for slices and updates in place, only the parts that it touches."""
        read = dict.fromkeys(kernel.reads, 0)
        for op in kernel.ops:
            for place, value in enumerate(op.operands):
                if value in read:
                    read[value] += self._read_by(op, place, value)
        moved = sum(min(count, self.tensors[value].bytes) for value, count in read.items())
        root = kernel.root
        if root.kind.name in _UPDATING:
            if root.operands[0] not in read:  # the kernel writes what it updates
                moved += self.tensors[root.results[0]].bytes
            return moved + min(self.tensors[root.results[0]].bytes, root.kind.operands[-1].bytes + _update_bytes(root))
        return moved + sum(self.tensors[value].bytes for value in kernel.writes)

    def _read_by(self, op: CostOp, place: int, value: int) -> int:
        if op.kind.name in _SLICING and place == 0:
            return op.kind.results[0].bytes
        if op.kind.name in _UPDATING and place == 0:
            return 0
        return self.tensors[value].bytes


def _update_bytes(op: CostOp) -> int:
    """The bytes that an op writes into its first operand."""
    place = 1 if op.kind.name == "stablehlo.dynamic_update_slice" else -1
    return op.kind.operands[place].bytes
