"""The tables that the data of a page refers to by number: texts, axes, shardings and tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.explain.draw import MOST_DIMS, MOST_DRAWN_DEVICES, draw
from pyshardy.explain.draw_svg import picture
from pyshardy.report.page.interned import ItemTable
from pyshardy.report.specs import format_sharding
from pyshardy.rules.rule import Shape


class _Tensor(NamedTuple):
    shape: tuple[int, ...]
    dtype: str
    element_bytes: int
    sharding: int


class Tables:
    """Texts, axes, shardings and tensors by number.

    Args:
        meshes: The meshes by name.
    """

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self._meshes = meshes
        self._texts = ItemTable[str]()
        self._axes = ItemTable[tuple[str, int, int, str]]()
        self._shardings = ItemTable[TensorSharding | None]()
        self._tensors = ItemTable[_Tensor]()
        self._shardings.number(None)

    def text(self, text: str) -> int:
        """The number of a text."""
        return self._texts.number(text)

    def axis(self, axis: AxisRef, mesh: Mesh) -> int:
        """The number of an axis or sub-axis."""
        return self._axes.number((axis.name, axis.pre_size, axis.end(mesh), str(axis)))

    def axes(self, axes: Axes, mesh: Mesh) -> list[int]:
        """The numbers of axes."""
        return [self.axis(axis, mesh) for axis in axes]

    def sharding(self, sharding: TensorSharding | None) -> int:
        """The number of a sharding; 0 for none."""
        return self._shardings.number(sharding)

    def tensor(self, shape: Shape, dtype: str, element_bytes: int, sharding: TensorSharding | None) -> int:
        """The number of a type with a sharding; -1 without a tensor and a sharding."""
        if shape is None and sharding is None:
            return -1
        return self._tensors.number(_Tensor(shape or (), dtype, element_bytes, self.sharding(sharding)))

    def to_json(self) -> dict[str, Any]:
        """All tables."""
        tensors = [self._tensor(tensor) for tensor in self._tensors.items]
        shardings = [self._sharding(sharding) for sharding in self._shardings.items]
        return {
            "texts": self._texts.items,
            "axes": [list(axis) for axis in self._axes.items],
            "shardings": shardings,
            "tensors": tensors,
        }

    def _sharding(self, sharding: TensorSharding | None) -> dict[str, Any]:
        if sharding is None:
            return {"text": "none", "dims": [], "unreduced": []}
        mesh = mesh_of(sharding, self._meshes)
        return {
            "text": format_sharding(sharding),
            "dims": [self.axes(dim.axes, mesh) for dim in sharding.dims],
            "unreduced": self.axes(sharding.unreduced, mesh),
            "mesh": str(mesh),
        }

    def _tensor(self, tensor: _Tensor) -> dict[str, Any]:
        shape, sharding = tensor.shape, self._shardings.items[tensor.sharding]
        known = -1 not in shape
        mesh = None if sharding is None else mesh_of(sharding, self._meshes)
        fits = mesh is not None and sharding is not None and known and sharding.rank == len(shape)
        local = local_shape(sharding, mesh, shape) if fits and sharding and mesh else shape
        found: dict[str, Any] = {"shape": shape, "dtype": tensor.dtype, "sharding": tensor.sharding, "local": local}
        if known:
            found["bytes"] = [_size(shape) * tensor.element_bytes, _size(local) * tensor.element_bytes]
        if fits and sharding and mesh:
            found["picture"] = drawn(sharding, shape, mesh)
        return found


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size


def drawn(sharding: TensorSharding, shape: tuple[int, ...], mesh: Mesh) -> dict[str, Any] | None:
    """The rectangles and texts of a drawing; None if it would be too large.

    If a tensor has many dimensions, only sharded ones are drawn; `dims` lists the drawn ones.

    Args:
        sharding: The sharding.
        shape: The shape, with the rank of the sharding.
        mesh: The mesh of the sharding.
    """
    dims = list(range(len(shape)))
    if len(dims) > MOST_DIMS:
        dims = [dim for dim in dims if sharding.dims[dim].axes] or dims[-2:]
    if not 1 <= len(dims) <= MOST_DIMS or mesh.size > MOST_DRAWN_DEVICES or min(shape) < 1:
        return None
    part = TensorSharding(mesh, [sharding.dims[dim] for dim in dims])
    drawing = draw(part, [shape[dim] for dim in dims])
    made = picture(drawing.title, drawing.panels)
    return {
        "size": [round(made.width), round(made.height)],
        "dims": dims if len(dims) < len(shape) else None,
        "texts": [[round(one.x), round(one.y), one.text, one.anchor] for one in made.texts[1:]],
        "blocks": [
            [*map(round, (one.x, one.y, one.width, one.height)), one.colour, one.label, one.place]
            for one in made.rectangles
        ],
    }
