"""Random meshes and shardings, valid by construction, from a seeded generator."""

from __future__ import annotations

from random import Random

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding

AXIS_NAMES = "abcde"


def random_mesh(random: Random) -> Mesh:
    """A mesh of two to four axes with sizes from 2 to 8, now and then with a size of 1 or a device order."""
    axes = [(name, random.choice((2, 2, 2, 3, 4, 4, 6, 8))) for name in AXIS_NAMES[: random.randint(2, 4)]]
    if random.random() < 0.05:
        axes.append(("one", 1))
    mesh = Mesh(axes)
    return Mesh(axes, reversed(range(mesh.size))) if random.random() < 0.05 else mesh


def random_pieces(random: Random, mesh: Mesh, sub_axes: float = 0.2) -> list[AxisRef]:
    """The axes of a mesh in random order, some of them cut into sub-axes."""
    pieces: list[AxisRef] = []
    for name, size in mesh.axes:
        cuts = [factor for factor in range(2, size) if size % factor == 0]
        if cuts and random.random() < sub_axes:
            cut = random.choice(cuts)
            pieces += [AxisRef(name, 1, cut), AxisRef(name, cut, size // cut)]
        else:
            pieces.append(AxisRef(name))
    random.shuffle(pieces)
    return pieces


def random_sharding(
    random: Random,
    name: str,
    mesh: Mesh,
    rank: int,
    *,
    density: float = 0.4,
    is_open: float = 0.6,
    priorities: float = 0.0,
    replicated: float = 0.05,
    unreduced: float = 0.0,
    sub_axes: float = 0.2,
) -> TensorSharding:
    """A sharding of a tensor of this rank; the numbers are probabilities."""
    pieces = random_pieces(random, mesh, sub_axes)
    dims: list[list[AxisRef]] = [[] for _ in range(rank)]
    rest: list[AxisRef] = []
    for piece in pieces:
        if rank and random.random() < density:
            dim = random.choice(dims)
            if not (dim and dim[-1].can_merge(piece)):
                dim.append(piece)
        else:
            rest.append(piece)
    kept = {"replicated": replicated, "unreduced": unreduced}
    named: dict[str, list[AxisRef]] = {"replicated": [], "unreduced": []}
    for piece in rest:
        for kind, chance in kept.items():
            if random.random() < chance:
                named[kind].append(piece)
                break
    return TensorSharding(
        name,
        [_dim(random, axes, is_open, priorities) for axes in dims],
        _sorted(named["replicated"], mesh),
        _sorted(named["unreduced"], mesh),
    )


def _dim(random: Random, axes: list[AxisRef], is_open: float, priorities: float) -> DimSharding:
    opened = random.random() < is_open
    priority = random.randint(0, 3) if (axes or opened) and random.random() < priorities else None
    return DimSharding(axes, opened, priority)


def _sorted(axes: list[AxisRef], mesh: Mesh) -> list[AxisRef]:
    from pyshardy.core.axis_lists import sort_and_merge

    return list(sort_and_merge(axes, mesh))
