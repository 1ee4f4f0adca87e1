from __future__ import annotations

import pytest

from pyshardy.core.collectives import Collective, CollectiveKind
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.reshard.collective_plan import gather_and_slice, plan_collectives

from .planning import ABCD, sharding, written


def short(step: Collective) -> str:
    """A step as `gather b|`, `slice |c` or `move b: 0->1`; for a permutation what it leads to, `permute b a|`."""
    if step.kind is CollectiveKind.COLLECTIVE_PERMUTE:
        return f"permute {written(step.after.dim_axes)}"
    if step.params:
        return "move " + ", ".join(f"{written([axes])}: {source}->{target}" for axes, source, target in step.params)
    return f"{step.kind.value.removeprefix('all_')} {written(step.axes)}"


def steps(before: str, after: str, mesh: Mesh = ABCD, shape: tuple[int, ...] | None = None) -> list[str]:
    one, other = sharding(before), sharding(after)
    plan = plan_collectives(one, other, mesh, mesh, shape or (16,) * one.rank)
    assert plan is not None
    assert plan[-1].after.dim_axes == other.dim_axes
    return list(map(short, plan))


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("a b|", "a|", ["gather b|"]),
        ("a|", "a|b", ["slice |b"]),
        ("a|b", "b|a", ["permute b|a"]),
        ("a b|", "|b", ["move b: 0->1", "gather a|"]),
        ("a b|", "|a", ["permute b a|", "move a: 0->1", "gather b|"]),
        ("|a b", "a b|", ["move a b: 1->0"]),
        ("a b|c", "c|", ["permute c b|a", "gather b|a"]),
        ("b||", "a|b|c", ["slice |a|c", "permute a|b|c"]),
        ("b|c|", "a||d", ["slice ||d", "permute a|c|d", "gather |c|"]),
        ("a d|b|", "|a|b d", ["permute b d|a|", "move b d: 0->2"]),
        ("a b c||", "|a|c b", ["permute a c b||", "move c b: 0->2", "move a: 0->1"]),
    ],
)
def test_plans_of_whole_axes(before: str, after: str, wanted: list[str]) -> None:
    assert steps(before, after) == wanted


@pytest.mark.parametrize(
    ("before", "after", "shape", "wanted"),
    [
        ("d|a|", "||a b c d", (4, 8, 32), ["slice |b c|", "move a b c: 1->2", "move d: 0->2"]),
        (
            "d|a|",
            "||a b c d",
            (4, 2, 32),
            ["slice ||b c", "permute c|d|a b", "move c: 0->2", "move d: 1->2"],
        ),
        ("a b|c", "a|c", (6, 16), ["gather a b|", "slice a|"]),
        ("a b|", "a|b", (6, 16), ["gather a b|", "slice a|b"]),
        ("a b|", "a|", (3, 16), ["gather b|"]),
        ("a|", "|a b", (-1, 16), ["slice b|", "move a b: 0->1"]),
    ],
)
def test_sizes_matter(before: str, after: str, shape: tuple[int, ...], wanted: list[str]) -> None:
    assert steps(before, after, shape=shape) == wanted


@pytest.mark.parametrize(
    ("mesh", "before", "after", "wanted"),
    [
        ([("x", 8)], "x|", "x:(1)2|x:(2)4", ["move x:(2)4: 0->1"]),
        (
            [("x", 8), ("y", 2)],
            "x|",
            "x:(1)2 y|x:(4)2",
            ["slice |y", "permute x:(1)2 y x:(2)2|x:(4)2", "gather x:(2)2|"],
        ),
        ([("x", 8), ("y", 4)], "y|", "x|", ["slice x:(1)2|", "permute x|"]),
        ([("x", 3), ("y", 2)], "x|", "y|", ["slice y|", "permute y x|", "gather x|"]),
        ([("x", 6), ("y", 2)], "x|", "y|", ["permute y x:(2)3|", "gather x:(2)3|"]),
    ],
)
def test_axes_are_cut(mesh: list[tuple[str, int]], before: str, after: str, wanted: list[str]) -> None:
    assert steps(before, after, Mesh(mesh), (24, 24)) == wanted


def test_a_sharding_is_closed_and_keeps_the_unreduced_axes_of_the_target() -> None:
    before, after = parse_sharding('<@m, [{"a", ?}p1, {}]>'), parse_sharding('<@m, [{?}, {"a"}], unreduced={"b"}>')
    (step,) = plan_collectives(before, after, ABCD, ABCD, (8, 8)) or ()
    assert step.before is before
    assert step.after is parse_sharding('<@m, [{}, {"a"}], unreduced={"b"}>')


