"""Moves elementwise ops above the broadcasts that they read, as XLA does."""

from __future__ import annotations

from pyshardy.costing.flat import FlatOp
from pyshardy.costing.program import CostKind, CostOp, CostTensor
from pyshardy.rules.properties import ELEMENTWISE

BROADCAST = "stablehlo.broadcast_in_dim"


class Sinker:
    """Moves the elementwise ops of one block above broadcasts.

    Args:
        tensors: The type of every value; types of new values are added.
        uniform: The values with one number in all elements; new ones are added.
    """

    def __init__(self, tensors: list[CostTensor], uniform: set[int]) -> None:
        self.tensors, self.uniform = tensors, uniform
        self.spread: dict[int, CostOp] = {}

    def ops(self, op: CostOp) -> list[FlatOp]:
        """The ops that replace an op; the op itself if it cannot move."""
        if op.kind.name == BROADCAST and op.results[0] not in self.uniform:
            self.spread[op.results[0]] = op
        elif op.kind.name in ELEMENTWISE and len(op.results) == 1 and op.results[0] not in self.uniform:
            found = self._source(op)
            if found is not None:
                return self._earlier(op, found)
        return [FlatOp(op)]

    def _source(self, op: CostOp) -> CostOp | None:
        """The only broadcast among the operands of an op, beside uniform values; None if there are others, or none."""
        found: CostOp | None = None
        for value in op.operands:
            if value in self.uniform:
                continue
            broadcast = self.spread.get(value)
            if broadcast is None or (found is not None and not _is_alike(broadcast, found)):
                return None
            found = broadcast
        if found is None or found.kind.operands[0].elements >= op.kind.results[0].elements:
            return None
        return found

    def _earlier(self, op: CostOp, broadcast: CostOp) -> list[FlatOp]:
        """The op on the operand of a broadcast, and the broadcast of its result."""
        shape = broadcast.kind.operands[0].shape
        types = tuple([_resized(tensor, shape) for tensor in op.kind.operands])
        result = _resized(op.kind.results[0], shape)
        operands = []
        for value, tensor in zip(op.operands, types):
            if value in self.uniform:
                operands.append(self._new(tensor))
                self.uniform.add(operands[-1])
            else:
                operands.append(self.spread[value].operands[0])
        small = self._new(result)
        first = CostOp(
            CostKind(op.kind.name, types, (result,), op.kind.facts), tuple(operands), (small,), place=op.place
        )
        kind = CostKind(BROADCAST, (result,), op.kind.results, broadcast.kind.facts)
        second = CostOp(kind, (small,), op.results, place=op.place)
        self.spread[op.results[0]] = second
        return [FlatOp(first), FlatOp(second)]

    def _new(self, tensor: CostTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _is_alike(left: CostOp, right: CostOp) -> bool:
    """Whether two broadcasts map the same shape to the same dimensions."""
    return (
        left.operands == right.operands
        and left.kind.facts == right.kind.facts
        and left.kind.results[0].shape == right.kind.results[0].shape
    )


def _resized(tensor: CostTensor, shape: tuple[int, ...] | None) -> CostTensor:
    """A type with the same element type and another shape."""
    size = tensor.bytes // max(1, tensor.elements)
    found = CostTensor(shape, tensor.dtype, 0)
    return CostTensor(shape, tensor.dtype, size * found.elements)
