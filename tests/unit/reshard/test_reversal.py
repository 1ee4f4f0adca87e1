"""Meshes in reversed order, and shifts of padding to the front."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.axes import AxisRef
from pyshardy.core.devices import shard_indices, shift_pairs
from pyshardy.core.mesh import Mesh
from pyshardy.reshard.reversal import reversed_mesh, shift_of

MESH = Mesh([("a", 2), ("b", 12)], device_ids=range(24)[::-1])


def test_reversing_mirrors_the_shards() -> None:
    axes = (AxisRef("b", 2, 3), AxisRef("a"))
    mirrored = reversed_mesh(MESH, axes)
    before, after = shard_indices(axes, MESH), shard_indices(axes, mirrored)
    assert all(one + other == 5 for one, other in zip(before, after))
    rest = (AxisRef("b", 1, 2), AxisRef("b", 6, 2))
    assert shard_indices(rest, MESH) == shard_indices(rest, mirrored)
    assert reversed_mesh(mirrored, axes) is MESH


@given(st.integers(1, 30), st.integers(1, 7))
def test_shifts_bring_padding_to_the_front(size: int, shards: int) -> None:
    shift, shard = shift_of(size, shards), -(-size // shards)
    data = np.full(shards * shard, -1)
    data[:size] = np.arange(size)
    parts = data.reshape(shards, shard)
    shifted = []
    for index in range(shards):
        head, tail = index - shift.hops, index - shift.hops - 1
        first = parts[tail][shift.kept :] if tail >= 0 else np.full(shard - shift.kept, -1)
        second = parts[head][: shift.kept] if head >= 0 else np.full(shift.kept, -1)
        shifted += [first, second]
    assert (np.concatenate(shifted) == np.concatenate([np.full(shards * shard - size, -1), np.arange(size)])).all()


def test_shifts_keep_the_other_coordinates() -> None:
    axes = (AxisRef("b", 1, 4),)
    index, other = shard_indices(axes, MESH), shard_indices((AxisRef("a"), AxisRef("b", 4, 3)), MESH)
    pairs = shift_pairs(axes, MESH, 2)
    assert len(pairs) == 12
    assert all(index[target] == index[source] + 2 and other[target] == other[source] for source, target in pairs)
    assert shift_pairs(axes, MESH, 4) == ()
