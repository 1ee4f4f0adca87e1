"""The ops to visit again after a new sharding of a value, in the order of the reference.

Source: docs/semantics/propagation.md#which-ops-are-visited-again
"""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.ir.blocks import Value
from pyshardy.ir.callers import Callers
from pyshardy.ir.dataflow import DATA_FLOW_OPS, edge_of_source, targets_besides_owner
from pyshardy.ir.op import TERMINATORS, Op
from pyshardy.rules.properties import EDGE

SPECIAL = DATA_FLOW_OPS | TERMINATORS | {"func.call"}
"""Ops that are not visited themselves when an operand gets a new sharding; related ops are visited instead."""


class Revisits:
    """Finds the ops to visit again when the sharding of a value changes.

    Args:
        callers: The calls of the module.
        numbers: The numbers of its ops.
    """

    def __init__(self, callers: Callers, numbers: Mapping[Op, int]) -> None:
        self._callers = callers
        self._numbers = numbers
        self._crossed: set[Value] = set()  # arguments and call results that were followed already

    def of(self, holder: Value) -> tuple[int, ...]:
        """The numbers of the ops, in the order in which they are pushed."""
        found: list[int] = []
        if self._crossed:
            self._crossed = set()
        op = holder.defining_op
        if op is not None and op.name == EDGE:
            for target in targets_besides_owner(op.operands[0]):
                self._add_users(target, found)
        found.append(self._numbers[holder.block.parent_op if op is None else op])
        self._add_users(holder, found)
        return tuple(found)

    def _add_users(self, value: Value, found: list[int]) -> None:
        uses = value.flat_uses
        if isinstance(uses, tuple):
            few = uses
            for place in range(len(few) - 2, -1, -2):
                self._add_user(few[place], few[place + 1], found)
        else:
            for user, index in reversed(uses):
                self._add_user(user, index, found)

    def _add_user(self, user: Op, index: int, found: list[int]) -> None:
        if user.name in SPECIAL:
            self._add_special(user, index, found)
        else:
            found.append(self._numbers[user])

    def _add_special(self, user: Op, index: int, found: list[int]) -> None:
        if user.name == "func.call":
            for entry in self._callers.callee(user).region.blocks[:1]:
                self._cross_to(entry.args[index], found)
            return
        parent = user.parent_op
        assert parent is not None
        if user.name == "func.return":
            for call in self._callers.of(parent):
                self._cross_to(call.results[index], found)
            return
        ends_block = user.name in TERMINATORS
        edge = None if ends_block and parent.name not in DATA_FLOW_OPS else edge_of_source(user, index)
        if edge is not None:
            found.append(self._numbers[edge])
        elif ends_block:
            found.append(self._numbers[parent])
        else:
            found.append(self._numbers[user])

    def _cross_to(self, value: Value, found: list[int]) -> None:
        """Follow a value to the other side of a call; a function that returns its argument may lead in circles."""
        if value not in self._crossed:
            self._crossed.add(value)
            self._add_users(value, found)
