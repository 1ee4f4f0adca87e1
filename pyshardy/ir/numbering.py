# cython: boundscheck=False, initializedcheck=False
"""The numbers of a module's ops and values, as in a `Program`, and lists of the special ones."""

from __future__ import annotations

from pyshardy.ir.blocks import Region, Value
from pyshardy.ir.dataflow import DATA_FLOW_OPS
from pyshardy.ir.functions import CALL, RULE
from pyshardy.ir.op import Op
from pyshardy.ir.revisits import SPECIAL
from pyshardy.ir.shardings import HOLD_OTHERWISE
from pyshardy.rules.properties import EDGE, EDGES
from pyshardy.rules.rule import Shape

GROUP = "sdy.sharding_group"
_MESH = "sdy.mesh"
_UNLIKE_MOST = HOLD_OTHERWISE | SPECIAL | EDGES | {GROUP, _MESH}
"""Ops whose values notify other ops than usual or hold shardings elsewhere; sharding groups; and meshes."""


class Numbering:
    """Numbers every op inside a module except its meshes, and every value.

    Attributes:
        ops: The ops, by number.
        values: The values, by number.
        op_numbers: The numbers of the ops; -1 for the module.
        value_numbers: The numbers of the values.
        shapes: Per value, its shape; None if it is not static.
        uses: The number of operands.
        calls: The calls, each op before the ops inside it.
        edges: The data-flow edges.
        grouped: The sharding groups.
        args: The arguments of blocks.
        undecided: The values that may not hold their own sharding.
        listed: The values whose shardings are in a list.
        crossing: The values that notify other ops than usual, because they or their uses stand for others.
        holding: The ops whose shardings are not in the usual attribute.
        has_rules: Whether a mesh or the module has a sharding rule.
    """

    def __init__(self, root: Op) -> None:
        self.ops: list[Op] = []
        self.values: list[Value] = []
        self.op_numbers: dict[Op, int] = {root: -1}
        self.value_numbers: dict[Value, int] = {}
        self.shapes: list[Shape] = []
        self.uses = 0
        self.calls: list[Op] = []
        self.edges: list[Op] = []
        self.grouped: list[Op] = []
        self.args: list[Value] = []
        self.undecided: list[Value] = []
        self.listed: list[Value] = []
        self.crossing: list[Value] = []
        self.holding: list[Op] = []
        self.has_rules = RULE in root.attrs
        self._number_region(root.region)

    def _number_region(self, region: Region) -> None:
        """Number every op inside a region, and every value."""
        ops, values, shapes = self.ops, self.values, self.shapes
        op_numbers, value_numbers = self.op_numbers, self.value_numbers
        for block in region.blocks:
            op = block.first
            while op is not None:
                is_unlike = op.name in _UNLIKE_MOST
                if is_unlike and op.name == _MESH:
                    self.has_rules |= RULE in op.attrs
                    op = op.next
                    continue
                op_numbers[op] = len(ops)
                ops.append(op)
                self.uses += len(op.operands)
                results = op.results
                for value in results:
                    value_numbers[value] = len(values)
                    values.append(value)
                    type = value.type
                    shapes.append(type.shape if type.is_static else None)
                if len(results) > 1:
                    self.listed += results
                if is_unlike:
                    self._note(op)
                if op.regions:
                    self._number_arguments(op)
                    for inner in op.regions:
                        self._number_region(inner)
                op = op.next

    def _note(self, op: Op) -> None:
        name, crossing = op.name, self.crossing
        if name == CALL:
            self.calls.append(op)
        if name in DATA_FLOW_OPS:
            self.undecided += op.results
        if name in SPECIAL:
            crossing += op.operands
        elif name == EDGE:
            crossing += op.results
        if name in EDGES:
            self.edges.append(op)
        elif name == GROUP:
            self.grouped.append(op)
        if name in HOLD_OTHERWISE and not op.regions:
            self.holding.append(op)

    def _number_arguments(self, op: Op) -> None:
        self.holding.append(op)
        for region in op.regions:
            for block in region.blocks:
                for value in block.args:
                    self.value_numbers[value] = len(self.values)
                    self.values.append(value)
                    self.shapes.append(value.type.shape if value.type.is_static else None)
                self.args += block.args
                if op.name != "func.func":  # each argument of a function holds its own sharding
                    self.undecided += block.args
                    self.listed += block.args
