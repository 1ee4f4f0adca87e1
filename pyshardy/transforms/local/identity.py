"""Identity values of reductions."""

from __future__ import annotations

from pyshardy.core.identities import identity_text
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op, ValueType

COMBINERS = {ReductionKind.SUM: "add", ReductionKind.MAX: "maximum", ReductionKind.MIN: "minimum"}
"""The op of StableHLO for a kind of reduction."""


def reduction_identity(op: Op, kind: ReductionKind, type: ValueType) -> str:
    """The identity of a reduction; raises `PassError` at the op if its element type has none."""
    found = identity_text(COMBINERS[kind], type.element)
    if found is None:
        raise PassError(op, f"combines values by {kind.value}, which {type.element} does not support")
    return found
