"""Replica groups as lists of device ids, for consumers that do not support mesh axes."""

from __future__ import annotations

from pyshardy.core.devices import replica_groups
from pyshardy.ir.device_groups import is_along_axes, mesh_and_axes
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes

_GROUPS = "replica_groups"


def list_devices(root: Op, module: Module) -> None:
    """Rewrite replica groups from mesh axes to device ids.

    XLA accepts mesh axes but ignores the device order of the mesh; the interpreter does not accept them.

    Args:
        root: The module to change.
        module: The module that it comes from.

    Raises:
        InvalidModuleError: The mesh of a group does not exist.
    """
    meshes = module_meshes(root)
    for op in walk(root):
        groups = op.attrs.get(_GROUPS)
        if groups is not None and is_along_axes(groups):
            _, mesh, axes = mesh_and_axes(groups, meshes)
            op.set_attr(_GROUPS, module.attrs.device_rows(replica_groups(axes, mesh)))