def test_nothing_is_done_for_a_replicated_tensor_whatever_else_differs() -> None:
    other = Mesh([("z", 8)])
    for before in (None, sharding("|"), parse_sharding('<@m, [{}, {}], unreduced={"a"}>')):
        before_mesh = None if before is None else ABCD
        assert plan_collectives(before, sharding("|", "n"), before_mesh, other, (8, 8)) == ()
    assert (
        plan_collectives(sharding("a|"), parse_sharding('<@m, [{"a"}, {}], unreduced={"b"}>'), ABCD, ABCD, (8, 8)) == ()
    )


def test_a_tensor_without_a_sharding_is_sliced() -> None:
    (step,) = plan_collectives(None, sharding("a|"), None, ABCD, (8, 8)) or ()
    assert short(step) == "slice a|"


def test_a_replicated_target_is_reached_on_the_mesh_that_the_tensor_is_on() -> None:
    (step,) = plan_collectives(sharding("a|"), sharding("|", "n"), ABCD, Mesh([("z", 8)]), (8, 8)) or ()
    assert step.after is sharding("|")


@pytest.mark.parametrize("one", [Mesh((), [1]), Mesh([("z", 8)])])
def test_there_is_no_plan_for_single_devices_and_between_different_axes(one: Mesh) -> None:
    on_one = TensorSharding("n") if one.is_single_device else parse_sharding('<@n, [{"z"}, {}]>')
    assert plan_collectives(on_one, sharding("a|"), one, ABCD, (8, 8)) is None
    assert plan_collectives(sharding("a|"), on_one, ABCD, one, (8, 8)) is None


def test_another_order_of_devices_takes_a_permutation() -> None:
    backwards = Mesh(ABCD.axes, range(15, -1, -1))
    plan = plan_collectives(sharding("a|b"), sharding("a|b", "n"), ABCD, backwards, (8, 8))
    assert plan is not None
    assert [str(step) for step in plan] == ['collective_permute -> <@n, [{"a"}, {"b"}]>']


def test_the_same_mesh_under_another_name_takes_nothing() -> None:
    assert plan_collectives(sharding("a|b"), sharding("a|b", "n"), ABCD, ABCD, (8, 8)) == ()
    (step,) = plan_collectives(sharding("a|b"), sharding("a|", "n"), ABCD, ABCD, (8, 8)) or ()
    assert step.after is sharding("a|")


def test_parts_that_do_not_fit_each_other_are_gathered_and_sliced() -> None:
    mesh, other = Mesh([("x", 12)]), Mesh([("x", 12)], range(11, -1, -1))
    before, after = sharding("x:(3)2|x:(1)3"), sharding("x:(2)3|x:(6)2", "n")
    plan = plan_collectives(before, after, mesh, other, (12, 12))
    assert plan == gather_and_slice(before, after, other, (12, 12))
    assert list(map(str, plan)) == [
        'collective_permute -> <@n, [{"x":(3)2}, {"x":(1)3}]>',
        'all_gather [{"x":(3)2}, {"x":(1)3}] -> <@n, [{}, {}]>',
        'all_slice [{"x":(2)3}, {"x":(6)2}] -> <@n, [{"x":(2)3}, {"x":(6)2}]>',
    ]


def test_what_both_have_in_front_is_not_gathered_on_the_detour() -> None:
    plan = gather_and_slice(sharding("a b|c"), sharding("a d|"), ABCD, (8, 8))
    assert [short(step) for step in plan] == ["gather b|c", "slice d|"]
    assert gather_and_slice(sharding("a|b"), sharding("a|b"), ABCD, (8, 8)) == ()


def test_axes_of_dimensions_cannot_become_unreduced() -> None:
    mesh, after = Mesh([("a", 16), ("b", 2)]), parse_sharding('<@m, [{"a"}, {}], unreduced={"b"}>')
    with pytest.raises(InvalidShardingError, match='axis "b", which shards a dimension before'):
        plan_collectives(sharding("b|"), after, mesh, mesh, (16, 64))


def test_an_axis_of_size_1_may_be_left_out() -> None:
    mesh = Mesh([("a", 2), ("b", 1)])
    assert plan_collectives(sharding("a|"), sharding("a|b"), mesh, mesh, (8, 8)) == ()
