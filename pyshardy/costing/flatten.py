"""A program as a compiler sees it before it fuses: calls inlined, dead ops gone, ops that only rename left out.

What is computed twice is computed once, but not across an optimization barrier: recomputation is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyshardy.costing.program import Block, Kind, Op, Program, Tensor
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import ELEMENTWISE

_RENAMING = frozenset(
    [
        *op_names("stablehlo.", "reshape"),
        *op_names("sdy.", "sharding_constraint reshard data_flow_edge propagation_barrier"),
    ]
)
"""Ops whose results take the memory of their operands."""
CONSTANTS = frozenset(("stablehlo.constant", "sdy.constant"))
_EFFECTS = frozenset(op_names("stablehlo.", "custom_call send recv infeed outfeed while case if"))
"""Ops that stay although nothing uses their results; loops and conditionals only if something in them does."""


_BARRIER = "stablehlo.optimization_barrier"
_NEVER_TWICE = frozenset(op_names("stablehlo.", "custom_call send recv infeed outfeed rng create_token after_all"))
"""Ops that are not taken for one another: they do something."""


class FlatOp(NamedTuple):
    """An op with the blocks inside of it flattened too.

    Attributes:
        op: The op, with operands and results as they are numbered after flattening.
        inner: The blocks of its regions.
    """

    op: Op
    inner: tuple[FlatBlock, ...] = ()


class FlatBlock(NamedTuple):
    """A block without calls.

    Attributes:
        arguments: The values that it is given.
        ops: The ops.
        results: The values that it returns.
        outer: The values from around it that are used inside, in order of number.
    """

    arguments: tuple[int, ...]
    ops: tuple[FlatOp, ...]
    results: tuple[int, ...]
    outer: tuple[int, ...] = ()


class Flat(NamedTuple):
    """A program without calls.

    Attributes:
        tensors: The type of every value.
        body: What runs.
        uniform: The values that are one number everywhere, and cost nothing to make.
        constants: The values that are known before the program runs.
    """

    tensors: list[Tensor]
    body: FlatBlock
    uniform: frozenset[int]
    constants: frozenset[int]


def flatten(program: Program) -> Flat:
    """A program with its calls inlined and without what a compiler drops before it fuses."""
    flattener = _Flattener(program)
    body = flattener.block(program.body, {})
    body = without_dead(_renumbered(body, flattener.hidden) if flattener.hidden else body)
    return Flat(flattener.tensors, body, frozenset(flattener.uniform), frozenset(flattener.constants))


class _Flattener:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.tensors = list(program.tensors)
        self.uniform: set[int] = set()
        self.constants: set[int] = set()
        self.used: set[int] = set()
        self.hidden: dict[int, int] = {}
        self.twins: dict[tuple[Kind, tuple[int, ...]], tuple[int, ...]] = {}

    def block(self, block: Block, outer: Mapping[int, int]) -> FlatBlock:
        """A block in which values from around it have other numbers."""
        numbers = dict(outer)
        arguments = tuple([self._number(value, numbers) for value in block.arguments])
        ops: list[FlatOp] = []
        around, self.twins = self.twins, {}  # a block computes for itself
        self._add(block.ops, numbers, ops)
        self.twins = around
        return FlatBlock(arguments, tuple(ops), tuple([numbers[value] for value in block.results]))

    def _number(self, value: int, numbers: dict[int, int]) -> int:
        """A value's own number, or a new one where its block is there for the second time."""
        if value in self.used:
            self.tensors.append(self.tensors[value])
            numbers[value] = len(self.tensors) - 1
        else:
            self.used.add(value)
            numbers[value] = value
        return numbers[value]

    def _add(self, block: tuple[Op, ...], numbers: dict[int, int], ops: list[FlatOp]) -> None:
        for op in block:
            if op.callee is not None:
                self._inline(op, numbers, ops)
            elif op.branch is not None:
                taken = op.regions[op.branch]
                numbers.update((argument, numbers[value]) for argument, value in zip(taken.arguments, op.operands))
                self._add(taken.ops, numbers, ops)
                for result, returned in zip(op.results, taken.results):
                    numbers[result] = numbers[returned]
            elif op.kind.name == _BARRIER:
                for operand, result in zip(op.operands, op.results):
                    self._hide(numbers[operand], self._number(result, numbers))
            elif op.kind.name in _RENAMING or _renames(op):
                for operand, result in zip(op.operands, op.results):
                    numbers[result] = numbers[operand]
            else:
                op = self._without_constant_state(op, numbers) if op.is_loop else op
                inner = tuple([self.block(region, numbers) for region in op.regions])
                operands = tuple([numbers[value] for value in op.operands])
                twin = None if inner or op.traffic is not None else self.twins.get((op.kind, operands))
                if twin is not None:
                    numbers.update(zip(op.results, twin))
                    continue
                results = tuple([self._number(value, numbers) for value in op.results])
                if not inner and op.traffic is None and op.kind.name not in _NEVER_TWICE:
                    self.twins[op.kind, operands] = results
                self._look(op, operands, results)
                ops.append(FlatOp(op._replace(operands=operands, results=results, regions=()), inner))

    def _without_constant_state(self, op: Op, numbers: dict[int, int]) -> Op:
        """A loop without the values that no round changes, which stay where they are."""
        condition, body = op.regions
        stays = [argument == result for argument, result in zip(body.arguments, body.results)]
        if not any(stays):
            return op
        for place, is_same in enumerate(stays):
            if is_same:
                number = numbers[op.operands[place]]
                for value in (condition.arguments[place], body.arguments[place], op.results[place]):
                    numbers[value] = number
        changing = [place for place, is_same in enumerate(stays) if not is_same]
        regions = (
            condition._replace(arguments=tuple([condition.arguments[place] for place in changing])),
            body._replace(
                arguments=tuple([body.arguments[place] for place in changing]),
                results=tuple([body.results[place] for place in changing]),
            ),
        )
        operands, results = (tuple([values[place] for place in changing]) for values in (op.operands, op.results))
        return op._replace(operands=operands, results=results, regions=regions)

    def _inline(self, op: Op, numbers: dict[int, int], ops: list[FlatOp]) -> None:
        assert op.callee is not None
        body = self.program.functions[op.callee]
        if not body.results and op.results:  # a declaration: nothing is known of it
            operands = tuple([numbers[value] for value in op.operands])
            results = tuple([self._number(value, numbers) for value in op.results])
            ops.append(FlatOp(op._replace(operands=operands, results=results, callee=None)))
            return
        inside = {argument: numbers[operand] for argument, operand in zip(body.arguments, op.operands)}
        self._add(body.ops, inside, ops)
        for result, returned in zip(op.results, body.results):
            numbers[result] = inside[returned]

    def _hide(self, value: int, number: int) -> None:
        """Give a value another number until the end, so that what is computed of it is not computed elsewhere."""
        self.hidden[number] = self.hidden.get(value, value)
        for known in (self.uniform, self.constants):
            if value in known:
                known.add(number)

    def _look(self, op: Op, operands: tuple[int, ...], results: tuple[int, ...]) -> None:
        """Note what is one number everywhere, and what is constant."""
        name = op.kind.name
        if name in CONSTANTS:
            self.constants.update(results)
            if op.kind.fact("is_splat", False) or self.tensors[results[0]].elements == 1:
                self.uniform.update(results)
        elif name == "stablehlo.broadcast_in_dim":
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
            if operands[0] in self.uniform:
                self.uniform.update(results)


