"""The blocks of a tensor on the devices, as plain data for drawings."""

from __future__ import annotations

from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.explain.draw import MOST_DEVICES, MOST_DIMS, draw
from pyshardy.explain.draw_svg import picture


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
    if not 1 <= len(dims) <= MOST_DIMS or mesh.size > MOST_DEVICES or min(shape) < 1:
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
