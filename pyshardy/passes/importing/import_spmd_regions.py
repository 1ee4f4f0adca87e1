"""`pyshardy-import-spmd-regions`: turns the ops between GSPMD's changes of shape into manual computations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.hlo_attributes import (
    CONSTRAINT_TARGET,
    FULL_TO_SHARD,
    SHARD_TO_FULL,
    custom_calls,
    defining_call,
    target_of,
)
from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.purity import is_pure
from pyshardy.passes.base import Pass
from pyshardy.passes.importing.import_manual_computations import erase_entry, global_operand, manual_axes
from pyshardy.transforms.context import PassContext

_OF_DEVICE = ("stablehlo.partition_id", "stablehlo.replica_id")


class ImportSpmdRegions(Pass):
    """Put ops between `@SPMDFullToShardShape` and `@SPMDShardToFullShape` into manual computations.

    Connected ops that local tensors flow through form one computation; constants go with their users.
    """

    name = "pyshardy-import-spmd-regions"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        entries = custom_calls(op, FULL_TO_SHARD)
        for block in dict.fromkeys(entry.block for entry in entries):
            assert block is not None
            for region in _regions(block, [entry for entry in entries if entry.block is block]):
                _enclose(region)
        for left in custom_calls(op, SHARD_TO_FULL):
            _enclose(_without_entries(left))


@dataclass(slots=True)
class _Region:
    """Ops on local tensors that form one computation, each list in program order."""

    entries: list[Op] = field(default_factory=list)
    inner: list[Op] = field(default_factory=list)
    exits: list[Op] = field(default_factory=list)

    def ops(self) -> list[Op]:
        return [*self.entries, *self.inner, *self.exits]


def _regions(block: Block, entries: list[Op]) -> list[_Region]:
    """The regions in a block, in the order of their first entries."""
    owner: dict[Op, Op] = {}
    for entry in entries:
        _reach(entry, block, owner)
    found: dict[Op, _Region] = {}
    for op in block:
        if op not in owner:
            continue
        region = found.setdefault(_root(owner, op), _Region())
        target = target_of(op)
        kind = region.entries if target == FULL_TO_SHARD else region.exits if target == SHARD_TO_FULL else region.inner
        kind.append(op)
    return list(found.values())


def _without_entries(end: Op) -> _Region:
    """The region of a local tensor that depends on no entry: all ops that only this tensor needs."""
    found: dict[Op, None] = {}
    pending = [end]
    while pending:
        op = pending.pop()
        for value in _used(op):
            maker = value.defining_op
            if maker is None or maker.block is not end.block:
                raise PassError(end, f"takes a tensor that came through no @{FULL_TO_SHARD}")
            if maker not in found and all(user is op or user in found for user in maker.results[value.index].users()):
                found[maker] = None
                pending.append(maker)
    return _Region(inner=sorted(found, key=_place), exits=[end])


def _reach(entry: Op, block: Block, owner: dict[Op, Op]) -> None:
    """Record that all ops that a local tensor flows through belong to its entry's region."""
    owner[entry] = entry
    pending = [entry]
    while pending:
        op = pending.pop()
        for user in dict.fromkeys(user for result in op.results for user in result.users()):
            top = _in_block(user, block)
            if top.is_terminator:
                raise PassError(entry, f"makes a local tensor that leaves its block without a @{SHARD_TO_FULL}")
            if top in owner:
                owner[_root(owner, top)] = _root(owner, entry)
                continue
            owner[top] = entry
            if target_of(top) != SHARD_TO_FULL:
                pending.append(top)


def _root(owner: dict[Op, Op], op: Op) -> Op:
    while owner[op] is not op:
        op = owner[op]
    return op


def _in_block(op: Op, block: Block) -> Op:
    """The op of a block that is, or contains, an inner op."""
    while op.block is not block:
        parent = op.parent_op
        assert parent is not None
        op = parent
    return op


