"""Shardings as text, as a `PartitionSpec` where possible and otherwise as in the `sdy` dialect; and as plain data."""

from __future__ import annotations

from enum import Enum
from typing import Any

from pyshardy.core.notation import axis_to_json
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.spec import format_spec

REPLICATED = "replicated"
"""The name of a sharding without axes."""


class Notation(Enum):
    """The notation of shardings: `P('data')` as in JAX where possible, or `[{"data"}]` as in the `sdy` dialect."""

    SPEC = "spec"
    SDY = "sdy"


def format_sharding(sharding: TensorSharding | None, notation: Notation = Notation.SPEC) -> str:
    """A sharding without its mesh.

    Args:
        sharding: The sharding; None for none.
        notation: The notation. Sub-axes, priorities and unreduced axes are always written as in the dialect.

    >>> from pyshardy.core.notation import parse_sharding
    >>> format_sharding(parse_sharding('<@mesh, [{}, {"model"}]>'))
    "P(None, 'model')"
    >>> format_sharding(parse_sharding('<@mesh, [{"x":(1)2}, {}], unreduced={"y"}>'))
    '[{"x":(1)2}, {}] unreduced "y"'
    """
    if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced):
        return REPLICATED
    if notation is Notation.SPEC and _has_spec(sharding):
        return format_spec([axis.name for axis in dim.axes] for dim in sharding.dims)
    unreduced = ", ".join(map(str, sharding.unreduced))
    return "[" + ", ".join(map(str, sharding.dims)) + "]" + (f" unreduced {unreduced}" if unreduced else "")


def spec_entries(sharding: TensorSharding) -> list[list[str] | str | None] | None:
    """The entries of the `PartitionSpec`, without trailing None; None if there is no such spec."""
    if not _has_spec(sharding):
        return None
    entries: list[list[str] | str | None] = []
    for dim in sharding.dims:
        names = [axis.name for axis in dim.axes]
        entries.append(names if len(names) > 1 else names[0] if names else None)
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def _has_spec(sharding: TensorSharding) -> bool:
    return not sharding.unreduced and all(map(_is_plain, sharding.dims))


def _is_plain(dim: DimSharding) -> bool:
    return dim.priority is None and all(axis.is_full for axis in dim.axes)


def format_axis(text: str, notation: Notation = Notation.SPEC) -> str:
    """An axis as in the dialect, without quotes if that is unambiguous.

    >>> format_axis('"model"'), format_axis('"model":(1)2'), format_axis('"a b"')
    ('model', '"model":(1)2', '"a b"')
    """
    return text[1:-1] if notation is Notation.SPEC and text[1:-1].isidentifier() else text


def sharding_to_json(sharding: TensorSharding | None) -> dict[str, Any]:
    """A sharding as JSON-ready data: its text, its mesh, its axes per dimension, and its `PartitionSpec`.

    `spec` is null if there is no such `PartitionSpec`; `size` is null for full axes.
    """
    is_named = sharding is not None and isinstance(sharding.mesh, str)
    return {
        "sharding": format_sharding(sharding, Notation.SDY),
        "mesh": sharding.mesh if sharding is not None and is_named else None,
        "spec": [] if sharding is None else spec_entries(sharding),
        "axes": [] if sharding is None else [[axis_to_json(axis) for axis in dim.axes] for dim in sharding.dims],
        "unreduced": [] if sharding is None else [axis_to_json(axis) for axis in sharding.unreduced],
    }
