"""Hypothesis strategies for the values of `core`; what they draw is valid and shrinks towards small and plain.

Everything but `names` and `meshes` is drawn for a given mesh. `on_a_mesh` draws the mesh along with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import strategies as st

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding

T = TypeVar("T")

AXIS_SIZES = (2, 4, 6, 8, 12, 24, 3, 1)

names = st.text(max_size=8)
"""Any text, for the names of axes and meshes."""


@st.composite
def meshes(
    draw: st.DrawFn,
    min_axes: int = 0,
    max_axes: int = 3,
    max_size: int = 96,
    axis_names: st.SearchStrategy[str] | None = None,
) -> Mesh:
    """A mesh, with a device order now and then; without axes also the empty mesh and a single device.

    Args:
        min_axes: The fewest axes.
        max_axes: The most axes.
        max_size: The most devices; an axis that would exceed it is left out, but for the first `min_axes`.
        axis_names: Names of the axes; by default letters that are not in alphabetical order.
    """
    if axis_names is None:
        axis_names = st.sampled_from(("x", "y", "z", "a", "b"))
    drawn = draw(st.lists(axis_names, min_size=min_axes, max_size=max_axes, unique=True))
    axes: list[tuple[str, int]] = []
    total = 1
    for name in drawn:
        size = draw(st.sampled_from(AXIS_SIZES))
        if total * size <= max_size or len(axes) < min_axes:
            axes.append((name, size))
            total *= size
    if not axes:
        return Mesh([], draw(st.none() | st.integers(0, 9).map(lambda device: [device])))
    order = draw(st.permutations(range(total))) if total <= 24 and draw(st.integers(0, 3)) == 3 else None
    return Mesh(axes, order)


def on_a_mesh(
    draw_on: Callable[[Mesh], st.SearchStrategy[T]], mesh: st.SearchStrategy[Mesh] | None = None
) -> st.SearchStrategy[tuple[Mesh, T]]:
    """A mesh and what `draw_on` draws for it; by default a mesh with at least one axis."""
    drawn = meshes(min_axes=1) if mesh is None else mesh
    return drawn.flatmap(lambda found: st.tuples(st.just(found), draw_on(found)))


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


@st.composite
def axis_refs(draw: st.DrawFn, mesh: Mesh, name: str | None = None) -> AxisRef:
    """An axis of the mesh, or a valid sub-axis; of the axis `name` if that is given."""
    if name is None:
        name = draw(st.sampled_from(mesh.axis_names))
    size = mesh.axis_size(name)
    pre_size = draw(st.sampled_from(divisors(size)))
    parts = [part for part in divisors(size // pre_size) if 1 < part < size]
    part = draw(st.sampled_from([None, *parts])) if parts else None
    return AxisRef(name) if part is None else AxisRef(name, pre_size, part)


@st.composite
def pieces(draw: st.DrawFn, mesh: Mesh) -> Axes:
    """The axes of the mesh in order, each whole or cut into consecutive sub-axes: all that `mesh.size` consists of."""
    found: list[AxisRef] = []
    for name, size in mesh.axes:
        borders = [1]
        while borders[-1] < size and draw(st.booleans()):
            borders.append(borders[-1] * draw(st.sampled_from(divisors(size // borders[-1])[1:])))
        cuts = sorted({*borders, size})
        if len(cuts) <= 2:
            found.append(AxisRef(name))
        else:
            found.extend(AxisRef(name, start, end // start) for start, end in zip(cuts, cuts[1:]))
    return tuple(found)


@st.composite
def axis_lists(draw: st.DrawFn, mesh: Mesh) -> Axes:
    """References that can coexist and do not overlap, in any order; neighbours may be mergeable."""
    chosen = [piece for piece in draw(pieces(mesh)) if draw(st.booleans())]
    return tuple(draw(st.permutations(chosen)))


@st.composite
def compatible_lists(draw: st.DrawFn, mesh: Mesh, count: int = 2) -> list[Axes]:
    """Lists as of `axis_lists` whose references can coexist across the lists, and may overlap there."""
    cut = draw(pieces(mesh))
    return [_joined(draw, cut, mesh) for _ in range(count)]


def _joined(draw: st.DrawFn, cut: Axes, mesh: Mesh) -> Axes:
    """Some of the consecutive pieces, now and then joined into longer references, in any order."""
    joined: list[AxisRef] = []
    for piece in cut:
        if not draw(st.booleans()):
            continue
        if draw(st.booleans()):
            append_or_merge(joined, piece, mesh)
        else:
            joined.append(piece)
    return tuple(draw(st.permutations(joined)))


priorities = st.none() | st.integers(0, 3)


@st.composite
def _dims(draw: st.DrawFn, axes: list[AxisRef]) -> DimSharding:
    is_open = draw(st.booleans())
    return DimSharding(axes, is_open, draw(priorities) if axes or is_open else None)


@st.composite
def dim_shardings(draw: st.DrawFn, mesh: Mesh) -> DimSharding:
    """A sharding of one dimension."""
    (dim,) = draw(tensor_shardings(mesh, rank=1)).dims
    return dim


@st.composite
def tensor_shardings(
    draw: st.DrawFn, mesh: Mesh, rank: int | None = None, mesh_name: str | Mesh = "mesh", max_rank: int = 3
) -> TensorSharding:
    """A sharding that fits the mesh, with axes in dimensions, replicated and unreduced.

    Args:
        mesh: The mesh; the empty mesh and a single device are allowed.
        rank: The number of dimensions; any by default. On a single device it is always 0.
        mesh_name: The name of the mesh, or the mesh itself.
        max_rank: The most dimensions if `rank` is not given.
    """
    if mesh.is_single_device:
        return TensorSharding(mesh_name)
    if rank is None:
        rank = draw(st.integers(0, max_rank))
    places: list[list[AxisRef]] = [[] for _ in range(rank)]
    named: tuple[list[AxisRef], list[AxisRef]] = ([], [])
    for piece in draw(st.permutations(draw(pieces(mesh)))):
        place = draw(st.integers(-3, rank - 1))
        if place == -1:
            continue
        if place < -1:
            named[place + 3].append(piece)
        elif not (places[place] and places[place][-1].can_merge(piece)):
            places[place].append(piece)
    replicated, unreduced = (sort_and_merge(axes, mesh) for axes in named)
    kind = draw(st.sampled_from(ReductionKind)) if unreduced else ReductionKind.SUM
    return TensorSharding(mesh_name, [draw(_dims(axes)) for axes in places], replicated, unreduced, kind)
