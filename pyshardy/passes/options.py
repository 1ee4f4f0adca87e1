"""Options of passes as text: `name=value` pairs from and to the fields of a pass."""

from __future__ import annotations

import re
from dataclasses import Field, fields
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints

from pyshardy.core.intern import register_cache
from pyshardy.core.options import did_you_mean
from pyshardy.errors import UsageError
from pyshardy.passes.base import Pass

P = TypeVar("P", bound=Pass)


class HasOptions(Protocol):
    """A dataclass whose fields are options."""

    name: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


D = TypeVar("D", bound=HasOptions)

BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_INTEGER = re.compile(r"-?[0-9]+")
_MOST_DIGITS = 30


def make_pass(cls: type[P], options: dict[str, str]) -> P:
    """A pass with the options given as text.

    Raises:
        UsageError: An unknown option, or a value of the wrong type.
    """
    return read_options(cls, options)


def read_options(cls: type[D], options: dict[str, str]) -> D:
    """The dataclass of a pass or pipeline, from options given as text.

    Raises:
        UsageError: An unknown option, or a value of the wrong type.
    """
    if not options:
        return cls()
    hints = _type_hints(cls)
    known = {field.name.replace("_", "-"): field.name for field in fields(cls)}
    values: dict[str, Any] = {}
    for option, text in options.items():
        if option not in known:
            needed = f"one of {', '.join(known)}" if known else "no options"
            hint = did_you_mean(option, known)
            raise UsageError(f"reading the options of {cls.name}", got=f"'{option}'", needed=needed, hint=hint)
        values[known[option]] = _parse_value(cls, option, text, hints[known[option]])
    return cls(**values)


@lru_cache(maxsize=256)
def _type_hints(cls: type[Any]) -> dict[str, Any]:
    return get_type_hints(cls)


register_cache(_type_hints.cache_clear)


def _parse_value(cls: type[HasOptions], option: str, text: str, kind: Any) -> Any:
    needed, hint = "a value", None
    if kind is bool:
        needed = "true or false"
        if text in BOOLEANS:
            return BOOLEANS[text]
    elif kind is int:
        needed = "an integer"
        if _INTEGER.fullmatch(text):
            if len(text) <= _MOST_DIGITS and -(2**63) <= int(text) < 2**63:
                return int(text)
            text, needed = text[:_MOST_DIGITS], "a 64-bit integer"
    elif kind is str:
        return text
    elif issubclass(kind, Enum):
        values = [member.value for member in kind]
        needed, hint = f"one of {', '.join(values)}", did_you_mean(text, values)
        for member in kind:
            if member.value == text:
                return member
    raise UsageError(f"reading option {option} of {cls.name}", got=f"'{text}'", needed=needed, hint=hint)


def format_options(pass_: Pass) -> str:
    """The options of a pass that differ from the default, as `name=value` pairs.

    >>> from pyshardy.passes.table import pass_class
    >>> format_options(pass_class("sdy-unflatten-call-graph")(dedup_functions_fully=True))
    'dedup-functions-fully=true'
    """
    found = []
    for field in fields(pass_):
        value = getattr(pass_, field.name)
        if value != field.default:
            found.append(f"{field.name.replace('_', '-')}={format_value(value)}")
    return " ".join(found)


def format_value(value: Any) -> str:
    """The value of an option as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value.value) if isinstance(value, Enum) else str(value)
