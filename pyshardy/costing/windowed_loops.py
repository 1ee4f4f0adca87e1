"""Builds the loop of a windowed product: permutes that pass parts on, and products of the parts.

The parts travel in both directions of a ring. Each round multiplies four parts, two at a time, while the next ones are
on their way. One permute more brings the first two parts together, or adds the last ones.

In a program, one op stands for the loop. Equal loops are built once, when kernels are known.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pyshardy.core.scopes import is_gradient
from pyshardy.costing.product_dims import product_dims
from pyshardy.costing.program import (
    BACKWARD,
    FORWARD,
    WINDOWED,
    CostBlock,
    CostKind,
    CostOp,
    CostTensor,
    OpOrigin,
    OpTraffic,
    SourceLine,
)

PARTS_PER_ROUND: Final = 4
"""The number of parts that a round multiplies."""
LOOP: Final = "loop"
"""The fact of an op that stands for a loop: a `LoopKind`."""
_ADD = "stablehlo.add"
_Fact = tuple[str, Hashable]


class LoopKind(NamedTuple):
    """What equal loops share.

    Attributes:
        product: The product.
        part: The type of one part.
        traffic: What the gather or the scatter sends.
        place: The position of the operand that is gathered; None for a scatter.
        dim: The dimension that is gathered, or scattered.
    """

    product: CostKind
    part: CostTensor
    traffic: OpTraffic
    place: int | None
    dim: int

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.traffic.group_size // PARTS_PER_ROUND


@dataclass(frozen=True, slots=True)
class WindowedOrigin:
    """The origin of a permute.

    Attributes:
        product: The origin of the product that it serves.
        name: The name of that op, without the dialect.
        collective: The kind of the collective that it is a part of, such as "all_gather".
    """

    product: OpOrigin
    name: str
    collective: str

    @property
    def scope(self) -> str | None:
        """JAX's name for the product."""
        return self.product.scope

    @property
    def cause(self) -> str:
        """What the permute is a part of, and for which op, in words."""
        scope = self.scope
        name = self.name if scope is None else scope.rpartition("/")[2] + " in the gradient" * is_gradient(scope)
        return f"windowed {self.collective} of {name}"

    @property
    def source(self) -> SourceLine | None:
        """The user's line."""
        return self.product.source


class Loops:
    """Writes loops; they share the kinds of their ops.

    Args:
        tensors: The types of all values; those of new values are added.
    """

    def __init__(self, tensors: list[CostTensor]) -> None:
        self.tensors = tensors
        self.kinds: dict[Hashable, CostKind] = {}

    def of_gather(self, product: CostOp, gather: CostOp, place: int, dim: int) -> tuple[CostOp, ...]:
        """The ops instead of a product and of the gather before it.

        Args:
            product: The product.
            gather: What gathers an operand.
            place: The position of that operand.
            dim: The dimension that is gathered.
        """
        kind = LoopKind(product.kind, gather.kind.operands[0], _traffic(gather), place, dim)
        ops = _Ops(self, kind, product.place)
        (part,) = gather.operands
        total = ops.zeros(product.kind.results[0])
        ops.loop((product.operands[1 - place],), (part, total, ops.permute(part, FORWARD)), 1, product.results[0])
        return tuple(ops.ops)

    def of_scatter(self, product: CostOp, scatter: CostOp, dim: int) -> tuple[CostOp, ...]:
        """The ops instead of a product and of the scatter behind it.

        Args:
            product: The product.
            scatter: What adds the results of all devices.
            dim: The dimension that is scattered.
        """
        part = scatter.kind.results[0]
        ops = _Ops(self, LoopKind(product.kind, part, _traffic(scatter), None, dim), product.place)
        zeros = ops.zeros(part)
        first, second = ops.loop(product.operands, (zeros, zeros), 0, None)
        ops.op(_ADD, (first, ops.permute(second, FORWARD)), part, scatter.results[0])
        return tuple(ops.ops)

    def body(self, kind: LoopKind, place: OpOrigin | None, held: Sequence[int]) -> CostBlock:
        """One round of a loop.

        Args:
            kind: The loop.
            place: The origin of the product.
            held: The operands of the product that stay, which the round reads from outside.
        """
        ops = _Ops(self, kind, place)
        return ops.gathering(held[0]) if kind.place is not None else ops.scattering(held)


