"""`sdy-pad-for-divisibility`: pads every dimension to a multiple of its shard count.

Source: docs/semantics/partitioner.md#padding
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, cast

from pyshardy.core.intern import register_cache
from pyshardy.ir.functions import functions
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import HOLD_OTHERWISE
from pyshardy.ir.walk import walk
from pyshardy.passes.base import Pass
from pyshardy.rules.ops import OPS
from pyshardy.rules.traits import PAD_IF_OPERANDS, PAD_LIKE_ANY, function_of_trait
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.padding.control import (
    check_agreement,
    check_operands,
    pad_computation_results,
    pad_signature,
)
from pyshardy.transforms.padding.padder import Padder


class PadForDivisibility(Pass):
    """Pad every tensor after its data so that all shards have the same size. Padding never affects results."""

    name = "sdy-pad-for-divisibility"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        padder = Padder(context)
        for function in functions(op):
            pad_signature(function, padder)
        for function in functions(op):
            for inner in walk(function):
                if inner is not function:
                    _pad(inner, padder)
        check_agreement(op, padder)


def _pad(op: Op, padder: Padder) -> None:
    """Pad the results of an op."""
    if op.name == "sdy.return":
        pad_computation_results(op, padder)
        return
    if padder.unpadded and is_converted(op.name):
        check_operands(op, padder)
    if not op.is_terminator and (op.name in ALWAYS or padder.concerns(op)):
        pad_handler_of(op.name)(op, padder)


PadHandler = Callable[[Op, Padder], None]

ALWAYS: Final = HOLD_OTHERWISE | {"stablehlo.pad"}
"""Ops to handle even if nothing around them is padded, because of their shardings or their padding value."""


def _entry_of(name: str) -> str:
    traits = OPS.get(name)
    if traits is not None and traits.pad is not None:
        return traits.pad
    return PAD_LIKE_ANY if name.startswith("stablehlo.") else PAD_IF_OPERANDS


def is_converted(name: str) -> bool:
    """Whether ops of a name are padded wherever their shardings need it, not only if their operands are padded.

    >>> [is_converted(name) for name in ("stablehlo.add", "sdy.all_slice", "func.call", "sdy.reshard", "chlo.erf")]
    [True, True, False, False, False]
    """
    return name.startswith("stablehlo.") or not _entry_of(name).startswith("control:")


@cache
def pad_handler_of(name: str) -> PadHandler:
    """The function that pads ops of a name.

    >>> names = ("stablehlo.slice", "stablehlo.add", "chlo.erf")
    >>> [pad_handler_of(name).__name__ for name in names]
    ['pad_slice', 'pad_any', 'pad_carried']
    """
    return cast(PadHandler, function_of_trait("pad", _entry_of(name)))


register_cache(pad_handler_of.cache_clear)
