"""`sdy-constant-or-scalar-splitter`: a copy of every constant expression for every use (import spec, section 4.4).

Otherwise the uses of one constant would influence each other's shardings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyshardy.ir.nodes import Op, Region, Value, walk, walk_post_order
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.symbols import SymbolTable, clone_function, original_name, post_order
from pyshardy.passes.base import Pass, PassContext
from pyshardy.rules.properties import may_preserve_constants, preserves_constants

_GROUP = "sdy.sharding_group"
_COMPUTATION = "sdy.named_computation"
_BROADCAST = "stablehlo.broadcast_in_dim"


class ConstantOrScalarSplitter(Pass):
    """Give every use of a constant expression, and of a broadcast scalar, a copy of its own."""

    name = "sdy-constant-or-scalar-splitter"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        has_groups = False
        for inner in walk(op):
            if inner.name == "stablehlo.constant":
                inner.rename("sdy.constant")
            elif inner.name == _GROUP:
                has_groups = True
        splitter = _Splitter(SymbolTable(op), context.specs, has_groups)
        for function in post_order(op):
            splitter.split_function(function)


@dataclass(slots=True)
class _Splitter:
    """Splits function by function, callees first.

    Attributes:
        symbols: Where copies of functions go.
        specs: Describes ops.
        has_groups: Whether there are sharding groups, which copies join.
        other_functions: Original names of functions that do more than compute constants from constants.
        other_computations: The same for named computations.
    """

    symbols: SymbolTable
    specs: OpSpecReader
    has_groups: bool
    other_functions: set[str] = field(default_factory=set)
    other_computations: set[str] = field(default_factory=set)

    def split_function(self, function: Op) -> None:
        for op in [op for op in walk_post_order(function) if op.name == _COMPUTATION]:
            self.split_region(op.region, function)
        self.split_region(function.region, function)

    def split_region(self, region: Region, function: Op) -> None:
        constants: dict[Op, None] = {}
        expansions: dict[Op, None] = {}
        split: set[Any] = set()  # both
        is_marked = False
        for op in list(_walk_outside_computations(region)):
            name, operands = op.name, op.operands
            is_touched = False
            for value in operands:
                if value.owner in split:
                    is_touched = True
                    break
            if is_marked and operands and not is_touched and name != _BROADCAST:
                continue  # most ops: nothing here concerns them
            if name == _GROUP:
                continue
            preserving = self.is_preserving(op)
            if name in _SOURCES or (preserving and all(value.owner in constants for value in operands)):
                constants[op] = None
                split.add(op)
                continue
            if not (preserving or is_marked or op.is_terminator):
                is_marked = True
                self.mark_other(op, function)
            if name == _BROADCAST and operands[0].type.shape == ():
                expansions[op] = None
                split.add(op)
                continue
            if is_touched:
                for index, value in enumerate(operands):
                    if value.type.shape != () and value.owner in split:
                        op.set_operand(index, self.clone(value, {}))
        for op in (*expansions, *reversed(constants)):
            _erase_if_only_grouped(op)

    def is_preserving(self, op: Op) -> bool:
        """Whether the op computes a constant from constants."""
        if op.name == "func.call":
            return original_name(self.symbols.callee(op)) not in self.other_functions
        if op.name == _COMPUTATION:
            return op.attrs["name"] not in self.other_computations
        if not may_preserve_constants(op.name):
            return False
        return _is_static(op) or preserves_constants(self.specs.spec(op))

    def mark_other(self, op: Op, function: Op) -> None:
        """Note that the function and the named computation around `op` are not constant."""
        self.other_functions.add(original_name(function))
        computation = op.enclosing(_COMPUTATION)
        if computation is not None:
            self.other_computations.add(computation.attrs["name"])

    def clone(self, value: Value, copies: dict[Value, Value]) -> Value:
        """A copy of the expression that computes `value`, each op right before its original; scalars are shared."""
        if value.type.shape == () or value in copies:
            return copies.get(value, value)
        op = value.defining_op
        assert op is not None
        for operand in op.operands:
            self.clone(operand, copies)
        copy = op.clone(copies).insert_before(op)
        if op.name == "func.call":
            copy.attrs["callee"] = clone_function(self.symbols.callee(op), self.symbols).attrs["sym_name"]
        for user in value.users() if self.has_groups else ():
            if user.name == _GROUP:
                user.clone({value: copies[value]}).insert_before(op)
        return copies[value]


def _walk_outside_computations(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block:
            yield op
            if op.regions and op.name != _COMPUTATION:
                for inner in op.regions:
                    yield from _walk_outside_computations(inner)


def _is_static(op: Op) -> bool:
    """Whether the name of the op says whether it preserves constants: no size is dynamic."""
    if op.name == "stablehlo.bitcast_convert":
        return False
    return all(value.type.is_static for value in op.operands) and all(value.type.is_static for value in op.results)


_SOURCES = frozenset(("sdy.constant", "stablehlo.iota"))


def _erase_if_only_grouped(op: Op) -> None:
    """Erase an op whose results only sharding groups use, with those groups."""
    users = [user for result in op.results for user in result.users()]
    if all(user.name == _GROUP for user in users):
        for user in users:
            user.erase()
        op.erase()
