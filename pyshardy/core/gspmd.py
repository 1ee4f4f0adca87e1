"""Shardings to GSPMD's text and back: `{devices=[4,1,2]<=[8] last_tile_dim_replicate}`."""

from __future__ import annotations

from pyshardy.core.given import as_rank, as_text
from pyshardy.core.hlo_sharding import HloKind, parse_hlo_shardings
from pyshardy.core.hlo_text import format_tiling, tiling_of
from pyshardy.core.mesh import Mesh, as_mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.tilings import TilingMesh
from pyshardy.errors import InvalidShardingError


def to_gspmd(sharding: TensorSharding, mesh: Mesh) -> str:
    """The GSPMD text of a sharding, which XLA and JAX read. It does not say which axes must stay replicated.

    Args:
        sharding: The sharding; its dimensions must be closed.
        mesh: Its mesh.

    Raises:
        InvalidShardingError: GSPMD cannot express it: open dimensions, priorities, partial values that are not sums.

    >>> from pyshardy.core.sharding import DimSharding
    >>> to_gspmd(TensorSharding("mesh", [DimSharding(), DimSharding(["y"])]), Mesh([("x", 4), ("y", 2)]))
    '{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}'
    """
    return format_tiling(tiling_of(TensorSharding.of(sharding), _listable(mesh)))


def from_gspmd(text: str, mesh: Mesh, rank: int, mesh_name: str = "mesh") -> TensorSharding:
    """The closed sharding that a GSPMD text stands for.

    Args:
        text: A sharding of one tensor.
        mesh: The mesh that provides the axes.
        rank: Number of dimensions of the tensor.
        mesh_name: The mesh name to put into the sharding.

    Raises:
        NotationError: The text is not a sharding.
        InvalidShardingError: The tiling is not cut along axes of the mesh or has another rank; or the sharding is of a
            tuple, manual, unknown, or on one device of several.

    >>> from_gspmd("{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", Mesh([("x", 4), ("y", 2)]), rank=2)
    TensorSharding(<@mesh, [{}, {"y"}]>)
    """
    found = parse_hlo_shardings(as_text(text, "reading a sharding", "a GSPMD sharding as text"))
    doing = f"reading the sharding {text}"
    mesh, rank = _listable(mesh), as_rank(rank, doing)
    mesh_name = as_text(mesh_name, doing, "the name of a mesh")
    if len(found) != 1:
        raise InvalidShardingError(doing, got=f"shardings of {len(found)} values", needed="the sharding of one tensor")
    tiling = found[0]
    if tiling.kind is HloKind.REPLICATED:
        return TensorSharding.fully_replicated(mesh_name, rank)
    if tiling.kind is HloKind.ONE_DEVICE and mesh.is_single_device and mesh.device_ids == (tiling.device,):
        return TensorSharding(mesh_name)
    if tiling.kind is not HloKind.TILED or tiling.subgroup_size("manual") > 1:
        got = "manual subgroups" if tiling.kind is HloKind.TILED else tiling.kind.value
        raise InvalidShardingError(doing, got=got, needed="a tiling, or replicated")
    if len(tiling.tiles) != rank:
        raise InvalidShardingError(doing, got=f"{len(tiling.tiles)} dimensions", needed=f"{rank}")
    axes = TilingMesh(mesh.axes, mesh.device_ids or tuple(range(mesh.size)))
    axes.add(tiling)
    return axes.place(tiling).sharding.with_mesh(mesh_name)


def _listable(mesh: Mesh) -> Mesh:
    """The mesh, unless it has too many devices for a tiling, which lists them."""
    found = as_mesh(mesh)
    found.check_listable()
    return found
