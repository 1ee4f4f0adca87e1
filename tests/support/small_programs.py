"""Small `Program`s built op by op, for tests of propagation without MLIR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.program import Direction, FunctionResult, ManualView, OpKind, OpNode, Program, ValueInfo
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import Rule
from pyshardy.rules.rule_builder import identity_rule

Shape = tuple[int, ...]
FUNCTION = 0
"""Number of the function around everything."""


class Builder:
    """One main function, written from top to bottom; values and ops are numbers.

    Shardings are given as what follows the name of the mesh, `[{"p"}, {?}]`, or with it, `<@other, [{?}]>`.

    Args:
        meshes: The meshes by name; the first is that of shardings that name none.
    """

    def __init__(self, **meshes: Mesh) -> None:
        self.meshes: Mapping[str, Mesh] = meshes
        self.ops: list[OpNode] = [OpNode(OpKind("func.func"), (), ())]
        self.shapes: list[Shape | None] = []
        self.owners: list[int] = []
        self.shardings: list[TensorSharding | None] = []
        self.holders: dict[int, int] = {}
        self.groups: list[tuple[int, ...]] = []
        self.main_results: list[FunctionResult] = []
        self._siblings: dict[int, tuple[int, ...]] = {}
        self._edges: dict[int, int] = {}
        self._pushed: dict[tuple[int, int], int | None] = {}
        self._parent = FUNCTION

    def sharding(self, text: str | None) -> TensorSharding | None:
        """The sharding that a text stands for."""
        if text is None:
            return None
        return parse_sharding(text if text.startswith("<") else f"<@{next(iter(self.meshes))}, {text}>")

    def value(self, shape: Shape | None, sharding: str | None = None, owner: int | None = None) -> int:
        """A value that no op computes: an argument of the function, or of the block of `owner`."""
        self.shapes.append(shape)
        self.shardings.append(self.sharding(sharding))
        self.owners.append(self._parent if owner is None else owner)
        return len(self.shapes) - 1

    def op(
        self,
        name: str,
        rule: str | Rule | None,
        *operands: int,
        shardings: Sequence[str | None] = (),
        results: Sequence[Shape | None] | None = None,
        **properties: Any,
    ) -> list[int]:
        """An op and its results; it goes away when they are unused, unless `is_erasable=False`.

        Args:
            name: Its name.
            rule: Its rule, which also gives the shapes of the results.
            operands: What it uses.
            shardings: Shardings of the results.
            results: Shapes of the results, if there is no rule.
            properties: Further fields of `OpNode`.
        """
        found = parse_rule(rule) if isinstance(rule, str) else rule
        if results is None:
            assert found is not None
            results = [tuple(prod(found.factor_sizes[f] for f in dim) for dim in tensor) for tensor in found.results]
        number = len(self.ops)
        given = [*shardings, *[None] * (len(results) - len(shardings))]
        values = [self.value(shape, text, number) for shape, text in zip(results, given)]
        for value in values:
            self._siblings[value] = tuple(other for other in values if other != value)
        properties = {"is_erasable": True, "parent": self._parent} | properties
        own = {field: properties.pop(field) for field in ("tensors", "parent", "view") if field in properties}
        self.ops.append(OpNode(OpKind(name, found, **properties), operands, tuple(values), **own))
        return values

    def elementwise(self, *operands: int, sharding: str | None = None) -> int:
        """An element-wise op on operands of one shape."""
        shape = self.shapes[operands[0]]
        assert shape is not None
        rule = identity_rule(shape, len(operands))
        properties = {"priority": Priority.PASS_THROUGH, "is_elementwise": True}
        return self.op("elementwise", rule, *operands, shardings=[sharding], **properties)[0]

    def transpose(self, operand: int, sharding: str | None = None) -> int:
        """A transposed square matrix."""
        size = self.shapes[operand][0]
        rule = f"<([j, i])->([i, j]) {{i={size}, j={size}}}>"
        return self.op("transpose", rule, operand, shardings=[sharding], priority=Priority.PASS_THROUGH)[0]

    def dot(self, left: int, right: int, sharding: str | None = None) -> int:
        """The product of two matrices."""
        (rows, inner), (_, columns) = self.shapes[left], self.shapes[right]
        rule = f"<([i, k], [k, j])->([i, j]) {{i={rows}, j={columns}, k={inner}}} reduction={{k}}>"
        return self.op("dot", rule, left, right, shardings=[sharding])[0]

    def constraint(self, operand: int, sharding: str) -> int:
        """A sharding constraint."""
        rule = identity_rule(self.shapes[operand])
        properties = {"priority": Priority.PASS_THROUGH, "is_elementwise": True, "is_erasable": False}
        return self.op("constraint", rule, operand, shardings=[sharding], **properties)[0]

    def barrier(self, operand: int, direction: Direction) -> int:
        """A propagation barrier."""
        rule = identity_rule(self.shapes[operand])
        properties = {"direction": direction, "is_elementwise": True, "ignores_conservative": True}
        return self.op("barrier", rule, operand, priority=Priority.FIXED, **properties)[0]

    def edge(
        self,
        owner: int,
        *sources: tuple[int, int],
        sharding: str | None = None,
        view: ManualView | None = None,
        recognised: bool = True,
    ) -> int:
        """A data-flow edge that holds the sharding of `owner`.

        Args:
            owner: The value.
            sources: Op and operand number of every other value that the edge stands for.
            sharding: The sharding of the edge.
            view: For a manual computation.
            recognised: Whether a change of a source has the edge looked at again, as for all but the operands of
                manual and named computations.
        """
        shape = self.shapes[owner]
        assert shape is not None
        number = len(self.ops)
        properties = {"priority": Priority.PASS_THROUGH, "ignores_conservative": True, "is_erasable": False}
        (value,) = self.op("edge", None, owner, results=[shape], shardings=[sharding], **properties)
        self.holders[owner] = value
        self._edges[number] = len(sources)
        if recognised:
            self._pushed.update(dict.fromkeys(sources, number))
        tensors = (*(self._held(self.ops[op].operands[index]) for op, index in sources), value)
        rule = identity_rule(shape, len(sources))
        self.ops[number] = self.ops[number]._replace(
            kind=self.ops[number].kind._replace(rule=rule), tensors=tensors, view=view
        )
        return value

    @contextmanager
    def inside(self, op: int) -> Iterator[None]:
        """Ops that are added in the `with` block go into a region of `op`."""
        before, self._parent = self._parent, op
        yield
        self._parent = before

    def terminator(self, *operands: int) -> int:
        """Add the terminator of the current region; return its number."""
        number = len(self.ops)
        self.op("terminator", None, *operands, results=[], is_erasable=False)
        for index in range(len(operands)):
            self._pushed[number, index] = self._parent
        return number

    def returns(self, *values: int, shardings: Sequence[str | None] = ()) -> list[int]:
        """Add the end of the function; return the pseudo-values of its results."""
        number = len(self.ops)
        self.op("func.return", None, *values, results=[], is_erasable=False)
        for index in range(len(values)):
            self._pushed[number, index] = None
        given = [*shardings, *[None] * (len(values) - len(shardings))]
        results = [self.value(self.shapes[value], text) for value, text in zip(values, given)]
        self.main_results += [
            FunctionResult(value, result) for value, result in zip(values, results) if self.shapes[value] is not None
        ]
        return results

    def _held(self, value: int) -> int:
        return self.holders.get(value, value)

    def build(self) -> Program:
        """The program."""
        uses: list[list[tuple[int, int]]] = [[] for _ in self.shapes]
        for number, op in enumerate(self.ops):
            for index, value in enumerate(op.operands):
                uses[value].insert(0, (number, index))
        ops = [op if op.rule is None or op.tensors else op._replace(tensors=self._tensors(op)) for op in self.ops]
        values = []
        for value, shape in enumerate(self.shapes):
            pushed = [self._pushed.get(use, use[0]) for use in uses[value]]
            notified = (self.owners[value], *(number for number in pushed if number is not None))
            users = tuple(number for number, _ in uses[value])
            siblings = self._siblings.get(value, ())
            values.append(ValueInfo(shape, self._held(value), self.owners[value], users, notified, siblings))
        return Program.of(
            self.meshes, tuple(values), tuple(ops), tuple(self.shardings), tuple(self.main_results), tuple(self.groups)
        )

    def _tensors(self, op: OpNode) -> tuple[int, ...]:
        return tuple(self._held(value) for value in (*op.operands, *op.results))
