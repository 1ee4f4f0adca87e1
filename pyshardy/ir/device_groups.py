"""Reading which devices work together in a collective: groups along axes of a mesh, or lists of device ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from pyshardy.core.axes import Axes, AxisRef, axes_size, check_axes_in_mesh
from pyshardy.core.devices import Groups, axes_moved, axes_of_groups
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import MOST_DEVICES, Mesh
from pyshardy.core.text import format_symbol, quote, unquote
from pyshardy.errors import InvalidModuleError

_STRING = r'"((?:[^"\\]|\\.)*)"'
_AXIS = re.compile(rf"axis_ref<name = {_STRING}(?:, sub_axis_info = \((\d+)\)(\d+))?>")
_SYMBOL = re.compile(rf"<mesh = @(?:([\w$.-]+)|{_STRING})")
_MESH_AXIS = re.compile(rf"<name = {_STRING}, size = (\d+)>")
_DEVICE_IDS = re.compile(r"device_ids ?= ?(dense<[^>]*> : tensor<\d+xi\d+>)")


class Grouping(NamedTuple):
    """The devices that work together.

    Attributes:
        axes: The axes of a mesh along which they do, or along which data moves; None if no mesh has such axes, or is
            small enough to list its devices.
        mesh_name: The name of that mesh; None if it has none, or there is no such mesh.
        size: How many devices work together.
    """

    axes: Axes | None
    mesh_name: str | None
    size: int


def mesh_and_axes(groups: Any, meshes: Mapping[str, Mesh]) -> tuple[str | None, Mesh, Axes]:
    """The mesh that groups along axes are of, with its name if it has one, and these axes.

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
            got=f"axes of the mesh {format_symbol(name)}, which the module does not have",
            needed=f"one of {known}" if known else "a mesh in the module",
        )
    return name, meshes[name]


def inlined_mesh(text: str) -> Mesh:
    """The mesh of StableHLO's dialect in a text that holds one, as groups of devices do.

    Raises:
        InvalidMeshError: It is no mesh, as where a device is missing.

    >>> inlined_mesh('#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>]>')
    Mesh([('x', 2)])
    """
    ids = _DEVICE_IDS.search(text)
    axes = [(unquote(name), int(size)) for name, size in _MESH_AXIS.findall(text)]
    if ids is None:
        return Mesh(axes)
    numbers = ir.DenseIntElementsAttr(ir.Attribute.parse(ids[1]))
    return Mesh(axes, [numbers[place] for place in range(len(numbers))])


def is_along_axes(groups: Any) -> bool:
    """Whether groups are given as axes of a mesh, not as lists of devices."""
    return not isinstance(groups, ir.DenseElementsAttr)


def grouping(groups: Any, meshes: Mapping[str, Mesh]) -> Grouping:
    """The devices that work together in a collective with these groups.

    Where groups are lists of devices, several meshes may have axes for them: it is the mesh that needs the fewest
    parts of axes, then the fewest axes, then the first one.

    Args:
        groups: The attribute.
        meshes: The meshes by name, those first that come first.
    """
    if is_along_axes(groups):
        name, mesh, axes = mesh_and_axes(groups, meshes)
        return Grouping(axes, name, axes_size(axes, mesh))
    rows = _rows(groups)
    found = ((name, axes_of_groups(rows, mesh)) for name, mesh in meshes.items() if mesh.size <= MOST_DEVICES)
    return _simplest(found, max(map(len, rows), default=1))


def moves(pairs: Any, meshes: Mapping[str, Mesh]) -> Grouping:
    """The axes along which a permutation moves data, of the mesh of which it takes the fewest; two devices each."""
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
    import numpy as np  # most modules of pyshardy-opt have no groups, and it starts without numpy

    numbers = np.array(ir.DenseIntElementsAttr(attr)).astype(np.int64)
    return _numbers(numbers.tobytes(), numbers.shape)


@lru_cache(maxsize=64)
def _numbers(data: bytes, shape: tuple[int, ...]) -> Groups:
    """The rows that many collectives have; by their numbers, as an attribute would keep its whole context alive."""
    import numpy as np

    return tuple(map(tuple, np.frombuffer(data, np.int64).reshape(shape).tolist()))


register_cache(_numbers.cache_clear)


def stablehlo_mesh_text(mesh: Mesh) -> str:
    """A mesh as an attribute of StableHLO, for groups of devices."""
    axes = ", ".join(f"#stablehlo.mesh_axis<name = {quote(name)}, size = {size}>" for name, size in mesh.axes)
    ids = f", device_ids = dense<{list(mesh.device_ids)}> : tensor<{mesh.size}xi64>" if mesh.device_ids else ""
    return f"#stablehlo.mesh<axes = [{axes}]{ids}>"
