"""Tilings written as XLA writes them, and shardings to GSPMD's text and back."""

from __future__ import annotations

from itertools import permutations, product
from math import prod

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _hlo

from pyshardy.core.boxes import device_boxes
from pyshardy.core.gspmd import from_gspmd, to_gspmd
from pyshardy.core.hlo_sharding import HloKind, HloSharding, parse_hlo_shardings, transposed_iota
from pyshardy.core.hlo_text import format_tiling, iota_of
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import InvalidShardingError

from ...property.strategies import on_a_mesh, tensor_shardings

AXES = [sizes for count in (1, 2, 3) for sizes in product((1, 2, 3, 4, 8), repeat=count) if prod(sizes) <= 8]
NAMES = "abc"


def all_specs(names: str) -> list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]:
    """Every way to put some axes, in any order, on two dimensions or to leave partial sums along them."""
    found = []
    for count in range(len(names) + 1):
        for used in permutations(names, count):
            for places in product(range(3), repeat=count):
                parts = [tuple(axis for axis, place in zip(used, places) if place == part) for part in range(3)]
                if list(parts[2]) == sorted(parts[2]):
                    found.append((parts[0], parts[1], parts[2]))
    return sorted(set(found))


@pytest.mark.parametrize("sizes", AXES, ids=str)
def test_the_text_is_that_of_jax_on_every_small_mesh(sizes: tuple[int, ...]) -> None:
    names = NAMES[: len(sizes)]
    devices = np.array(jax.devices()[: prod(sizes)], dtype=object).reshape(sizes)
    theirs = jax.sharding.Mesh(devices, tuple(names), axis_types=(AxisType.Explicit,) * len(sizes))
    ours = Mesh(zip(names, sizes))
    for first, second, unreduced in all_specs(names):
        spec = P(first, second, unreduced=set(unreduced))
        expected = str(NamedSharding(theirs, spec)._to_xla_hlo_sharding(2))
        sharding = TensorSharding("mesh", [DimSharding(first), DimSharding(second)], unreduced=unreduced)
        text = to_gspmd(sharding, ours)
        if expected == "{unreduced}":  # JAX leaves out over how many devices
            expected = f"{{devices=[1,1,{ours.size}]<=[{ours.size}] last_tile_dims={{unreduced}}}}"
        assert text == expected, spec
        assert str(_hlo.HloSharding.from_string(text)) == text or "unreduced" in text


def shards(sharding: TensorSharding, mesh: Mesh) -> dict[int, tuple[tuple[int, ...], tuple[int, ...]]]:
    boxes = device_boxes(sharding, mesh, (96,) * sharding.rank)
    return {device: (box.starts, box.stops) for device, box in boxes.items()}


@given(on_a_mesh(tensor_shardings))
def test_there_and_back(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, given_ = drawn
    sharding = given_.without_priorities().closed()
    if sharding.unreduced and sharding.reduction.value != "sum":
        with pytest.raises(InvalidShardingError, match="partial values to combine by"):
            to_gspmd(sharding, mesh)
        return
    text = to_gspmd(sharding, mesh)
    back = from_gspmd(text, mesh, sharding.rank)
    assert shards(back, mesh) == shards(sharding, mesh)
    assert to_gspmd(back, mesh) == text
    if all(size > 1 for _, size in mesh.axes):
        assert back is sharding


@given(on_a_mesh(tensor_shardings))
def test_text_is_read_as_it_was_written(drawn: tuple[Mesh, TensorSharding]) -> None:
    mesh, given_ = drawn
    sharding = given_.without_priorities().closed().with_unreduced(())
    text = to_gspmd(sharding, mesh)
    (read,) = parse_hlo_shardings(text)
    assert format_tiling(read) == text
    assert str(_hlo.HloSharding.from_string(text)) == text


@given(
    st.lists(st.integers(2, 4), min_size=1, max_size=4).flatmap(
        lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
    )
)
def test_every_transposed_range_is_found(drawn: tuple[list[int], list[int]]) -> None:
    sizes, order = drawn
    devices = transposed_iota(tuple(sizes), tuple(order))
    found = iota_of(devices)
    assert found is not None
    assert transposed_iota(*found) == devices
    assert len(found[0]) <= len(sizes)


@given(st.permutations(range(6)))
def test_nothing_else_is_taken_for_one(order: list[int]) -> None:
    found = iota_of(order)
    assert found is None or transposed_iota(*found) == tuple(order)


@pytest.mark.parametrize(
    "text",
    [
        "{replicated}",
        "{manual}",
        "{maximal device=3}",
        "{devices=[2,2]<=[4]}",
        "{devices=[2,2]0,3,1,2}",
        "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dims={manual}}",
        "{devices=[1,2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{devices=[2,2]<=[4] shard_as 3}",
    ],
)
def test_all_forms_are_written_as_they_are_read(text: str) -> None:
    (read,) = parse_hlo_shardings(text)
    assert format_tiling(read) == text


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ('<@m, [{"x", ?}]>', "got an open dimension, needed closed"),
        ('<@m, [{"x"}p0]>', "got a priority, needed closed"),
        ('<@m, [{}], unreduced=max{"x"}>', "got partial values to combine by max"),
        ('<@m, [{"z"}]>', "unknown axis"),
    ],
)
def test_what_gspmd_cannot_say(sharding: str, message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        to_gspmd(parse_sharding(sharding), Mesh([("x", 2)]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{replicated}, {replicated}}", "got shardings of 2 values, needed the sharding of one tensor"),
        ("{manual}", "got manual, needed a tiling, or replicated"),
        ("{maximal device=1}", "got on one device, needed a tiling"),
        ("{devices=[1,4]<=[4] last_tile_dims={manual}}", "got manual subgroups"),
        ("{devices=[2,2]<=[4]}", "got 2 dimensions, needed 1"),
        ("{devices=[8]<=[8]}", "got a tiling over 8 devices, needed 4"),
        ("{devices=[4]0,3,2,1}", "needed an order that the axes of one mesh make"),
    ],
)
def test_what_is_no_sharding_of_a_tensor(text: str, message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        from_gspmd(text, Mesh([("x", 4)]), 1)


def test_one_device() -> None:
    mesh = Mesh([], [3])
    assert to_gspmd(TensorSharding("m"), mesh) == "{maximal device=3}"
    assert from_gspmd("{maximal device=3}", mesh, 0, "m") is TensorSharding("m")


def test_named_axes_have_a_notation_of_their_own() -> None:
    with pytest.raises(InvalidShardingError, match="got a sharding with named axes, needed a tiling"):
        format_tiling(HloSharding(HloKind.REPLICATED, mesh=Mesh([("x", 2)])))
