"""Finds the collectives that XLA for TPUs makes permutes of, beside a product that it cuts into parts.

Such a windowed product stands beside an all-gather of an operand, or a reduce-scatter of its result, over all devices.
The partitioner makes a loop of it if the product takes about as long as sending one part, or longer, and no other op
needs what is gathered. That, and the numbers below, were seen in programs that it partitioned
(`tests/compilers/test_windowed.py`).

Only the names of the collectives change. What the loop takes is not known from measurements: it is priced as the
collective and the product that it is made of.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.scopes import is_gradient
from pyshardy.costing.product_dims import product_dims
from pyshardy.costing.program import (
    CostBlock,
    CostOp,
    CostProgram,
    OpOrigin,
    OpTraffic,
    SourceLine,
    uses_of,
    with_blocks,
)
from pyshardy.costing.work import is_product, work_of

_SIZES = range(8, 33, 4)
"""The numbers of devices whose products are cut: each round of a loop multiplies four parts."""
_GATHER, _SCATTER = "stablehlo.all_gather", "stablehlo.reduce_scatter"
_DIM = {_GATHER: "all_gather_dim", _SCATTER: "scatter_dimension"}


@dataclass(frozen=True, slots=True)
class WindowedOrigin:
    """The origin of a collective of which permutes are made.

    Attributes:
        collective: The origin of the collective.
        windowed: The kind of the collective, such as "all_gather".
        cause: What the permutes are a part of, and for which op, in words.
        count: How many permutes a run takes.
        sent_bytes: The bytes that a device sends for all of them. In these loops f32 stays f32, whatever reads it.
    """

    collective: OpOrigin
    windowed: str
    cause: str
    count: int
    sent_bytes: int

    @property
    def scope(self) -> str | None:
        """JAX's name for the collective."""
        return self.collective.scope

    @property
    def source(self) -> SourceLine | None:
        """The user's line."""
        return self.collective.source


def with_windowed_products(program: CostProgram, flops_per_byte: float) -> CostProgram:
    """The program with a `WindowedOrigin` for each collective of which the partitioner makes permutes.

    Args:
        program: The program of one device, as `pyshardy` partitioned it.
        flops_per_byte: A product is cut if it has as many operations for each byte of a part.
    """
    if program.devices not in _SIZES:
        return program
    return with_blocks(program, _Cutting(program.devices, flops_per_byte).block)


class _Moved(NamedTuple):
    """A gather or a scatter over all devices, along one dimension."""

    op: CostOp
    dim: int
    part_bytes: int


class _Cutting:
    def __init__(self, devices: int, flops_per_byte: float) -> None:
        self.devices, self.flops_per_byte = devices, flops_per_byte

    def block(self, block: CostBlock) -> CostBlock:
        """A block with other origins of its collectives; the same if no product is cut."""
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
        instead: dict[int, CostOp] = {}
        for op in block.ops:
            if len(op.operands) == 2 and is_product(op.kind):
                found = self._beside(op, gathers, scatters)
                if found is not None:
                    instead[found.results[0]] = found._replace(place=_origin(found, op))
        if not instead:
            return block
        return block._replace(ops=tuple([instead.get(op.results[0], op) if op.results else op for op in block.ops]))

    def _moved(self, op: CostOp) -> _Moved | None:
        """A collective over all devices; None for any other op."""
        traffic = op.traffic
        if op.kind.name not in _DIM or traffic is None or traffic.group_size != self.devices or len(op.results) != 1:
            return None
        dim = op.kind.fact(_DIM[op.kind.name])
        assert isinstance(dim, int)
        return _Moved(op, dim, _part_bytes(traffic))

    def _beside(self, product: CostOp, gathers: dict[int, _Moved], scatters: dict[int, _Moved]) -> CostOp | None:
        """The collective that is cut with a product; None if the product stays whole."""
        dims, flops = product_dims(product.kind), work_of(product.kind).flops
        for place, value in enumerate(product.operands):
            found = gathers.get(value)
            if found is not None and self._is_worth(flops, found) and any(one[place] == found.dim for one in dims):
                return found.op
        found = scatters.get(product.results[0])
        free = [one[2] for one in dims if None in one[:2]]  # a batch dimension of both operands is not cut for a sum
        return found.op if found is not None and self._is_worth(flops, found) and found.dim in free else None

    def _is_worth(self, flops: float, moved: _Moved) -> bool:
        """Whether a product takes as long as sending one part."""
        return flops >= self.flops_per_byte * moved.part_bytes > 0


def _part_bytes(traffic: OpTraffic) -> int:
    return min(traffic.bytes_before, traffic.bytes_after)


def _origin(moved: CostOp, product: CostOp) -> OpOrigin | None:
    """The origin of a collective that is cut with a product, named as for the program that a compiler partitioned.

    One part more is sent than there are devices: both ways around a ring, and once to bring two parts together.
    """
    assert moved.traffic is not None
    if moved.place is None:
        return None
    scope = None if product.place is None else product.place.scope
    name = product.kind.name.rpartition(".")[2] if scope is None else scope.rpartition("/")[2]
    cause = f"windowed {moved.traffic.kind} of {name}" + " in the gradient" * is_gradient(scope)
    count = moved.traffic.group_size + 1
    return WindowedOrigin(moved.place, moved.traffic.kind, cause, count, count * _part_bytes(moved.traffic))
