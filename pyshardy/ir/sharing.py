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
