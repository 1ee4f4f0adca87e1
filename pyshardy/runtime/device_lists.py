"""Groups of devices as lists of their numbers, for what does not know them as axes of a mesh."""

from __future__ import annotations

from pyshardy.core.devices import replica_groups
from pyshardy.ir.device_groups import is_along_axes, mesh_and_axes
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes

_GROUPS = "replica_groups"


def list_devices(root: Op, module: Module) -> None:
    """Write groups of devices that are given as axes of a mesh as numbers of devices.

    XLA takes them as axes, but forgets the order of the devices of the mesh on its way, and the interpreter does not
    take them at all.

    Args:
        root: The module to change.
        module: What it comes from.

    Raises:
        InvalidModuleError: Groups along axes of no mesh.
    """
    meshes = module_meshes(root)
    for op in walk(root):
        groups = op.attrs.get(_GROUPS)
        if groups is not None and is_along_axes(groups):
            _, mesh, axes = mesh_and_axes(groups, meshes)
            rows = [list(row) for row in replica_groups(axes, mesh)]
            op.set_attr(_GROUPS, module.attrs.parse(f"dense<{rows}> : tensor<{len(rows)}x{len(rows[0])}xi64>"))
