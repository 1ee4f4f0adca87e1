"""The index bounds of a shard, for gathers, scatters and dynamic update slices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Value
from pyshardy.transforms.builder import Builder

_INTEGER = re.compile(r"(?:u|s)?i(\d+)")


class IndexedDim(NamedTuple):
    """One dimension of a tensor that indices address.

    Attributes:
        axes: The axes that shard it; empty if the index does not change.
        size: Its size in a shard.
    """

    axes: Axes
    size: int


def lower_bound(builder: Builder, dim: IndexedDim, mesh: Mesh, element: str) -> Value:
    """The first index of this device's shard, as a scalar."""
    if not dim.axes:
        return builder.splat("0", builder.type((), element))
    return builder.convert(builder.dim_offset(dim.axes, mesh, dim.size), element)


def upper_bound(builder: Builder, dim: IndexedDim, lower: Value) -> Value:
    """The last index of this device's shard, as a scalar."""
    last = builder.splat(str(dim.size - 1), lower.type)
    return builder.combine("add", lower, last) if dim.axes else last


def per_component(
    builder: Builder, bounds: Sequence[Value], shape: Sequence[int], vector_dim: int, mesh: str | Mesh
) -> Value:
    """Scalars, one per component of an index, broadcast to the shape of the indices."""
    if len(bounds) == 1:
        found = builder.broadcast(bounds[0], shape)
    else:
        vectors = [builder.reshape(bound, (1,)) for bound in bounds]
        found = builder.broadcast(builder.concatenate(vectors, 0), shape, [vector_dim])
    assert found.defining_op is not None
    found.defining_op.set_attr(SHARDING, (TensorSharding.fully_replicated(mesh, len(shape)),))
    return found


def holds(element: str, number: int) -> bool:
    """Whether an integer type can hold a number.

    >>> holds("i8", 127), holds("i8", 128), holds("ui8", 128)
    (True, False, True)
    """
    return number <= largest(element)


def largest(element: str) -> int:
    """The largest number of an integer type.

    >>> largest("i8"), largest("ui16")
    (127, 65535)
    """
    found = _INTEGER.fullmatch(element)
    assert found is not None, element
    return (1 << (int(found[1]) - (not element.startswith("u")))) - 1


def wide_enough(builder: Builder, indices: Value, largest: int) -> Value:
    """The indices, converted to a type that can hold the largest number they are compared with."""
    if holds(indices.type.element, largest):
        return indices
    return builder.convert(indices, "i32" if holds("i32", largest) else "i64")
