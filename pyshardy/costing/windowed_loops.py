"""Builds the loop of a windowed product: permutes that pass parts on, and products of the parts.

The parts travel in both directions of a ring. Each round multiplies four parts, two at a time, while the next ones are
on their way. One permute more brings the first two parts together, or adds the last ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyshardy.core.scopes import is_gradient
from pyshardy.costing.product_dims import product_dims
from pyshardy.costing.program import (
    PAIRS,
    CostBlock,
    CostKind,
    CostOp,
    CostTensor,
    OpOrigin,
    OpTraffic,
    SourceLine,
)

PARTS_PER_ROUND = 4
"""The number of parts that a round multiplies."""
_FORWARD, _BACKWARD = (PAIRS, "to the next device"), (PAIRS, "to the device before")
_COUNTER = CostTensor((), "ui32", 4)
_ADD, _CONSTANT = "stablehlo.add", "stablehlo.constant"


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
    """Builds loops; they share the kinds of their ops.

    Args:
        tensors: The types of all values; those of new values are added.
    """

    def __init__(self, tensors: list[CostTensor]) -> None:
        self.tensors = tensors
        self.kinds: dict[Hashable, CostKind] = {}

    def of_gather(self, product: CostOp, gather: CostOp, place: int, dim: int) -> tuple[CostOp, ...]:
        """A loop that multiplies parts of an operand, and the ops around it.

        Args:
            product: The product.
            gather: What gathers an operand.
            place: The position of that operand.
            dim: The dimension that is gathered.
        """
        dims = next(one for one in product_dims(product.kind) if one[place] == dim)
        other_dim, result_dim = dims[1 - place], dims[2]
        part, whole = gather.kind.operands[0], product.kind.results[0]
        size = (part.shape or ())[dim]
        pair = _cut(part, dim, 2 * size)
        other = product.kind.operands[1 - place]
        step, body = _Ops(self, product, gather), _Ops(self, product, gather)
        held, first, total, second, counter = args = [body.new(one) for one in (other, part, whole, part, _COUNTER)]

        def multiplied(one: int, two: int, total: int, half: int) -> int:
            both = body.op("stablehlo.concatenate", (one, two), pair)
            beside = held if other_dim is None else body.cut(held, other_dim, 2 * size, counter, half)
            operands = (both, beside) if place == 0 else (beside, both)
            if result_dim is None:
                return body.op(_ADD, (total, body.product(operands, whole)), whole)
            found = body.product(operands, _cut(whole, result_dim, 2 * size))
            for at in range(2):
                piece = body.half(found, _cut(whole, result_dim, size), at)
                total = body.op("stablehlo.dynamic_update_slice", (total, piece, counter), whole)
            return total

        passed = body.permute(first, _BACKWARD)
        total = multiplied(first, second, total, 0)
        back = body.permute(second, _FORWARD)
        total = multiplied(passed, back, total, 1)
        results = (held, body.permute(passed, _BACKWARD), total, body.permute(back, _FORWARD), body.next(counter))
        zeros = step.zeros(whole)
        start = (product.operands[1 - place], gather.operands[0], zeros, step.permute(gather.operands[0], _FORWARD))
        step.loop(start, args, body, results, product.results[0])
        return tuple(step.ops)

    def of_scatter(self, product: CostOp, scatter: CostOp, dim: int) -> tuple[CostOp, ...]:
        """A loop that adds parts of the result, and the ops around it.

        Args:
            product: The product.
            scatter: What adds the results of all devices.
            dim: The dimension that is scattered.
        """
        part = scatter.kind.results[0]
        size = (part.shape or ())[dim]
        pair = _cut(part, dim, 2 * size)
        sides = next(one[:2] for one in product_dims(product.kind) if one[2] == dim)
        step, body = _Ops(self, product, scatter), _Ops(self, product, scatter)
        types = (*product.kind.operands, part, part, _COUNTER)
        left, right, first, second, counter = args = [body.new(one) for one in types]

        def multiplied(half: int) -> tuple[int, int]:
            operands = tuple(
                [
                    value if at is None else body.cut(value, at, 2 * size, counter, half)
                    for value, at in zip((left, right), sides)
                ]
            )
            found = body.product(operands, pair)
            return body.half(found, part, 0), body.half(found, part, 1)

        others = []
        for half in range(2):
            passed = body.permute(first, _BACKWARD)
            one, other = multiplied(half)
            first = body.op(_ADD, (passed, one), part)
            others.append(other)
        for other in others:
            second = body.op(_ADD, (body.permute(second, _FORWARD), other), part)
        zeros = step.zeros(part)
        start = (*product.operands, zeros, zeros)
        sums = step.loop(start, args, body, (left, right, first, second, body.next(counter)))
        last = step.permute(sums[3], _FORWARD)
        step.op(_ADD, (sums[2], last), part, scatter.results[0])
        return tuple(step.ops)


class _Ops:
    """Ops of a windowed product, as they are added.

    Args:
        loops: What makes numbers and kinds.
        product: The product.
        collective: The gather or the scatter.
    """

    def __init__(self, loops: Loops, product: CostOp, collective: CostOp) -> None:
        self.loops, self.source, self.collective = loops, product, collective
        self.ops: list[CostOp] = []

    @cached_property
    def origin(self) -> OpOrigin | None:
        """The origin of the permutes."""
        place, traffic = self.source.place, self.collective.traffic
        assert traffic is not None
        name = self.source.kind.name.rpartition(".")[2]
        return None if place is None else WindowedOrigin(place, name, traffic.kind)

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
        facts: tuple[tuple[str, Hashable], ...] = (),
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
        tensors = self.loops.tensors
        value = self.new(type) if result is None else result
        types = tuple([tensors[operand] for operand in operands])
        key = (name, types, type, facts)
        kind = self.loops.kinds.get(key)
        if kind is None:
            kind = self.loops.kinds[key] = CostKind(name, types, (type,), facts)
        place = self.source.place if traffic is None else self.origin
        self.ops.append(CostOp(kind, operands, (value,), traffic=traffic, place=place))
        return value

    def product(self, operands: tuple[int, ...], type: CostTensor) -> int:
        """A product of parts."""
        return self.op(self.source.kind.name, operands, type, facts=self.source.kind.facts)

    def cut(self, value: int, dim: int, size: int, counter: int, half: int) -> int:
        """The part of an operand that meets two parts of the other one, or makes two parts of the result.

        Args:
            value: The operand.
            dim: The dimension that is cut.
            size: The size of the part.
            counter: The number of the round.
            half: Which of the two products of a round reads it.
        """
        type = _cut(self.loops.tensors[value], dim, size)
        return self.op("stablehlo.dynamic_slice", (value, counter), type, facts=(("start", half),))

    def half(self, value: int, type: CostTensor, place: int) -> int:
        """The first or the second of two parts."""
        return self.op("stablehlo.slice", (value,), type, facts=(("start", place),))

    def permute(self, value: int, pairs: tuple[str, Hashable]) -> int:
        """A permute of one part."""
        traffic = self.collective.traffic
        assert traffic is not None
        type = self.loops.tensors[value]
        sent = replace(
            traffic,
            kind="collective_permute",
            group_size=2,
            bytes_before=type.bytes,
            bytes_after=type.bytes,
            sent_bytes=type.bytes,
        )
        return self.op("stablehlo.collective_permute", (value,), type, facts=(pairs,), traffic=sent)

    def zeros(self, type: CostTensor) -> int:
        """What sums and results start from."""
        zero = self.op(_CONSTANT, (), CostTensor((), type.dtype, 0), facts=(("is_splat", True), ("unit", 0)))
        return self.op("stablehlo.broadcast_in_dim", (zero,), type)

    def next(self, counter: int) -> int:
        """The number of the next round."""
        one = self.op(_CONSTANT, (), _COUNTER, facts=(("is_splat", True), ("unit", 1)))
        return self.op(_ADD, (counter, one), _COUNTER)

    def loop(
        self,
        start: tuple[int, ...],
        args: Sequence[int],
        body: _Ops,
        results: tuple[int, ...],
        total: int | None = None,
    ) -> tuple[int, ...]:
        """The loop.

        Args:
            start: What the values of the loop are before, without the counter.
            args: The arguments of the body.
            body: The ops of the body.
            results: What the body returns.
            total: The number of the third result; None for a new one.

        Returns:
            The results.
        """
        traffic = self.collective.traffic
        assert traffic is not None
        zero = self.op(_CONSTANT, (), _COUNTER, facts=(("is_splat", True), ("unit", 0)))
        types = tuple([self.loops.tensors[value] for value in args])
        test = _Ops(self.loops, self.source, self.collective)
        tested = [test.new(one) for one in types]
        end = test.op(_CONSTANT, (), _COUNTER, facts=(("is_splat", True), ("unit", None)))
        more = test.op("stablehlo.compare", (tested[-1], end), CostTensor((), "i1", 1))
        found = [self.new(one) for one in types]
        if total is not None:
            found[2] = total
        regions = (
            CostBlock(tuple(tested), tuple(test.ops), (more,)),
            CostBlock(tuple(args), tuple(body.ops), results),
        )
        kind = CostKind("stablehlo.while", types, types)
        rounds = traffic.group_size // PARTS_PER_ROUND
        self.ops.append(CostOp(kind, (*start, zero), tuple(found), regions, rounds, place=self.source.place))
        return tuple(found)


def _cut(tensor: CostTensor, dim: int, size: int) -> CostTensor:
    """A tensor of which a dimension has another size."""
    shape = tensor.shape or ()
    return CostTensor((*shape[:dim], size, *shape[dim + 1 :]), tensor.dtype, tensor.bytes * size // max(1, shape[dim]))
