"""Reads records from plain data, such as JSON, by the declared types of their fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

from pyshardy.errors import UsageError


def from_plain(kind: Any, data: Any, doing: str, where: str) -> Any:
    """A value of a type from plain data; lists become tuples, and mappings dataclasses.

    Args:
        kind: A dataclass; or `str`, `bool`, `int`, `float` (a finite number), or a tuple of one of these.
        data: The data; a record may be one already.
        doing: What is being done, for errors.
        where: What the data is, for errors.

    Raises:
        UsageError: Something is missing, unknown, or of another type; the error says where.

    >>> from_plain(tuple[int, ...], [1, 2], "reading", "the sizes")
    (1, 2)
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return data if isinstance(data, kind) else kind(**_fields(kind, data, doing, where))
    if get_origin(kind) is tuple:
        return _entries(get_args(kind), data, doing, where)
    fits = isinstance(data, (int, float) if kind is float else kind) and (kind is bool or not isinstance(data, bool))
    if not fits or (kind is float and not math.isfinite(data)):
        raise UsageError(doing, where=where, got=repr(data), needed=_NAMES[kind])
    return data


def check_fields(record: Any, doing: str) -> None:
    """Check the types of the fields of a frozen record that is being made; lists become tuples.

    Args:
        record: The record.
        doing: What is being done, for errors.

    Raises:
        UsageError: A field is of another type than declared.
    """
    kinds = get_type_hints(type(record))
    for field in fields(record):
        value = from_plain(kinds[field.name], getattr(record, field.name), doing, field.name)
        object.__setattr__(record, field.name, value)


_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def _entries(kinds: tuple[Any, ...], data: Any, doing: str, where: str) -> tuple[Any, ...]:
    """The entries of a tuple, of one type (`kinds` ends in `...`) or of one each."""
    is_long = kinds[-1] is Ellipsis
    if not isinstance(data, (list, tuple)) or not (is_long or len(data) == len(kinds)):
        raise UsageError(doing, where=where, got=repr(data), needed="a list" if is_long else f"{len(kinds)} entries")
    each = kinds[:1] * len(data) if is_long else kinds
    return tuple(
        from_plain(kind, entry, doing, f"{where}[{index}]") for index, (kind, entry) in enumerate(zip(each, data))
    )


def _fields(kind: Any, data: Any, doing: str, where: str) -> dict[str, Any]:
    """The values of the fields of a dataclass, by name."""
    known = {field.name: field for field in fields(kind)}
    if not isinstance(data, Mapping):
        raise UsageError(doing, where=where, got=repr(data), needed=f"the fields {', '.join(known)}")
    missing = [name for name, field in known.items() if name not in data and not _has_default(field)]
    unknown = [name for name in data if name not in known]
    if missing or unknown:
        got = f"no {missing[0]}" if missing else f"the unknown field {unknown[0]!r}"
        raise UsageError(doing, where=where, got=got, needed=f"the fields {', '.join(known)}")
    kinds = get_type_hints(kind)
    return {name: from_plain(kinds[name], value, doing, f"{where}.{name}") for name, value in data.items()}


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING
