"""`pyshardy-inline-and-order`: inlines calls, and puts ops into the order in which XLA lists them."""

from __future__ import annotations

from pyshardy.ir.blocks import Block, Region, Value
from pyshardy.ir.captured import add_captured, drop_captured
from pyshardy.ir.functions import CALL, SHARDING, functions, is_declaration, main_function
from pyshardy.ir.op import TERMINATORS, Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbol_paths import symbols_in
from pyshardy.ir.symbols import SymbolTable, calls_in_post_order, post_order
from pyshardy.passes.base import Pass
from pyshardy.rules.properties import CONTROL_FLOW
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.xla.forgotten_lines import LineRecaller, has_forgotten
from pyshardy.transforms.xla.layouts import has_default_layout
from pyshardy.transforms.xla.loops import without_invariants
from pyshardy.transforms.xla.simplifier import is_dropped, remove_dead

_COMPOSITE = "stablehlo.composite"
_RESULTS = "pyshardy.results"
"""Stands for a call with several results while ops are ordered; in HLO these form a tuple."""
_UNSEEN, _SEEN = -2, -1
"""The state of an op that has no place in the list yet: it was not met so far, or its operands are listed next."""


class InlineAndOrder(Pass):
    """Inline calls, and put the ops of every computation into post-order."""

    name = "pyshardy-inline-and-order"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for composite in ops_named(op, (_COMPOSITE,)):
            composite.rename(CALL)
            composite.replace_attrs({"callee": symbols_in(composite.attrs["decomposition"])[0][-1]})
        for found in ops_named(op, CONTROL_FLOW, post_order=True):
            add_captured(found)
        inliner = _Inliner(op)
        for function in post_order(op):
            inliner.inline_into(function)
            if inliner.has_order(function.region):
                _order(function.region.block, not inliner.calls, _has_result_sharding(function))
        main = main_function(op)
        for function in functions(op):
            if function is not main and function.attrs["sym_name"] in inliner.calls:
                function.erase()
            elif not is_declaration(function):
                for block in function.region.blocks:
                    if inliner.has_tuples:
                        _forward_results(block)
                    _clean(block)
                link_uses(function)


class _Inliner:
    """Inlines calls.

    Args:
        root: The module.

    Raises:
        PassError: A function calls itself, or calls are nested too deeply.

    Attributes:
        calls: The names of the functions whose calls are inlined.
        has_tuples: Whether a call with several results has been inlined.
    """

    def __init__(self, root: Op) -> None:
        self.symbols = SymbolTable(root)
        self._has_order: dict[Region, bool] = {}
        self._forgot_lines: dict[Op, bool] = {}
        self._lines = LineRecaller()
        calls = calls_in_post_order(root)
        kept = {call.attrs["callee"] for call in calls if not self._is_inlined(call)}
        self.calls = {call.attrs["callee"] for call in calls} - kept
        self.has_tuples = False

    def has_order(self, region: Region) -> bool:
        """Whether a region is one computation: a single block with a known terminator."""
        found = self._has_order.get(region)
        if found is None:
            last = region.blocks[0].last if len(region.blocks) == 1 else None
            found = self._has_order[region] = last is not None and last.name in TERMINATORS
        return found

    def _is_inlined(self, call: Op) -> bool:
        callee = self.symbols.callee(call)
        assert call.block is not None and call.block.region is not None
        return not is_declaration(callee) and self.has_order(callee.region) and self.has_order(call.block.region)

    def inline_into(self, function: Op) -> None:
        """Inline the calls in a function."""
        for call in ops_named(function, (CALL,)):
            if self._is_inlined(call):
                callee = self.symbols.callee(call)
                if callee not in self._forgot_lines:
                    self._forgot_lines[callee] = has_forgotten(callee)
                self.has_tuples |= len(call.results) > 1
                _inline(call, callee, self._lines if self._forgot_lines[callee] else None)


def _inline(call: Op, callee: Op, lines: LineRecaller | None) -> None:
    """Replace a call by a copy of the callee's body at the end of the block, as in HLO; recall lines if needed."""
    body, block = callee.region.block, call.block
    assert block is not None
    mapping: dict[Value, Value] = dict(zip(body.args, call.operands))
    returned: tuple[Value, ...] = ()
    for op in body:
        if op is body.last:
            returned = tuple(mapping.get(value, value) for value in op.operands)
        else:
            copy = block.append(op.clone(mapping))
            if lines is not None:
                lines.recall(copy, call)
    if len(returned) > 1:
        held = Op(_RESULTS, returned, [value.type for value in returned], None, 0, call.place).insert_before(call)
        returned = held.results
    for result, value in zip(call.results, returned):
        result.replace_uses(value)
    call.erase()


# Order


