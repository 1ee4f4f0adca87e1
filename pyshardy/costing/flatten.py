"""Prepares a program as a compiler does before fusion: inlines calls, drops dead ops and ops that only rename.

Equal ops are merged, but not across an optimization barrier: there the program recomputes on purpose. A compiler may
keep the barrier until it orders kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyshardy.costing.compilers import ACCELERATOR, Compiler
from pyshardy.costing.flat import BARRIER, BITCAST, NEVER_TWICE, Flat, FlatBlock, FlatOp
from pyshardy.costing.program import CostBlock, CostKind, CostOp, CostProgram, CostTensor
from pyshardy.costing.states import has_effect, twin_results, without_constant_state, without_dead_state
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE, PROGRAM_CONSTANTS

_RENAMING = frozenset(
    [
        *op_names("stablehlo.", "reshape"),
        *op_names("sdy.", "sharding_constraint reshard data_flow_edge propagation_barrier"),
    ]
)
"""Ops whose results reuse the memory of their operands."""
_RESHAPING = frozenset(op_names("stablehlo.", "reshape transpose broadcast_in_dim"))
_BROADCAST = "stablehlo.broadcast_in_dim"
_MOST_FOLDED = 45 * 2**20
"""Larger constants are not folded."""


def flatten(program: CostProgram, compiler: Compiler = ACCELERATOR) -> Flat:
    """The program with calls inlined, without the ops that a compiler drops before fusion.

    Args:
        program: The program.
        compiler: What the compiler does.
    """
    flattener = _Flattener(program, compiler)
    body = flattener.block(program.body, {})
    body = without_dead(_renumbered(body, flattener.hidden) if flattener.hidden else body)
    return Flat(flattener.tensors, body, frozenset(flattener.uniform), frozenset(flattener.constants))


class _Flattener:
    def __init__(self, program: CostProgram, compiler: Compiler) -> None:
        self.program = program
        self.keeps_reshapes, self.keeps_barriers = compiler.keeps_reshapes, compiler.keeps_barriers
        self.kinds: dict[tuple[CostTensor, CostTensor], CostKind] = {}
        self.sources: dict[int, int] = {}
        self.units: dict[int, int] = {}
        self.tensors = list(program.tensors)
        self.uniform: set[int] = set()
        self.constants: set[int] = set()
        self.used: set[int] = set()
        self.hidden: dict[int, int] = {}
        self.twins: dict[tuple[CostKind, tuple[int, ...]], tuple[int, ...]] = {}

    def block(self, block: CostBlock, outer: Mapping[int, int]) -> FlatBlock:
        """A block with other numbers for the values from outside."""
        numbers = dict(outer)
        arguments = tuple([self._number(value, numbers) for value in block.arguments])
        ops: list[FlatOp] = []
        around, self.twins = self.twins, {}  # ops of a block are merged only with ops of the same block
        self._add(block.ops, numbers, ops)
        self.twins = around
        return FlatBlock(arguments, tuple(ops), tuple([numbers[value] for value in block.results]))

    def _number(self, value: int, numbers: dict[int, int]) -> int:
        """A value's own number, or a new one if its block was inlined before."""
        if value in self.used:
            self.tensors.append(self.tensors[value])
            numbers[value] = len(self.tensors) - 1
        else:
            self.used.add(value)
            numbers[value] = value
        return numbers[value]

    def _add(self, block: tuple[CostOp, ...], numbers: dict[int, int], ops: list[FlatOp]) -> None:
        for op in block:
            if op.callee is not None:
                self._inline(op, numbers, ops)
            elif op.branch is not None:
                self._run(op, op.regions[op.branch], numbers, ops)
            elif op.is_loop and op.rounds == 1:
                self._run(op, op.regions[1], numbers, ops)
            elif op.kind.name == BARRIER:
                self._separate(op, numbers, ops)
            elif self.keeps_reshapes and _reshapes(op):
                self._reshape(op, numbers, ops)
            elif op.kind.name in _RENAMING or _renames(op):
                for operand, result in zip(op.operands, op.results):
                    numbers[result] = numbers[operand]
            else:
                twins: dict[int, int] = {}
                if op.is_loop:
                    twins = twin_results(op, numbers)
                    op = without_constant_state(op, numbers)
                inner = tuple([self.block(region, numbers) for region in op.regions])
                operands = tuple([numbers[value] for value in op.operands])
                same = self._unchanged(op.kind.name, operands)
                if same is not None:
                    numbers[op.results[0]] = same
                    continue
                twin = None if inner or op.traffic is not None else self.twins.get((op.kind, operands))
                if twin is not None:
                    numbers.update(zip(op.results, twin))
                    continue
                results = tuple([self._number(value, numbers) for value in op.results])
                numbers.update((twin, numbers[first]) for twin, first in twins.items())
                if not inner and op.traffic is None and op.kind.name not in NEVER_TWICE:
                    self.twins[op.kind, operands] = results
                self._look(op, operands, results)
                op = op._replace(operands=operands, results=results, regions=())
                ops.append(FlatOp(self._folded(op), inner))

    def _run(self, op: CostOp, block: CostBlock, numbers: dict[int, int], ops: list[FlatOp]) -> None:
        """Replace an op that runs a block once by the ops of the block."""
        numbers.update([(argument, numbers[value]) for argument, value in zip(block.arguments, op.operands)])
        self._add(block.ops, numbers, ops)
        for result, returned in zip(op.results, block.results):
            numbers[result] = numbers[returned]

    def _unchanged(self, name: str, operands: tuple[int, ...]) -> int | None:
        """The operand that the result of an op equals, such as that of an addition of 0."""
        if name not in _IDENTITIES or len(operands) != 2:
            return None
        unit = _IDENTITIES[name]
        if self.units.get(operands[1]) == unit:
            return operands[0]
        return operands[1] if name in _COMMUTATIVE and self.units.get(operands[0]) == unit else None

    def _reshape(self, op: CostOp, numbers: dict[int, int], ops: list[FlatOp]) -> None:
        """Keep a reshape; a reshape of a reshape becomes one, or none."""
        (operand,), (result,) = op.operands, op.results
        source = self.sources.get(numbers[operand], numbers[operand])
        tensor = op.kind.results[0]
        if source in self.constants or source in self.uniform or self.tensors[source].shape == tensor.shape:
            numbers[result] = source
            return
        kind = self.kinds.setdefault(
            (self.tensors[source], tensor), CostKind(BITCAST, (self.tensors[source],), (tensor,))
        )
        twin = self.twins.get((kind, (source,)))
        if twin is not None:
            numbers[result] = twin[0]
            return
        number = self._number(result, numbers)
        self.sources[number] = source
        self.twins[kind, (source,)] = (number,)
        ops.append(FlatOp(CostOp(kind, (source,), (number,), place=op.place)))

    def _inline(self, op: CostOp, numbers: dict[int, int], ops: list[FlatOp]) -> None:
        assert op.callee is not None
        body = self.program.functions[op.callee]
        if not body.results and op.results:  # a declaration: its body is unknown
            operands = tuple([numbers[value] for value in op.operands])
            results = tuple([self._number(value, numbers) for value in op.results])
            ops.append(FlatOp(op._replace(operands=operands, results=results, callee=None)))
            return
        inside = {argument: numbers[operand] for argument, operand in zip(body.arguments, op.operands)}
        self._add(body.ops, inside, ops)
        for result, returned in zip(op.results, body.results):
            numbers[result] = inside[returned]

    def _separate(self, op: CostOp, numbers: dict[int, int], ops: list[FlatOp]) -> None:
        """Give the operands of a barrier other numbers; keep the barrier if the compiler does."""
        pairs = [(numbers[operand], self._number(result, numbers)) for operand, result in zip(op.operands, op.results)]
        known = self.constants | self.uniform if self.keeps_barriers else {value for value, _ in pairs}
        for value, number in pairs:
            if value in known:
                self._hide(value, number)
        kept = [pair for pair in pairs if pair[0] not in known]
        if kept:
            ops.append(FlatOp(_barrier(op, kept)))

    def _hide(self, value: int, number: int) -> None:
        """Give a value another number from here on, so that its users are not merged with earlier ops."""
        self.hidden[number] = self.hidden.get(value, value)
        for known in (self.uniform, self.constants):
            if value in known:
                known.add(number)

    def _look(self, op: CostOp, operands: tuple[int, ...], results: tuple[int, ...]) -> None:
        """Note the results that have one number in all elements, and those that are constant."""
        name = op.kind.name
        if name in PROGRAM_CONSTANTS:
            self.constants.update(results)
            unit = op.kind.fact("unit")
            if isinstance(unit, int):
                self.units[results[0]] = unit
            if op.kind.fact("is_splat", False) or self.tensors[results[0]].elements == 1:
                self.uniform.update(results)
        elif name == _BROADCAST:
            if operands[0] in self.units:
                self.units[results[0]] = self.units[operands[0]]
            if self.tensors[operands[0]].elements == 1 or operands[0] in self.uniform:
                self.uniform.update(results)
                self.constants.update(results if operands[0] in self.constants else ())
        elif operands and name in ELEMENTWISE:
            if all(value in self.uniform for value in operands) and self.tensors[results[0]].elements > 1:
                self.uniform.update(results)
            if all(value in self.constants for value in operands):
                self.constants.update(results)
        elif operands and name in _FOLDED and all(value in self.constants for value in operands):
            self.constants.update(results)
            if self.uniform.issuperset(operands) and name != "stablehlo.concatenate":
                self.uniform.update(results)

    def _folded(self, op: CostOp) -> CostOp:
        """A constant instead of an op that reads constants."""
        is_known = (
            op.operands
            and len(op.results) == 1
            and self.constants.issuperset(op.results)
            and op.kind.name != _BROADCAST
        )
        if not is_known or op.kind.results[0].elements > _MOST_FOLDED:
            return op
        kind = CostKind("stablehlo.constant", (), op.kind.results, (("is_splat", self.uniform.issuperset(op.results)),))
        return op._replace(kind=kind, operands=())


