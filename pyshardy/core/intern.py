"""Interned values: equal values are the same object, so equality and hashing cost a pointer comparison.

A subclass lists its fields in `__slots__` and overrides `_canonical` to check and normalise them. The check runs
once per distinct value: a value that exists is returned without another check.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from threading import RLock
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from pyshardy.errors import InvalidShardingError

T = TypeVar("T", bound="Interned")

_cache_clearers: list[Callable[[], None]] = []
_adding = RLock()  # re-entrant: while it is held, the garbage collector may run code that makes values


def register_cache(clear: Callable[[], None]) -> None:
    """Have `clear_caches` call `clear`; every module-level cache of the package registers itself here.

    >>> from functools import lru_cache
    >>> cached = lru_cache(maxsize=8)(abs)
    >>> register_cache(cached.cache_clear)
    """
    _cache_clearers.append(clear)


def clear_caches() -> None:
    """Empty every bounded cache of the package. Values stay valid, and equal values stay identical.

    >>> clear_caches()
    """
    for clear in _cache_clearers:
        clear()


class Interned:
    """Base class of immutable values: there is only one object per distinct content."""

    __slots__ = ("__weakref__",)

    _fields: ClassVar[tuple[str, ...]] = ()
    _setters: ClassVar[tuple[Callable[[Any, Any], None], ...]]
    _table: ClassVar[WeakValueDictionary[Any, Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._fields = tuple(name for name in cls.__dict__.get("__slots__", ()) if not name.startswith("_"))
        cls._setters = tuple([cls.__dict__[name].__set__ for name in cls._fields])
        cls._table = WeakValueDictionary()

    @classmethod
    def _make(cls: type[T], key: tuple[Any, ...]) -> T:
        """Return the one object with these field values, checking and building it if it is new."""
        try:
            known = cls._table.data.get(key)  # type: ignore[attr-defined]  # as `_table.get(key)`, without a call
        except TypeError as error:
            raise _unhashable(cls, key) from error
        if known is not None:
            found: T | None = known()
            if found is not None:
                return found
        canonical = cls._canonical(*key)
        if canonical != key:
            return cls._make(canonical)
        value = object.__new__(cls)
        for set_field, field in zip(cls._setters, canonical):
            set_field(value, field)
        with _adding:
            # Another thread may have built the same value meanwhile: the first one stays.
            known = cls._table.data.get(canonical)  # type: ignore[attr-defined]
            first: T | None = None if known is None else known()
            if first is None:
                cls._table[canonical] = first = value
        return first

    @classmethod
    def _canonical(cls, *fields: Any) -> tuple[Any, ...]:
        """Return the normal form of the fields, or raise an error if they make no valid value."""
        return fields

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; make a new one instead of setting {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name!r} cannot be deleted")

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: Any) -> T:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), tuple(getattr(self, name) for name in self._fields))


def as_integer(value: object, doing: str) -> int:
    """The number as a plain `int`, for `_canonical`: NumPy integers and booleans compare equal but print differently.

    >>> as_integer(True, "counting")
    1
    """
    try:
        return int(index(value))  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidShardingError(doing, got=repr(value), needed="an integer") from error


def _unhashable(cls: type[Interned], key: tuple[Any, ...]) -> InvalidShardingError:
    """The error for a mutable field, such as a list, of an immutable value."""
    for name, value in zip(cls._fields, key):
        try:
            hash(value)
        except TypeError:
            needed = "an immutable value"
            return InvalidShardingError(f"making {cls.__name__}", got=f"{value!r} as {name}", needed=needed)
    return InvalidShardingError(f"making {cls.__name__}", got=repr(key), needed="immutable values")


def _rebuild(cls: type[T], key: tuple[Any, ...]) -> T:
    """Unpickle: find or build the one object with these field values."""
    return cls._make(key)
