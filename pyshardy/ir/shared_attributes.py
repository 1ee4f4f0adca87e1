"""Changing attributes of many ops that share them, such that the new ones are shared too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyshardy.ir.attributes import Attributes
from pyshardy.ir.op import Op


class SharedChanges:
    """Sets attributes; ops that shared theirs before share the new ones.

    >>> from pyshardy.ir.op import Op
    >>> first = Op("t.a", attrs={"x": 1})
    >>> second = first.clone()
    >>> changes = SharedChanges()
    >>> changes.set(first, "y", 2), changes.set(second, "y", 2)
    (None, None)
    >>> first.attrs, first.attrs is second.attrs
    ({'x': 1, 'y': 2}, True)
    """

    def __init__(self) -> None:
        # By the identities of value and old attributes: new attributes, old attributes, value, name.
        self._made: dict[int, dict[int, tuple[Attributes, Attributes, Any, str]]] = {}

    def set(self, op: Op, name: str, value: Any) -> None:
        """Give an op this attribute."""
        old = op.attrs
        made = self._made.get(id(value))
        if made is None:
            made = self._made[id(value)] = {}
        found = made.get(id(old))
        if found is None or found[3] != name:
            found = made[id(old)] = old.with_value(name, value), old, value, name
        op.attrs = found[0]


class SharedOutcomes:
    """Applies a change that depends only on the attributes: once for all ops that share them.

    Args:
        change: Returns new attributes, or the same object to keep them.

    >>> from pyshardy.ir.op import Op
    >>> first = Op("t.a", attrs={"x": 1, "y": 2})
    >>> second, outcomes = first.clone(), SharedOutcomes(lambda attrs: attrs.without("x"))
    >>> for op in (first, second):
    ...     outcomes.apply(op)
    >>> first.attrs, second.attrs is first.attrs
    ({'y': 2}, True)
    """

    def __init__(self, change: Callable[[Attributes], Attributes]) -> None:
        self._change = change
        # By the identity of old attributes: new attributes, and the old ones, which must live to keep their identity.
        self._found: dict[int, tuple[Attributes, Attributes]] = {}

    def apply(self, op: Op) -> None:
        """Change the attributes of an op."""
        old = op.attrs
        found = self._found.get(id(old))
        if found is None:
            found = self._found[id(old)] = self._change(old), old
        op.attrs = found[0]
