"""Other sizes of the axes of a mesh, for a larger or smaller cluster."""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.core.mesh import Mesh
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module


def with_mesh_sizes(module: Module, sizes: Mapping[str, int]) -> Module:
    """A module with other sizes of its mesh axes, for a larger or smaller cluster.

    Args:
        module: The result of `load`; it does not change.
        sizes: The size of every axis.

    Raises:
        UsageError: No mesh of the module has these axes.

    >>> from pyshardy import load
    >>> program = load('sdy.mesh @m = <["x"=8]> func.func @main(%a: tensor<8xi1>) { return }')
    >>> print(with_mesh_sizes(program, {"x": 64}).text().splitlines()[1].strip())
    sdy.mesh @m = <["x"=64]>
    """
    root = module.copy_root()
    changed = 0
    known = []
    for op in root.region.block:
        if op.name != "sdy.mesh":
            continue
        mesh: Mesh = op.attrs["mesh"]
        known.append(",".join(f"{name}={size}" for name, size in mesh.axes))
        if {name for name, _ in mesh.axes} == set(sizes):
            op.set_attr("mesh", Mesh([(name, sizes[name]) for name, _ in mesh.axes]))
            op.remove_attr("stablehlo.mesh")
            changed += 1
    if not changed:
        raise UsageError(
            "giving the mesh other sizes",
            got=",".join(f"{name}={size}" for name, size in sizes.items()),
            needed=f"a size for every axis, as in {' or '.join(known)}" if known else "a program with a mesh",
        )
    return module.with_root(root)


def has_mesh_axes(module: Module, axes: Mapping[str, int]) -> bool:
    """Whether a mesh of a module has axes with these names, whatever their sizes.

    >>> from pyshardy import load
    >>> has_mesh_axes(load('sdy.mesh @m = <["x"=8]> func.func @main(%a: tensor<8xi1>) { return }'), {"x": 4})
    True
    """
    meshes = [op.attrs["mesh"] for op in module.root.region.block if op.name == "sdy.mesh"]
    return any({name for name, _ in mesh.axes} == set(axes) for mesh in meshes)
