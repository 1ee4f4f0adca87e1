"""Drops from the state of a loop what compilers drop: invariant, duplicate and unused values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyshardy.costing.flat import NEVER_TWICE, FlatBlock, FlatOp
from pyshardy.costing.program import CostBlock, CostOp

_DEPTH = 4
"""The number of ops that the comparison of two updates follows."""


def without_constant_state(op: CostOp, numbers: dict[int, int]) -> CostOp:
    """A loop without invariant values, and with one of several that are always equal.

    Args:
        op: The loop.
        numbers: The numbers of values outside; those of dropped values are added.
    """
    body = op.regions[1]
    dropped: dict[int, tuple[int, int, int, int]] = {}
    for place, (argument, result) in enumerate(zip(body.arguments, body.results)):
        if argument == result:
            number = numbers[op.operands[place]]
            dropped[place] = (number, number, number, number)
    twins = _twins(op, numbers, dropped)
    if not dropped and not twins:
        return op
    condition = op.regions[0]
    for place, known in dropped.items():
        for value in (condition.arguments[place], body.arguments[place], op.results[place]):
            numbers[value] = known[0]
    kept = [place for place in range(len(op.operands)) if place not in dropped and place not in twins]
    regions = tuple(
        _with_twins(region, {region.arguments[twin]: region.arguments[first] for twin, first in twins.items()})
        for region in op.regions
    )
    return op._replace(
        operands=_at(op.operands, kept),
        results=_at(op.results, kept),
        regions=(
            regions[0]._replace(arguments=_at(condition.arguments, kept)),
            regions[1]._replace(arguments=_at(body.arguments, kept), results=_at(body.results, kept)),
        ),
    )


def twin_results(op: CostOp, numbers: Mapping[int, int]) -> dict[int, int]:
    """The results of a loop that are always equal to earlier ones."""
    return {op.results[twin]: op.results[first] for twin, first in _twins(op, numbers, {}).items()}


def _twins(op: CostOp, numbers: Mapping[int, int], dropped: Mapping[int, object]) -> dict[int, int]:
    """The positions in the state with the same start and the same changes as an earlier position."""
    body = op.regions[1]
    makers = {value: one for one in body.ops for value in one.results if len(one.results) == 1}
    first: dict[tuple[int, str], list[int]] = {}
    found: dict[int, int] = {}
    for place, operand in enumerate(op.operands):
        if place in dropped:
            continue
        earlier = first.setdefault((numbers[operand], _maker_name(makers, body.results[place])), [])
        for other in earlier:
            same = {body.arguments[place]: body.arguments[other]}
            if _is_same(body.results[place], body.results[other], same, makers, _DEPTH):
                found[place] = other
                break
        else:
            earlier.append(place)
    return found


def _maker_name(makers: Mapping[int, CostOp], value: int) -> str:
    """The name of the op that computes a value; empty if no op of the block does."""
    return makers[value].kind.name if value in makers else ""


def _is_same(left: int, right: int, same: Mapping[int, int], makers: Mapping[int, CostOp], depth: int) -> bool:
    """Whether two values are equal, given that some others are."""
    if same.get(left, left) == right:
        return True
    one, other = makers.get(left), makers.get(right)
    if depth == 0 or one is None or other is None or one.kind is not other.kind or _is_special(one):
        return False
    return all(_is_same(a, b, same, makers, depth - 1) for a, b in zip(one.operands, other.operands))


def _is_special(op: CostOp) -> bool:
    return bool(op.regions) or op.traffic is not None or op.callee is not None or op.kind.name in NEVER_TWICE


def _with_twins(block: CostBlock, same: Mapping[int, int]) -> CostBlock:
    """A block with other values in place of some arguments."""
    if not same:
        return block

    def new(values: Sequence[int]) -> tuple[int, ...]:
        return tuple([same.get(value, value) for value in values])

    ops = tuple(
        op._replace(operands=new(op.operands), regions=tuple([_with_twins(one, same) for one in op.regions]))
        for op in block.ops
    )
    return CostBlock(block.arguments, ops, new(block.results))


def _at(values: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    return tuple([values[place] for place in places])


def without_dead_state(flat: FlatOp, used: set[int]) -> FlatOp:
    """A loop without the values that affect neither its condition nor a used result.

    Args:
        flat: The loop.
        used: The values that are used after it.
    """
    condition, body = flat.inner
    needed = {place for place, value in enumerate(flat.op.results) if value in used}
    asked = _needed(condition, condition.results)
    needed |= {place for place, value in enumerate(condition.arguments) if value in asked}
    while True:
        inside = _needed(body, [body.results[place] for place in sorted(needed)])
        found = needed | {place for place, value in enumerate(body.arguments) if value in inside}
        if found == needed:
            break
        needed = found
    if len(needed) == len(flat.op.operands):
        return flat
    kept = sorted(needed)
    return FlatOp(
        flat.op._replace(operands=_at(flat.op.operands, kept), results=_at(flat.op.results, kept)),
        (
            condition._replace(arguments=_at(condition.arguments, kept)),
            body._replace(arguments=_at(body.arguments, kept), results=_at(body.results, kept)),
        ),
    )


def _needed(block: FlatBlock, results: Sequence[int]) -> set[int]:
    """The values that results of a block depend on, and those that effects need."""
    found = set(results)
    for flat in reversed(block.ops):
        if found.intersection(flat.op.results) or has_effect(flat):
            found.update(flat.op.operands)
            for region in flat.inner:
                found |= _needed(region, region.results)
    return found


def has_effect(flat: FlatOp) -> bool:
    """Whether an op stays although nothing uses its results."""
    return (
        flat.op.kind.name in EFFECTS
        or flat.op.traffic is not None
        or any(has_effect(one) for region in flat.inner for one in region.ops)
    )


EFFECTS = frozenset(f"stablehlo.{name}" for name in ("custom_call", "send", "recv", "infeed", "outfeed"))
"""Ops that stay although nothing uses their results."""
