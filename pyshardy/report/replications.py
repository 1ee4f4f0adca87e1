"""Tensors that a compiler replicates because it cannot go from one sharding to another, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes, format_shape
from pyshardy.report.specs import format_sharding, sharding_to_json
from pyshardy.source.places import SourcePlace, format_place


@dataclass(frozen=True, slots=True)
class Replication:
    """A tensor that a compiler gathers whole on every device, and slices then.

    XLA warns of it as "Involuntary full rematerialization".

    Attributes:
        op: The name of the op that makes it, as JAX gave it, such as "jit(step)/mul", or the name of an input; None if
            unknown.
        place: The line of the user's program; None for an input, or if unknown.
        dtype: Element type.
        shape: Global shape.
        before: The sharding that it has; None if it cannot be expressed along mesh axes.
        after: The sharding that it gets.
        bytes: The bytes of the whole tensor, on every device.
        instruction: The name of the HLO instruction.
    """

    op: str | None
    place: SourcePlace | None
    dtype: str
    shape: tuple[int, ...]
    before: TensorSharding | None
    after: TensorSharding | None
    bytes: int
    instruction: str

    @property
    def name(self) -> str:
        """The tensor in words: the op that makes it and its line, or the input."""
        if self.op is None:
            return f"`{self.instruction}` of HLO"
        if self.place is None:
            return f"the input `{self.op}`"
        return f"the result of `{self.op.rpartition('/')[2]}` at {format_place(self.place)}"

    def __str__(self) -> str:
        shape = format_shape(self.shape, self.dtype)
        before, after = (format_sharding(one) if one is not None else "?" for one in (self.before, self.after))
        return (
            f"{self.name}, {shape}, is gathered whole on every device, {format_bytes(self.bytes)}: "
            f"the compiler cannot go from {before} to {after} step by step"
        )

    def to_json(self) -> dict[str, Any]:
        """The replication as JSON-ready data."""
        return {
            "op": self.op,
            "file": self.place and self.place[0],
            "line": self.place and self.place[1],
            "dtype": self.dtype,
            "shape": list(self.shape),
            "before": sharding_to_json(self.before),
            "after": sharding_to_json(self.after),
            "bytes": self.bytes,
            "instruction": self.instruction,
        }


def replications_line(found: Sequence[Replication]) -> str:
    """One line on replications: their number, their bytes, and what explains them; empty if there are none."""
    if not found:
        return ""
    count = len(found)
    total = format_bytes(sum(one.bytes for one in found))
    what = "1 tensor is" if count == 1 else f"{count} tensors are"
    return f"{what} gathered whole on every device, {total} in all: pyshardy explain --collectives says why"
