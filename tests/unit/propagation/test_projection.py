"""Dimensions to factors and back.

Source: docs/semantics/propagation.md#factors
Source: docs/semantics/propagation.md#writing-back
"""

from __future__ import annotations

import pytest

from pyshardy.propagation.projection import axes_if_same, project, take_axes, unproject
from pyshardy.rules.notation import parse_rule

from ..core.short import mesh, refs, sharding
from .short import shown, state, tensor, text

CASES = [
    # factors of the one tensor, sizes, mesh, sharding, factor states
    ("[ij]", "i=4, j=6", "p=12", '[{"p"}]', {"i": "p:(1)4 closed", "j": "p:(4)3 closed minor"}),
    ("[ij]", "i=8, j=4", "p=6 q=2", '[{"p", "q"}]',
     {"i": "p:(1)2 closed overflow p:(2)3 q", "j": "closed minor"}),
    ("[ij]", "i=2, j=4", "p=3", '[{"p"}]', {"i": "closed overflow p", "j": "closed minor"}),
    ("[ij]", "i=2, j=4", "p=3", '[{"p", ?}]', {"i": "overflow p", "j": "closed minor"}),
    # one factor takes all, dividing or not
    ("[i]", "i=4", "p=3 q=8", '[{"p", "q", ?}]', {"i": "p q minor"}),
    ("[i, j]", "i=4, j=4", "p=2 q=2", '[{"q", ?}, {"p"}]', {"i": "q minor", "j": "p closed minor"}),
    # the minor-most factor may be padded and over-full
    ("[ij]", "i=2, j=3", "p=2 q=5 r=2", '[{"p", "q", "r", ?}]', {"i": "p", "j": "q r minor"}),
    # nothing is left over for the minor factor
    ("[ij]", "i=8, j=2", "p=4", '[{"p", ?}]', {"i": "p", "j": "minor"}),
    # a sub-axis is split further
    ("[ij]", "i=2, j=4", "p=16", '[{"p":(2)4, ?}]', {"i": "p:(2)2", "j": "p:(4)2 minor"}),
    # size 0 swallows every axis; axes of size 1 go to the current factor
    ("[ij]", "i=0, j=4", "p=3 q=2", '[{"p", "q", ?}]', {"i": "p q", "j": "minor"}),
    ("[ij]", "i=2, j=4", "u=1 p=2 q=2", '[{"u", "p", "q", ?}]', {"i": "u p", "j": "q minor"}),
    ("[ij]", "i=2, j=4", "u=1 p=2 q=2", '[{"p", "u", "q", ?}]', {"i": "p u", "j": "q minor"}),
    # behind an overflow the next factor is closed and empty, and those behind it are missing
    ("[ijk]", "i=4, j=2, k=2", "p=3", '[{"p", ?}]', {"i": "overflow p", "j": "closed"}),
    ("[ijk]", "i=4, j=4, k=2", "p=4 q=3", '[{"p", "q", ?}]', {"i": "p", "j": "overflow q", "k": "closed minor"}),
    ("[ijk, l]", "i=4, j=2, k=2, l=8", "p=3 q=2", '[{"p", ?}, {"q", ?}]',
     {"i": "overflow p", "j": "closed", "l": "q minor"}),
]  # fmt: skip


@pytest.mark.parametrize(("factors", "sizes", "axes", "given", "states"), CASES)
def test_projecting(factors: str, sizes: str, axes: str, given: str, states: dict[str, str]) -> None:
    rule = parse_rule(f"<({factors})->({factors}) {{{sizes}}}>")
    found = project(sharding(given), rule.operands[0], rule.factor_sizes, mesh(axes))
    assert shown(found) == states


@pytest.mark.parametrize(("factors", "sizes", "axes", "given", "states"), CASES)
def test_what_was_not_changed_comes_back(
    factors: str, sizes: str, axes: str, given: str, states: dict[str, str]
) -> None:
    rule = parse_rule(f"<({factors})->({factors}) {{{sizes}}}>")
    mapping = rule.operands[0]
    found = project(sharding(given), mapping, rule.factor_sizes, mesh(axes))
    dims = unproject(found, mapping, rule.factor_sizes, mesh(axes))
    assert sharding(given).with_dims(dims) is sharding(given)


def test_without_a_sharding_every_factor_is_open_and_empty() -> None:
    rule = parse_rule("<([ij, k])->([ij, k]) {i=2, j=4, k=8}>")
    found = project(None, rule.operands[0], rule.factor_sizes, mesh("p=2"))
    assert shown(found) == {"i": "", "j": "minor", "k": "minor"}
    assert found.blocked == ()


def test_replicated_and_unreduced_axes_are_blocked_in_that_order() -> None:
    rule = parse_rule("<([i])->([i]) {i=8}>")
    given = sharding('[{?}], replicated={"q"}, unreduced={"p"}')
    found = project(given, rule.operands[0], rule.factor_sizes, mesh("p=2 q=2"))
    assert found.blocked == refs("q p")


