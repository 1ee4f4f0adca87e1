"""One value of a propagated program, as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import PartitionSpec
from pyshardy.report.specs import format_sharding, sharding_to_json
from pyshardy.source.places import SourcePlace, user_place

INPUT, OUTPUT, OP = "input", "output", "op"

_OUTER = re.compile(r"(?:jit|pjit)\([^()]*\)/")


@dataclass(frozen=True, slots=True)
class Frame:
    """A call that led to an op.

    Attributes:
        function: The Python function; empty if unknown.
        place: File, line and column.
    """

    function: str
    place: SourcePlace


@dataclass(frozen=True, slots=True)
class ValueRow:
    """One value of a program.

    Attributes:
        name: The name of an input or output. For other values, the scopes and name that JAX gave the op, such as
            "attention/dot_general", or the op.
        kind: "input", "output" or "op".
        op: The op that computes it, such as "stablehlo.dot_general"; None for an input.
        frames: The calls that led to the op, innermost first.
        shape: Its global shape.
        dtype: Element type, such as "f32".
        sharding: Its sharding; None if it has none.
        local_shape: The shape of a shard.
        bytes_total: The bytes of the global tensor.
        bytes_per_device: The bytes of a shard.
        is_given: Whether the user annotated this value itself.
        origins: The other annotations that its axes come from: names of inputs and outputs, lines of constraints.
    """

    name: str
    kind: str
    op: str | None
    frames: tuple[Frame, ...]
    shape: tuple[int, ...]
    dtype: str
    sharding: TensorSharding | None
    local_shape: tuple[int, ...]
    bytes_total: int
    bytes_per_device: int
    is_given: bool
    origins: tuple[str, ...] = ()

    @property
    def spec(self) -> PartitionSpec | None:
        """The sharding as a `pyshardy.PartitionSpec`; None if there is none."""
        return None if self.sharding is None else PartitionSpec.of(self.sharding)

    @property
    def is_split(self) -> bool:
        """Whether any dimension is sharded."""
        return self.sharding is not None and not self.sharding.is_fully_replicated

    @property
    def is_inferred(self) -> bool:
        """Whether propagation gave the sharding."""
        return self.is_split and not self.is_given

    @property
    def given_by(self) -> str:
        """The origin of the sharding: "user", "propagation", or none."""
        if self.is_inferred:
            return "propagation"
        return "user" if self.sharding is not None and (self.is_split or self.sharding.unreduced) else ""

    @property
    def place(self) -> SourcePlace | None:
        """File, line and column in the user's own code; in a library if there is none."""
        return user_place([frame.place for frame in self.frames])

    def __str__(self) -> str:
        shape = f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {shape} {format_sharding(self.sharding)}"

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        place = self.place
        return {
            "name": self.name,
            "kind": self.kind,
            "op": self.op,
            "source": None if place is None else {"file": place[0], "line": place[1], "column": place[2]},
            "shape": list(self.shape),
            "dtype": self.dtype,
            **sharding_to_json(self.sharding),
            "local_shape": list(self.local_shape),
            "bytes_total": self.bytes_total,
            "bytes_per_device": self.bytes_per_device,
            "given_by": self.given_by or None,
            "origins": list(self.origins),
        }


def short_scope(scope: str | None) -> str | None:
    """The name of an op without the jitted functions around all ops.

    >>> short_scope("jit(step)/jit(main)/attention/dot_general")
    'attention/dot_general'
    """
    found = _OUTER.match(scope or "")
    while scope and found:
        scope = scope[found.end() :]
        found = _OUTER.match(scope)
    return scope or None