def _barrier(op: CostOp, pairs: Sequence[tuple[int, int]]) -> CostOp:
    """A barrier of some pairs of an operand and a result only."""
    return op._replace(operands=tuple([value for value, _ in pairs]), results=tuple([value for _, value in pairs]))


_IDENTITIES = {
    **dict.fromkeys(op_names("stablehlo.", "multiply divide power"), 1),
    **dict.fromkeys(op_names("stablehlo.", "add subtract shift_left shift_right_logical shift_right_arithmetic"), 0),
}
"""Ops that return their first operand if the second one is this number in all elements."""
_COMMUTATIVE = frozenset(op_names("stablehlo.", "add multiply"))
_FOLDED = frozenset(
    op_names("stablehlo.", "bitcast_convert concatenate dynamic_slice gather pad reduce reverse slice transpose")
)
"""Ops that are folded if all their operands are constant; elementwise ops are, too."""


def _reshapes(op: CostOp) -> bool:
    """Whether an op only gives its operand another shape."""
    if len(op.operands) != 1 or len(op.results) != 1 or op.kind.name not in _RESHAPING:
        return False
    return (op.kind.name in _RENAMING or _renames(op)) and op.kind.operands[0].dtype == op.kind.results[0].dtype


def _renames(op: CostOp) -> bool:
    """Whether an op only gives its operand another type with the same layout."""
    if len(op.operands) != 1 or len(op.results) != 1:
        return False
    name, (before,), (after,) = op.kind.name, op.kind.operands, op.kind.results
    if name == "stablehlo.convert":
        return before.dtype == after.dtype
    if name == _BROADCAST:
        return before.elements == after.elements and before.elements > 0
    if name == "stablehlo.transpose":
        order = op.kind.fact("permutation", ())
        shape = before.shape or ()
        moved = [dim for dim in order if shape[dim] != 1]  # type: ignore[attr-defined]
        return moved == sorted(moved)
    return False


