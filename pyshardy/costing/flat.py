"""A program without calls, as plain data."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.costing.program import CostOp, CostTensor
from pyshardy.rules.opspec import op_names

NEVER_TWICE = frozenset(op_names("stablehlo.", "custom_call send recv infeed outfeed rng create_token after_all"))
"""Ops with effects: two equal ones are not merged."""
BITCAST = "xla.bitcast"
"""A reshape that is kept as an op: it reuses the memory of its operand, or becomes part of a kernel."""
KEPT_COPY = "xla.copy"
"""A copy that is a kernel of its own."""

BARRIER = "stablehlo.optimization_barrier"
"""An op whose results equal its operands; what reads them runs after all its operands are computed."""


class FlatOp(NamedTuple):
    """An op with its inner blocks flattened too.

    Attributes:
        op: The op; its operands and results have the numbers after flattening.
        inner: The blocks of its regions.
    """

    op: CostOp
    inner: tuple[FlatBlock, ...] = ()


class FlatBlock(NamedTuple):
    """A block without calls.

    Attributes:
        arguments: The arguments of the block.
        ops: The ops.
        results: The values that the block returns.
        outer: The values from outside that the block uses, in order of number.
    """

    arguments: tuple[int, ...]
    ops: tuple[FlatOp, ...]
    results: tuple[int, ...]
    outer: tuple[int, ...] = ()


class Flat(NamedTuple):
    """A program without calls.

    Attributes:
        tensors: The type of every value.
        body: The block that runs.
        uniform: The values with one number in all elements, which cost nothing to make.
        constants: The values that are known before the program runs.
    """

    tensors: list[CostTensor]
    body: FlatBlock
    uniform: frozenset[int]
    constants: frozenset[int]
