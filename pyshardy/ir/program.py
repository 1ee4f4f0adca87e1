"""From nodes to the flat `Program` that propagation works on, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidRuleError
from pyshardy.graph.program import (
    NO_VALUE,
    Direction,
    FunctionResult,
    OpNode,
    Program,
    ValueInfo,
    View,
)
from pyshardy.ir.callers import Callers
from pyshardy.ir.dataflow import EDGE, FUNCTION_EDGE, op_of_owner, owns_edge, source_uses
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import (
    function_of_argument,
    functions,
    is_declaration,
    main_function,
    result_sharding,
    return_op,
    set_result_sharding,
)
from pyshardy.ir.nodes import TERMINATORS, Op, Value, walk
from pyshardy.ir.notify import Notifications
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.purity import is_pure
from pyshardy.ir.shardings import holder_of, module_meshes, store_sharding, stored_sharding
from pyshardy.rules.draft import identity_rule
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.properties import Priority, is_elementwise, priority_of
from pyshardy.rules.rule import Rule
from pyshardy.rules.table import is_known, rule_of

BARRIER = "sdy.propagation_barrier"
GROUP = "sdy.sharding_group"
RULE = "sdy.sharding_rule"


@dataclass(frozen=True, slots=True)
class FunctionResultPlace:
    """A result of a function, which holds a sharding like a value."""

    function: Op
    index: int


@dataclass(frozen=True, slots=True)
class ProgramIndex:
    """What the numbers of a `Program` stand for.

    Attributes:
        ops: The op of every number.
        values: The value, or function result, of every number.
        rules: The rule of every op that has one by its kind; edges and barriers have none here.
        unknown: The ops that the rule table does not know.
    """

    ops: list[Op]
    values: list[Value | FunctionResultPlace]
    rules: dict[Op, Rule]
    unknown: list[Op]

    def store(self, shardings: Sequence[TensorSharding | None], before: Sequence[TensorSharding | None]) -> None:
        """Write the shardings that differ from those before onto the nodes."""
        for place, sharding, old in zip(self.values, shardings, before):
            if sharding is old or sharding is None:
                continue
            if isinstance(place, Value):
                store_sharding(place, sharding)
            else:
                set_result_sharding(place.function, place.index, sharding)


def build_program(root: Op, specs: OpSpecReader, conservative: bool = False) -> tuple[Program, ProgramIndex]:
    """The program of a module.

    Args:
        root: The module.
        specs: Describes ops for the rule table.
        conservative: Whether rules are made in their conservative form.

    Raises:
        PassError: An op whose sharding rule does not fit it.
    """
    return _Builder(root, specs, conservative).build()


class _Builder:
    def __init__(self, root: Op, specs: OpSpecReader, conservative: bool) -> None:
        self.root = root
        self.specs = specs
        self.conservative = conservative
        self.callers = Callers(root)
        self.ops = [op for op in walk(root) if op is not root and op.name != "sdy.mesh"]
        self.op_numbers = {op: number for number, op in enumerate(self.ops)}
        self.values = list(_values(self.ops))
        self.numbers = {value: number for number, value in enumerate(self.values)}
        self.index = ProgramIndex(self.ops, list(self.values), {}, [])
        self.notifications = Notifications(self.op_numbers, self.callers)

    def build(self) -> tuple[Program, ProgramIndex]:
        nodes = tuple(self.node(op) for op in self.ops)
        infos = [self.info(value) for value in self.values]
        shardings = [
            stored_sharding(value) if info.holder == number else None
            for number, (value, info) in enumerate(zip(self.values, infos))
        ]
        main_results = self.add_function_results(infos, shardings)
        program = Program(
            meshes=module_meshes(self.root),
            values=tuple(infos),
            ops=nodes,
            shardings=tuple(shardings),
            main_results=main_results,
            groups=self.groups(),
        )
        return program, self.index

    def holder(self, value: Value) -> int:
        """Number of the value that holds the sharding of `value`."""
        found = holder_of(value)
        return NO_VALUE if found is None else self.numbers[found]

    def node(self, op: Op) -> OpNode:
        numbers = self.numbers
        parent = op.parent_op
        common = (
            op.name,
            tuple([numbers[value] for value in op.operands]),
            tuple([numbers[value] for value in op.results]),
        )
        rule, tensors, priority, direction, elementwise, is_edge = self.step_of(op)
        return OpNode(
            *common,
            rule,
            tensors,
            priority,
            direction,
            elementwise,
            is_edge,
            is_pure(op),
            -1 if parent is None or parent is self.root else self.op_numbers[parent],
            _view(op) if op.name == EDGE else None,
        )

    def step_of(self, op: Op) -> tuple[Rule | None, tuple[int, ...], Priority, Direction, bool, bool]:
        """Rule, tensors, priority, direction, whether element-wise, whether an edge or barrier."""
        if op.name == EDGE or op.name == FUNCTION_EDGE:
            sources = self.sources(op)
            shape = op.result.type.shape
            if not sources or shape is None or not op.result.type.is_static:
                return None, (), Priority.PASS_THROUGH, Direction.BOTH, False, True
            tensors = (*(self.holder(value) for value in sources), self.numbers[op.result])
            return identity_rule(shape, len(sources)), tensors, Priority.PASS_THROUGH, Direction.BOTH, False, True
        if op.name == BARRIER:
            shape = op.result.type.shape
            assert shape is not None
            direction = Direction(op.attrs["allowed_direction"])
            return identity_rule(shape), self.tensors(op), Priority.FIXED, direction, True, True
        spec = self.specs.spec(op)
        rule = self.rule(op, spec)
        tensors = () if rule is None else self.tensors(op)
        return rule, tensors, priority_of(spec), Direction.BOTH, is_elementwise(spec), False

    def rule(self, op: Op, spec: OpSpec) -> Rule | None:
        """The rule on the op, else that of the table."""
        rule: Rule | None = op.attrs.get(RULE)
        if rule is None:
            try:
                rule = rule_of(spec, self.conservative)
            except InvalidRuleError as error:
                raise PassError(op, f"has no valid sharding rule: {error}") from error
            if rule is None and op.name not in TERMINATORS and not is_known(spec):
                self.index.unknown.append(op)
        if rule is not None:
            self.index.rules[op] = rule
        return rule

    def tensors(self, op: Op) -> tuple[int, ...]:
        return tuple([self.holder(value) for value in (*op.operands, *op.results)])

    def sources(self, edge: Op) -> list[Value]:
        """The values that an edge op stands for besides itself."""
        owner = edge.operands[0]
        if edge.name == EDGE:
            if not owns_edge(owner):
                raise PassError(edge, f"is on a value of '{op_of_owner(owner).name}', an op without data-flow edges")
            return [user.operands[index] for user, index in source_uses(owner)]
        function = function_of_argument(owner)
        if function is not None:
            return [call.operands[owner.index] for call in self.callers.of(function)]
        call = owner.defining_op
        assert call is not None
        callee = self.callers.callee(call)
        return [] if is_declaration(callee) else [return_op(callee).operands[owner.index]]

    def info(self, value: Value) -> ValueInfo:
        number = self.numbers[value]
        holder = self.holder(value)
        owner = value.defining_op
        return ValueInfo(
            value.type.shape if value.type.is_static else None,
            holder,
            self.op_numbers[owner if owner is not None else value.block.parent_op],
            tuple([self.op_numbers[user] for user, _ in reversed(value.uses)]),
            self.notifications.of(value) if holder == number else (),
            self.siblings(value) if holder == number else (),
        )

    def siblings(self, value: Value) -> tuple[int, ...]:
        """The other values whose shardings are stored in one list with that of `value`."""
        op = value.defining_op
        if op is not None:
            group = op.results
        elif value.block.parent_op.name == "func.func":
            return ()
        else:
            group = value.block.args
        return () if len(group) < 2 else tuple(self.numbers[other] for other in group if other is not value)

    def add_function_results(
        self, infos: list[ValueInfo], shardings: list[TensorSharding | None]
    ) -> tuple[FunctionResult, ...]:
        """Append a pseudo-value per function result; those of the main function take part in propagation."""
        main = main_function(self.root)
        found = []
        for function in functions(self.root):
            if is_declaration(function):
                continue
            for index, value in enumerate(return_op(function).operands):
                if function is main and value.type.is_static:
                    found.append(FunctionResult(self.numbers[value], len(infos)))
                shape = value.type.shape if value.type.is_static else None
                infos.append(ValueInfo(shape, len(infos), self.op_numbers[function]))
                shardings.append(result_sharding(function, index))
                self.index.values.append(FunctionResultPlace(function, index))
        return tuple(found)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        members: dict[int, list[int]] = {}
        for op in self.ops:
            if op.name == GROUP:
                members.setdefault(op.attrs["group_id"], []).append(self.holder(op.operands[0]))
        return tuple(tuple(members[group_id]) for group_id in sorted(members))


def _values(ops: Sequence[Op]) -> Iterator[Value]:
    for op in ops:
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _view(edge: Op) -> View | None:
    """The view of an edge of a manual computation."""
    owner = edge.operands[0]
    op = owner.defining_op
    computation = op if op is not None else owner.block.parent_op
    if computation.name != "sdy.manual_computation":
        return None
    shardings = computation.attrs["in_shardings" if op is None else "out_shardings"]
    return View(op is None, shardings[owner.index], computation.attrs["manual_axes"])
