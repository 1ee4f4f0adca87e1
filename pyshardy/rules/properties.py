"""Properties of ops besides their rule: element-wise, preserving constants, and the classes of op priority.

They follow from the traits of ops, and sometimes from shapes. Whether an op is element-wise is independent of its rule.

Source: docs/semantics/rules.md#elementwise-ops
"""

from __future__ import annotations

from typing import Final

from pyshardy.rules.ops import OPS, ops_that
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.traits import DataFlow, Elementwise, OpTraits
from pyshardy.rules.traits import Priority as Priority

ELEMENTWISE: Final = ops_that(lambda traits: traits.elementwise is Elementwise.YES)
"""Names of the ops that are element-wise whatever their shapes."""
CONSTANTS: Final = ops_that(lambda traits: traits.is_constant)
"""Constant ops of all dialects."""
PROGRAM_CONSTANTS: Final = frozenset([name for name in CONSTANTS if name.startswith(("sdy.", "stablehlo."))])
"""Constant ops in programs of StableHLO, also between the passes."""
PRODUCTS: Final = ops_that(lambda traits: traits.is_product)
"""Products of two matrices, or of batches of them."""
CONTROL_FLOW: Final = ops_that(lambda traits: traits.is_control_flow)
"""Loops and conditionals."""
CONDITIONALS: Final = ops_that(lambda traits: traits.data_flow is DataFlow.BRANCHES)
EDGE: Final = "sdy.data_flow_edge"
FUNCTION_EDGE: Final = "sdy.func_data_flow_edge"
EDGES: Final = frozenset((EDGE, FUNCTION_EDGE))
"""Ops that stand for all values of one data flow during propagation."""
CUSTOM_CALL: Final = "stablehlo.custom_call"
RESHARDING_COLLECTIVES: Final = ops_that(lambda traits: traits.own_shardings == ("out_sharding",))
"""Collectives that change only the sharding of a value, to one that they state."""
IDENTITIES: Final = ops_that(lambda traits: traits.is_identity)
"""Ops whose only result equals their only operand."""
REDUCING_COLLECTIVES: Final = ops_that(lambda traits: traits.reduces and traits.has_replica_groups)
"""Collectives of StableHLO that combine values of several devices."""
REDUCING_RESHARDS: Final = ops_that(lambda traits: traits.reduces and traits.own_shardings)
"""Such collectives of Shardy."""
_IF_SAME_SHAPE: Final = ops_that(lambda traits: traits.elementwise is Elementwise.IF_SAME_SHAPE)
_PRIORITIES: Final = {name: traits.priority for name, traits in OPS.items() if traits.priority}


def _keeps_constants(traits: OpTraits) -> bool:
    if traits.keeps_constants is None:
        return traits.elementwise in (Elementwise.YES, Elementwise.IF_SAME_SHAPE)
    return traits.keeps_constants


_MAY_PRESERVE: Final = ops_that(_keeps_constants)


def is_elementwise(spec: OpSpec) -> bool:
    """Whether every element of the results depends only on the elements at the same position.

    Scalar operands beside larger ones do not count. `bitcast_convert` is element-wise if it keeps the shape.

    >>> is_elementwise(OpSpec("stablehlo.select", [(), (4,), (4,)], [(4,)]))
    True
    >>> is_elementwise(OpSpec("stablehlo.bitcast_convert", [(4,)], [(4, 2)]))
    False
    """
    if spec.name in ELEMENTWISE:
        return True
    return spec.name in _IF_SAME_SHAPE and spec.operand_shapes == spec.result_shapes


def may_preserve_constants(name: str) -> bool:
    """Whether ops of this name preserve constants, if their shapes allow it.

    >>> may_preserve_constants("stablehlo.add"), may_preserve_constants("stablehlo.dot")
    (True, False)
    """
    return name in _MAY_PRESERVE


def preserves_constants(spec: OpSpec) -> bool:
    """Whether the results are constants if the operands are, for splitting constant expressions.

    True for broadcast, reshape, slice and element-wise ops that may run at any time and any number of times. Calls and
    named computations depend on their content; this function does not judge them.

    >>> preserves_constants(OpSpec("stablehlo.add", [(4,), (4,)], [(4,)]))
    True
    >>> preserves_constants(OpSpec("sdy.sharding_constraint", [(4,)], [(4,)]))
    False
    """
    if spec.name not in _MAY_PRESERVE or (spec.name in _IF_SAME_SHAPE and not is_elementwise(spec)):
        return False
    return not spec.name.startswith("stablehlo.") or _cannot_fail(spec)


def _cannot_fail(spec: OpSpec) -> bool:
    """Whether no dynamic size can turn out wrong: no dynamic dimension is asserted to have a static size."""
    if not any(-1 in shape for shape in spec.operand_shapes if shape):
        return True
    pairs = zip(spec.operand(0), spec.result(0))
    return len(spec.operand_shapes) == 1 and all(after == -1 or before != -1 for before, after in pairs)


def priority_of(spec: OpSpec) -> Priority:
    """The class of an op in op-priority propagation.

    >>> priority_of(OpSpec("stablehlo.tanh", [(4,)], [(4,)])).name
    'PASS_THROUGH'
    >>> priority_of(OpSpec("stablehlo.custom_call", [(4,)], [(4,)], {"call_target_name": "MoveToHost"})).name
    'PASS_THROUGH'
    >>> priority_of(OpSpec("stablehlo.dot", [(4,), (4,)], [()])).name
    'OTHER'
    """
    found = _PRIORITIES.get(spec.name)
    if found is None:
        return _PRIORITIES.get(spec.key, Priority.OTHER)
    return Priority.OTHER if spec.name in _IF_SAME_SHAPE and not is_elementwise(spec) else found
