"""Reads from the body of an op how it combines values."""

from __future__ import annotations

from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op, Region, Value
from pyshardy.rules.properties import PROGRAM_CONSTANTS

_KINDS = {
    "stablehlo.add": ReductionKind.SUM,
    "stablehlo.maximum": ReductionKind.MAX,
    "stablehlo.minimum": ReductionKind.MIN,
}

_ONCE = frozenset(("add", "multiply", "xor"))
"""Ops for which the number of times that the initial value is combined matters."""


def body_kind(op: Op) -> ReductionKind | None:
    """How the body of an op combines values; None unless it combines all returned values in one known way."""
    terminator = op.regions[0].blocks[0].terminator
    if terminator.name != "stablehlo.return":
        return None
    kinds = {_kind_of(value) for value in terminator.operands}
    return kinds.pop() if len(kinds) == 1 else None


def plain_kind(op: Op) -> ReductionKind | None:
    """As `body_kind`, but None if the body of the reduction does anything else."""
    return None if combiners(op) is None else body_kind(op)


def _kind_of(value: Value) -> ReductionKind | None:
    op = value.defining_op
    return None if op is None else _KINDS.get(op.name)


def combiners(op: Op) -> tuple[str, ...] | None:
    """Per result of a reduction, the op that combines the old and the new value; None if the body does anything else.

    The names come without the dialect.
    """
    return combiners_of(op.regions[0])


def combiners_of(region: Region) -> tuple[str, ...] | None:
    """The same for a body."""
    block = region.blocks[0]
    returned = block.terminator.operands
    count = len(returned)
    if len(block.args) != 2 * count:
        return None
    found = []
    for index, value in enumerate(returned):
        combined = value.defining_op
        if combined is None or len(combined.operands) != 2:
            return None
        if set(combined.operands) != {block.args[index], block.args[index + count]}:
            return None
        dialect, _, name = combined.name.partition(".")
        if dialect != "stablehlo":
            return None
        found.append(name)
    return tuple(found)


def neutral_text(name: str | None, initial: Value, attrs: AttrTable, only_counted: bool = True) -> str | None:
    """The identity to start from instead of an initial value that is not the identity.

    Args:
        name: The op that combines values; None if it is unknown.
        initial: The initial value.
        attrs: The attributes of the context.
        only_counted: Whether to replace only initial values for which the number of times they are combined matters.

    Returns:
        None if the initial value is the identity, or the identity is unknown.
    """
    if name is None or (only_counted and name not in _ONCE):
        return None
    from pyshardy.core.identities import identity_text  # few programs have such reductions

    text = identity_text(name, initial.type.element)
    return None if text is None or _is_constant(initial, text, attrs) else text


def _is_constant(value: Value, text: str, attrs: AttrTable) -> bool:
    """Whether a value is a constant with only the given element; minus zero counts as zero."""
    op = value.defining_op
    if op is None or op.name not in PROGRAM_CONSTANTS:
        return False
    texts = (text, f"-{text}") if text == "0.0" else (text,)
    return any(op.attrs["value"] == attrs.parse(f"dense<{one}> : {value.type}") for one in texts)
