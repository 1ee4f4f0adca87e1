"""A program without calls, as plain data."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.costing.program import Op, Tensor
from pyshardy.rules.opspec import op_names

CONSTANTS = frozenset(("stablehlo.constant", "sdy.constant"))
NEVER_TWICE = frozenset(op_names("stablehlo.", "custom_call send recv infeed outfeed rng create_token after_all"))
"""Ops that are not taken for one another: they do something."""
BITCAST = "xla.bitcast"
"""A reshape that is kept as an op: it takes the memory of its operand, or becomes a part of a kernel."""


class FlatOp(NamedTuple):
    """An op with the blocks inside of it flattened too.

    Attributes:
        op: The op, with operands and results as they are numbered after flattening.
        inner: The blocks of its regions.
    """

    op: Op
    inner: tuple[FlatBlock, ...] = ()


class FlatBlock(NamedTuple):
    """A block without calls.

    Attributes:
        arguments: The values that it is given.
        ops: The ops.
        results: The values that it returns.
        outer: The values from around it that are used inside, in order of number.
    """

    arguments: tuple[int, ...]
    ops: tuple[FlatOp, ...]
    results: tuple[int, ...]
    outer: tuple[int, ...] = ()


class Flat(NamedTuple):
    """A program without calls.

    Attributes:
        tensors: The type of every value.
        body: What runs.
        uniform: The values that are one number everywhere, and cost nothing to make.
        constants: The values that are known before the program runs.
    """

    tensors: list[Tensor]
    body: FlatBlock
    uniform: frozenset[int]
    constants: frozenset[int]