def _enclose(region: _Region) -> None:
    """Put a region into a manual computation, at the position of its last op."""
    last = max(region.ops(), key=_place)
    later = _dependents(region, last)
    inputs = [global_operand(entry, 0) for entry in region.entries]
    computation = Op(
        "sdy.manual_computation",
        [value for value, _ in inputs],
        [end.result.type for end in region.exits],
        {
            "in_shardings": tuple(sharding for _, sharding in inputs),
            "out_shardings": tuple(_out_sharding(end) for end in region.exits),
            "manual_axes": _manual_axes(region),
        },
        region_count=1,
        location=region.ops()[0].place,
    ).insert_after(last)
    anchor = computation
    for op in later:
        anchor = op.detach().insert_after(anchor)
    _fill(computation.region.add_block(), region)
    for end, result in zip(region.exits, computation.results):
        end.result.replace_uses(result)
        end.erase()
    for entry in region.entries:
        erase_entry(entry)


def _manual_axes(region: _Region) -> tuple[str, ...]:
    """The axes that are manual inside a region but not around it."""
    if region.entries:
        inside: Op | None = region.entries[0]
        outside = defining_call(region.entries[0].operands[0], CONSTRAINT_TARGET)
    else:
        outside = region.exits[0]
        inside = defining_call(outside.operands[0], CONSTRAINT_TARGET)
    around = manual_axes(outside)
    return tuple(name for name in manual_axes(inside) if name not in around)


def _place(op: Op) -> int:
    assert op.block is not None
    if not op.block._ordered:
        op.block._number()
    return op.order


def _dependents(region: _Region, last: Op) -> list[Op]:
    """The ops before `last` that need a result of the region; they must move after the computation."""
    members, found, block = set(region.ops()), dict[Op, None](), last.block
    assert block is not None
    for op in block:
        if op is last.next:
            break
        for value in _used(op):
            maker = value.defining_op
            if maker in found or (maker is not None and maker in region.exits):
                if op in members:
                    raise PassError(op, "depends on a result of its own manual computation through ops outside it")
                found[op] = None
    return list(found)


def _used(op: Op) -> Iterator[Value]:
    """The values that an op and all ops inside it use."""
    for inner in ops_in(op):
        yield from inner.operands


def _out_sharding(end: Op) -> object:
    shardings = end.attrs.get(SHARDING)
    if not shardings:
        raise PassError(end, "lacks the sharding of the tensor that it makes")
    return shardings[0]


def _fill(body: Block, region: _Region) -> None:
    """Move the ops of a region into the body of its computation."""
    outer = region.ops()[0].block
    assert outer is not None
    for entry in region.entries:
        entry.result.replace_uses(body.add_arg(entry.result.type, entry.place))
    for op in region.inner:
        body.append(op.detach())
    body.append(Op("sdy.return", [end.operands[0] for end in region.exits], location=region.ops()[-1].place))
    copies: dict[Value, Value] = {}
    front: Op | None = None
    for op in [*body]:
        for inner in ops_in(op):
            for index, value in enumerate(inner.operands):
                if not _is_outside(value, outer):
                    continue
                for copy in _copy_in(value, copies, inner):
                    front = body.prepend(copy) if front is None else copy.insert_after(front)
                inner.set_operand(index, copies[value])


def _is_outside(value: Value, outer: Block) -> bool:
    """Whether a value is defined in a block or around it."""
    block: Block | None = value.block
    around: Block | None = outer
    while around is not None:
        if block is around:
            return True
        parent = around.region.op if around.region is not None else None
        around = parent.block if parent is not None else None
    return False


def _copy_in(value: Value, copies: dict[Value, Value], user: Op) -> Iterable[Op]:
    """Copies of the op that makes a value and of all that it depends on; nothing if that uses a global value."""
    if value in copies:
        return []
    maker = value.defining_op
    if maker is None or maker.regions or not (is_pure(maker) or maker.name in _OF_DEVICE):
        raise PassError(user, f"is local and uses a global tensor that came through no @{FULL_TO_SHARD}")
    made = [copy for operand in maker.operands for copy in _copy_in(operand, copies, user)]
    return [*made, maker.clone(copies)]
