"""`sdy-constant-or-scalar-splitter`: copies every constant expression for every use.

Otherwise the uses of one constant would affect each other's shardings.

Source: docs/semantics/import.md#sdy-constant-or-scalar-splitter
"""

from __future__ import annotations

from typing import Any

from pyshardy.ir.blocks import Value
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.symbols import SymbolTable, clone_function, original_name, post_order
from pyshardy.passes.base import Pass
from pyshardy.rules.properties import may_preserve_constants, preserves_constants
from pyshardy.transforms.context import PassContext

_GROUP = "sdy.sharding_group"
_COMPUTATION = "sdy.named_computation"
_BROADCAST = "stablehlo.broadcast_in_dim"
_SOURCES = frozenset(("sdy.constant", "stablehlo.iota"))


class ConstantOrScalarSplitter(Pass):
    """Give every use of a constant expression, and of a broadcast scalar, its own copy."""

    name = "sdy-constant-or-scalar-splitter"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        others = set()
        for inner in ops_named(op, ("stablehlo.constant", _GROUP, _COMPUTATION)):
            if inner.name == "stablehlo.constant":
                inner.rename("sdy.constant")
            else:
                others.add(inner.name)
        splitter = _Splitter(SymbolTable(op), context.specs, _GROUP in others)
        for function in post_order(op):
            if _COMPUTATION in others:
                splitter.split_computations(function)
            splitter.split_inside(function, function)


_Split = dict[Any, bool]
"""The ops whose results are copied for every use, each with whether it is constant or only a broadcast scalar."""


class _Splitter:
    """Splits function by function, callees first.

    Args:
        symbols: The table that copies of functions are added to.
        specs: Describes ops.
        has_groups: Whether there are sharding groups; copies join the groups of their originals.

    Attributes:
        other_functions: Original names of functions that do more than compute constants from constants.
        other_computations: The same for named computations.
    """

    def __init__(self, symbols: SymbolTable, specs: OpSpecReader, has_groups: bool) -> None:
        self.symbols = symbols
        self.specs = specs
        self.has_groups = has_groups
        self.other_functions: set[str] = set()
        self.other_computations: set[str] = set()

    def split_computations(self, function: Op) -> None:
        """Split in the named computations of a function, inner ones first."""
        for op in ops_named(function, (_COMPUTATION,), post_order=True):
            self.split_inside(op, function)

    def split_inside(self, holder: Op, function: Op) -> None:
        """Split in a function, or in one of its named computations, but not in computations inside."""
        split: _Split = {}
        is_marked = False
        for op in ops_in(holder, closed=(_COMPUTATION,))[1:]:
            name, operands = op.name, op.operands
            if name in _SOURCES:
                split[op] = True
                continue
            is_touched, is_constant = False, True
            for value in operands:
                found = split.get(value.owner)
                is_touched = is_touched or found is not None
                is_constant = is_constant and found is True
            if is_marked and operands and not is_touched and name != _BROADCAST:
                continue  # most ops need nothing here
            if name == _GROUP:
                continue
            preserving = self.is_preserving(op)
            if preserving and is_constant:
                split[op] = True
                continue
            if not (preserving or is_marked or op.is_terminator):
                is_marked = True
                self.mark_other(op, function)
            if name == _BROADCAST and operands[0].type.shape == ():
                split[op] = False
            elif is_touched:
                for index, value in enumerate(operands):
                    if value.type.shape != () and value.owner in split:
                        _use_anew(op, index, self.copy(value, {}, not self.has_groups))
        _erase_unused(split, self.has_groups)

    def is_preserving(self, op: Op) -> bool:
        """Whether the op computes a constant from constants."""
        if may_preserve_constants(op.name):
            return _is_static(op) or preserves_constants(self.specs.spec(op))
        if op.name == "func.call":
            return original_name(self.symbols.callee(op)) not in self.other_functions
        return op.name == _COMPUTATION and op.attrs["name"] not in self.other_computations

    def mark_other(self, op: Op, function: Op) -> None:
        """Record that the function and the named computation around `op` are not constant."""
        self.other_functions.add(original_name(function))
        computation = op.enclosing(_COMPUTATION)
        if computation is not None:
            self.other_computations.add(computation.attrs["name"])

    def copy(self, value: Value, copies: dict[Value, Value], takes_last: bool) -> Value:
        """A copy of the expression that computes `value`, each op right before its original; scalars are shared.

        Args:
            value: The value.
            copies: The copies made so far; grows.
            takes_last: Whether an original without other uses may serve as its own copy. It would be erased otherwise.
        """
        if value.type.shape == () or value in copies:
            return copies.get(value, value)
        op = value.defining_op
        assert op is not None
        is_call = op.name == "func.call"
        takes_last = takes_last and value.has_one_use() and len(op.results) == 1 and not (op.regions or is_call)
        for operand in op.operands:
            self.copy(operand, copies, takes_last)
        if takes_last:
            for index, operand in enumerate(op.operands):
                _use_anew(op, index, copies.get(operand, operand))
            copies[value] = value
            return value
        copy = op.clone(copies).insert_before(op)
        if is_call:
            copy.set_attr("callee", clone_function(self.symbols.callee(op), self.symbols).attrs["sym_name"])
        for user in value.users() if self.has_groups else ():
            if user.name == _GROUP:
                user.clone({value: copies[value]}).insert_before(op)
        return copies[value]


def _use_anew(op: Op, index: int, value: Value) -> None:
    """Make the op the last user of a value, as if it were a new copy, even if it uses the value already."""
    if value is not op.operands[index] or not value.has_one_use():
        op.set_operand(index, value)


def _is_static(op: Op) -> bool:
    """Whether the op's name alone tells whether it preserves constants. This holds if no size is dynamic."""
    if op.name == "stablehlo.bitcast_convert":
        return False
    for values in (op.operands, op.results):
        for value in values:
            if not value.type.is_static:
                return False
    return True


def _erase_unused(split: _Split, has_groups: bool) -> None:
    """Erase originals that only sharding groups use, and those groups, users first."""
    expansions = [op for op in split if not split[op]]
    for op in (*expansions, *[op for op in reversed(split) if split[op]]):
        if not has_groups:
            if not op.has_uses():
                op.erase()
        elif not _is_used(op):
            for group in [user for result in op.results for user in result.users()]:
                group.erase()
            op.erase()


def _is_used(op: Op) -> bool:
    """Whether anything except sharding groups uses a result."""
    for result in op.results:
        for user in result.users():
            if user.name != _GROUP:
                return True
    return False
