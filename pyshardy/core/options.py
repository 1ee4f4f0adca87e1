"""Options given by a user: checked when they are made; enums are also accepted by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from enum import Enum
from functools import lru_cache
from types import NoneType
from typing import Any, ClassVar, TypeVar, get_args, get_type_hints

from pyshardy.core.intern import register_cache
from pyshardy.core.record import Record
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError

E = TypeVar("E", bound=Enum)
O = TypeVar("O", bound="Options")  # noqa: E741 (an options class)


class Options(Record):
    """Base class of frozen options with checked values: booleans, enums (also by name), and paths.

    Attributes:
        of: The object that the options configure, for messages.
    """

    of: ClassVar[str]

    def __post_init__(self) -> None:
        cls: Any = type(self)
        for name, kind in _kinds(cls).items():
            given = getattr(self, name)
            value = self._checked(name, given, kind)
            if value is not given:
                object.__setattr__(self, name, value)

    def _checked(self, name: str, value: Any, kinds: tuple[Any, ...]) -> Any:
        if value is None and NoneType in kinds:
            return None
        kind, doing = kinds[0], f"setting the option {name} of {self.of}"
        if kind is bool:
            return _boolean(value, doing, NoneType in kinds)
        if kind is str:
            return _path(value, doing)
        return enum_value(kind, value, doing) if issubclass(kind, Enum) else value


@lru_cache(maxsize=64)
def _kinds(cls: type[Any]) -> dict[str, tuple[Any, ...]]:
    """The types that the value of every option may have."""
    hints = get_type_hints(cls)
    return {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(cls)}


register_cache(_kinds.cache_clear)


def _boolean(value: Any, doing: str, may_be_none: bool) -> bool:
    if value is True or value is False:
        return value
    if type(value).__name__ in ("bool", "bool_"):  # numpy's
        return bool(value)
    needed = "True, False or None" if may_be_none else "True or False"
    raise UsageError(doing, got=repr(value), needed=needed)


def _path(value: Any, doing: str) -> str:
    if type(value) is str:
        return value
    try:
        return os.fsdecode(value)
    except TypeError as error:
        raise UsageError(doing, got=named_type(value), needed="a path") from error


def enum_value(cls: type[E], value: Any, doing: str, what: str = "") -> E:
    """A member of an enum, from the member itself or its value.

    Args:
        cls: The enum.
        value: A member, or its value as text.
        doing: What is being done, for the error.
        what: What the value is, for the error: "the engine ".

    Raises:
        UsageError: The enum has no such member.
    """
    if isinstance(value, cls):
        return value
    names = [str(member.value) for member in cls]
    if isinstance(value, str) and value in names:
        return cls(value)
    raise UsageError(
        doing, got=f"{what}{value!r}", needed=f"one of {', '.join(names)}", hint=did_you_mean(value, names)
    )


def did_you_mean(given: Any, known: Iterable[str]) -> str | None:
    """The known name closest to a given one, as a hint for an error; None if none is close.

    >>> did_you_mean("stratgy", ["strategy", "view"])
    'strategy'
    """
    from difflib import get_close_matches  # most processes have no use for it

    close = get_close_matches(str(given), list(known), 1)
    return close[0] if close else None


def options_of(cls: type[O], options: O | None, changes: Mapping[str, Any], doing: str) -> O:
    """The options with some of them changed.

    Args:
        cls: The class of the options.
        options: The options; the defaults if None.
        changes: The new values, by name.
        doing: What is being done, for the error.

    Raises:
        UsageError: `options` is not of that class, a name is not an option, or a value has the wrong type.
    """
    kind: Any = cls
    known = _kinds(kind)
    if options is None:
        options = cls()
    elif not isinstance(options, cls):
        raise UsageError(
            doing,
            got=f"{named_type(options)} as options",
            needed=cls.__name__,
            hint=f"{cls.__name__}(...), or the options as keywords: {next(iter(known))}=...",
        )
    for name in changes:
        if name not in known:
            raise unknown_option(name, known, doing)
    return replace(options, **changes) if changes else options


def unknown_option(name: str, known: Iterable[str], doing: str) -> UsageError:
    """The error for an unknown option."""
    names = list(known)
    return UsageError(
        doing, got=f"the option {name!r}", needed=f"one of {', '.join(names)}", hint=did_you_mean(name, names)
    )
