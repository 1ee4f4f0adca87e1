"""`sdy-pad-for-divisibility`: pads every dimension to a multiple of its shard count.

Source: docs/semantics/partitioner.md#padding
"""

from __future__ import annotations

from pyshardy.ir.functions import functions
from pyshardy.ir.op import Op
from pyshardy.ir.walk import walk
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.padding.control import (
    check_agreement,
    check_operands,
    pad_computation_results,
    pad_signature,
)
from pyshardy.transforms.padding.padder import Padder
from pyshardy.transforms.padding.table import ALWAYS, handler_of, is_converted


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
        handler_of(op.name)(op, padder)
