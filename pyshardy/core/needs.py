"""What a collective is for: the operand or result of an op that needs it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

RESHARD: Final = "reshard"
"""The name of a change of sharding."""
BORDERS: Final = "borders"
"""The name of the parts of shards that devices send because windows overlap them."""
REDUCTIONS: Final = {
    "add": "sum",
    "multiply": "product",
    "maximum": "max",
    "minimum": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
"""The name of a combination of values, by the StableHLO op that combines two of them."""
OTHER_REDUCTION: Final = "reduction"
"""The name of a combination by any other body."""
_WHAT = "|".join((RESHARD, BORDERS, *REDUCTIONS.values(), OTHER_REDUCTION))
_TEXT = re.compile(rf"({_WHAT}) of (operand|result)(?: (\d{{1,9}}))? of (the body of )?([^/]+)")


class Need(NamedTuple):
    """What a collective is for.

    Attributes:
        what: What is done: `RESHARD`, `BORDERS`, or a reduction in a word.
        op: The full name of the op that needs it.
        number: The number of its operand or result; None for the only result.
        is_result: Whether it is for a result.
        is_in_body: Whether it is for a result of the body of the op.

    >>> str(Need("reshard", "stablehlo.dot_general", 1))
    'reshard of operand 1 of stablehlo.dot_general'
    >>> Need.parse("sum of result of stablehlo.reduce")
    Need(what='sum', op='stablehlo.reduce', number=None, is_result=True, is_in_body=False)
    """

    what: str
    op: str
    number: int | None
    is_result: bool = False
    is_in_body: bool = False

    @classmethod
    def of_result(cls, what: str, op: str, number: int, count: int) -> Need:
        """The need of one of `count` results."""
        return cls(what, op, number if count > 1 else None, is_result=True)

    @classmethod
    def parse(cls, text: str) -> Need | None:
        """The need that a name in a location states; None if it states none."""
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        what, side, number, body, op = match.groups()
        return cls(what, op, None if number is None else int(number), side == "result", body is not None)

    def __str__(self) -> str:
        side = "result" if self.is_result else "operand"
        number = "" if self.number is None else f" {self.number}"
        return f"{self.what} of {side}{number} of {'the body of ' * self.is_in_body}{self.op}"
