"""The groups of devices of a collective: groups along axes of a mesh, or lists of device ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_checks import check_axes_in_mesh
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import Groups, axes_moved, axes_of_groups
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import MOST_DEVICES, Mesh
from pyshardy.core.text import format_symbol, quote, unquote
from pyshardy.errors import InvalidModuleError

_STRING = r'"((?:[^"\\]|\\.)*)"'
_AXIS = re.compile(rf"axis_ref<name = {_STRING}(?:, sub_axis_info = \((\d+)\)(\d+))?>")
_SYMBOL = re.compile(rf"<mesh = @(?:([\w$.-]+)|{_STRING})")
_MESH_AXIS = re.compile(rf"<name = {_STRING}, size = (\d+)>")
_DEVICE_IDS = re.compile(r"device_ids ?= ?(dense<[^>]*> : tensor<\d+x(?:[us]?i\d+|index)>)")


class Grouping(NamedTuple):
    """The groups of devices of a collective.

    Attributes:
        axes: The mesh axes of the groups, or those along which data moves; None if no mesh has such axes, or none is
            small enough to list its devices.
        mesh_name: The name of that mesh; None if it has no name, or there is no such mesh.
        size: The number of devices in a group.
    """

    axes: Axes | None
    mesh_name: str | None
    size: int


def mesh_and_axes(groups: Any, meshes: Mapping[str, Mesh]) -> tuple[str | None, Mesh, Axes]:
    """The mesh and the axes of groups along axes, and the name of the mesh if it has one.

    Args:
        groups: The attribute, or its text.
        meshes: The meshes by name.

    Raises:
        InvalidModuleError: There is no such mesh, or it has no such axes.

    >>> text = '#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "y">]>'
    >>> mesh_and_axes(text, {"m": Mesh([("x", 2), ("y", 4)])})
    ('m', Mesh([('x', 2), ('y', 4)]), (AxisRef('y'),))
    """
    text = str(groups)
    axes = tuple(
        AxisRef(unquote(name), int(pre_size), int(size)) if size else AxisRef(unquote(name))
        for name, pre_size, size in _AXIS.findall(text)
    )
    name, mesh = _mesh(text, meshes)
    check_axes_in_mesh(axes, mesh, "reading the groups of devices of a collective")
    return name, mesh, axes


def _mesh(text: str, meshes: Mapping[str, Mesh]) -> tuple[str | None, Mesh]:
    symbol = _SYMBOL.search(text)
    if symbol is None:
        return None, inlined_mesh(text)
    name = symbol[1] or unquote(symbol[2])
    if name not in meshes:
        known = ", ".join(map(format_symbol, meshes))
        raise InvalidModuleError(
            "reading the groups of devices of a collective",
            got=f"axes of the unknown mesh {format_symbol(name)}",
            needed=f"one of {known}" if known else "a mesh in the module",
        )
    return name, meshes[name]


def inlined_mesh(text: str) -> Mesh:
    """The mesh in a text with a mesh of StableHLO's dialect, such as groups of devices.

    Raises:
        InvalidShardingError: The text is not a valid mesh, for example because a device is missing.
        InvalidModuleError: The device ids are integers of an unusual width.

    >>> inlined_mesh('#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>')
    Mesh([('x', 2)])
    """
    ids = _DEVICE_IDS.search(text)
    axes = [(unquote(name), int(size)) for name, size in _MESH_AXIS.findall(text)]
    if ids is None:
        return Mesh(axes)
    numbers = ir.DenseIntElementsAttr(ir.Attribute.parse(ids[1]))
    try:
        device_ids = [numbers[place] for place in range(len(numbers))]
    except TypeError as error:  # the bindings read no others
        raise InvalidModuleError(
            "reading a mesh of StableHLO",
            got=f"device ids of type {ir.ShapedType(numbers.type).element_type}",
            needed="integers of 8, 16, 32 or 64 bits",
        ) from error
    return Mesh(axes, device_ids)


def is_along_axes(groups: Any) -> bool:
    """Whether groups are given as axes of a mesh rather than as lists of devices."""
    return not isinstance(groups, ir.DenseElementsAttr)


def grouping(groups: Any, meshes: Mapping[str, Mesh]) -> Grouping:
    """The groups of devices of a collective.

    Several meshes may have axes for lists of devices: the mesh with the fewest parts of axes wins, then the one with
    the fewest axes, then the first.

    Args:
        groups: The attribute.
        meshes: The meshes by name, preferred ones first.
    """
    if is_along_axes(groups):
        name, mesh, axes = mesh_and_axes(groups, meshes)
        return Grouping(axes, name, axes_size(axes, mesh))
    rows = _rows(groups)
    found = ((name, axes_of_groups(rows, mesh)) for name, mesh in meshes.items() if mesh.size <= MOST_DEVICES)
    return _simplest(found, max(map(len, rows), default=1))


def moves(pairs: Any, meshes: Mapping[str, Mesh]) -> Grouping:
    """The axes along which a permutation moves data, from the mesh with the fewest such axes; pairs of two devices."""
    rows = _rows(pairs)
    devices = {device for row in rows for device in row}
    fitting = {name: mesh for name, mesh in meshes.items() if max(devices, default=0) < mesh.size <= MOST_DEVICES}
    return _simplest(((name, axes_moved([(a, b) for a, b in rows], mesh)) for name, mesh in fitting.items()), 2)


def _simplest(found: Iterable[tuple[str, Axes | None]], size: int) -> Grouping:
    known = [(name, axes) for name, axes in found if axes is not None]
    if not known:
        return Grouping(None, None, size)
    name, axes = min(known, key=lambda pair: (sum(not axis.is_full for axis in pair[1]), len(pair[1])))
    return Grouping(axes, name, size)


def _rows(attr: Any) -> Groups:
    import numpy as np  # most modules have no groups, and pyshardy-opt starts without numpy

    numbers = np.array(ir.DenseIntElementsAttr(attr)).astype(np.int64)
    return _numbers(numbers.tobytes(), numbers.shape)


@lru_cache(maxsize=64)
def _numbers(data: bytes, shape: tuple[int, ...]) -> Groups:
    """The rows of a list of devices. The key is its numbers, since an attribute would keep its whole context alive."""
    import numpy as np

    return tuple(map(tuple, np.frombuffer(data, np.int64).reshape(shape).tolist()))


register_cache(_numbers.cache_clear)


def stablehlo_mesh_text(mesh: Mesh) -> str:
    """A mesh as an attribute of StableHLO, for groups of devices."""
    axes = ", ".join(f"#stablehlo.mesh_axis<name = {quote(name)}, size = {size}>" for name, size in mesh.axes)
    ids = f", device_ids = dense<{list(mesh.device_ids)}> : tensor<{mesh.size}xi64>" if mesh.device_ids else ""
    return f"#stablehlo.mesh<axes = [{axes}]{ids}>"
