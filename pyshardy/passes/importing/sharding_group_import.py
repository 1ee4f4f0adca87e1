"""`sdy-sharding-group-import`: checks, merges and numbers sharding groups.

Source: docs/semantics/import.md#sdy-sharding-group-import
"""

from __future__ import annotations

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import calls
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.numbering import GROUP
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbols import pre_order
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_MANUAL = "sdy.manual_computation"


class ShardingGroupImport(Pass):
    """Merge groups that share a value, number them from 0, and keep one op per value and group."""

    name = "sdy-sharding-group-import"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        groups = ops_named(op, (GROUP,), post_order=True)
        if groups:
            _check(groups, op)
            _merge(groups)


def _check(groups: list[Op], root: Op) -> None:
    """Refuse groups whose members have different shapes or lie in different manual computations."""
    around_function = _computations_around_functions(root)
    first: dict[int, tuple[Op | None, Op]] = {}
    for op in groups:
        group_id = op.attrs["group_id"]
        computation = _computation_around(op, around_function)
        first_computation, first_op = first.setdefault(group_id, (computation, op))
        notes = [(first_op, "first member of the group")]
        if computation is not first_computation:
            raise PassError(
                op, f"puts values of different manual computations into the sharding group {group_id}", notes
            )
        if op.operands[0].type.shape != first_op.operands[0].type.shape:
            raise PassError(op, f"puts values of different shapes into the sharding group {group_id}", notes)


def _computations_around_functions(root: Op) -> dict[str, Op | None]:
    """Per called function, the manual computation around its deciding call, if any."""
    found: dict[str, Op | None] = {}
    for function in pre_order(root):
        around = found.get(function.attrs["sym_name"])
        for call in calls(function):
            found[call.attrs["callee"]] = call.enclosing(_MANUAL) or around
    return found


def _computation_around(op: Op, around_function: dict[str, Op | None]) -> Op | None:
    computation = op.enclosing(_MANUAL)
    if computation is not None:
        return computation
    function = op.enclosing("func.func")
    return None if function is None else around_function.get(function.attrs["sym_name"])


def _merge(groups: list[Op]) -> None:
    members: dict[Value, list[Op]] = {}
    for op in groups:
        members.setdefault(op.operands[0], []).append(op)
    numbers = _number([[op.attrs["group_id"] for op in ops] for ops in members.values()])
    for ops in members.values():
        for op in ops[1:]:
            op.erase()
        ops[0].set_attr("group_id", numbers[ops[0].attrs["group_id"]])


def _number(ids_per_value: list[list[int]]) -> dict[int, int]:
    """The number of every group id after groups that share a value are merged.

    Numbers follow the order in which the first id of each merged group appears.

    >>> _number([[30], [20, 20], [10, 30]])
    {30: 1, 20: 0, 10: 1}
    """
    leader: dict[int, int] = {}
    classes: dict[int, list[int]] = {}

    def register(group_id: int) -> None:
        if group_id not in leader:
            leader[group_id] = group_id
            classes[group_id] = [group_id]

    for first, *others in ids_per_value:
        register(first)
        for other in others:
            register(other)
            new, old = leader[first], leader[other]
            if new != old:
                classes[new] += classes.pop(old)
                for group_id in classes[new]:
                    leader[group_id] = new
    numbers: dict[int, int] = {}
    for group_id in leader:
        if leader[group_id] == group_id:
            numbers[group_id] = len(numbers)
    return {group_id: numbers[leader[group_id]] for group_id in leader}
