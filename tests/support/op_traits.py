"""Checks of the lines of `pyshardy/rules/ops.py`, for the tests of the registry."""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pyshardy.ir.opspec import CONTEXT_READERS, DECODERS
from pyshardy.rules.ops import Line, names_of
from pyshardy.rules.traits import (
    BY_ATTRIBUTE,
    ROOMS,
    SILENT,
    UNKNOWN,
    OpTraits,
    names_function,
)

REQUIRED = ("rule", "elementwise", "pure", "priority", "attributes", "pad", "local", "exchange")
"""The traits that are required of every op."""
PARAMETERS = {
    "rule": ("spec", "conservative"),
    "xla_rule": ("spec", "conservative"),
    "pad": ("op", "padder"),
    "local": ("op", "local"),
    "exchange": ("op", "resolver"),
    "whole_factors": ("op", "rule", "context"),
    "exchange_pieces": ("sharded",),
}
"""The parameters of the functions that traits name."""


def doubled(lines: Iterable[Line]) -> list[str]:
    """The ops with two lines."""
    return sorted(
        name for name, count in Counter(name for line in lines for name in names_of(line)).items() if count > 1
    )


def ops_of_dialect(dialect: str) -> set[str]:
    """The names of the ops that jaxlib's classes of a dialect have."""
    generated = importlib.import_module(f"jaxlib.mlir.dialects._{dialect}_ops_gen")
    return {value.OPERATION_NAME for value in vars(generated).values() if hasattr(value, "OPERATION_NAME")}


def problems(ops: Mapping[str, OpTraits], needed: Iterable[str] = ()) -> list[str]:
    """The problems of a registry: ops without a line, missing traits, functions that do not exist.

    Args:
        ops: The traits of ops, by name.
        needed: Ops that must have a line.
    """
    found = [f"{name} has no line; it needs {', '.join(REQUIRED)}" for name in sorted(set(needed) - set(ops))]
    for name, traits in ops.items():
        found += [f"{name} lacks {trait}" for trait in missing_traits(traits)]
        found += [f"{name}: {text}" for text in _wrong_values(traits)]
    return found


def missing_traits(traits: OpTraits) -> list[str]:
    """The required traits that are not stated."""
    return [trait for trait in REQUIRED if getattr(traits, trait) is None]


def _wrong_values(traits: OpTraits) -> Iterator[str]:
    for trait in ROOMS:
        entry = getattr(traits, trait)
        if names_function(entry):
            yield from _wrong_function(trait, entry)
        elif entry and entry not in (SILENT, UNKNOWN):
            yield f"{trait} {entry!r} is not a function"
    if traits.pure not in (True, False, BY_ATTRIBUTE, None):
        yield f"pure {traits.pure!r} is none of True, False and {BY_ATTRIBUTE!r}"
    for attribute, decoder in (traits.attributes or {}).items():
        if decoder not in DECODERS:
            yield f"attribute {attribute} has the decoder {decoder!r}, which ir/opspec.py lacks"
    if traits.context_facts and traits.context_facts not in CONTEXT_READERS:
        yield f"context_facts is {traits.context_facts!r}, which ir/opspec.py lacks"


def _wrong_function(trait: str, entry: str) -> Iterator[str]:
    module, _, function = entry.partition(":")
    try:
        found = getattr(importlib.import_module(f"{ROOMS[trait]}.{module}"), function)
    except (ImportError, AttributeError):
        yield f"{trait} {entry!r} is not in {ROOMS[trait]}"
        return
    taken = tuple(inspect.signature(found).parameters)
    if taken != PARAMETERS[trait]:
        yield f"{trait} {entry!r} takes {taken}, not {PARAMETERS[trait]}"
