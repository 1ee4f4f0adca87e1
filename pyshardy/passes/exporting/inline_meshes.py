"""`sdy-inline-meshes`: puts meshes into shardings instead of their names.

Source: docs/semantics/export.md#sdy-inline-meshes
"""

from __future__ import annotations

import re
from functools import partial

from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import unquote
from pyshardy.ir.attribute_text import read_attribute
from pyshardy.ir.device_groups import stablehlo_mesh_text
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shardings import ModuleMeshes, transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_SYMBOL = re.compile(r'mesh = @(?:(?P<plain>[\w$.]+)|"(?P<quoted>(?:[^"\\]|\\.)*)")')


class InlineMeshes(Pass):
    """Replace the names of meshes by the meshes and erase the mesh ops."""

    name = "sdy-inline-meshes"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = context.meshes
        transform_shardings(op, lambda sharding: sharding.with_mesh(mesh_of(sharding, meshes)))
        for inner in ops_with(op, "replica_groups"):
            groups = str(inner.attrs["replica_groups"])
            if groups.startswith("#stablehlo.replica_group_mesh_axes") and _SYMBOL.search(groups):
                text = _SYMBOL.sub(partial(_mesh_text, inner, meshes), groups)
                inner.set_attr("replica_groups", read_attribute(inner, "replica_groups", text))
        for inner in op.region.block:
            if inner.name == "sdy.mesh":
                inner.erase()


def _mesh_text(op: Op, meshes: ModuleMeshes, match: re.Match[str]) -> str:
    plain: str | None = match["plain"]
    name = unquote(match["quoted"]) if plain is None else plain
    if not meshes[name].axes:
        raise PassError(op, f"has groups of devices on the mesh @{name}, which has no axes, as StableHLO's have")
    return f"mesh = {stablehlo_mesh_text(meshes[name])}"
