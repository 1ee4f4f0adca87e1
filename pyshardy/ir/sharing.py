"""Changing attributes of many ops that share theirs: each distinct change makes one new dictionary for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyshardy.ir.nodes import Op


class SharedChanges:
    """Sets attributes; ops that shared theirs before share them afterwards.

    >>> from pyshardy.ir.nodes import Op
    >>> first = Op("t.a", attrs={"x": 1})
    >>> first.owns_attrs = False  # as ops that are read
    >>> second = first.clone()
    >>> changes = SharedChanges()
    >>> changes.set(first, "y", 2), changes.set(second, "y", 2)
    (None, None)
    >>> first.shared_attrs, first.shared_attrs is second.shared_attrs
    ({'x': 1, 'y': 2}, True)
    """

    def __init__(self) -> None:
        # By the identities of value and attributes: what was made, with what keeps these and the name.
        self._made: dict[int, dict[int, tuple[dict[str, Any], dict[str, Any], Any, str]]] = {}

    def set(self, op: Op, name: str, value: Any) -> None:
        """Give an op this attribute."""
        old = op.shared_attrs
        if op.owns_attrs:
            old[name] = value
            return
        of_value = self._made.get(id(value))
        if of_value is None:
            of_value = self._made[id(value)] = {}
        found = of_value.get(id(old))
        if found is None or found[3] != name:
            found = of_value[id(old)] = {**old, name: value}, old, value, name
        op.shared_attrs = found[0]


class SharedOutcomes:
    """Applies a change that depends on nothing but the attributes: once for all ops that share theirs.

    Args:
        change: Returns other attributes, or those it was given where they stay; it does not change them in place.

    >>> from pyshardy.ir.nodes import Op
    >>> first = Op("t.a", attrs={"x": 1, "y": 2})
    >>> first.owns_attrs = False
    >>> second, outcomes = first.clone(), SharedOutcomes(lambda attrs: without(attrs, "x"))
    >>> for op in (first, second):
    ...     outcomes.apply(op)
    >>> first.shared_attrs, second.shared_attrs is first.shared_attrs
    ({'y': 2}, True)
    """

    def __init__(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._change = change
        self._found: dict[int, dict[str, Any]] = {}
        self._kept: list[dict[str, Any]] = []  # while these live, no others have their identities

    def apply(self, op: Op) -> None:
        """Change the attributes of an op."""
        old = op.shared_attrs
        if op.owns_attrs:
            op.shared_attrs = self._change(old)
            return
        found = self._found.get(id(old))
        if found is None:
            found = self._found[id(old)] = self._change(old)
            self._kept.append(old)
        op.shared_attrs = found


def without(attrs: dict[str, Any], name: str) -> dict[str, Any]:
    """These attributes but for one.

    >>> without({"x": 1, "y": 2}, "x")
    {'y': 2}
    """
    return {other: value for other, value in attrs.items() if other != name}
