"""Keeps and sends in bf16 what only f32 products of the default precision read, as XLA for TPUs does.

The matrix unit reads such operands as bf16. So what computes them stores bf16, also behind ops that only shape or send
it. Arguments, and what loops and calls return, stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyshardy.costing.narrowing import scaled, sends_one
from pyshardy.costing.program import (
    IS_PRECISE,
    MATRIX_UNIT_OPS,
    CostBlock,
    CostKind,
    CostOp,
    CostProgram,
    CostTensor,
    uses_of,
    with_blocks,
)
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE

_PASSING = frozenset(
    op_names(
        "stablehlo.", "broadcast_in_dim concatenate dynamic_slice gather pad reshape reverse select slice transpose"
    )
)
"""Ops whose operands are read as bf16 if their result is read as bf16."""
_MAKING = ELEMENTWISE | MATRIX_UNIT_OPS | _PASSING | {"stablehlo.reduce"}
"""Ops that can return bf16 instead of f32."""


def with_bf16_for_products(program: CostProgram, sends: Collection[str]) -> CostProgram:
    """The program with values in bf16 that only products of the default precision read.

    Args:
        program: The program of one device.
        sends: The kinds of collectives that then send bf16.
    """
    narrowing = _Narrowing(program.tensors, sends)
    found = with_blocks(program, narrowing.block)
    return found if found is program else replace(found, tensors=tuple(narrowing.tensors))


class _Narrowing:
    def __init__(self, tensors: Sequence[CostTensor], sends: Collection[str]) -> None:
        self.tensors, self.sends = list(tensors), sends
        self.kinds: dict[tuple[CostKind, tuple[CostTensor, ...], tuple[CostTensor, ...]], CostKind] = {}
        self.conversions: dict[tuple[CostTensor, CostTensor], CostKind] = {}

    def block(self, block: CostBlock) -> CostBlock:
        narrow = self._narrow(block)
        if not narrow:
            return block
        for value in narrow:
            self.tensors[value] = _as_bf16(self.tensors[value])
        ops: list[CostOp] = []
        for op in block.ops:
            if not narrow.isdisjoint(op.results) and sends_one(op, self.sends):
                op = self._sent(op, narrow, ops)
            elif not (narrow.isdisjoint(op.results) and narrow.isdisjoint(op.operands)):
                op = self._typed(op)
            ops.append(op)
        return block._replace(ops=tuple(ops))

    def _narrow(self, block: CostBlock) -> set[int]:
        """The values of a block that are kept in bf16."""
        if not any(op.kind.name in MATRIX_UNIT_OPS for op in block.ops):
            return set()
        uses = uses_of(block)
        reads: dict[int, int] = {}
        narrow: set[int] = set()
        for op in reversed(block.ops):
            if len(op.results) == 1 and (sends_one(op, self.sends) or op.kind.name in _MAKING) and not op.regions:
                (value,) = op.results
                if self.tensors[value].dtype == "f32" and 0 < uses[value] == reads.get(value):
                    narrow.add(value)
            is_passing = sends_one(op, self.sends) or op.kind.name in _PASSING
            if _multiplies_bf16(op) or (is_passing and not narrow.isdisjoint(op.results)):
                for operand in op.operands:
                    reads[operand] = reads.get(operand, 0) + 1
        return narrow

    def _typed(self, op: CostOp) -> CostOp:
        """An op with the types that its operands and results have now."""
        operands = tuple([self.tensors[value] for value in op.operands])
        results = tuple([self.tensors[value] for value in op.results])
        key = op.kind, operands, results
        if key not in self.kinds:
            self.kinds[key] = CostKind(op.kind.name, operands, results, op.kind.facts)
        return op._replace(kind=self.kinds[key])

    def _sent(self, op: CostOp, narrow: Collection[int], ops: list[CostOp]) -> CostOp:
        """A collective that sends bf16, behind a conversion unless its operand is kept in bf16."""
        (operand,), (wide,) = op.operands, op.kind.operands
        if operand not in narrow:
            type = _as_bf16(wide)
            self.tensors.append(type)
            kind = self.conversions.setdefault((wide, type), CostKind("stablehlo.convert", (wide,), (type,)))
            ops.append(CostOp(kind, (operand,), (len(self.tensors) - 1,), place=op.place))
            op = op._replace(operands=(len(self.tensors) - 1,))
        assert op.traffic is not None
        return self._typed(op._replace(traffic=scaled(op.traffic, wide, _as_bf16(wide))))


def _multiplies_bf16(op: CostOp) -> bool:
    """Whether the matrix unit of a TPU reads the operands of an op as bf16."""
    return op.kind.name in MATRIX_UNIT_OPS and not op.kind.fact(IS_PRECISE, False)


def _as_bf16(tensor: CostTensor) -> CostTensor:
    return CostTensor(tensor.shape, "bf16", 2 * tensor.elements)
