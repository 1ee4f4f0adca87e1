"""`sdy-pad-for-divisibility`: every dimension becomes divisible by its shards (partitioner spec, section 5)."""

from __future__ import annotations

from pyshardy.ir.functions import functions
from pyshardy.ir.nodes import Op, walk
from pyshardy.passes.base import Pass, PassContext
from pyshardy.passes.partitioning.padding.control import check_agreement, pad_signature
from pyshardy.passes.partitioning.padding.padder import Padder
from pyshardy.passes.partitioning.padding.table import ALWAYS, handler_of


class PadForDivisibility(Pass):
    """Pad every tensor behind its data so that all its shards have one size; padding never gets into a result."""

    name = "sdy-pad-for-divisibility"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        padder = Padder(context)
        for function in functions(op):
            pad_signature(function, padder)
        for function in functions(op):
            for inner in walk(function):
                if inner is function or inner.is_terminator:
                    continue
                if inner.name in ALWAYS or padder.concerns(inner):
                    handler_of(inner.name)(inner, padder)
        check_agreement(op, padder)
