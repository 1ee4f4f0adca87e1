"""Debug attributes: sharding origins and propagation edges.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.record import Record
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.text import quote
from pyshardy.graph.program import Program
from pyshardy.ir.dataflow import EDGE, block_arg_owners, edge_of
from pyshardy.ir.functions import (
    functions,
    is_declaration,
    main_function,
    result_sharding,
    return_op,
    set_arg_attr,
    set_result_attr,
)
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.op_lists import ops_named, ops_with
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import get_sharding, holder_of
from pyshardy.propagation.debug import Edge, Origins, edges_of, format_edges
from pyshardy.propagation.run import Propagated
from pyshardy.propagation.trace import MAIN_RESULT, Step
from pyshardy.transforms.context import PassContext

EDGES = "sdy.propagation_edges"
ORIGINS = "sdy.sharding_origins"
ORIGIN_NAME = "sdy.sharding_origin_name"
CONSTRAINT = "sdy.sharding_constraint"
_MANUAL = "sdy.manual_computation"
_STEP = re.compile(r"\bstep-(\d{1,18}) = ")


class DebugOptions(Record):
    """Which debug attributes to write; none by default.

    Attributes:
        origins: Whether to record, per axis of every value, the annotation that it originates from.
        edges: Whether to record, per axis of every value, the op and the step that propagated it.
    """

    origins: bool = False
    edges: bool = False

    def __bool__(self) -> bool:
        return self.origins or self.edges


class DebugInfo:
    """Collects the debug attributes of a module and writes them.

    Args:
        root: The module, with the shardings before propagation.
        context: The pass context.
        options: Which attributes to write.
    """

    def __init__(self, root: Op, context: PassContext, options: DebugOptions) -> None:
        self._root = root
        self._attrs = context.attrs
        self._options = options
        self._origins = Origins()
        self._names: dict[Op, str] = {}
        self._edges: dict[Op | None, tuple[int, list[Edge]]] = {}  # None: results of the main function
        self._next = _last_step(root) + 1
        if options.origins:
            self._name_constraints()
            self._name_manual_computations()
            self._name_functions()

    # The state before propagation

    def _name_constraints(self) -> None:
        constraints = ops_named(self._root, (CONSTRAINT,))
        for number, op in enumerate(constraints):
            name = self._give_name(op, f"constraint_{number}")
            self._add(op.result, op.attrs["sharding"], name)
            self._add(op.operands[0], get_sharding(op.operands[0]), name)

    def _name_manual_computations(self) -> None:
        manual = ops_named(self._root, (_MANUAL,), post_order=True)
        for number, op in enumerate(manual):
            name = self._give_name(op, f"mc_{number}")
            for index, owner in enumerate(block_arg_owners(op)):
                self._add_to_edge(owner, op.attrs["in_shardings"][index], f"{name}_input: {index}")
                if edge_of(owner) is not None:
                    self._add(op.operands[index], get_sharding(op.operands[index]), f"{name}_input: {index}")
            for index, result in enumerate(op.results):
                self._add_to_edge(result, op.attrs["out_shardings"][index], f"{name}_output: {index}")

    def _name_functions(self) -> None:
        for function in functions(self._root):
            if is_declaration(function):
                continue
            for arg in function.region.blocks[0].args:
                self._add(arg, get_sharding(arg), f"input: {arg.index}")
            for index, value in enumerate(return_op(function).operands):
                self._add(value, result_sharding(function, index), f"output: {index}")

    def _give_name(self, op: Op, name: str) -> str:
        op.set_attr(ORIGIN_NAME, self._attrs.parse(quote(name)))
        self._names[op] = name
        return name

    def _add_to_edge(self, owner: Value, sharding: TensorSharding, origin: str) -> None:
        edge = edge_of(owner)
        if edge is not None:
            self._add(edge.result, sharding, origin)

    def _add(self, value: Value, sharding: TensorSharding | None, origin: str) -> None:
        if sharding is not None:
            self._origins.add(holder_of(value) or value, (axis for dim in sharding.dims for axis in dim.axes), origin)

    # Recording

    def apply(self, op: Op, sharding: TensorSharding) -> None:
        """Record that a constraint wrote its sharding onto its input; ignore scalars."""
        axes = [axis for dim in sharding.dims for axis in dim.axes]
        self._add_edges(op, 1, [Edge(self._next, axis, 1, 0) for axis in axes])
        self._next += bool(sharding.dims)
        for axis in axes:
            self._origins.inherit(holder_of(op.operands[0]) or op.operands[0], axis, op.result)

    def follow(self, propagated: Propagated, program: Program, index: ProgramIndex) -> None:
        """Record the steps of propagation."""

        def mesh_of_step(step: Step) -> Mesh:
            assert step.source is not None
            sharding = propagated.shardings[step.source]
            assert sharding is not None
            return mesh_of(sharding, program.meshes)

        for step, edge in edges_of(propagated.steps, mesh_of_step):
            numbered = edge._replace(number=edge.number + self._next)
            assert step.source is not None
            source, target = index.values[step.source], index.values[step.target]
            if step.op == MAIN_RESULT:  # a step on the returned value also counts for the result
                self._add_edges(None, 1, [numbered])
                source = target = target if edge.target == 0 else source
            else:
                rule = program.kind(step.op).rule
                assert rule is not None
                self._add_edges(index.ops[step.op], len(rule.operands), [numbered])
            self._origins.inherit(target, edge.axis, source)

    def _add_edges(self, op: Op | None, operand_count: int, edges: Iterable[Edge]) -> None:
        for edge in edges:
            self._edges.setdefault(op, (operand_count, []))[1].append(edge)

    # Writing

    def write(self) -> None:
        """Write the attributes."""
        if self._options.edges:
            self._write_edges()
        if self._options.origins:
            for op in walk(self._root):
                if op.name == "func.func":
                    self._write_origins_of_arguments(op)
                else:
                    self._write_origins_of_results(op)

    def _write_edges(self) -> None:
        for op, (operand_count, edges) in self._edges.items():
            written = self._attrs.parse(format_edges(edges, operand_count))
            if op is None:
                set_result_attr(main_function(self._root), 0, EDGES, written)
            elif op.block is not None:
                op.set_attr(EDGES, written)

    def _write_origins_of_arguments(self, function: Op) -> None:
        for arg in () if is_declaration(function) else function.region.blocks[0].args:
            if self._origins.of(arg):
                set_arg_attr(function, arg.index, ORIGINS, self._dictionary(arg, f"input: {arg.index}"))
                self._write_on_function_result(arg)

    def _write_origins_of_results(self, op: Op) -> None:
        # The origins of a block argument without an edge appear among the entries of results, as empty entries.
        if not any(map(self._origins.of, (*op.results, *block_arg_owners(op)))):
            return
        if op.name in (CONSTRAINT, EDGE):
            op.set_attr(ORIGINS, self._dictionary(op.result, self._own_name(op)))
        else:
            found = ", ".join(str(self._dictionary(result)) for result in op.results)
            op.set_attr(ORIGINS, self._attrs.parse(f"[{found}]"))
        for result in filter(self._origins.of, op.results):
            self._write_on_function_result(result)

    def _own_name(self, op: Op) -> str:
        """The name of a constraint, or of the edge of a manual computation, as an origin."""
        if op.name == CONSTRAINT:
            return self._names[op]
        owner = op.operands[0]
        if owner.defining_op is not None:
            return f"{self._names.get(owner.defining_op)}_output: {owner.index}"
        return f"{self._names.get(owner.block.parent_op)}_input: {owner.index}"

    def _write_on_function_result(self, value: Value) -> None:
        """A returned value, even if it is returned several times, has its attributes on one result of the function."""
        for user, index in reversed(value.uses):
            function = user.parent_op
            if user.name == "func.return" and function is not None:
                set_result_attr(function, index, ORIGINS, self._dictionary(value, f"output: {index}"))
                return

    def _dictionary(self, value: Value, own_name: str = "") -> Any:
        entries = [
            f"{quote(_plain(axis))} = {quote('self' if origin == own_name else origin)}"
            for axis, origin in self._origins.of(value).items()
        ]
        return self._attrs.parse("{" + ", ".join(entries) + "}")


def _plain(axis: AxisRef) -> str:
    return axis.name if axis.is_full else f"{axis.name}:({axis.pre_size}){axis.size}"


def _last_step(root: Op) -> int:
    """The largest step in the edges of the module, or -1."""
    written = (str(op.attrs[EDGES]) for op in ops_with(root, EDGES))
    return max((int(number) for text in written for number in _STEP.findall(text)), default=-1)
