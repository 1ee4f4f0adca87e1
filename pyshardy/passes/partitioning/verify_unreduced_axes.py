"""`sdy-verify-unreduced-axes`: checks that no op silently adds or drops unreduced axes.

Source: docs/semantics/export.md#sdy-verify-unreduced-axes
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, result_sharding
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Anchor, Pass
from pyshardy.propagation.views import strip_manual_axes
from pyshardy.rules.properties import PRODUCTS, REDUCING_COLLECTIVES, REDUCING_RESHARDS
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reduction_kinds import body_kind
from pyshardy.transforms.reshards.barriers import before_barriers, sharding_before_barriers
from pyshardy.transforms.reshards.survey import distinct_shardings
from pyshardy.transforms.reshards.transition import ANY_KIND, NO_KIND, Kinds, check_transition

_RESHARDS = frozenset(("sdy.reshard", "sdy.sharding_constraint"))
_UNCHECKED = _RESHARDS | {"sdy.propagation_barrier"}
_ALWAYS_CHECKED = REDUCING_RESHARDS | {"func.call"}
"""Ops to check even if nothing in their function is unreduced."""
_SUM: Kinds = frozenset((ReductionKind.SUM,))


class VerifyUnreducedAxes(Pass):
    """Refuse ops that drop unreduced axes, or that add axes along which they cannot give partial results.

    The result of a reshard or a sharding constraint may be used as unreduced or not.
    """

    name = "sdy-verify-unreduced-axes"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        _Verifier(op, context).run()


class _Verifier:
    """One run over one function."""

    def __init__(self, function: Op, context: PassContext) -> None:
        self.function = function
        self.context = context
        self.meshes = context.meshes

    @cached_property
    def symbols(self) -> SymbolTable:
        return SymbolTable(self.context.root)

    def run(self) -> None:
        has_unreduced = any(sharding.unreduced for sharding in distinct_shardings(self.function))
        if has_unreduced:
            ops = ops_in(self.function, post_order=True)
        else:
            ops = ops_named(self.function, _ALWAYS_CHECKED, post_order=True)
        for op in ops:
            self._verify(op)

    def _verify(self, op: Op) -> None:
        name = op.name
        if name == "func.call":
            self._verify_call(op)
        elif op.is_terminator:
            self._verify_return(op)
        elif name in REDUCING_RESHARDS:
            if sharding_before_barriers(op.operands[0]) is None:
                raise PassError(op, "has an operand without a sharding")
        elif name in REDUCING_COLLECTIVES:
            given, made = sharding_before_barriers(op.operands[0]), get_sharding(op.results[0])
            check_transition(op, [given], [made], self.meshes, NO_KIND, _body_kinds(op))
        elif name == "stablehlo.reduce":
            self._check(op, op.operands[: len(op.results)], _body_kinds(op))
        elif name not in _UNCHECKED:
            self._check(op, op.operands, _SUM if name in PRODUCTS else ANY_KIND)

    def _check(self, op: Op, sources: Iterable[Value], may_add: Kinds) -> None:
        given = [_source_sharding(value) for value in sources]
        made = [get_sharding(result) for result in op.results]
        check_transition(op, given, made, self.meshes, may_add, NO_KIND)

    def _verify_call(self, op: Op) -> None:
        callee = self.symbols.callee(op)
        for index, value in enumerate(op.operands):
            _compare(op, value, f"argument {index} of the call", arg_sharding(callee, index))
        for index, result in enumerate(op.results):
            _compare(op, result, f"result {index} of the call", result_sharding(callee, index))

    def _verify_return(self, op: Op) -> None:
        parent = op.parent_op
        assert parent is not None
        if parent.name != "func.func" and op.name != "sdy.return":
            return
        for index, value in enumerate(op.operands):
            target = _returned_to(parent, index)
            if target is not None:
                _compare(op, value, f"returned value {index}", target)


def _body_kinds(op: Op) -> Kinds:
    kind = body_kind(op)
    return NO_KIND if kind is None else frozenset((kind,))


def _is_free(value: Value) -> bool:
    """Whether the value may be used as unreduced or not."""
    op = before_barriers(value).defining_op
    return op is not None and op.name in _RESHARDS


def _source_sharding(value: Value) -> TensorSharding | None:
    return None if _is_free(value) else sharding_before_barriers(value)


def _returned_to(parent: Op, index: int) -> TensorSharding | None:
    """The sharding of the result that takes a returned value, as seen from inside."""
    if parent.name == "func.func":
        return result_sharding(parent, index)
    if index >= len(parent.results):
        return None
    found = get_sharding(parent.results[index])
    if found is not None and parent.name == "sdy.manual_computation":
        return strip_manual_axes(found, parent.attrs["manual_axes"])
    return found


def _compare(op: Op, value: Value, what: str, other: TensorSharding | None) -> None:
    """Refuse a value if its counterpart, such as the argument that receives it, has other unreduced axes."""
    if _is_free(value):
        return
    sharding = sharding_before_barriers(value)
    ours = frozenset(() if sharding is None else sharding.unreduced)
    theirs = frozenset(() if other is None else other.unreduced)
    if ours != theirs:
        names = ", ".join(sorted({axis.name for axis in ours ^ theirs}))
        raise PassError(op, f"has other unreduced axes than its counterpart for {what}: {names}; reshard in between")
