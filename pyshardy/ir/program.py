# cython: boundscheck=False, initializedcheck=False
"""From nodes to the flat `Program` that propagation works on, and back."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidRuleError
from pyshardy.graph.lists import Lists, zeros
from pyshardy.graph.program import (
    NO_VALUE,
    Direction,
    FunctionResult,
    OpKind,
    Program,
    View,
)
from pyshardy.ir.callers import Callers
from pyshardy.ir.dataflow import BARRIER, EDGE, EDGES, op_of_owner, owns_edge, source_uses
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import (
    RULE,
    SHARDING,
    function_of_argument,
    functions,
    is_declaration,
    main_function,
    result_sharding,
    return_op,
)
from pyshardy.ir.nodes import TERMINATORS, Op, Value
from pyshardy.ir.numbering import Numbering
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.ir.purity import is_pure
from pyshardy.ir.revisits import Revisits
from pyshardy.ir.shardings import holder_of, module_meshes, stored_sharding
from pyshardy.rules.properties import Priority, is_elementwise, priority_of
from pyshardy.rules.rule import Rule
from pyshardy.rules.rule_builder import identity_rule
from pyshardy.rules.table import is_known, is_known_name, rule_of

_WITH_SHARDING = 2
_TOO_MANY = "uses that are not operands"


def _counting(count: int) -> array[int]:
    """The numbers from 0 on."""
    found = zeros(count)
    numbers = found
    for number in range(count):
        numbers[number] = number
    return found


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
    """Describes the ops and values of a module, by their numbers; ops of one kind are looked at once."""

    def __init__(self, root: Op, specs: OpSpecReader, conservative: bool) -> None:
        self.root = root
        self.specs = specs
        self.conservative = conservative
        numbering = Numbering(root)
        self.numbering = numbering
        self.ops, self.values = numbering.ops, numbering.values
        self.op_numbers, self.value_numbers = numbering.op_numbers, numbering.value_numbers
        self.shapes = numbering.shapes
        self.has_rules = numbering.has_rules
        self.callers = Callers(root, numbering.calls)
        self.holders = _counting(len(self.values))
        self.elsewhere: list[int] = []
        for value in numbering.undecided:
            found = holder_of(value)
            if found is not value:
                number = self.value_numbers[value]
                self.holders[number] = NO_VALUE if found is None else self.value_numbers[found]
                self.elsewhere.append(number)
        self.notifications = Revisits(self.callers, self.op_numbers)
        self.numbers: dict[Hashable, int] = {}
        self.kinds: dict[OpKind, int] = {}
        self.known: list[OpKind] = []
        self.known_names: set[str] = set()
        self.rules: list[Rule | None] = []
        self.latest: list[int] = []  # per kind, the op for which it was last looked up
        self.kind_of = zeros(len(self.ops))
        self.parents = zeros(len(self.ops))
        self.owners = zeros(len(self.values))
        self.unknown: list[Op] = []
        self.views: dict[int, View] = {}

    def build(self) -> tuple[Program, ProgramIndex]:
        operands, results, tensors = self.steps()
        results.cut()
        tensors.cut()
        users = self.users_of_values()
        notified = self.notified()
        siblings = {
            self.value_numbers[value]: found for value in self.numbering.listed if (found := self.siblings(value))
        }
        shardings = self.shardings()
        places: list[Value | FunctionResultPlace] = [*self.values]
        main_results = self.add_function_results(places, users, notified, shardings)
        program = Program(
            meshes=module_meshes(self.root),
            kinds=self.known,
            kind_of=self.kind_of,
            operands=operands,
            results=results,
            tensors=tensors,
            parents=self.parents,
            views=self.views,
            shapes=self.shapes,
            holders=self.holders,
            owners=self.owners,
            users=users,
            notified=notified,
            siblings=siblings,
            shardings=tuple(shardings),
            main_results=main_results,
            groups=self.groups(),
        )
        index = ProgramIndex(self.ops, places, self.known, self.kind_of, self.unknown, self.has_rules)
        return program, index

    def users_of_values(self) -> Lists:
        """Per value, the op of every use."""
        op_numbers = self.op_numbers
        found = Lists.empty(len(self.values), self.numbering.uses)
        users, starts = found.numbers, found.starts
        limit, place = self.numbering.uses, 0
        for number, value in enumerate(self.values):
            uses = value.flat_uses
            if isinstance(uses, tuple):
                few = uses
                if place + len(few) // 2 > limit:  # the compiled core checks no index
                    raise AssertionError(_TOO_MANY)
                for index in range(len(few) - 2, -1, -2):
                    op = few[index]
                    users[place] = op_numbers[op]
                    place += 1
            else:
                if place + len(uses) > limit:
                    raise AssertionError(_TOO_MANY)
                for op, _ in reversed(uses):
                    users[place] = op_numbers[op]
                    place += 1
            starts[number + 1] = place
        return found

    def steps(self) -> tuple[Lists, Lists, Lists]:
        """The operands, the results and the tensors of every op; notes its kind, what is around it and its sharding."""
        rules, numbers, kind_of, parents, owners = self.rules, self.numbers, self.kind_of, self.parents, self.owners
        known_names, latest = self.known_names, self.latest
        specs, unknown, holding = self.specs, self.unknown, self.numbering.holding
        op_numbers, value_numbers, uses = self.op_numbers, self.value_numbers, self.numbering.uses
        edges = {op_numbers[op]: self.edge(op) for op in self.numbering.edges}
        count, values = len(self.ops), len(self.values)
        lists = Lists.empty(count, uses), Lists.empty(count, values), Lists.empty(count, uses + values)
        lists[2].numbers.extend(zeros(sum([len(found) for _, found in edges.values()])))
        operands, results, tensors = lists[0].numbers, lists[1].numbers, lists[2].numbers
        operand_starts, result_starts, tensor_starts = lists[0].starts, lists[1].starts, lists[2].starts
        used = defined = joined = 0
        around, parent = None, -1
        # Layers repeat: after an op like an earlier one comes mostly one like that which came after the earlier one.
        plain, ahead, ops = bytearray(count), 0, self.ops
        for number, op in enumerate(ops):
            block = op.block
            if block is not around:
                around = block
                parent = -1 if block is None else op_numbers[block.parent_op]
            parents[number] = parent
            name = op.name
            likeness = plain[ahead] if ahead < number else 0
            if likeness and _is_alike(op, ops[ahead]):
                kind, is_edge, has_sharding = kind_of[ahead], False, likeness == _WITH_SHARDING
                plain[number] = likeness
                ahead += 1
            else:
                attrs = op.attrs
                rule = attrs.get(RULE)
                if rule is not None:
                    self.has_rules = True
                has_sharding = SHARDING in attrs and not op.regions
                is_edge = name in EDGES
                if is_edge:
                    kind, found = edges[number]
                    for mark in found:
                        tensors[joined] = mark
                        joined += 1
                else:
                    key = specs.shape_key(op, rule)
                    if key is not None:
                        if op.regions:
                            key = key, is_pure(op)  # all that the kind needs of what is inside
                        else:
                            plain[number] = _WITH_SHARDING if has_sharding else 1
                    given = numbers.get(key)
                    kind = self.kind(op, key) if given is None else given
                ahead = 1 + (ahead if ahead < number and kind_of[ahead] == kind else latest[kind])
                latest[kind] = number
            if has_sharding:
                holding.append(op)
            kind_of[number] = kind
            has_tensors = not is_edge and rules[kind] is not None
            if not (has_tensors or is_edge or name in known_names) and not self.is_known(op):
                unknown.append(op)
            for value in op.operands:
                mark = value_numbers[value]
                operands[used] = mark
                used += 1
                if has_tensors:
                    tensors[joined] = mark
                    joined += 1
            for value in op.results:
                mark = value_numbers[value]
                owners[mark] = number
                results[defined] = mark
                defined += 1
                if has_tensors:
                    tensors[joined] = mark
                    joined += 1
            operand_starts[number + 1], result_starts[number + 1], tensor_starts[number + 1] = used, defined, joined
        for value in self.numbering.args:
            owners[value_numbers[value]] = op_numbers[value.block.parent_op]
        holders = self.holders
        for place in range(joined if self.elsewhere else 0):
            if tensors[place] >= 0:
                tensors[place] = holders[tensors[place]]
        return lists

    def is_known(self, op: Op) -> bool:
        """Whether the op has a rule, or is meant to have none; notes its name if that alone says so."""
        if op.name in TERMINATORS or is_known_name(op.name):
            self.known_names.add(op.name)
            return True
        return is_known(self.specs.spec(op))

    def notified(self) -> dict[int, tuple[int, ...]]:
        """The ops that a new sharding concerns, for values for which they are not the owner and the users."""
        holders, values = self.holders, self.values
        found: dict[int, tuple[int, ...]] = {}
        for number in dict.fromkeys([self.value_numbers[value] for value in self.numbering.crossing]):
            if holders[number] == number:
                found[number] = self.notifications.of(values[number])
        found |= dict.fromkeys(self.elsewhere, ())
        return found

    def shardings(self) -> list[TensorSharding | None]:
        """Per value, the sharding it holds."""
        holders = self.holders
        found: list[TensorSharding | None] = [None] * len(self.values)
        numbers = self.value_numbers
        for op in self.numbering.holding:
            for value in op.results:
                number = numbers[value]
                if holders[number] == number:
                    found[number] = stored_sharding(value)
            for region in op.regions:
                for block in region.blocks:
                    for value in block.args:
                        number = numbers[value]
                        if holders[number] == number:
                            found[number] = stored_sharding(value)
        return found

    def edge(self, op: Op) -> tuple[int, tuple[int, ...]]:
        """The kind and the tensors of a data-flow edge."""
        view = _view(op) if op.name == EDGE else None
        if view is not None:
            self.views[self.op_numbers[op]] = view
        sources, numbers = self.sources(op), self.value_numbers
        shape = op.result.type.shape
        tensors: tuple[int, ...] = ()
        if not sources or not op.result.type.is_static:
            shape = None
        else:
            tensors = (*[self.holders[numbers[value]] for value in sources], numbers[op.result])
        key = op.name, shape, len(tensors)
        kind = self.numbers.get(key)
        if kind is None:
            rule = None if shape is None else identity_rule(shape, len(sources))
            new = OpKind(op.name, rule, Priority.PASS_THROUGH, Direction.BOTH, False, True, is_pure(op))
            kind = self.numbers[key] = self.kind_number(new)
        return kind, tensors

    def kind_number(self, kind: OpKind) -> int:
        """The number of a kind."""
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = len(self.known)
            self.known.append(kind)
            self.rules.append(kind.rule)
            self.latest.append(-1)
        return found

    def kind(self, op: Op, key: Hashable) -> int:
        """The number of the kind of an op that is no edge; ops of one key share it."""
        found = self.kind_number(self.new_kind(op))
        if key is not None and op.name != BARRIER:
            self.numbers[key] = found
        return found

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
        return OpKind(op.name, rule, priority_of(spec), Direction.BOTH, elementwise, False, is_pure(op))

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

    def siblings(self, value: Value) -> tuple[int, ...]:
        """The other values whose shardings are stored in one list with that of `value`."""
        numbers = self.value_numbers
        if self.holders[numbers[value]] != numbers[value]:
            return ()
        op = value.defining_op
        group: Sequence[Value] = value.block.args if op is None else op.results
        return () if len(group) < 2 else tuple(numbers[other] for other in group if other is not value)

    def add_function_results(
        self,
        places: list[Value | FunctionResultPlace],
        users: Lists,
        notified: dict[int, tuple[int, ...]],
        shardings: list[TensorSharding | None],
    ) -> tuple[FunctionResult, ...]:
        """Append a pseudo-value per function result; those of the main function take part in propagation."""
        main = main_function(self.root)
        holders, owners, shapes = self.holders, self.owners, self.shapes
        found = []
        first = number = len(shapes)
        for function in functions(self.root):
            if is_declaration(function):
                continue
            owner, is_main = self.op_numbers[function], function is main
            for index, value in enumerate(return_op(function).operands):
                shape = value.type.shape if value.type.is_static else None
                if is_main and shape is not None:
                    found.append(FunctionResult(self.value_numbers[value], number))
                holders.append(number)
                owners.append(owner)
                shapes.append(shape)
                shardings.append(result_sharding(function, index))
                places.append(FunctionResultPlace(function, index))
                number += 1
        users.extend_empty(number - first)
        notified.update(dict.fromkeys(range(first, number), ()))
        return tuple(found)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        members: dict[int, list[int]] = {}
        for op in self.numbering.grouped:
            members.setdefault(op.attrs["group_id"], []).append(self.holders[self.value_numbers[op.operands[0]]])
        return tuple(tuple(members[group_id]) for group_id in sorted(members))


def _is_alike(op: Op, other: Op) -> bool:
    """Whether two ops without regions have one name, the same types, and attributes that they share."""
    if op.attrs is not other.attrs or op.name != other.name or op.regions:
        return False
    return _have_same_types(op.operands, other.operands) and _have_same_types(op.results, other.results)


def _have_same_types(values: tuple[Value, ...], others: tuple[Value, ...]) -> bool:
    if len(values) != len(others):
        return False
    for place in range(len(values)):
        value, other = values[place], others[place]
        if value.type is not other.type:
            return False
    return True


def _view(edge: Op) -> View | None:
    """The view of an edge of a manual computation."""
    owner = edge.operands[0]
    op = owner.defining_op
    computation = op if op is not None else owner.block.parent_op
    if computation.name != "sdy.manual_computation":
        return None
    shardings = computation.attrs["in_shardings" if op is None else "out_shardings"]
    return View(op is None, shardings[owner.index], computation.attrs["manual_axes"])
