"""Intermediate values, with their gradients, by the expressions of the user's source that compute them.

JAX differentiates a constraint into the same constraint of the gradient. So a constraint in a line of source
applies, in a loaded module, to each value that the line computes, to its recomputation by `jax.checkpoint`, and to its
gradients.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import read_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import get_sharding
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.source.assignments import SourceSpan
from pyshardy.source.places import is_library

_FORWARD, _AGAIN, _BACKWARD = range(3)
_ENDS: Final = frozenset(("stablehlo.return", "func.return"))
_BARRIER: Final = "stablehlo.optimization_barrier"
_ADD, _SUBTRACT = "stablehlo.add", "stablehlo.subtract"
_MOST_SUMS: Final = 4
"""The most nested sums whose operands are searched."""
_BACKWARDS: Final = "transpose("
_VMAP: Final = "vmap("
_MANUAL: Final = "sdy.manual_computation"
_STORES: Final = "dynamic_update_index_in_dim"
"""The function that a scan calls to keep a value of every round."""


class OperandUse(NamedTuple):
    """A use of a value: the number of the op among all ops of the module, and of its operand."""

    op: int
    operand: int


class Made(NamedTuple):
    """A value that an expression computes, or its gradient.

    Attributes:
        op: The number of the op that computes it.
        result: The number of the result.
        uses: The uses that a constraint replaces.
    """

    op: int
    result: int
    uses: tuple[OperandUse, ...]


@dataclass(frozen=True, slots=True)
class SourceValue:
    """The values that one expression of the user's source computes.

    Attributes:
        span: The expression.
        function: The function it is in.
        shape: Sizes of the dimensions.
        element: MLIR's text of the element type.
        count: The number of values, without recomputed ones.
        made: All values that a constraint applies to, with recomputed ones and gradients.
    """

    span: SourceSpan
    function: str
    shape: tuple[int, ...]
    element: str
    count: int
    made: tuple[Made, ...]


class _Place(NamedTuple):
    """Where an op comes from: its part of the step, and the user's calls that led to it, innermost first.

    `is_store` says that it only keeps the values of a scan's rounds, `is_batched` that it is under `jax.vmap`.
    """

    role: int
    path: tuple[SourceSpan, ...]
    function: str
    is_differentiated: bool
    is_store: bool
    is_batched: bool

    @property
    def leaf(self) -> SourceSpan | None:
        return self.path[0] if self.path else None


def source_values(root: Op) -> list[SourceValue]:
    """The values for which the source can have a constraint, in program order.

    A value is left out if its gradients are uncertain, if the program constrains it already, if the expression
    computes values of several types, under `jax.vmap`, whose code sees a value without the dimension of the batch, or
    inside `jax.shard_map`, whose code sees a shard.

    Args:
        root: The module as `load` reads it; only locations with ranges of columns name expressions.
    """
    return list(_Finder(ops_in(root)).found())


def is_differentiated(root: Op) -> bool:
    """Whether a module computes gradients, as far as its locations say."""
    return any(_BACKWARDS in str(op.location) for op in ops_in(root))


def _is_inside(op: Op, main: Op) -> bool:
    return any(one is main for one in op.ancestors())


def constrained(module: Module, constraints: Iterable[tuple[SourceValue, TensorSharding]]) -> Module:
    """A module with constraints on values.

    Args:
        module: The module in which the values were found; it does not change.
        constraints: Values and their shardings.
    """
    root = module.copy_root()
    insert_constraints(root, constraints)
    return module.with_root(root)


def insert_constraints(root: Op, constraints: Iterable[tuple[SourceValue, TensorSharding]]) -> None:
    """Constrain values in place.

    Args:
        root: The module in which the values were found, or a copy of it.
        constraints: Values and their shardings.
    """
    ops = ops_in(root)
    for value, sharding in constraints:
        for op, result, uses in value.made:
            made = ops[op].results[result]
            constraint = Op(CONSTRAINT, [made], [made.type], {"sharding": sharding}, location=ops[op].place)
            constraint.insert_after(ops[op])
            for use in uses:
                ops[use.op].set_operand(use.operand, constraint.result)


class _Finder:
    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = ops
        self.number = {op: number for number, op in enumerate(ops)}
        known: dict[Any, _Place] = {}
        self.places: list[_Place] = []
        for op in ops:
            location = op.location
            place = known.get(location)
            if place is None:
                place = known[location] = _place(location)
            self.places.append(place)
        self.backward: dict[tuple[SourceSpan, ...], list[int]] = {}
        self.groups: dict[SourceSpan, list[int]] = {}
        main = main_function(ops[0])
        for number, place in enumerate(self.places):
            if not _is_inside(ops[number], main):  # a function may be called forward and backward
                continue
            if place.role == _BACKWARD:
                self.backward.setdefault(place.path, []).append(number)
            elif place.leaf is not None:
                self.groups.setdefault(place.leaf, []).append(number)

    def found(self) -> Iterator[SourceValue]:
        for span, members in self.groups.items():
            forward, again = (
                [value for number in members if self.places[number].role == role for value in self._leaving(number)]
                for role in (_FORWARD, _AGAIN)
            )
            types = {(value.type.shape, value.type.element) for value in (*forward, *again)}
            shape, element = forward[0].type.shape if forward else None, forward[0].type.element if forward else ""
            if not shape or len(types) != 1 or not forward[0].type.is_static or _is_constrained(forward[0]):
                continue
            first = self._place(_maker(forward[0]))
            if first.is_batched or any(_maker(value).enclosing(_MANUAL) is not None for value in (*forward, *again)):
                continue
            gradients = self._gradients(span, [*forward, *again])
            if len(gradients) != (len(forward) if first.is_differentiated and self.backward else 0):
                continue
            made = [*(self._made(value, span) for value in (*forward, *again)), *map(self._made, gradients)]
            yield SourceValue(span, first.function, shape, element, len(forward), tuple(made))

    def _place(self, op: Op) -> _Place:
        return self.places[self.number[op]]

    def _leaving(self, number: int) -> Iterator[Value]:
        """The results of an op that ops of other expressions use."""
        role, leaf = self.places[number].role, self.places[number].leaf
        for value in self.ops[number].results:
            users = [place for place in map(self._place, value.users()) if not place.is_store]
            if any(user.leaf != leaf and (role == _AGAIN or user.role == _FORWARD) for user in users):
                yield value

    def _made(self, value: Value, span: SourceSpan | None = None) -> Made:
        """A value with its uses outside its own expression."""
        uses = [(self.number[op], operand) for op, operand in value.uses]
        kept = [OperandUse(op, operand) for op, operand in uses if span is None or self.places[op].leaf != span]
        return Made(self.number[_maker(value)], value.index, tuple(sorted(kept)))

    def _gradients(self, span: SourceSpan, values: Sequence[Value]) -> list[Value]:
        """The sums of what goes back to values, one of each.

        JAX names, for each op of the backward pass and for such a sum, the op of the forward pass that it comes from.
        So a sum comes from a user of the value, and is used by ops that do not. Where `jax.checkpoint` calls what uses
        the value, the user is that call, and the sum comes from an op inside of it.
        """
        users = {path for value in values for path in self._users(value)}
        again = {path for value in values for path in self._checkpoints(value) if path in users}
        users |= {path for path in self.backward if any(path[-len(call) :] == call for call in again)}
        inside = {path for path in self.backward if any(span.contains(one) for one in path)}
        type = values[0].type
        found = []
        for number in sorted(number for path in users for number in self.backward[path]):
            for value in self.ops[number].results:
                is_alike = (value.type.shape, value.type.element) == (type.shape, type.element)
                if is_alike and any(self._goes_on(user, users, inside) for user in value.users()):
                    found.append(value)
        return found

    def _users(self, value: Value) -> set[tuple[SourceSpan, ...]]:
        """Where the users of a value are that make parts of its gradient; behind sums if it is in sums alone.

        The gradient of a sum is that of its parts: no op goes back from it.
        """
        values, found = [value], set[tuple[SourceSpan, ...]]()
        for _ in range(_MOST_SUMS):
            users = [user for one in values for user in one.users() if not self._place(user).is_store]
            paths = {self._place(user).path for user in users if user.name not in _ENDS}
            found = {path for path in paths if path and path in self.backward}
            if found:
                break
            values = [
                user.result
                for user in users
                if user.name == _ADD or (user.name == _SUBTRACT and user.operands[0] in values)
                if user.result.type == value.type
            ]
        return found

    def _checkpoints(self, value: Value) -> set[tuple[SourceSpan, ...]]:
        """The calls of `jax.checkpoint` that a value is an argument of, as their recomputation reads it."""
        return {self._place(user).path for user in value.users() if user.name == _BARRIER} - {()}

    def _goes_on(
        self, op: Op, users: Collection[tuple[SourceSpan, ...]], inside: Collection[tuple[SourceSpan, ...]]
    ) -> bool:
        """Whether an op takes a gradient further back than the users of a value, into the expression that makes it."""
        place = self._place(op)
        if place.role != _BACKWARD and op.name not in _ENDS:
            return False
        return place.path not in users and (not inside or place.path in inside)


def _is_constrained(value: Value) -> bool:
    """Whether the program constrains a value already, so that another constraint would be beside it."""
    return _maker(value).name == CONSTRAINT or any(user.name == CONSTRAINT for user in value.users())


def _maker(value: Value) -> Op:
    """The op that a value, which is a result, is of."""
    op = value.defining_op
    assert op is not None
    return op


def _place(location: Any) -> _Place:
    name, _, calls = read_location(location)
    scope = name or ""
    frames = [
        (SourceSpan(*call.place, call.end_line, call.end_column), call.function)
        for call in calls
        if call.end_column is not None and not is_library(call.file)
    ]
    frames = frames[_start([span for span, _ in frames]) :]
    role = _FORWARD if _BACKWARDS not in scope else _AGAIN if "rematted_computation" in scope else _BACKWARD
    function = frames[0][1] if frames else ""
    return _Place(role, tuple(span for span, _ in frames), function, "jvp(" in scope, _STORES in scope, _VMAP in scope)


def _start(path: Sequence[SourceSpan]) -> int:
    """Where the calls of an op begin; calls before led to the first use of a function that JAX has cached.

    >>> first, second, outer = (SourceSpan("f.py", line, 0, line, 9) for line in (7, 12, 21))
    >>> _start([first, outer, second, outer])
    2
    """
    others = [place for place, span in enumerate(path[:-1]) if span == path[-1]]
    return others[-1] + 1 if others else 0


def first_values(root: Op) -> dict[tuple[SourceSpan, tuple[int, ...]], Value]:
    """The first value of each expression and shape."""
    finder = _Finder(ops_in(root))
    found: dict[tuple[SourceSpan, tuple[int, ...]], Value] = {}
    for span, members in finder.groups.items():
        for value in [value for number in members for value in finder._leaving(number)]:
            found.setdefault((span, tuple(value.type.shape or ())), value)
    return found


def first_shardings(root: Op) -> dict[tuple[SourceSpan, tuple[int, ...]], TensorSharding | None]:
    """The sharding of the first value of each expression and shape in a propagated program."""
    return {place: get_sharding(value) for place, value in first_values(root).items()}
