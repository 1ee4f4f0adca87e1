"""The attributes of an op: an immutable dictionary that ops may share; a change makes a new one."""

from __future__ import annotations

from typing import Any, NoReturn


class Attributes(dict[str, Any]):
    """Attributes by name, in order. `Op.set_attr` and `Op.remove_attr` replace the attributes of an op.

    It is a subclass of `dict`, because `get` of a `types.MappingProxyType` takes twice as long, and passes look at
    the attributes of every op.

    >>> attrs = Attributes(x=1)
    >>> attrs.with_value("y", 2), attrs
    ({'x': 1, 'y': 2}, {'x': 1})
    >>> attrs["y"] = 2
    Traceback (most recent call last):
    ...
    TypeError: attributes never change: use Op.set_attr and Op.remove_attr
    """

    __slots__ = ()

    def with_value(self, name: str, value: Any) -> Attributes:
        """These attributes with one added or replaced; the same object if nothing changes."""
        if self.get(name) is value and value is not None:
            return self
        found = Attributes(self)
        _put(found, name, value)
        return found

    def without(self, name: str) -> Attributes:
        """These attributes without one; the same object if they do not have it.

        >>> Attributes(x=1, y=2).without("x")
        {'y': 2}
        """
        if name not in self:
            return self
        found = Attributes(self)
        _remove(found, name)
        return found

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("attributes never change: use Op.set_attr and Op.remove_attr")

    def __setitem__(self, name: str, value: Any) -> NoReturn:  # the compiled core takes no other name for these three
        self._refuse()

    def __delitem__(self, name: str) -> NoReturn:
        self._refuse()

    def __ior__(self, other: Any) -> NoReturn:  # type: ignore[misc]
        self._refuse()

    pop = popitem = clear = update = setdefault = _refuse


_put = dict.__setitem__
_remove = dict.__delitem__

NO_ATTRS = Attributes()


def freeze(attrs: dict[str, Any] | None) -> Attributes:
    """Attributes with this content; the same object if it is an `Attributes` already."""
    if not attrs:
        return NO_ATTRS
    return attrs if type(attrs) is Attributes else Attributes(attrs)
