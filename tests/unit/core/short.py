"""Short notation for the values of `core`: axes without quotes, meshes as `x=2 y=4`."""

from __future__ import annotations

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_axis, parse_sharding
from pyshardy.core.sharding import TensorSharding


def ref(text: str) -> AxisRef:
    """An axis reference from `x` or `x:(2)4`."""
    name, colon, part = text.partition(":")
    return parse_axis(f'"{name}"{colon}{part}')


def refs(text: str) -> Axes:
    """References from a list separated by white space."""
    return tuple(map(ref, text.split()))


def mesh(text: str) -> Mesh:
    """A mesh from `x=2 y=4`."""
    pairs = [part.split("=") for part in text.split()]
    return Mesh([(name, int(size)) for name, size in pairs])


def sharding(text: str, mesh_name: str = "@m") -> TensorSharding:
    """A sharding from what follows the mesh, such as `[{"x"}, {?}], unreduced={"y"}`."""
    return parse_sharding(f"<{mesh_name}, {text}>")