_FOLDED = frozenset(op_names("stablehlo.", "transpose slice concatenate reverse"))


def _renames(op: Op) -> bool:
    """Whether the result is the operand under another type of the same layout."""
    if len(op.operands) != 1 or len(op.results) != 1:
        return False
    name, (before,), (after,) = op.kind.name, op.kind.operands, op.kind.results
    if name == "stablehlo.convert":
        return before.dtype == after.dtype
    if name == "stablehlo.broadcast_in_dim":
        return before.elements == after.elements and before.elements > 0
    if name == "stablehlo.transpose":
        order = op.kind.fact("permutation", ())
        shape = before.shape or ()
        moved = [dim for dim in order if shape[dim] != 1]  # type: ignore[attr-defined]
        return moved == sorted(moved)
    return False


def _renumbered(block: FlatBlock, numbers: Mapping[int, int]) -> FlatBlock:
    """A block in which some values have other numbers."""

    def new(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple([numbers.get(value, value) for value in values])

    ops = [
        FlatOp(
            flat.op._replace(operands=new(flat.op.operands)), tuple([_renumbered(one, numbers) for one in flat.inner])
        )
        for flat in block.ops
    ]
    return FlatBlock(block.arguments, tuple(ops), new(block.results))


def without_dead(block: FlatBlock) -> FlatBlock:
    """A block without ops whose results nothing uses, with what each block uses from around it."""
    used = set(block.results)
    kept: list[FlatOp] = []
    for flat in reversed(block.ops):
        op = flat.op
        if not (used.intersection(op.results) or op.kind.name in _EFFECTS or op.traffic is not None):
            continue
        inner = tuple([without_dead(region) for region in flat.inner])
        used.update(op.operands)
        for region in inner:
            used.update(region.outer)
        kept.append(FlatOp(op, inner))
    kept.reverse()
    made = {value for flat in kept for value in flat.op.results}.union(block.arguments)
    return FlatBlock(block.arguments, tuple(kept), block.results, tuple(sorted(used - made)))
