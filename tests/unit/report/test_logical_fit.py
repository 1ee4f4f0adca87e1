"""Logical axis rules: they give the shardings that they are said to give, and no others give more bytes theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyshardy.report import logical_fit
from pyshardy.report.logical_fit import Fit, LogicalArrays, LogicalRule, by_rules, by_table, fit, grouped

X, Y, XY = ("x",), ("y",), ("x", "y")


def array(name: str, names: Sequence[str | None], axes: Sequence[tuple[str, ...]], size: int = 1) -> LogicalArrays:
    return LogicalArrays((name,), tuple(names), tuple(axes), 1, size)


@st.composite
def arrays(draw: st.DrawFn, most: int = 4) -> list[LogicalArrays]:
    found = []
    for number in range(draw(st.integers(1, most))):
        names = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=3))
        assume(len({name for name in names if name}) == sum(name is not None for name in names))
        left, axes = ["x", "y"], []
        for name in names:
            one = draw(st.sampled_from([(), X, Y, XY] if name else [(), (), (), X]))
            axes.append(one if set(one) <= set(left) else ())
            left = [axis for axis in left if axis not in axes[-1]]
        found.append(array(f"p{number}", names, axes, draw(st.integers(1, 20))))
    return found


def wrong(found: Fit, groups: Sequence[LogicalArrays], once: bool) -> list[int]:
    """The positions of arrays to which rules give another sharding than theirs."""
    read = by_table if once else by_rules
    return [number for number, one in enumerate(groups) if read(one.names, found.rules) != one.axes]


def wrong_bytes(found: Fit, groups: Sequence[LogicalArrays], once: bool) -> int:
    return sum(groups[number].bytes for number in wrong(found, groups, once))


def all_rules(groups: Sequence[LogicalArrays], once: bool) -> Iterator[tuple[LogicalRule, ...]]:
    """All lists of rules that could be worth trying."""
    needed = {rule for one in groups for rule in zip(one.names, one.axes) if rule[0] is not None and rule[1]}
    rules = [(name, axes) for name, axes in needed if name is not None]
    if once:
        names = sorted({name for name, _ in rules})
        yield from product(*([(name, ()), *(rule for rule in rules if rule[0] == name)] for name in names))
        return
    for count in range(len(rules) + 1):
        yield from permutations(rules, count)


@given(arrays(), st.booleans())
def test_no_rules_give_more_bytes_their_shardings(given_arrays: list[LogicalArrays], once: bool) -> None:
    groups = grouped(given_arrays)
    assume(len({rule for one in groups for rule in zip(one.names, one.axes) if rule[1]}) <= 5)
    found = fit(groups, once)
    others = [
        rules for rules in all_rules(groups, once) if not once or not any(_is_twice(one, rules) for one in groups)
    ]
    fewest = min(wrong_bytes(Fit(rules, {}, True), groups, once) for rules in others)
    assert wrong_bytes(found, groups, once) == fewest or once and not found.is_most
    assert set(wrong(found, groups, once)) <= set(found.causes) or once and not found.is_most
    assert not once or not any(_is_twice(one, found.rules) for one in groups)


def _is_twice(one: LogicalArrays, rules: Sequence[LogicalRule]) -> bool:
    """Whether a table would give an array a mesh axis twice."""
    axes = [axis for dim in by_table(one.names, rules) for axis in dim]
    return len(set(axes)) < len(axes)


@given(arrays(most=8), st.booleans())
def test_every_logical_axis_has_a_rule_and_arrays_that_go_together_get_their_shardings(
    given_arrays: list[LogicalArrays], once: bool
) -> None:
    groups = grouped(given_arrays)
    found = fit(groups, once)
    assert {name for name, _ in found.rules} == {name for one in groups for name in one.names if name is not None}
    assert len(set(found.rules)) == len(found.rules)
    assert not once or len({name for name, _ in found.rules}) == len(found.rules)
    for number, causes in found.causes.items():
        together = [groups[number], *(groups[cause] for cause in causes)]
        assert wrong(fit(together, once), together, once), "these do go together"
    assert fit(groups, once) == found


def test_a_wrong_rule_is_noticed() -> None:
    groups = [array("w", ("embed", "mlp"), (X, Y)), array("v", ("mlp", "embed"), (Y, X))]
    found = fit(groups, False)
    assert not wrong(found, groups, False) and wrong_bytes(found, groups, False) == 0
    other = found._replace(rules=(("embed", Y), ("mlp", Y)))
    assert wrong(other, groups, False) == [0, 1] and wrong_bytes(other, groups, False) == 2
    assert _is_twice(groups[0], other.rules) and not _is_twice(groups[0], found.rules)


def test_the_order_of_rules_says_which_of_two_logical_axes_has_a_mesh_axis() -> None:
    experts = array("experts", ("experts", "embed", "mlp"), (X,))
    groups = [array("dense", ("embed", "mlp"), ((), X), 9), experts]
    found = fit(groups, False)
    assert found.rules == (("experts", X), ("mlp", X), ("embed", ()))
    assert not wrong(found, groups, False)
    assert wrong(fit(groups, True), groups, True) == [1]  # a table has no order


def test_a_logical_axis_may_have_a_second_rule() -> None:
    groups = [array("w", ("a", "b"), (X, Y), 3), array("v", ("b",), (X,), 2)]
    found = fit(groups, False)
    assert found.rules == (("a", X), ("b", X), ("b", Y)) and not wrong(found, groups, False)
    assert fit(groups, True).rules == (("a", X), ("b", Y))


def test_the_lightest_arrays_are_left_out() -> None:
    groups = grouped([array("w", ("a",), (X,), 5), array("v", ("a",), (Y,), 3), array("u", ("a",), (Y,), 3)])
    assert groups[0] == LogicalArrays(("v", "u"), ("a",), (Y,), 2, 6)
    found = fit(groups, False)
    assert found.rules == (("a", Y),) and found.causes == {1: (0,)}


def test_a_dimension_without_a_logical_axis_stays_whole() -> None:
    groups = [array("w", (None, "a"), (X, Y))]
    found = fit(groups, False)
    assert found == Fit((("a", Y),), {0: ()}, True)
    assert by_rules((None, "a"), found.rules) == ((), Y)


def test_a_table_gives_no_array_a_mesh_axis_twice() -> None:
    groups = [array("w", ("a",), (X,), 5), array("v", ("b",), (X,), 3), array("u", ("a", "b"), (X, ()), 1)]
    found = fit(groups, True)
    assert found.rules == (("a", X), ("b", ()))
    assert fit(groups, False).rules == (("a", X), ("b", X))


def test_when_not_all_choices_were_tried_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [array("w", ("a",), (X,), 5), array("v", ("a", "c"), (Y,), 3), array("u", ("a", "d"), (Y,), 3)]
    best = fit(groups, False)
    assert best.is_most and wrong(best, groups, False) == [0]
    monkeypatch.setattr(logical_fit, "_MOST_CHECKS", 1)
    found = fit(groups, False)
    assert wrong(found, groups, False) == [1, 2] and not found.is_most
