"""`pyshardy-dedup-meshes`: merges meshes of the same devices, if the axes of one can express those of the other."""

from __future__ import annotations

from math import gcd

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.ir.functions import SHARDING, functions, main_function
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.survey import distinct_shardings


class DedupMeshes(Pass):
    """Write shardings on one mesh of the same devices, the one with the most axes, as XLA does."""

    name = "pyshardy-dedup-meshes"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        meshes = module_meshes(op)
        if sum(bool(mesh.axes) for mesh in meshes.values()) < 2:
            return
        replacements = _replacements(op, meshes)
        if not replacements:
            return
        for computation in ops_named(op, ("sdy.manual_computation",)):
            _rename_manual_axes(computation, replacements)
        transform_shardings(op, lambda sharding: _moved(sharding, replacements, meshes))


_Replacement = tuple[str, dict[str, Axes]]
"""The mesh to use instead, and the axes of the old mesh in terms of its axes."""


def _replacements(root: Op, meshes: Meshes) -> dict[str, _Replacement]:
    """For every mesh that another one replaces: the mesh that is kept, and which of its axes each axis becomes.

    Meshes with more axes are kept first, in order of use; axes of size 1 do not count.
    """
    used: dict[str, None] = {}
    for function in sorted(functions(root), key=lambda function: function is not main_function(root)):
        entries = (*(function.attrs.get("arg_attrs") or ()), *(function.attrs.get("res_attrs") or ()))
        at_border = [entry[SHARDING] for entry in entries if entry.get(SHARDING)]
        for sharding in (*at_border, *distinct_shardings(function)):
            if isinstance(sharding.mesh, str) and meshes[sharding.mesh].axes:
                used[sharding.mesh] = None
    manual = _manual_axes(root)
    found: dict[str, _Replacement] = {}
    kept: list[str] = []
    for name in sorted(used, key=lambda name: -sum(size > 1 for _, size in meshes[name].axes)):
        for other in kept:
            axes = axes_on(meshes[name], meshes[other])
            if axes is not None and all(
                len(axes[axis]) == 1 and axes[axis][0].is_full for axis in manual.get(name, ())
            ):
                found[name] = other, axes
                break
        else:
            kept.append(name)
    return found


def _manual_axes(root: Op) -> dict[str, set[str]]:
    """The axes that are manual somewhere, by mesh."""
    found: dict[str, set[str]] = {}
    for computation in ops_named(root, ("sdy.manual_computation",)):
        for sharding in (*computation.attrs["in_shardings"], *computation.attrs["out_shardings"]):
            found.setdefault(sharding.mesh, set()).update(computation.attrs["manual_axes"])
    return found


def axes_on(mesh: Mesh, other: Mesh) -> dict[str, Axes] | None:
    """The axes of a mesh as axes and sub-axes of another mesh of the same devices; None if that is impossible.

    >>> axes_on(Mesh([("all", 8)]), Mesh([("x", 4), ("y", 2)]))
    {'all': (AxisRef('x'), AxisRef('y'))}
    >>> axes_on(Mesh([("row", 2), ("column", 4)]), Mesh([("x", 4), ("y", 2)]))
    {'row': (AxisRef('x', 1, 2),), 'column': (AxisRef('x', 2, 2), AxisRef('y'))}
    """
    if mesh.size != other.size or tuple(mesh.device_order) != tuple(other.device_order):
        return None
    found: dict[str, Axes] = {}
    begin = 1
    for name, size in mesh.axes:
        parts: list[AxisRef] = []
        start = 1
        for axis, length in other.axes:
            low, high = max(begin, start), min(begin * size, start * length)
            if low < high:
                if low % start or high % low or gcd(high, start * length) != high:
                    return None
                whole = low == start and high == start * length
                parts.append(AxisRef(axis) if whole else AxisRef(axis, low // start, high // low))
            start *= length
        found[name] = tuple(parts)
        begin *= size
    return found


def _moved(sharding: TensorSharding, replacements: dict[str, _Replacement], meshes: Meshes) -> TensorSharding:
    replacement = replacements.get(sharding.mesh) if isinstance(sharding.mesh, str) else None
    if replacement is None:
        return sharding
    name, axes = replacement
    new = meshes[name]
    dims = [DimSharding(_written(dim.axes, axes, new), dim.is_open, dim.priority) for dim in sharding.dims]
    replicated, unreduced = (
        sort_and_merge(_written(found, axes, new), new) for found in (sharding.replicated, sharding.unreduced)
    )
    return TensorSharding(name, dims, replicated, unreduced, sharding.reduction)


def _written(refs: Axes, axes: dict[str, Axes], new: Mesh) -> list[AxisRef]:
    found: list[AxisRef] = []
    for ref in refs:
        for part in _parts(ref, axes[ref.name], new):
            append_or_merge(found, part, new)
    return found


def _parts(ref: AxisRef, parts: Axes, mesh: Mesh) -> list[AxisRef]:
    """An axis or sub-axis in terms of the axes of the other mesh."""
    if ref.is_full:
        return list(parts)
    found = []
    begin, end, start = ref.pre_size, ref.pre_size * (ref.size or 1), 1
    for part in parts:
        length = part.length(mesh)
        low, high = max(begin, start), min(end, start * length)
        if low < high:
            pre = 1 if part.is_full else part.pre_size
            piece = AxisRef(part.name, pre * (low // start), high // low)
            found.append(AxisRef(part.name) if piece.size == dict(mesh.axes)[part.name] else piece)
        start *= length
    return found


def _rename_manual_axes(computation: Op, replacements: dict[str, _Replacement]) -> None:
    """Rename manual axes to those of the mesh that is used instead; each of them is a full axis there."""
    names: dict[str, str] = {}
    for sharding in (*computation.attrs["in_shardings"], *computation.attrs["out_shardings"]):
        for axes in [replacements[sharding.mesh][1]] if sharding.mesh in replacements else []:
            names.update({name: parts[0].name for name, parts in axes.items()})
    if names:
        computation.set_attr("manual_axes", tuple(names.get(axis, axis) for axis in computation.attrs["manual_axes"]))
