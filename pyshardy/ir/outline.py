"""A module as a `Program` without sharding rules, for what only asks where shardings are."""

from __future__ import annotations

from pyshardy.ir.dataflow import EDGE, source_uses
from pyshardy.ir.edge_tensors import view_of
from pyshardy.ir.functions import functions, is_declaration, result_sharding, return_op
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.numbering import Numbering
from pyshardy.ir.program_index import FunctionResultPlace
from pyshardy.ir.shardings import get_sharding, holder_of, module_meshes
from pyshardy.propagation.program import NO_VALUE, OpKind, OpNode, Program, ValueInfo


def outline(root: Op) -> tuple[Program, list[Value | FunctionResultPlace]]:
    """The ops and values of a module, and what the numbers of values stand for.

    No op has a rule, so the module may be one that propagation refuses. Only edges of manual computations have tensors.

    Args:
        root: The module.
    """
    numbering = Numbering(root)
    numbers, ops = numbering.value_numbers, numbering.op_numbers

    def node(op: Op) -> OpNode:
        view = view_of(op) if op.name == EDGE else None
        uses = source_uses(op.operands[0]) if view is not None else []
        sources = [number(holder_of(user.operands[index])) for user, index in uses]
        operands, results = (tuple(numbers[value] for value in values) for values in (op.operands, op.results))
        parent = -1 if op.parent_op is None else ops[op.parent_op]
        return OpNode(OpKind(op.name), operands, results, tuple(sources), parent, view)

    def number(value: Value | None) -> int:
        return NO_VALUE if value is None else numbers[value]

    values = [
        ValueInfo(None, number(holder_of(value)), ops[value.defining_op or value.block.parent_op])
        for value in numbering.values
    ]
    shardings = [get_sharding(value) for value in numbering.values]
    places: list[Value | FunctionResultPlace] = [*numbering.values]
    for function in functions(root):
        for index in range(0 if is_declaration(function) else len(return_op(function).operands)):
            values.append(ValueInfo(None, len(values), ops[function]))
            shardings.append(result_sharding(function, index))
            places.append(FunctionResultPlace(function, index))
    return Program.of(module_meshes(root), values, [*map(node, numbering.ops)], shardings), places
