"""The data-flow edges of a module as ops of a `Program`: each joins the values that it stands for.

Source: docs/semantics/propagation.md#data-flow-edges
"""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.ir.callers import Callers
from pyshardy.ir.dataflow import op_of_owner, owns_edge, source_uses
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import function_of_argument, is_declaration, return_op
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.numbering import Numbering
from pyshardy.ir.op_kinds import OpKinds
from pyshardy.ir.purity import is_pure
from pyshardy.propagation.program import Direction, ManualView, OpKind
from pyshardy.rules.properties import EDGE, Priority
from pyshardy.rules.rule_builder import identity_rule


class EdgeTensors:
    """Finds the kinds and tensors of data-flow edges.

    Args:
        numbering: The numbers of the module's ops and values.
        holders: Per value, the value that holds its sharding.
        callers: The calls of the module.
        kinds: The kinds of its ops.

    Attributes:
        views: Of edges of manual computations, how they see the sharding of their value, by number.
    """

    def __init__(self, numbering: Numbering, holders: Sequence[int], callers: Callers, kinds: OpKinds) -> None:
        self.views: dict[int, ManualView] = {}
        self._numbering = numbering
        self._holders = holders
        self._callers = callers
        self._kinds = kinds

    def of(self, op: Op) -> tuple[int, tuple[int, ...]]:
        """The number of the kind of an edge, and its tensors.

        Raises:
            PassError: It is on a value of an op without data-flow edges.
        """
        view = manual_view_of(op) if op.name == EDGE else None
        if view is not None:
            self.views[self._numbering.op_numbers[op]] = view
        sources, numbers = self._sources(op), self._numbering.value_numbers
        shape = op.result.type.shape
        tensors: tuple[int, ...] = ()
        if not sources or not op.result.type.is_static:
            shape = None
        else:
            tensors = tuple([self._holders[numbers[value]] for value in (*sources, op.result)])
        key = op.name, shape, len(tensors)
        kind = self._kinds.numbers.get(key)
        if kind is None:
            rule = None if shape is None else identity_rule(shape, len(sources))
            new = OpKind(op.name, rule, Priority.PASS_THROUGH, Direction.BOTH, False, True, is_pure(op))
            kind = self._kinds.numbers[key] = self._kinds.number(new)
        return kind, tensors

    def _sources(self, edge: Op) -> list[Value]:
        """The values that an edge op stands for besides itself."""
        owner = edge.operands[0]
        if edge.name == EDGE:
            if not owns_edge(owner):
                raise PassError(edge, f"is on a value of '{op_of_owner(owner).name}', an op without data-flow edges")
            return [user.operands[index] for user, index in source_uses(owner)]
        function = function_of_argument(owner)
        if function is not None:
            return [call.operands[owner.index] for call in self._callers.of(function)]
        call = owner.defining_op
        assert call is not None
        callee = self._callers.callee(call)
        return [] if is_declaration(callee) else [return_op(callee).operands[owner.index]]


def manual_view_of(edge: Op) -> ManualView | None:
    """The view of an edge of a manual computation; None for any other edge."""
    owner = edge.operands[0]
    op = owner.defining_op
    computation = op if op is not None else owner.block.parent_op
    if computation.name != "sdy.manual_computation":
        return None
    shardings = computation.attrs["in_shardings" if op is None else "out_shardings"]
    return ManualView(op is None, shardings[owner.index], computation.attrs["manual_axes"])
