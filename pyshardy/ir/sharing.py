"""Changing attributes of many ops that share theirs: each distinct change makes one new dictionary for all of them."""

from __future__ import annotations

from typing import Any

from pyshardy.ir.nodes import Op


class SharedChanges:
    """Sets and removes attributes; ops that shared them before share them afterwards.

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
        # By the identities of attributes and value, with what keeps these.
        self._made: dict[tuple[int, str, int], tuple[dict[str, Any], dict[str, Any], Any]] = {}

    def set(self, op: Op, name: str, value: Any) -> None:
        """Give an op this attribute."""
        old = op.shared_attrs
        if op.owns_attrs:
            old[name] = value
            return
        key = id(old), name, id(value)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = {**old, name: value}, old, value
        op.shared_attrs = found[0]

    def remove(self, op: Op, name: str) -> None:
        """Take this attribute away, which the op has."""
        old = op.shared_attrs
        if op.owns_attrs:
            del old[name]
            return
        key = id(old), name, 0
        found = self._made.get(key)
        if found is None:
            new = {other: value for other, value in old.items() if other != name}
            found = self._made[key] = new, old, None
        op.shared_attrs = found[0]


class SharedOutcomes:
    """Remembers what became of shared attributes, for changes that depend on them alone.

    >>> from pyshardy.ir.nodes import Op
    >>> first = Op("t.a", attrs={"x": 1})
    >>> first.owns_attrs = False
    >>> second, changes, outcomes = first.clone(), SharedChanges(), SharedOutcomes()
    >>> for op in (first, second):
    ...     if not outcomes.apply(op):
    ...         before = op.shared_attrs
    ...         changes.remove(op, "x")
    ...         outcomes.note(before, op)
    >>> second.shared_attrs is first.shared_attrs
    True
    """

    def __init__(self) -> None:
        self._found: dict[int, dict[str, Any]] = {}
        self._kept: list[dict[str, Any]] = []  # while these live, no others have their identities

    def apply(self, op: Op) -> bool:
        """Do to an op what was done to others with the same attributes; whether there were any."""
        found = None if op.owns_attrs else self._found.get(id(op.shared_attrs))
        if found is None:
            return False
        op.shared_attrs = found
        return True

    def note(self, before: dict[str, Any], op: Op) -> None:
        """Remember that an op with these attributes before has those that it has now."""
        if not op.owns_attrs:
            self._found[id(before)] = op.shared_attrs
            self._kept.append(before)
