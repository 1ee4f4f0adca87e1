from __future__ import annotations

from typing import Any

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError

EMPTY = Mesh([])
DEVICE_7 = Mesh([], device_ids=[7])
PLAIN = Mesh([("x", 2), ("y", 3)])
ORDERED = Mesh([("x", 2), ("y", 3)], device_ids=[5, 4, 3, 2, 1, 0])


@pytest.mark.parametrize(
    ("mesh", "printed", "shown", "size", "is_empty", "is_single_device", "order"),
    [
        (EMPTY, "<[]>", "Mesh([])", 1, True, False, (0,)),
        (DEVICE_7, "<[], device_ids=[7]>", "Mesh([], device_ids=[7])", 1, False, True, (7,)),
        (PLAIN, '<["x"=2, "y"=3]>', "Mesh([('x', 2), ('y', 3)])", 6, False, False, (0, 1, 2, 3, 4, 5)),
        (
            ORDERED,
            '<["x"=2, "y"=3], device_ids=[5, 4, 3, 2, 1, 0]>',
            "Mesh([('x', 2), ('y', 3)], device_ids=[5, 4, 3, 2, 1, 0])",
            6,
            False,
            False,
            (5, 4, 3, 2, 1, 0),
        ),
        (Mesh([("a", 1)]), '<["a"=1]>', "Mesh([('a', 1)])", 1, False, False, (0,)),
        (Mesh([("", 2)]), '<[""=2]>', "Mesh([('', 2)])", 2, False, False, (0, 1)),
        (Mesh([('"', 2)]), r'<["\22"=2]>', "Mesh([('\"', 2)])", 2, False, False, (0, 1)),
    ],
    ids=str,
)
def test_kinds(
    mesh: Mesh, printed: str, shown: str, size: int, is_empty: bool, is_single_device: bool, order: tuple[int, ...]
) -> None:
    assert str(mesh) == printed
    assert repr(mesh) == shown
    assert mesh.size == size
    assert mesh.is_empty is is_empty
    assert mesh.is_single_device is is_single_device
    assert mesh.device_order == order


def test_device_ids_in_natural_order_are_dropped() -> None:
    assert Mesh([("a", 2), ("b", 3)], device_ids=range(6)) is Mesh([("a", 2), ("b", 3)])
    assert Mesh([("a", 2), ("b", 3)], device_ids=range(6)).device_ids is None


def test_one_device_on_an_axis_is_not_a_single_device_mesh() -> None:
    mesh = Mesh([("a", 1)], device_ids=[0])
    assert mesh is Mesh([("a", 1)])
    assert not mesh.is_single_device


def test_device_0_without_axes_is_a_single_device_mesh() -> None:
    assert Mesh([], device_ids=[0]).is_single_device
    assert Mesh([], device_ids=[0]).device_ids == (0,)


def test_an_empty_list_of_devices_counts_as_none() -> None:
    assert Mesh([], device_ids=[]) is EMPTY
    assert Mesh([("x", 2)], device_ids=[]) is Mesh([("x", 2)])


def test_total_sizes_are_exact() -> None:
    assert Mesh([("x", 2**32), ("y", 2**32), ("z", 2)]).size == 2**65


def test_queries() -> None:
    assert PLAIN.axis_names == ("x", "y")
    assert PLAIN.positions == {"x": 0, "y": 1}
    assert PLAIN.has_axis("x") and not PLAIN.has_axis("z")
    assert PLAIN.axis_size("y") == 3
    assert EMPTY.axis_names == () and EMPTY.positions == {}