def _has_result_sharding(function: Op) -> bool:
    return any(SHARDING in attrs for attrs in function.attrs.get("res_attrs") or ())


def _order(block: Block, are_dead_roots: bool, are_reshaped: bool = False) -> None:
    """Put the ops of a block, and of the regions in it, in post-order.

    Args:
        block: The block.
        are_dead_roots: Whether HLO still has an op for every element of a tuple, even if unused. Where XLA inlines a
            call, it removes dead ops.
        are_reshaped: Whether HLO has a reshape of every result, as it does if one of them is sharded. The reshapes are
            dead, except for results with an unusual memory layout.
    """
    if not are_dead_roots:
        remove_dead(block)
    count = 0
    found: list[Op] = []
    for op in block:
        count += 1  # noqa: SIM113 (faster than enumerate)
        op.order = _UNSEEN
        for region in op.regions:
            if len(region.blocks) == 1 and any(inner.name in TERMINATORS for inner in region.block):
                _order(region.block, are_dead_roots)
    last = block.last
    assert last is not None
    owners = [value.defining_op for value in last.operands]
    returned = [owner if owner is not None and owner.block is block else None for owner in owners]
    only = returned[0] if len(returned) == 1 else None
    if only is not None and _is_constant(only):
        _visit(only, block, found)
    for op in block:
        if op is last and are_dead_roots and are_reshaped and only is None:
            for value, owner in zip(last.operands, returned):
                if owner is not None and has_default_layout(value):
                    _visit(owner, block, found)
        is_root = not op.has_uses() or (op is only and _is_only_returned(op))
        if is_root or (are_dead_roots and _has_dead_result(op)):
            _visit(op, block, found)
    assert len(found) == count
    _relink(block, found)


def _is_constant(op: Op) -> bool:
    """Whether an op is a constant or a broadcast constant; XLA lists these first."""
    source = op.operands[0].defining_op if op.name == "stablehlo.broadcast_in_dim" else op
    return source is not None and source.name == "stablehlo.constant"


def _is_only_returned(op: Op) -> bool:
    return all(user.name in TERMINATORS for result in op.results for user, _ in result.uses)


def _has_dead_result(op: Op) -> bool:
    results = op.results
    return len(results) > 1 and not all(result.flat_uses for result in results)


def _visit(root: Op, block: Block, found: list[Op]) -> None:
    """List an op after everything that it uses, in operand order; the order of a listed op is its place in the list."""
    stack: list[Op] = [root]
    while stack:
        op = stack[-1]
        if op.order == _UNSEEN:
            op.order = _SEEN
            for value in reversed(op.operands):
                if isinstance(value.owner, Op):
                    other = value.owner
                    if other.block is block and other.order == _UNSEEN:
                        stack.append(other)
            continue
        stack.pop()
        if op.order == _SEEN:
            op.order = len(found)
            found.append(op)


def _relink(block: Block, ops: list[Op]) -> None:
    if ops[-1].name not in TERMINATORS:
        terminator = next(op for op in ops if op.name in TERMINATORS)
        ops.remove(terminator)
        ops.append(terminator)
    block.reorder(ops)


# Cleaning up


def _forward_results(block: Block) -> None:
    """Replace the op that stands for a call's tuple by the values that the call returned."""
    op = block.last
    while op is not None:
        before = op.prev
        for region in op.regions:
            for inner in region.blocks:
                _forward_results(inner)
        if op.name == _RESULTS:
            for result, value in zip(op.results, op.operands):
                result.replace_uses(value)
            op.erase()
        op = before


def _clean(block: Block) -> None:
    """Remove dead ops, and loop values that never change, after inlining."""
    op = block.last
    while op is not None:
        before = op.prev
        if op.regions:
            _clean_holder(op)
        elif is_dropped(op):
            op.erase()
        op = before


def _clean_holder(op: Op) -> None:
    for region in op.regions:
        for block in region.blocks:
            _clean(block)
    if op.name in CONTROL_FLOW:
        drop_captured(op)
    made = without_invariants(op) if op.name == "stablehlo.while" else None
    if is_dropped(made or op):
        (made or op).erase()
    elif made is not None:
        _clean_holder(made)


def link_uses(holder: Op) -> None:
    """Sort the uses of every value by the order of the ops, as if the program had just been read."""
    for region in holder.regions:
        for block in region.blocks:
            for arg in block.args:
                arg.flat_uses = ()
            op = block.first
            while op is not None:
                for result in op.results:
                    result.flat_uses = ()
                op = op.next
    for region in holder.regions:
        for block in region.blocks:
            op = block.first
            while op is not None:
                index = 0
                for value in op.operands:
                    value.add_use(op, index)
                    index += 1  # noqa: SIM113 (faster than enumerate)
                if op.regions:
                    link_uses(op)
                op = op.next
