"""Reshapes in groups, and what shards get where a dimension is split."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard.reshape_groups import GroupKind, reshape_groups
from pyshardy.reshard.reshape_halo import Reshape, is_free_reshape, replicated_groups, split_halos

MESH = Mesh([("a", 2), ("b", 4)])


def _reshape(shape: tuple[int, ...], dims: str, out_shape: tuple[int, ...], out_dims: str) -> Reshape:
    sharding, out_sharding = (parse_sharding(f"<@m, [{text}]>") for text in (dims, out_dims))
    return Reshape(shape, out_shape, sharding, out_sharding, MESH)


@given(st.lists(st.integers(1, 6), max_size=4), st.data())
def test_groups_have_equal_volumes_and_cover_all(shape: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(shape)))
    out_shape = [prod(shape[:cut]), *shape[cut:]]
    groups = reshape_groups(shape, out_shape)
    assert [dim for group in groups for dim in group.dims] == list(range(len(shape)))
    assert [dim for group in groups for dim in group.out_dims] == list(range(len(out_shape)))
    for group in groups:
        assert prod(shape[dim] for dim in group.dims) == prod(out_shape[dim] for dim in group.out_dims)


@pytest.mark.parametrize(
    ("shape", "out_shape", "kinds"),
    [
        ((6,), (2, 3), [GroupKind.SPLIT]),
        ((2, 3), (6,), [GroupKind.COMBINE]),
        ((4, 6), (6, 4), [GroupKind.MIXED]),
        ((5, 1), (5,), [GroupKind.PASS_THROUGH, GroupKind.PASS_THROUGH]),
    ],
)
def test_kinds_of_groups(shape: tuple[int, ...], out_shape: tuple[int, ...], kinds: list[GroupKind]) -> None:
    assert [group.kind for group in reshape_groups(shape, out_shape)] == kinds


@given(st.integers(1, 40))
def test_split_shards_find_their_elements(size: int) -> None:
    reshape = _reshape((2 * size,), '{"a", "b"}', (2, size), '{"a"}, {"b"}')
    halos = split_halos(reshape)
    if not halos:
        return
    (halo,) = halos
    padded = np.full(8 * halo.size, -1)
    padded[: 2 * size] = np.arange(2 * size)
    shards, nothing = padded.reshape(8, -1), np.full(halo.size, -1)
    rows = np.full((2, 4 * halo.size), -1)
    for shard in range(8):
        near = range(shard - halo.left, shard + halo.right + 1)
        pieces = [nothing, *(shards[index] if 0 <= index < 8 else nothing for index in near), nothing]
        start = halo.offsets[shard]
        row, column = divmod(shard, 4)
        rows[row, column * halo.size : (column + 1) * halo.size] = np.concatenate(pieces)[start : start + halo.size]
    assert (rows[:, :size].ravel() == np.arange(2 * size)).all()


@pytest.mark.parametrize(
    ("reshape", "is_free"),
    [
        (_reshape((9,), '{"a"}', (3, 3), '{"a"}, {}'), False),
        (_reshape((6,), '{"b"}', (3, 2), '{"b"}, {}'), True),
        (_reshape((8,), '{"a", "b"}', (2, 4), '{"a"}, {"b"}'), True),
        (_reshape((7, 1), '{"a"}, {}', (7,), '{"a"}'), True),
        (_reshape((6, 3, 2), '{"a"}, {}, {"b"}', (12, 3), '{"a"}, {"b"}'), False),
        (_reshape((6, 3, 2), '{}, {}, {"b"}', (9, 4), '{}, {"b"}'), False),
        (_reshape((1, 2, 2), '{"a"}, {}, {"b"}', (4,), '{"a", "b"}'), False),
        (_reshape((0, 3), '{"a"}, {}', (0, 5), '{"a"}, {}'), True),
    ],
)
def test_reshapes_without_communication(reshape: Reshape, is_free: bool) -> None:
    assert is_free_reshape(reshape) is is_free


def test_groups_that_keep_their_axes() -> None:
    reshape = _reshape((10, 8), '{"a"}, {"b"}', (5, 2, 8), '{"a"}, {}, {"b"}')
    assert split_halos(reshape) is None
    assert [str(sharding) for sharding in replicated_groups(reshape)] == ['<@m, [{}, {"b"}]>', '<@m, [{}, {}, {"b"}]>']


def test_groups_whose_shards_have_other_elements_are_replicated() -> None:
    """Shards start at the same elements: each side pads another dimension."""
    reshape = _reshape((6, 3, 2), '{"a"}, {}, {"b"}', (12, 3), '{"a"}, {"b"}')
    assert [str(sharding) for sharding in replicated_groups(reshape)] == ["<@m, [{}, {}, {}]>", "<@m, [{}, {}]>"]


def test_axes_of_replicated_groups_shard_no_other_dimension() -> None:
    reshape = _reshape((1, 5, 4, 1), '{"a"}, {}, {}, {"b"}', (20, 1), '{"a"}, {"b"}')
    assert [str(sharding) for sharding in replicated_groups(reshape)] == [
        '<@m, [{}, {}, {}, {"b"}]>',
        '<@m, [{}, {"b"}]>',
    ]
    part = _reshape((6, 2), '{}, {"a", "b"}', (2, 3, 2), '{}, {"a", "b":(1)2}, {"b":(2)2}')
    assert [str(sharding) for sharding in replicated_groups(part)] == [
        '<@m, [{}, {"b":(2)2}]>',
        '<@m, [{}, {}, {"b":(2)2}]>',
    ]


def test_groups_sharded_otherwise_are_replicated() -> None:
    reshape = _reshape((4,), '{"a"}', (2, 2), '{}, {"a"}')
    assert [str(sharding) for sharding in replicated_groups(reshape)] == ["<@m, [{}]>", "<@m, [{}, {}]>"]
