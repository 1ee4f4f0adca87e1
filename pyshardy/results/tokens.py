"""How many tokens a run takes: the input whose numbers are looked up in a table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.functions import main_function
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.readers import Readers
from pyshardy.propagation.origins import CONSTRAINT

_SAME = frozenset((
    CONSTRAINT,
    *(f"stablehlo.{name}" for name in (
        "add", "broadcast_in_dim", "clamp", "compare", "concatenate", "convert", "dynamic_slice",
        "optimization_barrier", "reshape", "select", "slice", "transpose",
    )),
))  # fmt: skip
"""What may be done to numbers before they are looked up: as indices, or as rows that have a one at their place."""
_NUMBERS = re.compile(r"u?i(16|32|64)")
_GATHER, _PRODUCT = "stablehlo.gather", "stablehlo.dot_general"
_TABLE_RANK = 2


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a run.

    Attributes:
        name: The input that has them.
        shape: The sizes of its two dimensions: a batch of sequences.
    """

    name: str
    shape: tuple[int, int]

    @property
    def count(self) -> int:
        """Their number."""
        batch, length = self.shape
        return batch * length


def tokens_of(root: Op) -> Tokens | None:
    """The tokens of a program.

    They are the integers of an input of two dimensions that are looked up in a table of two dimensions.

    Args:
        root: The program as the user gave it.

    Returns:
        The tokens; None if no input is looked up so, or several are that have other sizes.
    """
    args = main_function(root).region.blocks[0].args
    given = [one for one in input_tensors(root) if len(one.shape) == 2 and _NUMBERS.fullmatch(one.element)]
    readers = Readers(root, _SAME)
    found = [
        one
        for one in given
        if -1 not in one.shape and any(_looks_up(op, value) for op, value in readers.of(args[one.index]))
    ]
    if len({one.shape for one in found}) != 1:
        return None
    batch, length = found[0].shape
    return Tokens(found[0].name, (batch, length))


def _looks_up(op: Op, value: Value) -> bool:
    """Whether an op looks numbers up in a table."""
    others = [other for other in op.operands if other is not value]
    if not others or len(others[0].type.shape or ()) != _TABLE_RANK:
        return False
    if op.name == _GATHER:
        return op.operands[1] is value
    return op.name == _PRODUCT and len(value.type.shape or ()) > _TABLE_RANK
