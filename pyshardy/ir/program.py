# cython: boundscheck=False, initializedcheck=False
"""From nodes to the flat `Program` for propagation."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.blocks import Value
from pyshardy.ir.callers import Callers
from pyshardy.ir.edge_tensors import EdgeTensors
from pyshardy.ir.functions import RULE, SHARDING, functions, is_declaration, main_function, result_sharding, return_op
from pyshardy.ir.numbering import Numbering
from pyshardy.ir.op import Op
from pyshardy.ir.op_kinds import OpKinds
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.ir.purity import is_pure
from pyshardy.ir.revisits import Revisits
from pyshardy.ir.shardings import holder_of, module_meshes, stored_sharding
from pyshardy.propagation.lists import Lists, zeros
from pyshardy.propagation.program import NO_VALUE, FunctionResult, Program
from pyshardy.rules.properties import EDGES

_COMPARABLE, _SHARDED, _EDGE = 1, 2, 4
"""Bits of an op: name, types and attributes alone decide its kind; it has a sharding; it is a data-flow edge."""
_TOO_MANY = "uses that are not operands"


def _counting(count: int) -> array[int]:
    """The numbers from 0 to `count - 1`."""
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
        PassError: An op has a sharding rule that does not fit it.
    """
    return _Builder(root, specs, conservative).build()


class _Builder:
    """Describes the ops and values of a module by number; it looks at ops of one kind once."""

    def __init__(self, root: Op, specs: OpSpecReader, conservative: bool) -> None:
        self.root = root
        self.specs = specs
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
        self.kinds = OpKinds(specs, conservative)
        self.latest: list[int] = []  # per kind, the last op that was looked up
        self.forms = bytearray(len(self.ops))
        self.kind_of = zeros(len(self.ops))
        self.parents = zeros(len(self.ops))
        self.owners = zeros(len(self.values))
        self.unknown: list[Op] = []
        edges = EdgeTensors(numbering, self.holders, self.callers, self.kinds)
        self.edges = {self.op_numbers[op]: edges.of(op) for op in numbering.edges}
        self.views = edges.views

    def build(self) -> tuple[Program, ProgramIndex]:
        self.find_kinds()
        operands, results, tensors = self.fill_lists()
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
            kinds=self.kinds.known,
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
        index = ProgramIndex(self.ops, places, self.kinds.known, self.kind_of, self.unknown, self.has_rules)
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
                if place + len(few) // 2 > limit:  # the compiled core does not check indices
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

    def find_kinds(self) -> None:
        """Record the kind and the parent of every op, and collect ops without a rule and with a sharding."""
        kinds, kind_of, parents, forms, ops = self.kinds, self.kind_of, self.parents, self.forms, self.ops
        rules, known_names, latest = kinds.rules, kinds.known_names, self.latest
        op_numbers, holding, unknown = self.op_numbers, self.numbering.holding, self.unknown
        around, parent, ahead = None, -1, 0
        # Layers repeat: if an op equals an earlier one, the next op mostly equals the one after that earlier op.
        for number, op in enumerate(ops):
            block = op.block
            if block is not around:
                around = block
                parent = -1 if block is None else op_numbers[block.parent_op]
            parents[number] = parent
            form = forms[ahead] if ahead < number else 0
            if form & _COMPARABLE and _is_alike(op, ops[ahead]):
                kind = kind_of[ahead]
                forms[number] = form
                ahead += 1
            else:
                kind = self.look_up(number, op)
                form = forms[number]
                while len(latest) <= kind:
                    latest.append(-1)
                ahead = 1 + (ahead if ahead < number and kind_of[ahead] == kind else latest[kind])
                latest[kind] = number
            kind_of[number] = kind
            if form & _SHARDED:
                holding.append(op)
            if rules[kind] is None and not form & _EDGE and op.name not in known_names and not kinds.is_known(op):
                unknown.append(op)

    def look_up(self, number: int, op: Op) -> int:
        """The kind of an op; also records its form."""
        attrs, form = op.attrs, 0
        rule = attrs.get(RULE)
        if rule is not None:
            self.has_rules = True
        if SHARDING in attrs and not op.regions:
            form = _SHARDED
        if op.name in EDGES:
            self.forms[number] = form | _EDGE
            kind, _ = self.edges[number]
            return kind
        key = self.specs.shape_key(op, rule)
        if key is not None:
            if op.regions:
                key = key, is_pure(op)  # the kind depends on nothing else inside the op
            else:
                form |= _COMPARABLE
        self.forms[number] = form
        found = self.kinds.numbers.get(key)
        return self.kinds.of(op, key) if found is None else found

    def fill_lists(self) -> tuple[Lists, Lists, Lists]:
        """The operands, the results and the tensors of every op; also records the owner of every value."""
        numbering, value_numbers, owners, holders = self.numbering, self.value_numbers, self.owners, self.holders
        rules, kind_of, forms, edges = self.kinds.rules, self.kind_of, self.forms, self.edges
        count, values, uses = len(self.ops), len(self.values), numbering.uses
        edge_tensors = sum([len(found) for _, found in edges.values()])
        lists = Lists.empty(count, uses), Lists.empty(count, values), Lists.empty(count, uses + values + edge_tensors)
        operands, results, tensors = lists[0].numbers, lists[1].numbers, lists[2].numbers
        operand_starts, result_starts, tensor_starts = lists[0].starts, lists[1].starts, lists[2].starts
        used = defined = joined = 0
        for number, op in enumerate(self.ops):
            is_edge = forms[number] & _EDGE
            has_tensors = not is_edge and rules[kind_of[number]] is not None
            for mark in edges[number][1] if is_edge else ():
                tensors[joined] = mark
                joined += 1
            for value in op.operands:
                mark = value_numbers[value]
                operands[used] = mark
                used += 1
                if has_tensors:
                    tensors[joined] = holders[mark]
                    joined += 1
            for value in op.results:
                mark = value_numbers[value]
                owners[mark] = number
                results[defined] = mark
                defined += 1
                if has_tensors:
                    tensors[joined] = holders[mark]
                    joined += 1
            operand_starts[number + 1], result_starts[number + 1], tensor_starts[number + 1] = used, defined, joined
        for value in numbering.args:
            owners[value_numbers[value]] = self.op_numbers[value.block.parent_op]
        return lists

    def notified(self) -> dict[int, tuple[int, ...]]:
        """The ops to visit again after a new sharding, for values for which they are not the owner and the users."""
        holders, values = self.holders, self.values
        found: dict[int, tuple[int, ...]] = {}
        for number in dict.fromkeys([self.value_numbers[value] for value in self.numbering.crossing]):
            if holders[number] == number:
                found[number] = self.notifications.of(values[number])
        found |= dict.fromkeys(self.elsewhere, ())
        return found

    def shardings(self) -> list[TensorSharding | None]:
        """Per value, the sharding that it holds."""
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

    def siblings(self, value: Value) -> tuple[int, ...]:
        """The other values whose shardings are stored in one list with the sharding of `value`."""
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
    """Whether two ops without regions have the same name and types, and share their attributes."""
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
