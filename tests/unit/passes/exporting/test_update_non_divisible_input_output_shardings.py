from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.passes.exporting.update_non_divisible_input_output_shardings import divisible_prefix, divisible_sharding

MESH = Mesh([("a", 2), ("b", 3), ("c", 4), ("d", 6)])


@pytest.mark.parametrize(
    ("axes", "size", "kept"),
    [
        ("", 7, ""),
        ("a", 1, ""),
        ("a", 7, ""),
        ("a", 8, "a"),
        ("a b", 6, "a b"),
        ("a b", 4, "a"),
        ("b a", 4, ""),
        ("a c", 4, "a c:1:2"),
        ("a c", 16, "a c"),
        ("c a", 2, "c:1:2"),
        ("d", 4, "d:1:2"),
        ("d", 9, "d:1:3"),
        ("d a", 9, "d:1:3"),
        ("c:2:2", 2, "c:2:2"),
        ("d:2:3 a", 3, "d:2:3"),
        ("a", 0, "a"),
    ],
)
def test_the_longest_prefix_that_divides(axes: str, size: int, kept: str) -> None:
    assert divisible_prefix(_axes(axes), size, MESH) == _axes(kept)


def _axes(text: str) -> tuple[AxisRef, ...]:
    parts = [part.split(":") for part in text.split()]
    return tuple(AxisRef(name, *map(int, rest)) for name, *rest in parts)


def _prefixes(axes: tuple[AxisRef, ...]) -> Iterator[tuple[AxisRef, ...]]:
    """All beginnings of a list of axes, the last axis whole or in part."""
    yield ()
    for count, axis in enumerate(axes):
        length = axis.length(MESH)
        for part in range(2, length + 1):
            if length % part == 0:
                yield (*axes[:count], axis.head(part, MESH))


@pytest.mark.parametrize("names", ["".join(names) for count in (1, 2, 3) for names in permutations("abcd", count)])
def test_no_longer_prefix_divides(names: str) -> None:
    axes = tuple(map(AxisRef, names))
    for size in range(1, 49):
        dividing = [prefix for prefix in _prefixes(axes) if size % axes_size(prefix, MESH) == 0]
        assert divisible_prefix(axes, size, MESH) == max(dividing, key=lambda prefix: axes_size(prefix, MESH))


@pytest.mark.parametrize(
    ("before", "shape", "after"),
    [
        ('<@m, [{"a", "c"}, {"b", ?}]>', (16, 6), '<@m, [{"a", "c"}, {"b", ?}]>'),
        ('<@m, [{"a", "c"}, {"b", ?}]>', (4, 5), '<@m, [{"a", "c":(1)2}, {?}]>'),
        ('<@m, [{"a"}p1]>', (7,), "<@m, [{}]>"),
        ('<@m, [{"a"}p1, {"b"}p2]>', (7, 3), '<@m, [{}, {"b"}p2]>'),
        (
            '<@m, [{"a"}], replicated={"b"}, unreduced={"c"}>',
            (1,),
            '<@m, [{}], replicated={"b"}, unreduced={"c"}>',
        ),
    ],
)
def test_dimensions_are_cut_one_by_one(before: str, shape: tuple[int, ...], after: str) -> None:
    assert divisible_sharding(parse_sharding(before), shape, MESH) is parse_sharding(after)
