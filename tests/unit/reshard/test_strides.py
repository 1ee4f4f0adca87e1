from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard.strides import equivalent_across_reshape

MESH = Mesh([("a", 2), ("b", 4), ("c", 3)])


def equivalent(first: str, shape: tuple[int, ...], second: str, new_shape: tuple[int, ...]) -> bool:
    one, other = (parse_sharding(f"<@m, {text}>") for text in (first, second))
    return equivalent_across_reshape(one, shape, other, new_shape, MESH)


@pytest.mark.parametrize(
    ("first", "shape", "second", "new_shape"),
    [
        ('[{"a", "b"}]', (8,), '[{"a"}, {"b"}]', (2, 4)),
        ('[{"b"}]', (8,), '[{"b":(1)2}, {"b":(2)2}]', (2, 4)),
        ('[{"a"}, {}]', (4, 6), '[{"a"}]', (24,)),
        ('[{"b"}]', (30,), '[{"b"}, {}]', (30, 1)),
        ('[{"a"}]', (7,), '[{"a"}, {}]', (7, 1)),
        ('[{"a"}], unreduced={"b"}', (6,), '[{"a"}, {}]', (6, 1)),
        ('[{"a", ?}p1]', (6,), '[{"a"}, {}]', (6, 1)),
    ],
)
def test_equivalent(first: str, shape: tuple[int, ...], second: str, new_shape: tuple[int, ...]) -> None:
    assert equivalent(first, shape, second, new_shape)
    assert equivalent(second, new_shape, first, shape)


@pytest.mark.parametrize(
    ("first", "shape", "second", "new_shape"),
    [
        ('[{"a", "b"}]', (8,), '[{"b"}, {"a"}]', (4, 2)),
        ('[{"a"}]', (8,), '[{}, {"a"}]', (2, 4)),
        ('[{"a"}]', (8,), '[{"a", "b"}, {}]', (2, 4)),
        ('[{"a"}], replicated={"b"}', (8,), '[{"a"}, {}]', (2, 4)),
    ],
)
def test_not_equivalent(first: str, shape: tuple[int, ...], second: str, new_shape: tuple[int, ...]) -> None:
    assert not equivalent(first, shape, second, new_shape)


def test_other_mesh_is_not_equivalent() -> None:
    one, other = parse_sharding('<@m, [{"a"}]>'), parse_sharding('<@n, [{"a"}, {}]>')
    assert not equivalent_across_reshape(one, (8,), other, (2, 4), MESH)


def test_equal_shardings_and_shapes_are_equivalent() -> None:
    one = parse_sharding('<@m, [{"a"}], replicated={"b"}>')
    assert equivalent_across_reshape(one, (8,), one, (8,), MESH)


@pytest.mark.parametrize(
    ("first", "shape", "second", "new_shape", "same"),
    [
        ('[{"a", "b"}]', (8,), '[{"a"}, {"b"}]', (2, 4), True),
        ('[{"b"}]', (8,), '[{"b":(1)2}, {"b":(2)2}]', (2, 4), True),
        ('[{"b"}, {}]', (32, 3), '[{"b"}, {}, {}]', (4, 8, 3), True),
        ('[{"b"}]', (32,), '[{"b"}, {}]', (2, 16), False),  # 4 shards of 2 rows are padded
        ('[{"a"}]', (7,), '[{"a"}, {}]', (7, 1), True),
        ('[{"a"}]', (8,), '[{}, {"a"}]', (2, 4), False),
        ('[{"a"}], replicated={"b"}', (8,), '[{"a"}]', (8,), False),
    ],
)
def test_same_strides(first: str, shape: tuple[int, ...], second: str, new_shape: tuple[int, ...], same: bool) -> None:
    one, other = (parse_sharding(f"<@m, {text}>") for text in (first, second))
    assert equivalent_across_reshape(one, shape, other, new_shape, MESH, is_exact=True) == same
    assert equivalent_across_reshape(other, new_shape, one, shape, MESH, is_exact=True) == same


def test_strides_on_other_meshes_are_not_the_same() -> None:
    one, other = parse_sharding('<@m, [{"a"}]>'), parse_sharding('<@n, [{"a"}]>')
    assert not equivalent_across_reshape(one, (8,), other, (8,), MESH, is_exact=True)
