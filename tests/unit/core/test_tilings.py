from __future__ import annotations

import pytest

from pyshardy.core.hlo_sharding import HloSharding, parse_hlo_shardings
from pyshardy.core.tilings import Digit, TilingMesh, device_order, digits_of
from pyshardy.errors import InvalidShardingError


def read(text: str) -> HloSharding:
    (found,) = parse_hlo_shardings(text)
    return found


def laid(*texts: str, axes: list[tuple[str, int]] | None = None) -> tuple[str, list[str]]:
    """The mesh that tilings are on, and what they are there."""
    tilings = list(map(read, texts))
    found = TilingMesh(axes, device_order(tilings))
    for tiling in tilings:
        found.add(tiling)
    shardings = [found.place(tiling) for tiling in tilings]
    return str(found.mesh()), [str(one.sharding.with_mesh("m")) for one in shardings]


@pytest.mark.parametrize(
    ("texts", "mesh", "shardings"),
    [
        (["{devices=[8]<=[8]}"], '<["axis_0"=8]>', ['<@m, [{"axis_0"}]>']),
        (["{devices=[4,1,2]<=[8] last_tile_dim_replicate}"], '<["axis_0"=4, "axis_1"=2]>', ['<@m, [{"axis_0"}, {}]>']),
        (["{devices=[8]<=[8]}", "{devices=[2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"], '<["axis_0"=4, "axis_1"=2]>',
         ['<@m, [{"axis_0", "axis_1"}]>', '<@m, [{"axis_1"}]>']),
        (["{devices=[2,3]<=[6]}"], '<["axis_0"=2, "axis_1"=3]>', ['<@m, [{"axis_0"}, {"axis_1"}]>']),
        (["{devices=[2,2,2]<=[2,2,2]T(2,1,0)}"], '<["axis_0"=2, "axis_1"=2, "axis_2"=2]>',
         ['<@m, [{"axis_2"}, {"axis_1"}, {"axis_0"}]>']),
        (["{devices=[1,2,4]<=[8] last_tile_dims={unreduced, replicated}}"], '<["axis_0"=2, "axis_1"=4]>',
         ['<@m, [{}], unreduced={"axis_0"}>']),
        (["{devices=[2,2]0,2,1,3}"], '<["axis_0"=2, "axis_1"=2]>', ['<@m, [{"axis_1"}, {"axis_0"}]>']),
        (["{devices=[2,2]3,1,0,2 last_tile_dim_replicate}"], '<["axis_0"=2, "axis_1"=2], device_ids=[3, 1, 0, 2]>',
         ['<@m, [{"axis_0"}]>']),
        (["{devices=[1,1]0}"], "<[]>", ["<@m, [{}, {}]>"]),
        ([], "<[]>", []),
    ],
)  # fmt: skip
def test_the_coarsest_mesh(texts: list[str], mesh: str, shardings: list[str]) -> None:
    assert laid(*texts) == (mesh, shardings)


def test_replicas_may_be_listed_in_any_order() -> None:
    assert laid("{devices=[2,4]3,0,2,1,7,5,4,6 last_tile_dim_replicate}")[0] == '<["axis_0"=2, "axis_1"=4]>'


def test_subgroups_in_any_order() -> None:
    first = laid("{devices=[2,2,2]<=[8] last_tile_dims={replicated, manual}}")
    second = laid("{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}")
    assert first == second == ('<["axis_0"=2, "axis_1"=2, "axis_2"=2]>', ['<@m, [{"axis_0"}]>'])


def test_manual_axes() -> None:
    tilings = TilingMesh()
    tiling = read("{devices=[1,2,4]<=[8] last_tile_dims={manual, replicated}}")
    tilings.add(tiling)
    assert [str(axis) for axis in tilings.place(tiling).manual] == ['"axis_0"']


def test_axes_of_the_user() -> None:
    axes = [("data", 2), ("model", 4)]
    expected = '<["data"=2, "model"=4]>'
    assert laid("{devices=[4,2]<=[8]}", axes=axes) == (expected, ['<@m, [{"data", "model":(1)2}, {"model":(2)2}]>'])
    assert laid("{devices=[8]<=[8]}", axes=axes) == (expected, ['<@m, [{"data", "model"}]>'])


@pytest.mark.parametrize(
    ("texts", "axes", "message"),
    [
        (["{devices=[4]<=[4]}", "{devices=[2]<=[2]}"], None,
         "got a tiling over 2 devices, needed 4, as many as the others have"),
        (["{devices=[4]<=[4]}"], [("x", 8)], 'got a tiling over 4 devices, needed 8, as many as <["x"=8]>'),
        (["{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}"], None, "axes would end at 2 and at 3 devices"),
        (["{devices=[2,3]<=[6]}"], [("x", 3), ("y", 2)], 'across axis "x"'),
        (["{devices=[8]0,1,3,2,4,5,6,7}", "{devices=[8]0,2,1,3,4,5,6,7}"], None,
         "got devices in the order 0,2,1,3,4,5,6,7, needed an order that the axes of one mesh make"),
        (["{devices=[2]1,2}"], None, "needed a permutation of 0 to 1"),
        (["{devices=[2]1,2}"] * 2 + ["{devices=[2]3,4}"], None, "got devices in the order 3,4"),
    ],
)  # fmt: skip
def test_tilings_that_fit_on_no_mesh(texts: list[str], axes: list[tuple[str, int]] | None, message: str) -> None:
    with pytest.raises(InvalidShardingError) as caught:
        laid(*texts, axes=axes)
    assert message in str(caught.value)


def test_digits() -> None:
    found = digits_of(read("{devices=[2,4]<=[4,2]T(1,0)}"), (0, 2, 4, 6, 1, 3, 5, 7))
    assert found is not None
    assert found.dims == ((Digit(1, 2),), (Digit(2, 4),))
    assert digits_of(read("{devices=[4]<=[4]}"), (0, 2, 3, 1)) is None
