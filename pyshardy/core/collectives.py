"""Collectives: the steps that bring a tensor from one sharding to another.

Source: docs/semantics/reshards-and-collectives.md#from-reshards-to-collectives
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding


class CollectiveKind(Enum):
    """The kinds of collectives; the value is the name of the op in the sdy dialect, if that has one."""

    ALL_GATHER = "all_gather"
    ALL_SLICE = "all_slice"
    ALL_TO_ALL = "all_to_all"
    COLLECTIVE_PERMUTE = "collective_permute"
    ALL_REDUCE = "all_reduce"
    REDUCE_SCATTER = "reduce_scatter"
    RAGGED_ALL_TO_ALL = "ragged_all_to_all"


class AllToAllParam(NamedTuple):
    """Axes that move from the end of one dimension to the end of another."""

    axes: Axes
    source: int
    target: int

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.axes))}}}: {self.source}->{self.target}"


@dataclass(frozen=True, slots=True)
class Collective:
    """One step of a plan.

    Attributes:
        kind: The kind of collective.
        before: The sharding before the step; None if it is the first step of a tensor without a sharding.
        after: The sharding after the step.
        axes: The axes per dimension; for an all-reduce all axes in one list; empty for the kinds that use `params`.
        params: The moves of an all-to-all; empty for other kinds.
    """

    kind: CollectiveKind
    before: TensorSharding | None
    after: TensorSharding
    axes: tuple[Axes, ...] = ()
    params: tuple[AllToAllParam, ...] = ()

    def __str__(self) -> str:
        if self.params:
            what = f" [{', '.join(map(str, self.params))}]"
        else:
            what = " [" + ", ".join("{" + ", ".join(map(str, axes)) + "}" for axes in self.axes) + "]"
        return f"{self.kind.value}{what if self.params or self.axes else ''} -> {self.after}"

    def group_size(self, mesh: Mesh) -> int:
        """The number of devices in a group; 1 for a permutation, in which every device sends to one other."""
        return prod(axes_size(axes, mesh) for axes in (*self.axes, *(param.axes for param in self.params)))

    def sent_bytes_per_device(self, element_bytes: int, shape: Sequence[int], mesh: Mesh) -> int:
        """The most bytes that a device sends, and receives; padding is sent too.

        A gather goes around a ring: a device passes on every shard of its group but one. A reduce-scatter does the same
        in reverse, and an all-reduce does both in turn. In an all-to-all a device sends directly all that it does not
        keep. In a permutation it sends its whole shard if anything changes; slicing is free.

        Args:
            element_bytes: Size of an element.
            shape: The shape of the whole tensor; it must be static.
            mesh: The mesh.

        >>> from pyshardy.core.notation import parse_sharding
        >>> split, whole = parse_sharding('<@m, [{"a"}]>'), parse_sharding("<@m, [{}]>")
        >>> gather = Collective(CollectiveKind.ALL_GATHER, split, whole, axes=(split.dims[0].axes,))
        >>> gather.sent_bytes_per_device(4, (32,), Mesh([("a", 8)]))
        112
        """
        before, after = local_shape(self.before, mesh, shape), local_shape(self.after, mesh, shape)
        group_size = self.group_size(mesh)
        held = prod(before)
        if self.kind is CollectiveKind.ALL_TO_ALL:
            held = group_size * prod(map(min, before, after))
        elif self.kind is CollectiveKind.COLLECTIVE_PERMUTE and not self._moves():
            held = 0
        return element_bytes * sent_by_device(self.kind, held, prod(after), group_size)

    def _moves(self) -> bool:
        before, after = self.before, self.after
        return before is None or before.mesh != after.mesh or before.dim_axes != after.dim_axes


def sent_by_device(kind: CollectiveKind, before: int, after: int, group_size: int) -> int:
    """The amount that a device of a group sends, in the unit of `before` and `after`.

    Args:
        kind: The kind of collective.
        before: The amount that the device holds before.
        after: The amount that it holds after.
        group_size: The number of devices in the group.

    How much a ragged all-to-all sends is known only when it runs; this is what it sends if all devices get alike.

    >>> sent_by_device(CollectiveKind.ALL_REDUCE, 100, 100, 4)
    150

    Of a tensor with fewer elements than there are devices, a device may pass on all: nothing is rounded up per device.

    >>> sent_by_device(CollectiveKind.ALL_REDUCE, 4, 4, 4096)
    8
    """
    others = group_size - 1
    if kind is CollectiveKind.ALL_GATHER:
        return others * before
    if kind is CollectiveKind.REDUCE_SCATTER:
        return others * after
    if kind is CollectiveKind.ALL_REDUCE:
        return 2 * (before - before // group_size)
    if kind in (CollectiveKind.ALL_TO_ALL, CollectiveKind.RAGGED_ALL_TO_ALL):
        return others * before // group_size
    return before if kind is CollectiveKind.COLLECTIVE_PERMUTE else 0
