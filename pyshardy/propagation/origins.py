"""The annotations that the axes of values originate from.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.debug import PropagationEdge
from pyshardy.propagation.program import NO_VALUE, Program
from pyshardy.propagation.trace import MAIN_RESULT, Step

CONSTRAINT: Final = "sdy.sharding_constraint"
_RETURN: Final = "func.return"


class Origins:
    """The annotated value that each axis of each value originates from; the first known origin stays.

    Values have their numbers in a program. Annotated are the arguments and results of functions, the results of
    constraints, and the arguments and results of manual computations.

    >>> origins = Origins()
    >>> origins.add(1, [AxisRef("p")], 0)
    >>> origins.inherit(2, AxisRef("p", 1, 2), 1)
    >>> origins.of(2)
    {AxisRef('p', 1, 2): 0}
    """

    def __init__(self) -> None:
        self._of: dict[int, dict[AxisRef, int]] = {}

    @classmethod
    def given(cls, program: Program) -> Origins:
        """The origins of the axes that a program has before propagation."""
        origins = cls()
        for value, sharding, annotated in _annotations(program):
            if sharding is not None and value != NO_VALUE:
                origins.add(value, (axis for dim in sharding.dims for axis in dim.axes), annotated)
        return origins

    def add(self, value: int, axes: Iterable[AxisRef], annotated: int) -> None:
        """Record the origin of axes of a value."""
        known = self._of.setdefault(value, {})
        for axis in axes:
            known.setdefault(axis, annotated)

    def inherit(self, value: int, axis: AxisRef, source: int) -> None:
        """Give an axis of a value the origin that it, or an overlapping axis, has in another value."""
        known = self._of.get(source, {})
        origin = known.get(axis)
        if origin is None:
            origin = next((known[one] for one in known if one.contains(axis) or axis.contains(one)), None)
        if origin is not None:
            self.add(value, [axis], origin)

    def follow(self, edges: Iterable[tuple[Step, PropagationEdge]]) -> None:
        """Record what the steps of propagation move."""
        for step, edge in edges:
            source, target = step.source, step.target
            assert source is not None
            if step.op == MAIN_RESULT:  # a step on the returned value also counts for the result
                source = target = target if edge.target == 0 else source
            self.inherit(target, edge.axis, source)

    def of(self, value: int) -> Mapping[AxisRef, int]:
        """The known origins of a value that holds its sharding."""
        return self._of.get(value, {})


def plain_axis(axis: AxisRef) -> str:
    """An axis as the name of an entry of a debug attribute, by which these are sorted."""
    return axis.name if axis.is_full else f"{axis.name}:({axis.pre_size}){axis.size}"


def function_returns(program: Program) -> list[int]:
    """The ops that return from the functions of a program, by number, in the order of these functions."""
    parents = program.parents
    return [op for op in _named(program, _RETURN) if parents[op] >= 0 and parents[parents[op]] == -1]


def _annotations(program: Program) -> Iterator[tuple[int, TensorSharding | None, int]]:
    """Holders, the shardings that annotations give them, and the annotated values; the first of these counts."""
    holders, shardings = program.holders, program.shardings

    def held(value: int, annotated: int) -> tuple[int, TensorSharding | None, int]:
        holder = holders[value]
        return holder, None if holder == NO_VALUE else shardings[holder], annotated

    for op in _named(program, CONSTRAINT):
        (result,) = program.results[op]
        yield held(result, result)
        yield held(program.operands[op][0], result)
    yield from _of_manual_computations(program)
    returns = function_returns(program)
    result = first = len(holders) - sum(len(program.operands[op]) for op in returns)
    of_functions = {program.parents[op]: list[int]() for op in returns}
    for value in range(first):
        if program.owners[value] in of_functions:
            of_functions[program.owners[value]].append(value)
    for op in returns:
        for value in of_functions[program.parents[op]]:
            yield held(value, value)
        for value in program.operands[op]:
            yield holders[value], shardings[result], result
            result += 1


def _of_manual_computations(program: Program) -> Iterator[tuple[int, TensorSharding | None, int]]:
    """The annotations of manual computations, of those inside another one first."""
    edges: dict[int, list[tuple[bool, int, int]]] = {}
    for edge, view in program.views.items():
        (value,) = program.operands[edge]
        edges.setdefault(program.owners[value], []).append((not view.is_argument, value, edge))
    ends = dict(zip(edges, edges))
    for op, parent in enumerate(program.parents if edges else ()):
        while parent >= 0:
            if parent in ends:
                ends[parent] = op
            parent = program.parents[parent]
    for op in sorted(edges, key=ends.__getitem__):
        for is_result, value, edge in sorted(edges[op]):
            yield program.results[edge][0], program.views[edge].outer, value
            if not is_result and program.tensors[edge]:
                source = program.tensors[edge][0]
                yield source, program.shardings[source], value


def _named(program: Program, name: str) -> list[int]:
    kinds = {number for number, kind in enumerate(program.kinds) if kind.name == name}
    return [op for op, kind in enumerate(program.kind_of) if kind in kinds] if kinds else []
