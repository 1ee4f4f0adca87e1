"""Sends arrays between devices in the narrower of two types, as XLA does after partitioning.

A conversion of the result of a collective to fewer bits happens before it, one of the operand to more bits after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pyshardy.costing.compilers import Compiler
from pyshardy.costing.program import (
    CostBlock,
    CostKind,
    CostOp,
    CostProgram,
    CostTensor,
    OpTraffic,
    uses_of,
    with_blocks,
)
from pyshardy.rules.opspec import op_names

_SHAPING = frozenset(op_names("stablehlo.", "reshape slice transpose"))
"""Ops that may stand between a collective and the conversion of its result."""
_CONVERT = "stablehlo.convert"


def with_narrow_collectives(program: CostProgram, compiler: Compiler) -> CostProgram:
    """The program with collectives in the narrower type, where nothing else reads the wider value.

    Args:
        program: The program of one device.
        compiler: What the compiler does.
    """
    narrowing = _Narrowing(program.tensors, compiler)
    found = with_blocks(program, narrowing.block)
    return found if found is program else replace(found, tensors=tuple(narrowing.tensors))


class _Narrowing:
    def __init__(self, tensors: tuple[CostTensor, ...], compiler: Compiler) -> None:
        self.tensors = list(tensors)
        self.narrows, self.widens_late = compiler.narrows, compiler.widens_late
        self.kinds: dict[tuple[CostKind, CostTensor, CostTensor], CostKind] = {}

    def block(self, block: CostBlock) -> CostBlock:
        if not any(sends_one(op, self.narrows) for op in block.ops):
            return block
        uses = uses_of(block)
        makers = {op.results[0]: op for op in block.ops if len(op.results) == 1}
        readers = {value: op for op in block.ops for value in op.operands if uses[value] == 1}
        instead: dict[int, tuple[CostOp, ...]] = {}  # by the result of the op that is replaced
        for op in block.ops:
            if sends_one(op, self.narrows):
                after = _read_by(op, readers)
                before = _made_by(op, makers, readers) if sends_one(op, self.widens_late) else []
                if after:
                    instead.update(self._before([op, *after]))
                elif before:
                    instead.update(self._after([*before, op]))
        found = [one for op in block.ops for one in (instead.get(op.results[0], (op,)) if op.results else (op,))]
        return block._replace(ops=tuple(found)) if instead else block

    def _before(self, chain: list[CostOp]) -> Mapping[int, tuple[CostOp, ...]]:
        """A collective, and what reads it up to the conversion, with the conversion first.

        Each op has the result number that the next one in the old order had.
        """
        *moved, convert = chain
        dtype = convert.kind.results[0]
        numbers = [op.results[0] for op in chain]
        first = moved[0]
        wide = first.kind.operands[0]
        converted = self._op(convert, wide, _as(wide, dtype), first.operands[0], numbers[0])
        found: dict[int, tuple[CostOp, ...]] = {numbers[-1]: ()}
        for op, before, after in zip(moved, numbers, numbers[1:]):
            new = self._op(op, _as(op.kind.operands[0], dtype), _as(op.kind.results[0], dtype), before, after)
            found[before] = (converted, new) if op is first else (new,)
        return found

    def _after(self, chain: list[CostOp]) -> Mapping[int, tuple[CostOp, ...]]:
        """A conversion, what reads it up to a collective, with a conversion of the result at the end instead."""
        convert, *shaped, op = chain
        dtype, value = convert.kind.operands[0], convert.operands[0]
        found: dict[int, tuple[CostOp, ...]] = {}
        for one in shaped:
            new = self._op(
                one, _as(one.kind.operands[0], dtype), _as(one.kind.results[0], dtype), value, one.results[0]
            )
            found[value := one.results[0]] = (new,)
        wide = op.kind.results[0]
        narrow = _as(wide, dtype)
        self.tensors.append(narrow)
        sent = self._op(op, _as(op.kind.operands[0], dtype), narrow, value, len(self.tensors) - 1)
        found[op.results[0]] = sent, self._op(convert, narrow, wide, sent.results[0], op.results[0])
        return found

    def _op(self, op: CostOp, before: CostTensor, after: CostTensor, operand: int, result: int) -> CostOp:
        """An op on other types and values."""
        key = op.kind, before, after
        if key not in self.kinds:
            self.kinds[key] = CostKind(op.kind.name, (before,), (after,), op.kind.facts)
        self.tensors[result] = after
        traffic = None if op.traffic is None else scaled(op.traffic, op.kind.operands[0], before)
        return op._replace(kind=self.kinds[key], operands=(operand,), results=(result,), traffic=traffic)


def sends_one(op: CostOp, kinds: Collection[str]) -> bool:
    """Whether an op is a collective that sends one array.

    Args:
        op: The op.
        kinds: The kinds of collectives that count.
    """
    return op.traffic is not None and op.traffic.kind in kinds and len(op.operands) == len(op.results) == 1


def _read_by(op: CostOp, readers: Mapping[int, CostOp]) -> list[CostOp]:
    """The ops that shape the result of a collective, and its conversion to fewer bits; empty if something else does."""
    found: list[CostOp] = []
    reader = readers.get(op.results[0])
    while reader is not None and reader.kind.name in _SHAPING:
        found.append(reader)
        reader = readers.get(reader.results[0])
    return [*found, reader] if reader is not None and _widens(reader) < 0 else []


def _made_by(op: CostOp, makers: Mapping[int, CostOp], readers: Mapping[int, CostOp]) -> list[CostOp]:
    """A conversion to more bits, and the ops that shape its result for a collective alone; empty if there is none."""
    found: list[CostOp] = []
    value = op.operands[0]
    while (maker := makers.get(value)) is not None and maker.kind.name in _SHAPING and value in readers:
        found.append(maker)
        value = maker.operands[0]
    return [maker, *reversed(found)] if maker is not None and _widens(maker) > 0 else []


def _widens(op: CostOp) -> int:
    """By how many bytes a conversion makes an array larger; 0 for other ops."""
    return op.kind.results[0].bytes - op.kind.operands[0].bytes if op.kind.name == _CONVERT else 0


def _as(tensor: CostTensor, other: CostTensor) -> CostTensor:
    """A tensor with the element type of another one."""
    return CostTensor(tensor.shape, other.dtype, tensor.elements * other.bytes // max(1, other.elements))


def scaled(traffic: OpTraffic, wide: CostTensor, narrow: CostTensor) -> OpTraffic:
    """The traffic of the same elements in another type.

    Args:
        traffic: The traffic.
        wide: The type of an operand.
        narrow: The type instead.
    """

    def less(bytes: int) -> int:
        return bytes * narrow.bytes // wide.bytes

    return replace(
        traffic,
        bytes_before=less(traffic.bytes_before),
        bytes_after=less(traffic.bytes_after),
        sent_bytes=less(traffic.sent_bytes),
    )
