"""`sdy-remove-size-one-axes`: drops axes of size 1 from all shardings.

Source: docs/semantics/import.md#sdy-remove-size-one-axes
"""

from __future__ import annotations

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import join_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class RemoveSizeOneAxes(Pass):
    """Drop axes of size 1 from all shardings, and merge the parts of axes beside them; meshes and manual axes stay."""

    name = "sdy-remove-size-one-axes"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = context.meshes
        if any(size == 1 for mesh in meshes.values() for _, size in mesh.axes):
            transform_shardings(op, lambda sharding: remove_size_one_axes(sharding, mesh_of(sharding, meshes)))


def remove_size_one_axes(sharding: TensorSharding, mesh: Mesh) -> TensorSharding:
    """The sharding without axes of size 1; a dimension that ends up empty and closed loses its priority.

    Neighbours of such an axis are merged if they are two parts of one axis.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mesh = Mesh([("x", 4), ("o", 1)])
    >>> remove_size_one_axes(parse_sharding('<@m, [{"x", ?}p2, {"o"}p0]>'), mesh)
    TensorSharding(<@m, [{"x", ?}p2, {}]>)
    >>> remove_size_one_axes(parse_sharding('<@m, [{"x":(1)2, "o", "x":(2)2}]>'), mesh)
    TensorSharding(<@m, [{"x"}]>)
    """

    def kept(axes: Axes) -> Axes:
        return join_axes([tuple(axis for axis in axes if not (axis.is_full and mesh.axis_size(axis.name) == 1))], mesh)

    def kept_dim(dim: DimSharding) -> DimSharding:
        axes = kept(dim.axes)
        return DimSharding(axes, dim.is_open, dim.priority if axes or dim.is_open else None)

    return TensorSharding(
        sharding.mesh,
        map(kept_dim, sharding.dims),
        kept(sharding.replicated),
        kept(sharding.unreduced),
        sharding.reduction,
    )
