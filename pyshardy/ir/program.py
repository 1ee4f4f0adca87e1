"""From nodes to the flat `Program` that propagation works on, and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidRuleError
from pyshardy.graph.program import (
    NO_VALUE,
    Direction,
    FunctionResult,
    OpKind,
    OpNode,
    Program,
    ValueInfo,
    View,
)
from pyshardy.ir.callers import Callers
from pyshardy.ir.dataflow import DATA_FLOW_OPS, EDGE, FUNCTION_EDGE, op_of_owner, owns_edge, source_uses
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
from pyshardy.ir.notify import SPECIAL, Notifications
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.purity import is_pure
from pyshardy.ir.shardings import holder_of, module_meshes, store_sharding, stored_sharding
from pyshardy.rules.draft import identity_rule
from pyshardy.rules.properties import Priority, is_elementwise, priority_of
from pyshardy.rules.rule import Rule
from pyshardy.rules.table import is_known, is_known_name, rule_of

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
    """Numbers ops and values by their marks, and describes them; ops of one kind are looked at once."""

    def __init__(self, root: Op, specs: OpSpecReader, conservative: bool) -> None:
        self.root = root
        self.specs = specs
        self.conservative = conservative
        self.callers = Callers(root)
        root.mark = -1
        self.ops = [op for op in walk(root) if op is not root and op.name != "sdy.mesh"]
        self.values: list[Value] = []
        self.holders: list[int] = []
        self.index = ProgramIndex(self.ops, [], {}, [])
        self.notifications = Notifications(self.callers)
        self.kinds: dict[Hashable, OpKind] = {}
        self.known_kinds: dict[OpKind, OpKind] = {}
        self._give_numbers()
        self.index.values.extend(self.values)

    def _give_numbers(self) -> None:
        """Mark every op and every value with its number."""
        values = self.values
        undecided: list[Value] = []
        for number, op in enumerate(self.ops):
            op.mark = number
            for value in op.results:
                value.mark = len(values)
                values.append(value)
            if op.name in DATA_FLOW_OPS:
                undecided += op.results
            for region in op.regions:
                for block in region.blocks:
                    for value in block.args:
                        value.mark = len(values)
                        values.append(value)
                    undecided += block.args
        self.holders = list(range(len(values)))
        for value in undecided:
            found = holder_of(value)
            self.holders[value.mark] = NO_VALUE if found is None else found.mark

    def build(self) -> tuple[Program, ProgramIndex]:
        nodes = tuple([self.node(op) for op in self.ops])
        infos = [self.info(number, value) for number, value in enumerate(self.values)]
        shardings = [
            stored_sharding(value) if holder == number else None
            for number, (value, holder) in enumerate(zip(self.values, self.holders))
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

    def node(self, op: Op) -> OpNode:
        operands = tuple([value.mark for value in op.operands])
        results = tuple([value.mark for value in op.results])
        parent = op.parent_op
        around = -1 if parent is None else parent.mark
        if op.name == EDGE or op.name == FUNCTION_EDGE:
            kind, tensors = self.edge(op)
            return OpNode(kind, operands, results, tensors, around, _view(op) if op.name == EDGE else None)
        kind = self.kind(op)
        if kind.rule is None:
            return OpNode(kind, operands, results, (), around)
        holders = self.holders
        return OpNode(kind, operands, results, tuple([holders[value] for value in operands + results]), around)

    def edge(self, op: Op) -> tuple[OpKind, tuple[int, ...]]:
        """The kind and the tensors of a data-flow edge."""
        sources = self.sources(op)
        shape = op.result.type.shape
        common = Priority.PASS_THROUGH, Direction.BOTH, False, True, is_pure(op)
        if not sources or shape is None or not op.result.type.is_static:
            return OpKind(op.name, None, *common), ()
        tensors = (*(self.holders[value.mark] for value in sources), op.result.mark)
        return OpKind(op.name, identity_rule(shape, len(sources)), *common), tensors

    def kind(self, op: Op) -> OpKind:
        """The kind of an op; equal ops that do not depend on what is around them share it."""
        attrs = op.attrs
        shape_key = self.specs.shape_key(op)
        if shape_key is None:
            kind = self.new_kind(op)
        else:
            key = shape_key, attrs.get(RULE), attrs.get("allowed_direction"), is_pure(op) if op.regions else None
            found = self.kinds.get(key)
            if found is None:
                found = self.kinds[key] = self.new_kind(op)
            kind = found
        if kind.rule is None:
            if op.name not in TERMINATORS and not is_known_name(op.name) and not is_known(self.specs.spec(op)):
                self.index.unknown.append(op)
        elif op.name != BARRIER:
            self.index.rules[op] = kind.rule
        return kind

    def new_kind(self, op: Op) -> OpKind:
        """The kind of an op that is no edge."""
        if op.name == BARRIER:
            shape = op.result.type.shape
            assert shape is not None
            direction = Direction(op.attrs["allowed_direction"])
            return OpKind(op.name, identity_rule(shape), Priority.FIXED, direction, True, True, is_pure(op))
        spec = self.specs.spec(op)
        rule: Rule | None = op.attrs.get(RULE)
        if rule is None:
            try:
                rule = rule_of(spec, self.conservative)
            except InvalidRuleError as error:
                raise PassError(op, f"has no valid sharding rule: {error}") from error
        elementwise = is_elementwise(spec)
        kind = OpKind(op.name, rule, priority_of(spec), Direction.BOTH, elementwise, False, is_pure(op))
        return self.known_kinds.setdefault(kind, kind)

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

    def info(self, number: int, value: Value) -> ValueInfo:
        holder = self.holders[number]
        owner = value.defining_op
        around = (value.block.parent_op if owner is None else owner).mark
        shape = value.type.shape if value.type.is_static else None
        users = tuple([user.mark for user, _ in reversed(value.uses)])
        if holder != number:
            return ValueInfo(shape, holder, around, users)
        if owner is None or owner.name == EDGE or not SPECIAL.isdisjoint([user.name for user, _ in value.uses]):
            notified = self.notifications.of(value)
        else:
            notified = around, *users
        if owner is not None and len(owner.results) == 1:
            return ValueInfo(shape, holder, around, users, notified)
        return ValueInfo(shape, holder, around, users, notified, self.siblings(value))

    def siblings(self, value: Value) -> tuple[int, ...]:
        """The other values whose shardings are stored in one list with that of `value`."""
        op = value.defining_op
        if op is not None:
            group = op.results
        elif value.block.parent_op.name == "func.func":
            return ()
        else:
            group = value.block.args
        return () if len(group) < 2 else tuple(other.mark for other in group if other is not value)

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
                    found.append(FunctionResult(value.mark, len(infos)))
                shape = value.type.shape if value.type.is_static else None
                infos.append(ValueInfo(shape, len(infos), function.mark))
                shardings.append(result_sharding(function, index))
                self.index.values.append(FunctionResultPlace(function, index))
        return tuple(found)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        members: dict[int, list[int]] = {}
        for op in self.ops:
            if op.name == GROUP:
                members.setdefault(op.attrs["group_id"], []).append(self.holders[op.operands[0].mark])
        return tuple(tuple(members[group_id]) for group_id in sorted(members))


def _view(edge: Op) -> View | None:
    """The view of an edge of a manual computation."""
    owner = edge.operands[0]
    op = owner.defining_op
    computation = op if op is not None else owner.block.parent_op
    if computation.name != "sdy.manual_computation":
        return None
    shardings = computation.attrs["in_shardings" if op is None else "out_shardings"]
    return View(op is None, shardings[owner.index], computation.attrs["manual_axes"])
