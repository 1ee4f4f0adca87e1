"""Debug attributes: sharding origins and propagation edges.

Source: docs/semantics/propagation.md#debug-attributes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyshardy.core.axes import AxisRef
from pyshardy.core.record import Record
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import quote
from pyshardy.ir.dataflow import block_arg_owners
from pyshardy.ir.functions import is_declaration, main_function, set_arg_attr, set_result_attr
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.op_lists import ops_named, ops_with
from pyshardy.ir.program_index import FunctionResultPlace
from pyshardy.propagation.debug import PropagationEdge, format_edges, propagation_edges
from pyshardy.propagation.origins import CONSTRAINT, Origins, plain_axis
from pyshardy.propagation.program import NO_VALUE, Program
from pyshardy.propagation.run import Propagated
from pyshardy.propagation.trace import MAIN_RESULT
from pyshardy.rules.properties import EDGE
from pyshardy.transforms.context import PassContext

EDGES_ATTRIBUTE = "sdy.propagation_edges"
ORIGINS = "sdy.sharding_origins"
ORIGIN_NAME = "sdy.sharding_origin_name"
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
        root: The module.
        context: The pass context.
        options: Which attributes to write.
        program: The program of the module, with the shardings before propagation.
        values: The values that its numbers stand for.
    """

    def __init__(
        self,
        root: Op,
        context: PassContext,
        options: DebugOptions,
        program: Program,
        values: Sequence[Value | FunctionResultPlace],
    ) -> None:
        self._root = root
        self._attrs = context.attrs
        self._options = options
        self._program = program
        self._values = values
        self._names: dict[Op, str] = {}
        self._edges: dict[Op | None, tuple[int, list[PropagationEdge]]] = {}  # None: results of the main function
        self._next = _last_step(root) + 1
        if options.origins:
            self._origins = Origins.given(program)
            self._numbers: dict[Any, int] = {value: number for number, value in enumerate(values)}
            for kind, name in (CONSTRAINT, "constraint"), (_MANUAL, "mc"):
                for number, op in enumerate(ops_named(root, (kind,), post_order=kind == _MANUAL)):
                    self._names[op] = f"{name}_{number}"
                    op.set_attr(ORIGIN_NAME, self._attrs.parse(quote(self._names[op])))

    # Recording

    def apply(self, op: Op, sharding: TensorSharding) -> None:
        """Record that a constraint wrote its sharding onto its input; ignore scalars."""
        axes = [axis for dim in sharding.dims for axis in dim.axes]
        self._add_edges(op, 1, [PropagationEdge(self._next, axis, 1, 0) for axis in axes])
        self._next += bool(sharding.dims)
        if self._options.origins:
            result, operand = self._numbers[op.result], self._numbers[op.operands[0]]
            for axis in axes:
                self._origins.inherit(self._program.holders[operand], axis, result)

    def follow(self, propagated: Propagated, ops: Sequence[Op]) -> None:
        """Record the steps of propagation; the ops are those that the numbers of the program stand for."""
        edges = propagation_edges(propagated.steps, propagated.shardings, self._program.meshes)
        for step, edge in edges:
            numbered = edge._replace(number=edge.number + self._next)
            if step.op == MAIN_RESULT:
                self._add_edges(None, 1, [numbered])
                continue
            rule = self._program.kind(step.op).rule
            assert rule is not None
            self._add_edges(ops[step.op], len(rule.operands), [numbered])
        if self._options.origins:
            self._origins.follow(edges)

    def _add_edges(self, op: Op | None, operand_count: int, edges: Iterable[PropagationEdge]) -> None:
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
                set_result_attr(main_function(self._root), 0, EDGES_ATTRIBUTE, written)
            elif op.block is not None:
                op.set_attr(EDGES_ATTRIBUTE, written)

    def _write_origins_of_arguments(self, function: Op) -> None:
        for arg in () if is_declaration(function) else function.region.blocks[0].args:
            if self._of(arg):
                set_arg_attr(function, arg.index, ORIGINS, self._dictionary(arg, f"input: {arg.index}"))
                self._write_on_function_result(arg)

    def _write_origins_of_results(self, op: Op) -> None:
        # The origins of a block argument without an edge appear among the entries of results, as empty entries.
        if not any(map(self._of, (*op.results, *block_arg_owners(op)))):
            return
        if op.name in (CONSTRAINT, EDGE):
            own = op.result if op.name == CONSTRAINT else op.operands[0]
            op.set_attr(ORIGINS, self._dictionary(op.result, self._name(own)))
        else:
            found = ", ".join(str(self._dictionary(result)) for result in op.results)
            op.set_attr(ORIGINS, self._attrs.parse(f"[{found}]"))
        for result in filter(self._of, op.results):
            self._write_on_function_result(result)

    def _write_on_function_result(self, value: Value) -> None:
        """A returned value, even if it is returned several times, has its attributes on one result of the function."""
        for user, index in reversed(value.uses):
            function = user.parent_op
            if user.name == "func.return" and function is not None:
                set_result_attr(function, index, ORIGINS, self._dictionary(value, f"output: {index}"))
                return

    def _of(self, value: Value) -> Mapping[AxisRef, int]:
        return self._origins.of(self._numbers.get(value, NO_VALUE))

    def _dictionary(self, value: Value, own_name: str = "") -> Any:
        entries = []
        for axis, annotated in self._of(value).items():
            origin = self._name(self._values[annotated])
            entries.append(f"{quote(plain_axis(axis))} = {quote('self' if origin == own_name else origin)}")
        return self._attrs.parse("{" + ", ".join(entries) + "}")

    def _name(self, annotated: Value | FunctionResultPlace) -> str:
        """The name of an annotated value, as an origin."""
        if isinstance(annotated, FunctionResultPlace):
            return f"output: {annotated.result}"
        op, index = annotated.defining_op, annotated.index
        if op is None:
            around = annotated.block.parent_op
            return f"input: {index}" if around.name == "func.func" else f"{self._names.get(around)}_input: {index}"
        return self._names[op] if op.name == CONSTRAINT else f"{self._names.get(op)}_output: {index}"


def _last_step(root: Op) -> int:
    """The largest step in the edges of the module, or -1."""
    written = (str(op.attrs[EDGES_ATTRIBUTE]) for op in ops_with(root, EDGES_ATTRIBUTE))
    return max((int(number) for text in written for number in _STEP.findall(text)), default=-1)
