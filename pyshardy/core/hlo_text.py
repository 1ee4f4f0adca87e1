"""Shardings to GSPMD's tilings, and tilings to text as XLA writes them; `core/hlo_sharding.py` reads the text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod

from pyshardy.core.axis_lists import axes_size, ordered_refs
from pyshardy.core.hlo_sharding import HloKind, HloSharding, transposed_iota
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.errors import InvalidShardingError

_DOING = "writing a sharding for GSPMD"


def tiling_of(sharding: TensorSharding, mesh: Mesh) -> HloSharding:
    """The tiling that lays a tensor out as a sharding does. It does not say which axes must stay replicated.

    Args:
        sharding: The sharding; its dimensions must be closed.
        mesh: Its mesh.

    Raises:
        InvalidShardingError: Open dimensions, priorities, or partial values that are not sums: GSPMD has none of these.

    >>> from pyshardy.core.notation import parse_sharding
    >>> print(format_tiling(tiling_of(parse_sharding('<@m, [{}, {"y"}]>'), Mesh([("x", 4), ("y", 2)]))))
    {devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}
    """
    check_sharding(sharding, mesh, sharding.rank)
    _check_expressible(sharding)
    if mesh.is_single_device:
        return HloSharding(HloKind.ONE_DEVICE, device=mesh.device_order[0])
    tiles = tuple(axes_size(dim.axes, mesh) for dim in sharding.dims)
    unreduced = axes_size(sharding.unreduced, mesh)
    if prod(tiles) * unreduced == 1:
        return HloSharding(HloKind.REPLICATED)
    used = [*chain.from_iterable(dim.axes for dim in sharding.dims), *sharding.unreduced]
    atoms = ordered_refs(mesh, used)
    order = [number for axis in used for number, atom in enumerate(atoms) if axis.contains(atom)]
    order += [number for number in range(len(atoms)) if number not in set(order)]
    positions = transposed_iota(tuple(atom.length(mesh) for atom in atoms), tuple(order))
    ids = mesh.device_order
    rest = mesh.size // prod(tiles) // unreduced
    subgroups = [(kind, size) for kind, size in (("unreduced", unreduced), ("replicated", rest)) if size > 1]
    devices = positions if mesh.device_ids is None else tuple(ids[position] for position in positions)
    return HloSharding(HloKind.TILED, tiles=tiles, subgroups=tuple(subgroups), devices=devices)


def _check_expressible(sharding: TensorSharding) -> None:
    got, hint = None, None
    if any(dim.is_open for dim in sharding.dims):
        got, hint = "an open dimension", "sharding.closed()"
    elif any(dim.priority is not None for dim in sharding.dims):
        got, hint = "a priority", "sharding.without_priorities()"
    elif sharding.unreduced and sharding.reduction is not ReductionKind.SUM:
        got, hint = f"partial values to combine by {sharding.reduction.value}", None
    if got is not None:
        needed = "closed dimensions without priorities, and partial sums"
        raise InvalidShardingError(_DOING, where=str(sharding), got=got, needed=needed, hint=hint)


def format_tiling(tiling: HloSharding) -> str:
    """A sharding as XLA writes it: as a transposed range of numbers if its devices form one.

    Raises:
        InvalidShardingError: A sharding with named axes, which has a notation of its own.

    >>> format_tiling(HloSharding(HloKind.TILED, tiles=(2, 2), devices=(0, 2, 1, 3)))
    '{devices=[2,2]<=[2,2]T(1,0)}'
    >>> format_tiling(HloSharding(HloKind.TILED, tiles=(3,), devices=(0, 2, 1)))
    '{devices=[3]0,2,1}'
    """
    if tiling.kind is HloKind.NAMED or tiling.mesh is not None:
        raise InvalidShardingError(_DOING, got="a sharding with named axes", needed="a tiling")
    group = "" if tiling.group is None else f" shard_as {tiling.group}"
    if tiling.kind is HloKind.ONE_DEVICE:
        return f"{{maximal device={tiling.device}{group}}}"
    if tiling.kind is not HloKind.TILED:
        return f"{{{tiling.kind.value}{group}}}"
    grid = [*tiling.tiles, *(size for _, size in tiling.subgroups)]
    kinds = [kind for kind, _ in tiling.subgroups]
    last = ""
    if kinds == ["replicated"]:
        last = " last_tile_dim_replicate"
    elif kinds:
        last = f" last_tile_dims={{{', '.join(kinds)}}}"
    return f"{{devices=[{','.join(map(str, grid))}]{_devices(tiling.devices)}{last}{group}}}"


def _devices(devices: Sequence[int]) -> str:
    found = iota_of(devices)
    if found is None:
        return ",".join(map(str, devices))
    sizes, order = found
    transposed = "" if len(sizes) == 1 else f"T({','.join(map(str, order))})"
    return f"<=[{','.join(map(str, sizes))}]{transposed}"


def iota_of(devices: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape and the transposition that make a list from a range of numbers, in the fewest dimensions.

    >>> iota_of((0, 2, 4, 6, 1, 3, 5, 7))
    ((4, 2), (1, 0))
    >>> iota_of((0, 2, 1)) is None
    True
    """
    digits = _digits(devices)
    by_stride = sorted(range(len(digits)), key=lambda number: -digits[number][0])
    sizes = tuple(digits[number][1] for number in by_stride)
    order = tuple(by_stride.index(number) for number in range(len(digits)))
    is_it = prod(sizes) == len(devices) and transposed_iota(sizes, order) == tuple(devices)
    return (sizes, order) if is_it else None


def _digits(devices: Sequence[int]) -> list[tuple[int, int]]:
    """Strides and sizes of the runs in a list, slowest first; meaningless if the list is not a transposed range."""
    found: list[tuple[int, int]] = []
    block = 1
    while block < len(devices):
        stride, count = devices[block], 2
        while count * block < len(devices) and devices[count * block] == count * stride:
            count += 1
        found.append((stride, count))
        block *= count
    return found[::-1] or [(1, 1)]
