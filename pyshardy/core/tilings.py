"""From tilings over numbered devices back to named axes: the coarsest mesh that all tilings of a program fit on.

A device number is written in a mixed radix: an axis of size `n` is a *digit* that counts from 0 to `n - 1` in steps
of its *stride*. A tiling gives the digits that cut every tensor dimension. The borders of all digits of all tilings
are the borders of the axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.hlo_sharding import HloKind, HloSharding
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import InvalidShardingError

_DOING = "finding the axes of a tiling"
_HINT = "name the axes: load(..., mesh={'data': 4, 'model': 2}) or --mesh data=4,model=2"


class Digit(NamedTuple):
    """One digit of device positions, which cuts a dimension."""

    stride: int
    size: int


class PlacedTiling(NamedTuple):
    """A tiling on a mesh.

    Attributes:
        sharding: The sharding of the tensor's dimensions.
        manual: The axes of its manual subgroups.
    """

    sharding: TensorSharding
    manual: Axes


class TilingMesh:
    """Collects the tilings of a program, then finds the mesh that they are on.

    Args:
        axes: Names and sizes of the axes, if the user knows them; else the axes that are found, `axis_0` and so on.
        order: The devices in the order of the mesh; None for the natural order.
    """

    def __init__(self, axes: Sequence[tuple[str, int]] | None = None, order: tuple[int, ...] | None = None) -> None:
        self._given = None if axes is None else Mesh(axes, order)
        self._order = order
        self._size = None if axes is None else self._given_size()
        self._positions = {} if order is None else {device: place for place, device in enumerate(order)}
        self._borders = {1} if self._given is None else set(_borders(self._given))

    def _given_size(self) -> int:
        assert self._given is not None
        return self._given.size

    def add(self, tiling: HloSharding) -> None:
        """Add a tiling to the mesh.

        Raises:
            InvalidShardingError: It is over other devices, or no mesh fits it together with the tilings added before.
        """
        count = len(tiling.devices)
        if self._size not in (None, count):
            raise InvalidShardingError(
                _DOING,
                got=f"a tiling over {count} devices",
                needed=f"{self._size}, as many as {'the others have' if self._given is None else self._given}",
            )
        self._size = count
        digits = self._digits(tiling)
        if self._given is not None:
            return
        used = chain.from_iterable((*digits.dims, digits.manual, digits.unreduced))
        borders = sorted(self._borders | {count} | {end for d in used for end in (d.stride, d.stride * d.size)})
        for low, high in zip(borders, borders[1:]):
            if high % low:
                raise InvalidShardingError(
                    _DOING,
                    got=f"a tiling whose parts cross those of others: axes would end at {low} and at {high} devices",
                    needed="tilings cut from one mesh",
                )
        self._borders = set(borders)

    def mesh(self) -> Mesh:
        """The mesh that all added tilings fit on; the empty mesh if there are none.

        >>> from pyshardy.core.hlo_sharding import parse_hlo_shardings
        >>> tilings = TilingMesh()
        >>> for text in ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "{devices=[1,8]<=[8]}"):
        ...     tilings.add(*parse_hlo_shardings(text))
        >>> tilings.mesh()
        Mesh([('axis_0', 2), ('axis_1', 4)])
        """
        if self._given is not None:
            return self._given
        borders = sorted(self._borders, reverse=True)
        sizes = [high // low for high, low in zip(borders, borders[1:])]
        axes = [(f"axis_{index}", size) for index, size in enumerate(sizes)]
        return Mesh(axes, self._order if axes else None)

    def place(self, tiling: HloSharding) -> PlacedTiling:
        """A tiling that was added, as a sharding on `mesh()`."""
        mesh, digits = self.mesh(), self._digits(tiling)
        dims = [DimSharding(_axes(dim, mesh)) for dim in digits.dims]
        unreduced = sort_and_merge(_axes(digits.unreduced, mesh), mesh)
        manual = sort_and_merge(_axes(digits.manual, mesh), mesh)
        return PlacedTiling(TensorSharding(mesh, dims, (), unreduced, tiling.reduction), manual)

    def _digits(self, tiling: HloSharding) -> _Digits:
        devices = tiling.devices
        if self._order is None:
            positions: Sequence[int] | None = devices
        else:
            positions = [self._positions.get(device, -1) for device in devices]
        found = (
            None
            if positions is None or sorted(positions) != list(range(len(devices)))
            else digits_of(tiling, positions)
        )
        if found is None:
            raise InvalidShardingError(
                _DOING,
                got=f"devices in the order {_few(devices)}",
                needed="an order that the axes of one mesh make",
                hint=_HINT if self._given is None else None,
            )
        return found


class _Digits(NamedTuple):
    """The digits that cut the dimensions and the subgroups, major to minor."""

    dims: tuple[tuple[Digit, ...], ...]
    manual: tuple[Digit, ...]
    unreduced: tuple[Digit, ...]


def device_order(tilings: Iterable[HloSharding]) -> tuple[int, ...] | None:
    """The device order of the tilings of a program; None if it is the natural one.

    It is the order of the first tiling that the natural order cannot make.
    """
    for tiling in tilings:
        natural = sorted(tiling.devices) == list(range(len(tiling.devices)))
        if not natural or digits_of(tiling, tiling.devices) is None:
            return tiling.devices
    return None


def digits_of(tiling: HloSharding, positions: Sequence[int]) -> _Digits | None:
    """The digits of a tiling; None if digits cannot make the order of its devices.

    Args:
        tiling: A tiled sharding.
        positions: The position in the mesh of every device of the grid.
    """
    assert tiling.kind is HloKind.TILED
    grid, flat = _with_replicas_last(tiling, positions)
    found = _split(_mixed_radix(flat), grid)
    if found is None:
        return None
    rank = len(tiling.tiles)
    kinds = [kind for kind, _ in tiling.subgroups if kind != "replicated"]
    subgroups = list(zip(kinds, found[rank:]))
    manual, unreduced = (
        tuple(chain.from_iterable(digits for kind, digits in subgroups if kind == wanted))
        for wanted in ("manual", "unreduced")
    )
    return _Digits(tuple(found[:rank]), manual, unreduced)


def _with_replicas_last(tiling: HloSharding, positions: Sequence[int]) -> tuple[list[int], list[int]]:
    """The grid and its devices, with the replicas as the last dimension of the grid, each group of replicas sorted."""
    sizes = [*tiling.tiles, *(size for _, size in tiling.subgroups)]
    rank = len(tiling.tiles)
    replicated = [rank + index for index, (kind, _) in enumerate(tiling.subgroups) if kind == "replicated"]
    others = [dim for dim in range(len(sizes)) if dim not in replicated]
    groups = [0]
    for dim in others:
        stride = prod(sizes[dim + 1 :])
        groups = [base + index * stride for base in groups for index in range(sizes[dim])]
    members = [0]
    for dim in replicated:
        stride = prod(sizes[dim + 1 :])
        members = [base + index * stride for base in members for index in range(sizes[dim])]
    flat = list(chain.from_iterable(sorted(positions[base + offset] for offset in members) for base in groups))
    return [*(sizes[dim] for dim in others), len(members)], flat


def _mixed_radix(values: Sequence[int]) -> list[Digit] | None:
    """The digits of a list that counts in a mixed radix, minor to major; None if it does not."""
    found: list[Digit] = []
    while len(values) > 1:
        stride, run = values[1] - values[0], 1
        while run < len(values) and values[run] - values[0] == run * stride:
            run += 1
        heads = values[::run]
        if stride < 1 or len(values) % run:
            return None
        if any(values[index] != heads[index // run] + index % run * stride for index in range(len(values))):
            return None
        found.append(Digit(stride, run))
        values = heads
    end = 1
    for stride, size in sorted(found):
        if stride != end:
            return None
        end = stride * size
    return found if values[0] == 0 else None


def _split(digits: list[Digit] | None, grid: Sequence[int]) -> list[tuple[Digit, ...]] | None:
    """Split the digits, major to minor, over the dimensions of the grid; None if a digit does not divide."""
    if digits is None:
        return None
    left, found = list(reversed(digits)), list[tuple[Digit, ...]]()  # `left` ends with the most minor digit
    for size in reversed(grid):
        taken: list[Digit] = []
        while size > 1:
            digit = left.pop()
            part = min(size, digit.size)
            if size % part or digit.size % part:
                return None
            taken.append(Digit(digit.stride, part))
            if part < digit.size:
                left.append(Digit(digit.stride * part, digit.size // part))
            size //= part
        found.append(tuple(reversed(taken)))
    return found[::-1]


def _borders(mesh: Mesh) -> list[int]:
    found = [1]
    for _, size in reversed(mesh.axes):
        found.append(found[-1] * size)
    return found


def _axes(digits: Iterable[Digit], mesh: Mesh) -> Axes:
    """The axes, or parts of axes, that the digits stand for, major to minor.

    Raises:
        InvalidShardingError: A digit cuts an axis into pieces that are not sub-axes.
    """
    found: list[AxisRef] = []
    for digit in digits:
        low, high = digit.stride, digit.stride * digit.size
        end = mesh.size
        for name, size in mesh.axes:
            start = end // size
            inner, outer = max(low, start), min(high, end)
            if outer > inner:
                if inner % start or outer % inner or end % outer:
                    raise InvalidShardingError(
                        _DOING, got=f'{digit.size} devices at a distance of {digit.stride}, across axis "{name}"',
                        needed=f"whole axes of {mesh}, or parts of them",
                    )  # fmt: skip
                is_whole = (inner, outer) == (start, end)
                axis = AxisRef(name) if is_whole else AxisRef(name, end // outer, outer // inner)
                append_or_merge(found, axis, mesh)
            end = start
    return tuple(found)


def _few(devices: Sequence[int]) -> str:
    text = ",".join(map(str, devices[:16]))
    return text + ",..." if len(devices) > 16 else text
