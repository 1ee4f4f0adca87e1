from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyshardy.core.boxes import Box, coordinate_along, device_boxes, local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidShardingError

from .short import mesh, ref, sharding

MESH = mesh("x=2 y=4")


@pytest.mark.parametrize(
    ("text", "shape", "local"),
    [
        ("[{}, {}]", (6, 4), (6, 4)),
        ('[{"x"}, {"y"}]', (6, 4), (3, 1)),
        ('[{"y", "x"}, {}]', (16, 3), (2, 3)),
        ('[{"y":(2)2}, {"y":(1)2}]', (6, 6), (3, 3)),
        ('[{"x"}, {"y"}]', (7, 9), (4, 3)),
        ('[{"y"}, {}]', (2, 5), (1, 5)),
        ('[{"y"}, {}]', (0, 5), (0, 5)),
        ("[]", (), ()),
        ("[]", (3, 4), (3, 4)),
    ],
)
def test_local_shapes(text: str, shape: tuple[int, ...], local: tuple[int, ...]) -> None:
    assert local_shape(sharding(text), MESH, shape) == local


def test_without_a_sharding_the_local_shape_is_the_global_one() -> None:
    assert local_shape(None, MESH, [3, 4]) == (3, 4)


@pytest.mark.parametrize("compute", [local_shape, device_boxes])
def test_ranks_that_differ_are_refused(compute: Callable[..., Any]) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        compute(sharding('[{"x"}]'), MESH, (4, 4))
    assert str(caught.value) == 'computing the local shape under <@m, [{"x"}]>: got shape (4, 4), needed rank 1'


@pytest.mark.parametrize(
    ("axis", "coordinates"),
    [
        ("q", list(range(24))),
        ("q:(1)2", [0] * 12 + [1] * 12),
        ("q:(2)3", [*[0] * 4, *[1] * 4, *[2] * 4] * 2),
        ("q:(6)4", [0, 1, 2, 3] * 6),
    ],
)
def test_coordinates_along_a_reference(axis: str, coordinates: list[int]) -> None:
    grid = mesh("p=2 q=24")
    assert [coordinate_along(ref(axis), grid, (1, place)) for place in range(24)] == coordinates


def _ranges(text: str, grid: Mesh, shape: tuple[int, ...]) -> dict[int, str]:
    """Per device what it holds, as `0:2 4:6`, with `+n` behind for padding."""
    return {
        device: " ".join(
            f"{start}:{stop}" + (f"+{pad}" if pad else "")
            for start, stop, pad in zip(box.starts, box.stops, box.padding)
        )
        for device, box in device_boxes(sharding(text), grid, shape).items()
    }


def test_the_first_axis_of_a_dimension_is_the_major_one() -> None:
    assert list(_ranges('[{"x", "y"}]', MESH, (8,)).values()) == [f"{i}:{i + 1}" for i in range(8)]
    assert list(_ranges('[{"y", "x"}]', MESH, (8,)).values()) == [f"{i}:{i + 1}" for i in (0, 2, 4, 6, 1, 3, 5, 7)]


def test_axes_that_are_not_used_replicate() -> None:
    assert list(_ranges('[{}, {"x"}]', MESH, (3, 4)).values()) == ["0:3 0:2"] * 4 + ["0:3 2:4"] * 4


def test_sub_axes() -> None:
    assert list(_ranges('[{"y":(2)2}, {"y":(1)2}]', mesh("y=4"), (2, 2)).values()) == [
        "0:1 0:1",
        "1:2 0:1",
        "0:1 1:2",
        "1:2 1:2",
    ]


@pytest.mark.parametrize(
    ("size", "ranges"),
    [
        (10, ["0:3", "3:6", "6:9", "9:10+2"]),
        (5, ["0:2", "2:4", "4:5+1", "5:5+2"]),
        (3, ["0:1", "1:2", "2:3", "3:3+1"]),
        (1, ["0:1", "1:1+1", "1:1+1", "1:1+1"]),
        (0, ["0:0"] * 4),
    ],
)
def test_padding(size: int, ranges: list[str]) -> None:
    assert list(_ranges('[{"y"}]', mesh("y=4"), (size,)).values()) == ranges


def test_devices_stand_in_the_order_of_the_mesh() -> None:
    grid = Mesh([("x", 2), ("y", 2)], device_ids=[2, 0, 3, 1])
    assert _ranges('[{"x"}, {"y"}]', grid, (2, 2)) == {2: "0:1 0:1", 0: "0:1 1:2", 3: "1:2 0:1", 1: "1:2 1:2"}
    assert list(device_boxes(sharding("[]"), grid, ())) == [2, 0, 3, 1]


@pytest.mark.parametrize(("grid", "device"), [(Mesh([], [7]), 7), (Mesh([]), 0), (mesh("a=1"), 0)])
def test_one_device_holds_everything(grid: Mesh, device: int) -> None:
    assert device_boxes(sharding("[]"), grid, (3, 2)) == {device: Box((0, 0), (3, 2), (0, 0))}


def test_scalars() -> None:
    assert device_boxes(sharding("[]"), mesh("x=2"), ()) == {0: Box((), (), ()), 1: Box((), (), ())}
