"""The rule that the partitioner's passes use for an op."""

from __future__ import annotations

from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Rule, Shape
from pyshardy.rules.table import rule_of

_LARGE = 2**62
"""What a dynamic dimension counts as in a rule."""


def rule_with_dynamic_sizes(spec: OpSpec) -> Rule | None:
    """The rule of an op. Dynamic dimensions count as very large; a reshape that has some has no rule."""
    if spec.is_static:
        return rule_of(spec)
    large = OpSpec(spec.name, map(_large, spec.operand_shapes), map(_large, spec.result_shapes), spec.attributes)
    return None if spec.name == "stablehlo.reshape" else rule_of(large)


def _large(shape: Shape) -> Shape:
    return shape if shape is None else tuple(_LARGE if size < 0 else size for size in shape)
