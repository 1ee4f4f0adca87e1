"""Finds the products that XLA for TPUs cuts into parts which travel in permutes: windowed products.

Such a product stands beside an all-gather of an operand, or a reduce-scatter of its result, over all devices. The
partitioner makes a loop of it if the product takes about as long as sending one part, or longer, and no other op needs
what is gathered. That, and the numbers below, were seen in programs that it partitioned
(`tests/compilers/test_windowed.py`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from pyshardy.costing.product_dims import product_dims
from pyshardy.costing.program import CostBlock, CostOp, CostProgram, uses_of, with_blocks
from pyshardy.costing.windowed_loops import PARTS_PER_ROUND, Loops
from pyshardy.costing.work import is_product, work_of

_SIZES = range(8, 33, PARTS_PER_ROUND)
"""The numbers of devices whose products are cut."""
_GATHER, _SCATTER = "stablehlo.all_gather", "stablehlo.reduce_scatter"
_DIM = {_GATHER: "all_gather_dim", _SCATTER: "scatter_dimension"}


def with_windowed_products(program: CostProgram, flops_per_byte: float) -> CostProgram:
    """The program with loops of permutes for products beside gathers and scatters.

    Args:
        program: The program of one device, as `pyshardy` partitioned it.
        flops_per_byte: A product is cut if it has as many operations for each byte of a part.
    """
    if program.devices not in _SIZES:
        return program
    cutting = _Cutting(program, flops_per_byte)
    found = with_blocks(program, cutting.block)
    return found if found is program else replace(found, tensors=tuple(cutting.loops.tensors))


class _Moved(NamedTuple):
    """A gather or a scatter over all devices, along one dimension."""

    op: CostOp
    dim: int
    part_bytes: int


class _Cutting:
    def __init__(self, program: CostProgram, flops_per_byte: float) -> None:
        self.loops = Loops(list(program.tensors))
        self.devices, self.flops_per_byte = program.devices, flops_per_byte

    def block(self, block: CostBlock) -> CostBlock:
        """A block with loops instead of the products that are cut."""
        moved = [one for op in block.ops if (one := self._moved(op)) is not None]
        if not moved:
            return block
        uses = uses_of(block)
        gathered = Counter(one.op.operands[0] for one in moved if one.op.kind.name == _GATHER)
        gathers, scatters = {}, {}
        for one in moved:
            (before,), (after,) = one.op.operands, one.op.results
            if one.op.kind.name == _SCATTER and uses[before] == 1:
                scatters[before] = one
            elif one.op.kind.name == _GATHER and uses[after] == 1 == gathered[before]:
                gathers[after] = one
        instead: dict[int, tuple[CostOp, ...]] = {}
        for op in block.ops:
            if len(op.operands) == 2 and is_product(op.kind):
                instead.update(self._instead(op, gathers, scatters))
        if not instead:
            return block
        ops = [one for op in block.ops for one in (instead.get(op.results[0], (op,)) if op.results else (op,))]
        return block._replace(ops=tuple(ops))

    def _moved(self, op: CostOp) -> _Moved | None:
        """A collective over all devices; None for any other op."""
        traffic = op.traffic
        if op.kind.name not in _DIM or traffic is None or traffic.group_size != self.devices or len(op.results) != 1:
            return None
        dim = op.kind.fact(_DIM[op.kind.name])
        assert isinstance(dim, int)
        return _Moved(op, dim, min(traffic.bytes_before, traffic.bytes_after))

    def _instead(
        self, product: CostOp, gathers: dict[int, _Moved], scatters: dict[int, _Moved]
    ) -> dict[int, tuple[CostOp, ...]]:
        """The ops instead of a product and of the collective beside it, by their results; empty if they stay."""
        dims, flops, (result,) = product_dims(product.kind), work_of(product.kind).flops, product.results
        for place, value in enumerate(product.operands):
            found = gathers.get(value)
            if found is not None and self._is_worth(flops, found) and any(one[place] == found.dim for one in dims):
                return {value: (), result: self.loops.of_gather(product, found.op, place, found.dim)}
        found = scatters.get(result)
        free = [one[2] for one in dims if None in one[:2]]  # a batch dimension of both operands is not cut for a sum
        if found is not None and self._is_worth(flops, found) and found.dim in free:
            return {result: (), found.op.results[0]: self.loops.of_scatter(product, found.op, found.dim)}
        return {}

    def _is_worth(self, flops: float, moved: _Moved) -> bool:
        """Whether a product takes as long as sending one part."""
        return flops >= self.flops_per_byte * moved.part_bytes > 0
