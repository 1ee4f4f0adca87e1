from __future__ import annotations

import pytest

from pyshardy.core.collectives import AllToAllParam
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.reshard.pieces import merge_neighbours
from pyshardy.reshard.sub_dims import SubDims, plan_sub_dims, reordered_dim

from .planning import ABCD, sharding, written


def plan(before: str, permuted: str, *moves: str, mesh: Mesh = ABCD, shape: tuple[int, ...]) -> SubDims | None:
    """What becomes of a permutation and moves such as `a b: 0->1`, one per all-to-all."""
    one, other = sharding(before), sharding(permuted)
    reordering = reordered_dim(one, other, mesh)
    assert reordering is not None
    dims = [list(dim.axes) for dim in other.dims]
    chain = []
    for move in moves:
        names, _, places = move.partition(": ")
        axes = sharding(names).dims[0].axes
        source, target = map(int, places.split("->"))
        dims[source] = dims[source][: -len(axes)]
        dims[target] += axes
        chain.append([AllToAllParam(axes, source, target)])
    return plan_sub_dims(
        reordering, one, chain, sharding(written([merge_neighbours(axes, mesh) for axes in dims])), shape, mesh
    )


def moved(found: SubDims | None) -> list[str]:
    assert found is not None
    return [", ".join(map(str, step.params)).replace('"', "") for step in found.steps]


def test_a_dimension_for_every_axis() -> None:
    found = plan("a b c||", "b c a||", "a: 0->2", shape=(24, 16, 16))
    assert found is not None
    assert found.shape == (2, 2, 2, 3, 16, 16)
    assert written(found.before.dim_axes) == "a|b|c|||"
    assert moved(found) == ["{a}: 0->5", "{b}: 1->0", "{c}: 2->1"]
    assert written(found.steps[-1].after.dim_axes) == "b|c||||a"


def test_no_rest_and_nothing_left() -> None:
    found = plan("|a b|", "|b a|", "a: 1->0", "b: 1->2", shape=(8, 4, 8))
    assert found is not None and found.shape == (8, 2, 2, 8)
    assert moved(found) == ["{a}: 1->0", "{b}: 2->3"]


@pytest.mark.parametrize(
    ("permuted", "moves", "shape"),
    [
        ("b a|", ["a: 0->1"], (6, 16)),  # 4 does not divide 6
        ("b a c|", ["c: 0->1"], (16, 16)),  # c was at the end anyway
        ("b a c d|", ["d: 0->1", "c: 0->1"], (16, 16)),
    ],
)
def test_permutations_that_stay(permuted: str, moves: list[str], shape: tuple[int, ...]) -> None:
    before = " ".join(sorted(permuted.rstrip("|").split())) + "|"
    assert plan(before, permuted, *moves, shape=shape) is None


def test_several_pieces_to_one_dimension_at_once_need_the_permutation() -> None:
    assert plan("a b c|", "c a b|", "a b: 0->1", shape=(16, 16)) is None


def test_a_cycle_of_what_is_left_needs_the_permutation() -> None:
    assert plan("a b c d|", "b a d c|", "c: 0->1", shape=(16, 16)) is None
    assert moved(plan("a b c|", "c a b|", "b: 0->1", shape=(16, 16))) == ["{b}: 1->4", "{a}: 0->1", "{c}: 2->0"]


def test_sizes_that_do_not_fit_need_the_permutation() -> None:
    mesh = Mesh([("a", 2), ("b", 4)])
    assert plan("a b|", "b a|", "a: 0->1", mesh=mesh, shape=(32, 16)) is None


def test_parts_of_an_axis_meet_again() -> None:
    mesh = Mesh([("a", 4), ("b", 2)])
    found = plan("a:(1)2 b a:(2)2|", "b a:(2)2 a:(1)2|", "a:(1)2: 0->1", "a:(2)2: 0->1", mesh=mesh, shape=(16, 16))
    assert found is not None
    assert written(found.steps[-1].after.dim_axes) == "b||||a"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a b|c d", "b a|d c"),
        ("a b|c", "a b|c"),
        ("a b|c", "a d|c"),
        ("a|b", "b|a"),
    ],
)
def test_only_one_dimension_may_be_reordered(before: str, after: str) -> None:
    assert reordered_dim(sharding(before), sharding(after), ABCD) is None


def test_meshes_and_openness_must_be_the_same() -> None:
    before, after = sharding("a b|"), sharding("b a|")
    assert reordered_dim(before, after, ABCD) is not None
    assert reordered_dim(before, after.with_mesh("n"), ABCD) is None
    assert reordered_dim(before, parse_sharding('<@m, [{"b", "a"}, {?}]>'), ABCD) is None
