"""What the tensors of a step agree on, and where conflicts cut it.

Source: docs/semantics/propagation.md#compatible-axes
Source: docs/semantics/propagation.md#basic-strategy
"""

from __future__ import annotations

from itertools import permutations

import pytest

from pyshardy.propagation.compatible import Cutter, compatible_axes, cut_by_other_factors, cut_within_factor
from pyshardy.propagation.program import Direction
from pyshardy.propagation.projection import FactorState, TensorState

from ..core.short import mesh, ref, refs
from .short import state, tensor

NONE, FORWARD, BACKWARD, BOTH = Direction


def agreed(operands: list[str | None], results: list[str | None], direction: Direction = BOTH) -> str:
    """The compatible axes of factor 0; None is a tensor without it."""
    states = [tensor(None if axes is None else state(axes)) for axes in [*operands, *results]]
    return " ".join(str(axis).replace('"', "") for axis in compatible_axes(0, states, len(operands), direction))


@pytest.mark.parametrize(
    ("old", "new", "merged"),
    [
        ("a b", "a b", "a b"),
        ("", "a b", "a b"),
        ("a b", "", "a b"),
        ("a", "a b", "a b"),
        ("a b", "a", "a b"),
        # new is a strict prefix of old at some position
        ("a", "a:(1)2", "a"),
        ("a b", "a:(1)2", "a b"),
        ("a", "a:(1)2 b", "a:(1)2"),
        ("a b", "a:(1)2 b", "a:(1)2"),
        ("c a b", "c a:(1)2 b", "c a:(1)2"),
        # old is a strict prefix of new
        ("a:(1)2", "a", "a"),
        ("a:(1)2", "a b", "a b"),
        ("a:(1)2 b", "a", "a:(1)2"),
        ("a:(1)2 b", "a b", "a:(1)2"),
        ("c a:(1)2", "c a d", "c a d"),
        # neither
        ("a", "b", ""),
        ("a b", "a c", "a"),
        ("a b", "b a", ""),
        ("a:(2)2", "a:(1)2", ""),
        ("a:(2)2", "a", ""),
        ("c a:(2)2 b", "c a b", "c"),
    ],
)
def test_merging_two_tensors(old: str, new: str, merged: str) -> None:
    assert agreed([old, new], []) == merged
    assert agreed([], [old, new]) == merged
    assert agreed([old], [new]) == merged


@pytest.mark.parametrize(
    ("operands", "merged"),
    [
        (["a", "b", "c"], ""),
        (["a b", "a c", "a b d"], "a"),  # frozen at the cut: what comes later does not make it longer
        (["a", "a:(1)2 b", "a c"], "a:(1)2"),
        (["", "a", ""], "a"),
        ([None, "a", None], "a"),
        ([None], ""),
    ],
)
def test_merging_more(operands: list[str | None], merged: str) -> None:
    assert agreed(operands, []) == merged


@pytest.mark.parametrize(
    ("operands", "results", "found"),
    [
        # per direction NONE, FORWARD, BACKWARD, BOTH
        (["a"], [""], ("", "a", "", "a")),
        ([""], ["a"], ("", "", "a", "a")),
        (["a"], ["a b"], ("", "a", "a b", "a b")),
        (["a b"], ["a"], ("", "a b", "a", "a b")),
        (["a"], ["b"], ("", "", "", "")),
        (["a b"], ["a c"], ("", "a", "a", "a")),
        (["a", ""], [""], ("", "a", "", "a")),  # sideways: an operand contributes to the other
        ([""], ["a", ""], ("", "", "a", "a")),
        (["a:(1)2"], ["a"], ("", "a:(1)2", "a", "a")),
        (["a"], ["a:(1)2"], ("", "a", "a:(1)2", "a")),
        (["a", "a:(1)2 b"], ["a c"], ("", "a:(1)2", "a:(1)2", "a:(1)2")),
    ],
)
def test_directions_say_who_contributes(operands: list[str], results: list[str], found: tuple[str, ...]) -> None:
    assert tuple(agreed(operands, results, direction) for direction in Direction) == found


@pytest.mark.parametrize("direction", Direction)
def test_the_order_inside_a_group_does_not_matter(direction: Direction) -> None:
    lists = ["a", "a:(1)2 b", "a b", ""]
    assert len({agreed(list(order), ["a b c"], direction) for order in permutations(lists)}) == 1
    assert len({agreed(["a b c"], list(order), direction) for order in permutations(lists)}) == 1


