"""Drawings of the blocks of a tensor on the devices."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pyshardy.core.boxes import device_boxes
from pyshardy.core.given import as_shape
from pyshardy.core.mesh import Mesh, as_mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.explain.draw_svg import svg
from pyshardy.explain.draw_text import coloured_text, drawing_text, renderable
from pyshardy.explain.panels import Panels, Range, ShardBlock

_DOING = "drawing a sharding"
MOST_DRAWN_DEVICES = 64
MOST_DIMS = 3


class Drawing:
    """A drawing of the blocks of a tensor: text in a terminal, SVG in a notebook.

    Args:
        title: The title.
        shape: The shape of the tensor.
        blocks: Its blocks, in row-major order.

    Attributes:
        title: The same.
        shape: The same.
        blocks: The same.
    """

    def __init__(self, title: str, shape: tuple[int, ...], blocks: Sequence[ShardBlock]) -> None:
        self.title = title
        self.shape = shape
        self.blocks = tuple(blocks)

    @property
    def panels(self) -> Panels:
        """The rows of blocks of every layer: one layer, or one per range of the first of three dimensions."""
        return list(self._panels())

    def _panels(self) -> Iterator[tuple[Range | None, list[list[ShardBlock]]]]:
        depths = dict.fromkeys(block.ranges[:-2] for block in self.blocks)
        for depth in depths:
            flat = [block for block in self.blocks if block.ranges[:-2] == depth]
            rows: dict[tuple[Range, ...], list[ShardBlock]] = {}
            for block in flat:
                rows.setdefault(block.ranges[len(depth) : -1], []).append(block)
            yield (depth[0] if depth else None), list(rows.values())

    def __str__(self) -> str:
        return drawing_text(self.title, self.panels)

    def __repr__(self) -> str:
        return coloured_text(self.title, self.panels) if sys.stdout.isatty() else str(self)

    def __rich__(self) -> Any:
        return renderable(self.title, self.panels, has_colour=True)

    def _repr_svg_(self) -> str:
        return svg(self.title, self.panels)


def _of_result(result: Any, name: str) -> tuple[TensorSharding, tuple[int, ...], Mesh | None]:
    """The sharding, shape and mesh of a value of a result."""
    row, meshes = result.values[name][0], result.meshes
    mesh = next((mesh for mesh in meshes.values() if mesh.axes), None)
    if row.sharding is not None:
        return row.sharding, row.shape, mesh_of(row.sharding, meshes)
    return TensorSharding.fully_replicated(mesh or Mesh([]), len(row.shape)), row.shape, mesh


def draw(sharding: Any, shape: Sequence[int] | str, mesh: Mesh | None = None) -> Drawing:
    """Draw the blocks of a tensor on the devices: as text, with colours in a terminal, and as SVG in a notebook.

    `draw(result, name)` draws a value of a result of `propagate` or `partition`, by its name as for `result.values`.

    Args:
        sharding: A `TensorSharding`, or a sharding of JAX; or a result.
        shape: The shape of the tensor: one to three dimensions; for a result, the name of a value.
        mesh: The mesh, for a `TensorSharding` that refers to it by name.

    Raises:
        UsageError: There is no mesh, there are more than 64 devices, the shape cannot be drawn, or no value has the
            name.

    >>> from pyshardy.core.notation import parse_sharding
    >>> print(draw(parse_sharding('<@mesh, [{"x"}, {}]>'), (8, 4), Mesh([("x", 2), ("y", 2)])))
    shape [8, 4], sharding [{"x"}, {}]
          0:4
        ┌─────┐
    0:4 │ 0,1 │
        ├─────┤
    4:8 │ 2,3 │
        └─────┘
    """
    if isinstance(shape, str) and hasattr(sharding, "values") and hasattr(sharding, "meshes"):
        sharding, shape, mesh = _of_result(sharding, shape)
    sizes = as_shape(shape, _DOING)
    if not 1 <= len(sizes) <= MOST_DIMS or min(sizes) < 1:
        needed = f"one to {MOST_DIMS} dimensions, none of them empty"
        raise UsageError(_DOING, got=f"the shape {sizes}", needed=needed)
    if isinstance(sharding, TensorSharding):
        title, held = _of_tensor(sharding, sizes, mesh)
    elif hasattr(sharding, "devices_indices_map"):
        title, held = _of_jax(sharding, sizes)
    else:
        raise UsageError(_DOING, got=named_type(sharding), needed="a TensorSharding, or a sharding of JAX")
    if len(held) > MOST_DRAWN_DEVICES:
        raise UsageError(_DOING, got=f"{len(held)} devices", needed=f"at most {MOST_DRAWN_DEVICES}")
    by_block: dict[tuple[Range, ...], list[int]] = {}
    for device, ranges in held.items():
        if all(start < stop for start, stop in ranges):  # a device may have only padding
            by_block.setdefault(ranges, []).append(device)
    blocks = [ShardBlock(ranges, tuple(sorted(by_block[ranges]))) for ranges in sorted(by_block)]
    return Drawing(f"shape {list(sizes)}, sharding {title}", sizes, blocks)


def _of_tensor(
    sharding: TensorSharding, shape: tuple[int, ...], mesh: Mesh | None
) -> tuple[str, dict[int, tuple[Range, ...]]]:
    if isinstance(sharding.mesh, Mesh):
        mesh = sharding.mesh
    if mesh is not None:
        mesh = as_mesh(mesh)
    else:
        raise UsageError(
            _DOING,
            got=f"a sharding on the mesh {sharding.mesh!r}",
            needed="that mesh as `mesh`",
            hint=f"`mesh=result.meshes[{sharding.mesh!r}]`, or a sharding of JAX, as in `result.in_shardings`",
        )
    if sharding.rank != len(shape):
        raise UsageError(_DOING, got=f"{sharding} for the shape {shape}", needed=f"{len(shape)} dimensions in both")
    if mesh.size > MOST_DRAWN_DEVICES:
        raise UsageError(_DOING, got=f"{mesh.size} devices", needed=f"at most {MOST_DRAWN_DEVICES}")
    boxes = device_boxes(sharding, mesh, shape)
    title = "[" + ", ".join("{" + ", ".join(map(str, axes)) + "}" for axes in sharding.dim_axes) + "]"
    return title, {device: tuple(zip(box.starts, box.stops)) for device, box in boxes.items()}


def _of_jax(sharding: Any, shape: tuple[int, ...]) -> tuple[str, dict[int, tuple[Range, ...]]]:
    try:
        found = sharding.devices_indices_map(shape)
    except ValueError as error:
        raise UsageError(_DOING, got=str(error), needed="a sharding that fits the shape") from error
    title = str(getattr(sharding, "spec", type(sharding).__name__))
    return title, {device.id: tuple(_range(one, size) for one, size in zip(at, shape)) for device, at in found.items()}


def _range(one: slice, size: int) -> Range:
    start, stop, _ = one.indices(size)
    return start, stop