def _renumbered(block: FlatBlock, numbers: Mapping[int, int]) -> FlatBlock:
    """A block with other numbers for some values."""
    ops = tuple([renumbered_op(flat, numbers) for flat in block.ops])
    return FlatBlock(block.arguments, ops, _new(block.results, numbers))


def renumbered_op(flat: FlatOp, numbers: Mapping[int, int]) -> FlatOp:
    """An op with other numbers for some of the values that it and its blocks read.

    Args:
        flat: The op.
        numbers: The new numbers of some values.
    """
    op = flat.op._replace(operands=_new(flat.op.operands, numbers))
    return FlatOp(op, tuple([_renumbered(one, numbers) for one in flat.inner]))


def _new(values: tuple[int, ...], numbers: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([numbers.get(value, value) for value in values])


def without_dead(block: FlatBlock) -> FlatBlock:
    """A block without dead ops, with the values from outside that each block uses."""
    used = set(block.results)
    kept: list[FlatOp] = []
    for flat in reversed(block.ops):
        op = flat.op
        if not (used.intersection(op.results) or has_effect(flat)):
            continue
        if op.is_loop:
            flat = without_dead_state(flat, used)
            op = flat.op
        elif op.kind.name == BARRIER:
            op = _barrier(op, [pair for pair in zip(op.operands, op.results) if pair[1] in used])
        inner = tuple([without_dead(region) for region in flat.inner])
        used.update(op.operands)
        for region in inner:
            used.update(region.outer)
        kept.append(FlatOp(op, inner))
    kept.reverse()
    made = {value for flat in kept for value in flat.op.results}.union(block.arguments)
    return FlatBlock(block.arguments, tuple(kept), block.results, tuple(sorted(used - made)))
