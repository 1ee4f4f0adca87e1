"""Frozen data classes that cost little to define.

`dataclass(frozen=True)` compiles methods for every class, 0.7 ms each with Python 3.13, and every pass and every kind
of options is such a class. With plain data classes `pyshardy-opt -sdy-propagation-pipeline` on a small file takes 13 %
longer (0.35 s of processor time instead of 0.31, on a machine where importing jaxlib takes most of that). Records
share their methods; making and comparing their values is slower, which costs less here.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, fields
from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """Base class of frozen data classes; the functions of `dataclasses` work on them.

    >>> class Options(Record):
    ...     depth: int
    ...     name: str = "x"
    >>> Options(3)
    Options(depth=3, name='x')
    >>> Options(3) == Options(depth=3), Options(3) == Options(4)
    (True, False)
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__annotations__ or not hasattr(cls, "_defaults"):
            dataclass(init=False, repr=False, eq=False)(cls)
            cls._defaults = {field.name: field.default for field in fields(cls)}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name, defaults = type(self).__name__, self._defaults
        if len(args) > len(defaults):
            raise TypeError(f"{name}() takes {len(defaults)} values, not {len(args)}")
        given = dict(zip(defaults, args))
        for option in kwargs:
            if option in given or option not in defaults:
                raise TypeError(f"{name}() got a second or unexpected value for '{option}'")
        for option, value in {**defaults, **given, **kwargs}.items():
            if value is MISSING:
                raise TypeError(f"{name}() needs a value for '{option}'")
            object.__setattr__(self, option, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Refuse values that contradict each other."""

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._defaults])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), self._values()))

    def __repr__(self) -> str:
        pairs = zip(self._defaults, self._values())
        return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field '{name}'")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field '{name}'")
