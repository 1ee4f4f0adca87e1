"""The rules that the partitioner's passes use for ops."""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import string_value
from pyshardy.rules.elementwise import pointwise
from pyshardy.rules.ops import ops_that
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.properties import is_elementwise
from pyshardy.rules.rule import Rule, Shape
from pyshardy.rules.table import RULES, rule_of
from pyshardy.rules.traits import Elementwise
from pyshardy.rules.user_rules import USER_RULES

_LARGE = 2**62
"""The size of a dynamic dimension in a rule."""
_FOR_PARTITIONER = ops_that(lambda traits: traits.elementwise is Elementwise.FOR_PARTITIONER)
_MAY_BE_POINTWISE = ops_that(lambda traits: traits.elementwise not in (None, Elementwise.NO))
_STATES_SHARDING = ops_that(lambda traits: bool(traits.own_shardings))


def lacks_rule(name: str) -> bool:
    """Whether ops of this name may be elementwise although they have no rule."""
    return name in _MAY_BE_POINTWISE and (name not in RULES or name in USER_RULES)


def names_without_rule() -> frozenset[str]:
    """The names of ops that `lacks_rule` is true of, except ops that state their sharding, such as `sdy.reshard`."""
    return frozenset(filter(lacks_rule, _MAY_BE_POINTWISE - _STATES_SHARDING))


def takes_sharding_of_operands(spec: OpSpec) -> bool:
    """Whether the results of an op may be sharded as its operands: it is pointwise and does not state a sharding.

    >>> takes_sharding_of_operands(OpSpec("sdy.reshard", [(4,)], [(4,)]))
    False
    """
    return spec.name not in _STATES_SHARDING and is_pointwise(spec)


def rule_with_dynamic_sizes(spec: OpSpec) -> Rule | None:
    """The rule of an op. Dynamic dimensions count as very large; a reshape that has some has no rule."""
    if spec.is_static:
        return rule_of(spec)
    large = OpSpec(spec.name, map(_large, spec.operand_shapes), map(_large, spec.result_shapes), spec.attributes)
    return None if spec.name == "stablehlo.reshape" else rule_of(large)


def rule_on_shards(spec: OpSpec) -> Rule | None:
    """The rule of an op on shards: its rule in propagation, or the identity rule of elementwise ops."""
    found = rule_with_dynamic_sizes(spec)
    return pointwise(spec, False) if found is None and is_pointwise(spec) else found


def is_pointwise(spec: OpSpec) -> bool:
    """Whether all tensors have one shape, and elements of the results depend only on elements at the same position.

    >>> is_pointwise(OpSpec("chlo.zeta", [(4,), (4,)], [(4,)]))
    True
    """
    shapes = {*spec.operand_shapes, *spec.result_shapes}
    return len(shapes) == 1 and (spec.name in _FOR_PARTITIONER or is_elementwise(spec))


def _large(shape: Shape) -> Shape:
    return shape if shape is None else tuple(_LARGE if size < 0 else size for size in shape)


BUFFER = "AllocateBuffer"
"""The target of a custom call that makes a buffer."""
_TAKE_SHARDS = ops_that(lambda traits: traits.takes_shards)


def takes_shards(op: Op) -> bool:
    """Whether an op passes the data of every device to Python as it is."""
    return (
        op.name == "stablehlo.custom_call"
        and not op.results
        and f"@{string_value(op.attrs['call_target_name'])}" in _TAKE_SHARDS
    )


def is_buffer(op: Op) -> bool:
    """Whether an op makes a buffer with undefined content, so that every device may make its part."""
    return (
        op.name == "stablehlo.custom_call" and not op.operands and string_value(op.attrs["call_target_name"]) == BUFFER
    )
