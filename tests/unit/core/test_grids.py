"""Sub-axes that can be used at once."""

from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.devices import replica_groups, shard_indices
from pyshardy.core.grids import exclude_each_other, is_grid, on_one_grid
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding

TWELVE = Mesh([("a", 12)])
SUB_AXES = [AxisRef("a", pre, size) for pre in (1, 2, 3, 4, 6) for size in (2, 3, 4, 6) if 12 % (pre * size) == 0]


@pytest.mark.parametrize("other", SUB_AXES, ids=str)
@pytest.mark.parametrize("axis", SUB_AXES, ids=str)
def test_those_that_exclude_each_other_differ_inside_a_group(axis: AxisRef, other: AxisRef) -> None:
    if axis.overlaps(other):
        assert not exclude_each_other(axis, other)
        return
    indices = shard_indices((other,), TWELVE)
    differ = any(len({indices[device] for device in group}) > 1 for group in replica_groups((axis,), TWELVE))
    assert exclude_each_other(axis, other) == exclude_each_other(other, axis) == differ
    assert is_grid([axis, other]) == (not differ)


def test_those_that_exclude_each_other_are_among_them() -> None:
    assert exclude_each_other(AxisRef("a", 1, 2), AxisRef("a", 3, 2))
    assert not exclude_each_other(AxisRef("a", 1, 2), AxisRef("b", 3, 2))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (['[{"a":(1)2}]', '[{"a":(3)2}]'], ['[{"a":(1)2}]', "[{}]"]),
        (['[{"a":(3)2}]', '[{"a":(1)2}]'], ['[{"a":(3)2}]', "[{}]"]),
        (['[{"a":(1)2}, {"b", "a":(3)2, "c"}]'], ['[{"a":(1)2}, {"b"}]']),
        (['[{"a":(1)2}]', '[{?}], unreduced={"a":(3)2}'], ["[{}]", '[{?}], unreduced={"a":(3)2}']),
        (['[{"a":(1)2, ?}]', '[{"a":(2)3}p1]'], ['[{"a":(1)2, ?}]', '[{"a":(2)3}p1]']),
        (['[{"a":(1)2}]', '[{"a":(1)3}]'], ['[{"a":(1)2}]', '[{"a":(1)3}]']),
    ],
)
def test_shardings_on_one_grid(given: list[str], found: list[str]) -> None:
    shardings, expected = ([parse_sharding(f"<@m, {text}>") for text in texts] for texts in (given, found))
    assert on_one_grid(shardings) == expected


def test_no_sharding_and_other_meshes_are_left_alone() -> None:
    here, there = parse_sharding('<@m, [{"a":(1)2}]>'), parse_sharding('<@n, [{"a":(3)2}]>')
    assert on_one_grid([None, here, there]) == [None, here, there]
