"""Moves loop invariants before the loop, as XLA does.

An op that only moves data, such as a slice, is moved only if an op that computes with its result is moved too.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyshardy.costing.flat import BITCAST, NEVER_TWICE, FlatBlock, FlatOp
from pyshardy.costing.flatten import renumbered_op, without_dead
from pyshardy.costing.program import CostKind
from pyshardy.rules.opspec import op_names
from pyshardy.rules.properties import PROGRAM_CONSTANTS

_ONLY_WITH_USERS = PROGRAM_CONSTANTS | frozenset(
    (BITCAST, *op_names("stablehlo.", "bitcast_convert broadcast_in_dim iota reshape reverse slice transpose"))
)
"""Ops whose results are not worth keeping in memory through a loop."""
_STAYING = NEVER_TWICE | frozenset(op_names("stablehlo.", "partition_id replica_id"))
"""Ops that never move."""


def hoisted(block: FlatBlock, everywhere: frozenset[int]) -> FlatBlock:
    """The block with all invariants of its loops moved before them.

    Args:
        block: The block.
        everywhere: The values that each block computes for itself.
    """
    return without_dead(_hoisted(block, everywhere))


def _hoisted(block: FlatBlock, everywhere: frozenset[int]) -> FlatBlock:
    return without_twins(_with_hoisted(block, everywhere))


def without_twins(block: FlatBlock) -> FlatBlock:
    """A block with equal invariants of two loops merged."""
    first: dict[tuple[CostKind, tuple[int, ...]], tuple[int, ...]] = {}
    same: dict[int, int] = {}
    ops = []
    for flat in block.ops:
        flat = renumbered_op(flat, same) if same else flat
        op = flat.op
        if flat.inner or op.traffic is not None or not op.operands or op.kind.name in NEVER_TWICE:
            ops.append(flat)
            continue
        twin = first.setdefault((op.kind, op.operands), op.results)
        if twin is op.results:
            ops.append(flat)
        else:
            same.update(zip(op.results, twin))
    return block._replace(ops=tuple(ops), results=tuple([same.get(value, value) for value in block.results]))


def _with_hoisted(block: FlatBlock, everywhere: frozenset[int]) -> FlatBlock:
    ops: list[FlatOp] = []
    for flat in block.ops:
        inner = tuple([_hoisted(region, everywhere) for region in flat.inner])
        if flat.op.is_loop:
            before, body = _without_invariant(inner[1], everywhere)
            ops += before
            inner = (inner[0], body)
        ops.append(FlatOp(flat.op, inner))
    return block._replace(ops=tuple(ops))


def _without_invariant(body: FlatBlock, everywhere: frozenset[int]) -> tuple[list[FlatOp], FlatBlock]:
    """The ops that move before a loop, and the remaining body."""
    changing = set(body.arguments)
    invariant: list[FlatOp] = []
    for flat in body.ops:
        is_same = changing.isdisjoint(flat.op.operands) and not flat.inner and flat.op.kind.name not in _STAYING
        if is_same:
            invariant.append(flat)
        else:
            changing.update(flat.op.results)
    taken = _worth_hoisting(invariant, everywhere)
    left = tuple([flat for flat in body.ops if flat.op.results[:1] == () or flat.op.results[0] not in taken])
    return [flat for flat in invariant if flat.op.results[0] in taken], body._replace(ops=left)


def _worth_hoisting(ops: Iterable[FlatOp], everywhere: frozenset[int]) -> set[int]:
    """The first results of the ops that move: those that compute, and those that they read."""
    taken: set[int] = set()
    needed: set[int] = set()
    for flat in reversed([*ops]):
        is_alone = flat.op.kind.name not in _ONLY_WITH_USERS and everywhere.isdisjoint(flat.op.results)
        if flat.op.results and (is_alone or needed.intersection(flat.op.results)):
            taken.add(flat.op.results[0])
            needed.update(flat.op.operands)
    return taken