def test_priorities_are_gone() -> None:
    rule = parse_rule("<([i])->([i]) {i=8}>")
    found = project(sharding('[{"p", ?}p3]'), rule.operands[0], rule.factor_sizes, mesh("p=2"))
    (dim,) = unproject(found, rule.operands[0], rule.factor_sizes, mesh("p=2"))
    assert str(dim) == '{"p", ?}'


@pytest.mark.parametrize(
    ("axes", "given", "size", "result"),
    [
        ("p=12", "p", 4, ("p:(1)4", 1, "p:(4)3")),
        ("p=6 q=2", "p q", 8, ("p:(1)2", 4, "p:(2)3 q")),
        ("p=3", "p", 2, ("", 2, "p")),
        ("p=4 q=2", "p q", 8, ("p q", 1, "")),
        ("p=4 q=2", "p q", 2, ("p:(1)2", 1, "p:(2)2 q")),
        ("p=4", "p", 0, ("p", 0, "")),
        ("u=1", "u", 1, ("u", 1, "")),
        ("p=4", "", 8, ("", 8, "")),
    ],
)
def test_taking_axes(axes: str, given: str, size: int, result: tuple[str, int, str]) -> None:
    taken, room, left = take_axes(refs(given), size, mesh(axes))
    assert (taken, room, left) == (refs(result[0]), result[1], refs(result[2]))


@pytest.mark.parametrize(
    ("axes", "states", "sizes", "result"),
    [
        # 4x8 -> 32: i is not filled, so what is behind it would be strided
        ("p=2 q=2", [state("p", minor=False), state("q")], (4, 8), '{"p", ?}'),
        ("p=4 q=2", [state("p", minor=False), state("q")], (4, 8), '{"p", "q", ?}'),
        # the first axis of a factor is merged into the last of the factor before
        ("p=12", [state("p:(1)4", minor=False), state("p:(4)3")], (4, 6), '{"p", ?}'),
        ("p=8 q=2", [state("p:(1)4", minor=False), state("p:(4)2 q")], (4, 8), '{"p", "q", ?}'),
        ("p=8", [state("p:(1)2", minor=False), state("p:(4)2")], (2, 2), '{"p":(1)2, "p":(4)2, ?}'),
        # a closed factor closes the dimension, if it is reached
        ("p=4 q=2", [state("p", minor=False), state("q", closed=True)], (4, 8), '{"p", "q"}'),
        ("p=2 q=2", [state("p", minor=False), state("q", closed=True)], (4, 8), '{"p", ?}'),
        ("p=3", [state("", minor=False, overflow="p"), state("", closed=True)], (4, 8), '{"p", ?}'),
        # a missing factor ends the dimension
        ("p=2", [state("p", minor=False), None], (2, 8), '{"p", ?}'),
        # a minor-most factor that is over-full
        ("p=2 q=5", [state("p", minor=False), state("q")], (2, 3), '{"p", "q", ?}'),
    ],
)  # fmt: skip
def test_projecting_back(axes: str, states: list, sizes: tuple[int, int], result: str) -> None:
    (dim,) = unproject(tensor(*states), ((0, 1),), sizes, mesh(axes))
    assert str(dim) == result


ALIKE = "<([i, j], [i])->([i, j]) {i=8, j=8}>"
COMPOUND = "<([ij])->([i, j]) {i=2, j=4}>"


@pytest.mark.parametrize(
    ("rule", "given", "found"),
    [
        (ALIKE, ['[{"p"}, {"q", ?}]', '[{"p", ?}]', '[{"p"}, {"q"}]'], {0: "p", 1: "q"}),
        (ALIKE, ['[{}, {"q"}]', None, '[{?}, {"q"}], replicated={"p"}'], {0: "", 1: "q"}),
        (ALIKE, ['[{"p"}, {}]', None, '[{"p"}, {}]'], None),
        (ALIKE, ['[{"p"}, {}]', '[{"p":(1)2}]', '[{"p"}, {}]'], None),
        (ALIKE, ['[{"p"}, {}]', "[]", '[{"p"}, {}]'], {0: "p", 1: ""}),  # on a single device: without dimensions
        (COMPOUND, ["[{}]", "[{}, {?}]"], {0: "", 1: ""}),
        (COMPOUND, ['[{"p"}]', '[{"p"}, {}]'], None),  # whether it fits is unknown without sizes
    ],
)
def test_axes_that_all_tensors_show(rule: str, given: list[str | None], found: dict[int, str] | None) -> None:
    same = axes_if_same(parse_rule(rule), [None if text is None else sharding(text) for text in given])
    assert same == (None if found is None else {factor: refs(text) for factor, text in found.items()})


def test_printing_a_sharding() -> None:
    assert text(sharding('[{"p"}], unreduced={"q"}')) == '[{"p"}], unreduced={"q"}'
