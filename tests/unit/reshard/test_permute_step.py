from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.reshard.permute_step import permute

from .planning import ABCD, lists, state, steps


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("a|b", "b|a", "b|a"),  # first pieces of equal sizes
        ("a b|", "|a", "b a|"),  # what is not wanted stands in the way
        ("a b c||", "|a|c b", "a c b||"),  # not in the order in which they are wanted
        ("a b|", "|c", "a c|"),  # what is missing takes the place of what is not wanted
    ],
)
def test_permutations_that_help(before: str, after: str, wanted: str) -> None:
    found = state(before, after)
    permute(found)
    assert steps(found) == [f"collective_permute -> {wanted}"]


@pytest.mark.parametrize(("before", "after"), [("a b|", "|b"), ("|a b", "a b|"), ("a b|", "a|"), ("a b||", "|a|b")])
def test_no_permutation_where_it_would_not_help(before: str, after: str) -> None:
    found = state(before, after)
    permute(found)
    assert steps(found) == []


def test_what_is_wanted_where_it_is_settles() -> None:
    found = state("a b|c", "c|")
    permute(found)
    assert lists(found) == ("c|", "b|a", "|")


def test_axes_are_cut_to_take_the_place_of_others() -> None:
    found = state("x|", "y|", Mesh([("x", 6), ("y", 2)]), (12, 12))
    permute(found)
    assert steps(found) == ["collective_permute -> y x:(2)3|"]
    assert lists(found) == ("y|", "x:(2)3|", "|")


def test_a_hidden_dimension_forbids_it_but_for_the_order_of_the_devices() -> None:
    found = state("a b|c", "c|", shape=(6, 16))
    permute(found)
    assert steps(found) == []
    found.after = found.after.with_mesh("n")
    permute(found)
    assert steps(found) == ["collective_permute -> a b|c"]
    assert found.sharding.mesh == "n"


def test_the_number_of_shards_stays() -> None:
    for before, after in (("a b|c|d", "d|c a|b"), ("a|b c|", "c b|a|"), ("a b c|d|", "|d a|b")):
        found = state(before, after)
        shards = [found.size(found.axes(dim)) for dim in found.dims]
        permute(found)
        assert [found.size(found.axes(dim)) for dim in found.dims] == shards
        assert found.plan[0].group_size(ABCD) == 1
