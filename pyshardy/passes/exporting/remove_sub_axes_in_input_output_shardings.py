"""`sdy-remove-sub-axes-in-input-output-shardings`: leaves only whole axes in the shardings of main.

Source: docs/semantics/export.md#sdy-remove-sub-axes-in-input-output-shardings
"""

from __future__ import annotations

from functools import cache

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.functions import SHARDING, change_border_attrs, main_function
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class RemoveSubAxesInInputOutputShardings(Pass):
    """Cut every open dimension of the main function's arguments and results before its first sub-axis."""

    name = "sdy-remove-sub-axes-in-input-output-shardings"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        cut = cache(remove_sub_axes)  # many arguments have the same sharding

        def without_sub_axes(attrs: Attributes) -> Attributes:
            sharding = attrs.get(SHARDING)
            return attrs if sharding is None else attrs.with_value(SHARDING, cut(sharding))

        change_border_attrs(main_function(op), without_sub_axes)


def remove_sub_axes(sharding: TensorSharding) -> TensorSharding:
    """The sharding with its open dimensions cut before their first sub-axis.

    >>> from pyshardy.core.notation import parse_sharding
    >>> remove_sub_axes(parse_sharding('<@m, [{"x", "y":(1)2, "z", ?}]>'))
    TensorSharding(<@m, [{"x", ?}]>)
    """
    return sharding.map_dims(_cut)


def _cut(dim: DimSharding) -> DimSharding:
    first = next((index for index, axis in enumerate(dim.axes) if not axis.is_full), None)
    return dim if first is None or not dim.is_open else DimSharding(dim.axes[:first], True, dim.priority)