def test_coordinates_are_row_major() -> None:
    assert [PLAIN.coordinates(position) for position in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert EMPTY.coordinates(0) == DEVICE_7.coordinates(0) == ()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, ORDERED, True),
        (PLAIN, Mesh([("y", 3), ("x", 2)]), False),
        (PLAIN, Mesh([("x", 2), ("y", 4)]), False),
        (PLAIN, Mesh([("x", 2)]), False),
        (EMPTY, EMPTY, True),
        (DEVICE_7, Mesh([], device_ids=[3]), True),
        (DEVICE_7, EMPTY, False),
        (EMPTY, Mesh([("a", 1)]), False),
    ],
)
def test_same_axes(first: Mesh, second: Mesh, same: bool) -> None:
    assert first.same_axes(second) is second.same_axes(first) is same


MAKING_X0 = "making a mesh of [('x', 0)]"
ORDERING_X2Y3 = "ordering the devices of a mesh of [('x', 2), ('y', 3)]"


@pytest.mark.parametrize(
    ("axes", "device_ids", "message"),
    [
        ([("x", 0)], None, f'{MAKING_X0}: got size 0 for axis "x", needed a size of at least 1'),
        ([("x", 0)], [0], f'{MAKING_X0}: got size 0 for axis "x", needed a size of at least 1'),
        (
            [("y", 2), ("x", -4)],
            None,
            "making a mesh of [('y', 2), ('x', -4)]: got size -4 for axis \"x\", needed a size of at least 1",
        ),
        (
            [("x", 2), ("y", 2), ("x", 3)],
            None,
            "making a mesh of [('x', 2), ('y', 2), ('x', 3)]: got axis name \"x\" twice, needed unique axis names",
        ),
        ([("x", 2.5)], None, "making a mesh of [('x', 2.5)]: got 2.5, needed an integer"),
        ([("x", "2")], None, "making a mesh of [('x', '2')]: got '2', needed an integer"),
        ([(3, 2)], None, "making a mesh of [(3, 2)]: got axis name 3, needed a string"),
        ([], [-1], "ordering the devices of a mesh of []: got device id -1, needed ids of at least 0"),
        (
            [],
            [3, 4],
            "ordering the devices of a mesh of []: "
            "got 2 device ids without axes, needed axes, or exactly one device id",
        ),
        (
            [("x", 2), ("y", 3)],
            [0, 1],
            f"{ORDERING_X2Y3}: got 2 device ids, needed 6, the product of the axis sizes",
        ),
        (
            [("x", 2), ("y", 3)],
            [0, 1, 2, 3, 4, 6],
            f"{ORDERING_X2Y3}: got device ids [0, 1, 2, 3, 4, 6], needed a permutation of 0 to 5",
        ),
        (
            [("x", 2), ("y", 3)],
            [0, 1, 2, 3, 4, 4],
            f"{ORDERING_X2Y3}: got device ids [0, 1, 2, 3, 4, 4], needed a permutation of 0 to 5",
        ),
        (
            [("x", 2), ("y", 3)],
            [5, 4, 3, 2, -1, 0],
            f"{ORDERING_X2Y3}: got device id -1, needed ids of at least 0",
        ),
        ([("x", 2), ("y", 3)], [0.5], f"{ORDERING_X2Y3}: got 0.5, needed an integer"),
    ],
)
def test_refusals(axes: Any, device_ids: Any, message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        Mesh(axes, device_ids)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("mesh", "needed"),
    [(PLAIN, "one of 'x', 'y'"), (EMPTY, "a mesh that has axes"), (DEVICE_7, "a mesh that has axes")],
)
def test_unknown_axes_are_refused(mesh: Mesh, needed: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        mesh.axis_size("w")
    assert str(caught.value) == f'looking up a mesh axis: got unknown axis name "w", needed {needed}'


def test_an_axis_that_is_misspelled_is_found() -> None:
    with pytest.raises(InvalidShardingError, match="needed one of 'data', 'model'\n  try: model$"):
        Mesh({"data": 2, "model": 4}).axis_size("modle")
    with pytest.raises(InvalidShardingError, match="^sharding a tensor: .*\n  try: model$"):
        TensorSharding(Mesh({"data": 2, "model": 4}), ["modle"])