@pytest.mark.parametrize(
    ("axis", "found", "kept"),
    [
        ("p", tensor(state(), state("q")), "p"),
        ("p", tensor(state(), state("p")), None),
        ("p", tensor(state("p"), state()), "p"),  # its own factor does not matter
        ("p", tensor(state(), state("q"), state("p:(2)2")), "p:(1)2"),
        ("p", tensor(state(), state("p:(4)2"), state("p:(2)2")), "p:(1)2"),
        ("p:(2)4", tensor(state(), state("p:(1)2")), "p:(2)4"),
        ("p:(2)4", tensor(state(), state("p:(1)4")), None),
        ("p", tensor(state(), state(overflow="p")), None),  # what overflowed is in use too
        ("p", tensor(None, state("p")), None),  # also in a tensor without the factor
        ("p", tensor(state(), state(), blocked="p"), "p"),  # replicated axes are the other test's business
    ],
)
def test_cut_by_other_factors(axis: str, found: TensorState, kept: str | None) -> None:
    assert cut_by_other_factors(ref(axis), found, 0) is (None if kept is None else ref(kept))


def within(axis: str, found: FactorState, size: int = 8, previous: int = 1, blocked: str = "") -> str | None:
    kept = cut_within_factor(ref(axis), tensor(found, blocked=blocked), found, size, previous, mesh("p=8 q=3 r=2"))
    return None if kept is None else str(kept).replace('"', "")


@pytest.mark.parametrize(
    ("axis", "found", "size", "previous", "kept"),
    [
        # already there
        ("p", state("p", closed=True), 8, 1, "p"),
        ("p:(1)2", state("p", closed=True), 8, 1, "p:(1)2"),
        ("r", state("p r", closed=True), 3, 8, "r"),
        # open and minor-most: whatever it is
        ("p", state(), 2, 1, "p"),
        ("q", state("p"), 2, 8, "q"),
        # open, not minor-most: what divides
        ("p", state(minor=False), 16, 1, "p"),
        ("p", state(minor=False), 8, 1, "p"),
        ("p", state(minor=False), 4, 1, "p:(1)4"),
        ("p", state(minor=False), 12, 1, "p:(1)4"),
        ("p", state(minor=False), 16, 8, "p:(1)2"),
        ("q", state(minor=False), 8, 1, None),
        ("p", state(minor=False), 8, 3, None),  # what came before does not divide
        ("r", state(minor=False), 8, 8, None),  # full
        # closed, overflowed or full: what is there already of the axis
        ("p", state(closed=True), 8, 1, None),
        ("p", state("p:(1)2", closed=True), 8, 1, "p:(1)2"),
        ("p", state("r p:(1)2", closed=True), 8, 2, "p:(1)2"),
        ("p", state("p:(1)2 r", closed=True), 8, 1, None),  # the last axis is another
        ("p", state("p:(2)2", closed=True), 8, 1, None),
        ("p", state("p:(1)2", minor=False, overflow="q"), 8, 1, "p:(1)2"),
        ("p", state(minor=False, overflow="q"), 8, 1, None),
        ("p", state("p:(1)2", minor=False), 3, 1, "p:(1)2"),
    ],
)
def test_cut_within_a_factor(axis: str, found: FactorState, size: int, previous: int, kept: str | None) -> None:
    assert within(axis, found, size, previous) == kept


@pytest.mark.parametrize(
    ("axis", "blocked", "kept"),
    [
        ("p", "p", None),
        ("p", "q", "p"),
        ("p", "p:(2)4", "p:(1)2"),
        ("p", "p:(4)2 p:(2)2", "p:(1)2"),
        ("p", "p:(1)2", None),
    ],
)
def test_replicated_and_unreduced_axes_cut(axis: str, blocked: str, kept: str | None) -> None:
    assert within(axis, state(), blocked=blocked) == kept


def test_a_cutter_stops_at_the_first_axis_that_is_cut() -> None:
    cutter = Cutter(mesh("p=8 q=3 r=2"), is_conservative=False)
    assert cutter.take(ref("q"), ref("q"))
    assert not cutter.take(ref("p"), ref("p:(1)2"))
    assert cutter.kept == list(refs("q p:(1)2"))
    assert cutter.product == 6


@pytest.mark.parametrize("rest", [None, "p:(1)2"])
def test_a_conservative_cutter_takes_no_part_of_an_axis(rest: str | None) -> None:
    cutter = Cutter(mesh("p=8"), is_conservative=True)
    assert not cutter.take(ref("p"), None if rest is None else ref(rest))
    assert cutter.kept == []


def test_a_conservative_cutter_takes_no_sub_axis_even_uncut() -> None:
    cutter = Cutter(mesh("p=8 q=3"), is_conservative=True)
    assert cutter.take(ref("q"), ref("q"))
    assert not cutter.take(ref("p:(1)2"), ref("p:(1)2"))
    assert cutter.kept == [ref("q")]
