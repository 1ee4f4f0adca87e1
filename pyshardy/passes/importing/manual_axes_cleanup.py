"""`sdy-manual-axes-cleanup`: sorts manual axes, and adds them to every in- and out-sharding.

Source: docs/semantics/import.md#sdy-manual-axes-cleanup
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import sort_and_merge, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import common_mesh
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext


class ManualAxesCleanup(Pass):
    """Sort manual axes. In every in- and out-sharding, add the manual axes it does not use to its replicated axes."""

    name = "sdy-manual-axes-cleanup"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for computation in ops_named(op, ("sdy.manual_computation",)):
            _clean_up(computation, context)


def _clean_up(op: Op, context: PassContext) -> None:
    attrs = op.attrs
    found = common_mesh((*attrs["in_shardings"], *attrs["out_shardings"]), context.meshes)
    if found is None:
        if attrs["manual_axes"] and op.region.block.terminator.prev is not None:
            raise PassError(
                op, "has manual axes and a body that is not empty, but neither in-shardings nor out-shardings"
            )
        return
    mesh_name, mesh = found
    manual = sorted(attrs["manual_axes"], key=lambda name: mesh.positions.get(name, len(mesh.axes)))
    op.set_attr("manual_axes", tuple(manual))
    for name, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
        op.set_attr(name, tuple(_add_manual_axes(attrs[name], values, manual, mesh_name, mesh)))


def _add_manual_axes(
    shardings: Sequence[TensorSharding], values: Sequence[Value], manual: list[str], mesh_name: str | Mesh, mesh: Mesh
) -> Iterable[TensorSharding]:
    wanted = tuple(AxisRef(name) for name in manual)
    for sharding, value in zip(shardings, values):
        missing = subtract_axes(wanted, tuple(sharding.all_axes()), mesh)
        if not missing or not value.type.is_shaped:
            yield sharding
        else:
            replicated = sort_and_merge((*sharding.replicated, *missing), mesh)
            yield sharding.with_mesh(mesh_name).with_replicated(replicated)