class _Ops:
    """The ops of a windowed product, as they are added.

    Args:
        loops: What makes numbers and kinds.
        kind: The loop.
        place: The origin of the product.
    """

    def __init__(self, loops: Loops, kind: LoopKind, place: OpOrigin | None) -> None:
        self.loops, self.kind, self.place = loops, kind, place
        self.ops: list[CostOp] = []
        self.size = (kind.part.shape or ())[kind.dim]
        self.pair = cut(kind.part, kind.dim, 2 * self.size)

    def gathering(self, held: int) -> CostBlock:
        """A round that multiplies four parts of an operand."""
        kind = self.kind
        assert kind.place is not None
        first, total, second = args = [self.new(one) for one in (kind.part, kind.product.results[0], kind.part)]
        passed = self.permute(first, BACKWARD)
        total = self._multiplied(held, first, second, total, 0)
        back = self.permute(second, FORWARD)
        total = self._multiplied(held, passed, back, total, 1)
        results = (self.permute(passed, BACKWARD), total, self.permute(back, FORWARD))
        return CostBlock(tuple(args), tuple(self.ops), results)

    def _multiplied(self, held: int, one: int, two: int, total: int, half: int) -> int:
        """The result so far, with two parts more."""
        product, place, dim = self.kind.product, self.kind.place, self.kind.dim
        assert place is not None
        dims = next(one for one in product_dims(product) if one[place] == dim)
        other_dim, result_dim = dims[1 - place], dims[2]
        both = self.op("stablehlo.concatenate", (one, two), self.pair)
        beside = held if other_dim is None else self.cut(held, other_dim, half)
        operands, whole = ((both, beside) if place == 0 else (beside, both)), product.results[0]
        if result_dim is None:
            return self.op(_ADD, (total, self.product(operands, whole)), whole)
        found = self.product(operands, cut(whole, result_dim, 2 * self.size))
        for at in range(2):
            piece = self.half(found, cut(whole, result_dim, self.size), at)
            total = self.op("stablehlo.dynamic_update_slice", (total, piece), whole)
        return total

    def scattering(self, held: Sequence[int]) -> CostBlock:
        """A round that adds four parts of the result."""
        kind = self.kind
        first, second = args = [self.new(kind.part) for _ in range(2)]
        sides = next(one[:2] for one in product_dims(kind.product) if one[2] == kind.dim)
        others = []
        for half in range(2):
            passed = self.permute(first, BACKWARD)
            operands = [value if at is None else self.cut(value, at, half) for value, at in zip(held, sides)]
            found = self.product(tuple(operands), self.pair)
            first = self.op(_ADD, (passed, self.half(found, kind.part, 0)), kind.part)
            others.append(self.half(found, kind.part, 1))
        for other in others:
            second = self.op(_ADD, (self.permute(second, FORWARD), other), kind.part)
        return CostBlock(tuple(args), tuple(self.ops), (first, second))

    def new(self, tensor: CostTensor) -> int:
        """A new value."""
        self.loops.tensors.append(tensor)
        return len(self.loops.tensors) - 1

    def op(
        self,
        name: str,
        operands: tuple[int, ...],
        type: CostTensor,
        result: int | None = None,
        facts: tuple[_Fact, ...] = (),
        traffic: OpTraffic | None = None,
    ) -> int:
        """An op with one result.

        Args:
            name: Its name.
            operands: What it reads.
            type: The type of the result.
            result: The number of the result; None for a new one.
            facts: What else its cost depends on, and what tells it from others.
            traffic: What it sends.
        """
        value = self.new(type) if result is None else result
        place = self.place
        if traffic is not None and place is not None:
            place = WindowedOrigin(place, self.kind.product.name.rpartition(".")[2], self.kind.traffic.kind)
        kind = self._shared(name, operands, (type,), facts)
        self.ops.append(CostOp(kind, operands, (value,), traffic=traffic, place=place))
        return value

    def _shared(
        self, name: str, operands: tuple[int, ...], results: tuple[CostTensor, ...], facts: tuple[_Fact, ...]
    ) -> CostKind:
        types = tuple([self.loops.tensors[operand] for operand in operands])
        key = (name, types, results, facts)
        kind = self.loops.kinds.get(key)
        if kind is None:
            kind = self.loops.kinds[key] = CostKind(name, types, results, facts)
        return kind

    def product(self, operands: tuple[int, ...], type: CostTensor) -> int:
        """A product of parts."""
        return self.op(self.kind.product.name, operands, type, facts=self.kind.product.facts)

    def cut(self, value: int, dim: int, half: int) -> int:
        """The part of an operand that meets two parts of the other one, or makes two parts of the result.

        Args:
            value: The operand.
            dim: The dimension that is cut.
            half: Which of the two products of a round reads it.
        """
        type = cut(self.loops.tensors[value], dim, 2 * self.size)
        return self.op("stablehlo.dynamic_slice", (value,), type, facts=(("start", half),))

    def half(self, value: int, type: CostTensor, place: int) -> int:
        """The first or the second of two parts."""
        return self.op("stablehlo.slice", (value,), type, facts=(("start", place),))

    def permute(self, value: int, pairs: _Fact) -> int:
        """A permute of one part."""
        type = self.loops.tensors[value]
        before = after = sent = type.bytes
        traffic = OpTraffic(
            "collective_permute", self.kind.traffic.mesh, self.kind.traffic.axes, 2, before, after, sent
        )
        return self.op("stablehlo.collective_permute", (value,), type, facts=(pairs,), traffic=traffic)

    def zeros(self, type: CostTensor) -> int:
        """What sums and results start from."""
        facts: tuple[_Fact, ...] = (("is_splat", True), ("unit", 0))
        zero = self.op("stablehlo.constant", (), CostTensor((), type.dtype, 0), facts=facts)
        return self.op("stablehlo.broadcast_in_dim", (zero,), type)

    def loop(self, held: tuple[int, ...], state: tuple[int, ...], at: int, result: int | None) -> tuple[int, ...]:
        """The op that stands for the loop.

        Args:
            held: The operands of the product that stay.
            state: What the loop changes, before its first round.
            at: The position of the result in the state.
            result: The number of the result; None for a new one.

        Returns:
            The state behind the loop.
        """
        types = tuple([self.loops.tensors[value] for value in state])
        found = [self.new(one) if result is None or place != at else result for place, one in enumerate(types)]
        kind = self._shared(WINDOWED, (*held, *state), types, ((LOOP, self.kind),))
        self.ops.append(CostOp(kind, (*held, *state), tuple(found), place=self.place))
        return tuple(found)


def _traffic(op: CostOp) -> OpTraffic:
    assert op.traffic is not None
    return op.traffic


def cut(tensor: CostTensor, dim: int, size: int) -> CostTensor:
    """A tensor of which a dimension has another size.

    >>> cut(CostTensor((4, 8), "f32", 128), 1, 2)
    CostTensor(shape=(4, 2), dtype='f32', bytes=32)
    """
    shape = tensor.shape or ()
    return CostTensor((*shape[:dim], size, *shape[dim + 1 :]), tensor.dtype, tensor.bytes * size // max(1, shape[dim]))
