"""`Program`: values and ops by number, with all that propagation needs and nothing of MLIR.

Values are numbered in the order in which they appear, function results after all others. Shardings live on
*holders*: a value that a data-flow edge stands for is held by the edge's result, most values by themselves,
and some (arguments of a reducer's body) by nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.graph.lists import NUMBER, Lists
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import Rule, Shape

NO_VALUE = -1
"""Stands for "no holder": the sharding of such a value is absent and cannot be set."""


class Direction(IntEnum):
    """Between which sides of an op shardings move; the numbers are those of the `sdy` dialect."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


class View(NamedTuple):
    """How the edge of a manual computation sees shardings on its other side.

    Source: docs/semantics/propagation.md#manual-computations

    Attributes:
        is_argument: Whether the edge is that of a block argument, which is held without the manual axes;
            otherwise that of a result, which is held with them.
        outer: The in- or out-sharding of the computation.
        manual_axes: Names of its manual axes.
    """

    is_argument: bool
    outer: TensorSharding
    manual_axes: tuple[str, ...]


class OpKind(NamedTuple):
    """What many ops of a program share.

    Attributes:
        name: Full name, "stablehlo.add".
        rule: The sharding rule, which for a data-flow edge is the identity; None if nothing propagates here.
        priority: How it takes part in op-priority propagation.
        direction: The direction of a `Priority.FIXED` op.
        is_elementwise: Whether conflicts are resolved as for element-wise ops.
        ignores_conservative: Whether conservative propagation does not apply: edges, barriers.
        is_erasable: Whether it goes away when nothing uses its results.
    """

    name: str
    rule: Rule | None = None
    priority: Priority = Priority.OTHER
    direction: Direction = Direction.BOTH
    is_elementwise: bool = False
    ignores_conservative: bool = False
    is_erasable: bool = False


class OpNode(NamedTuple):
    """One op, as propagation sees it.

    Attributes:
        kind: What it shares with other ops.
        operands: Numbers of the values it uses.
        results: Numbers of its results.
        tensors: Holders of the tensors of the rule, operands first; for an edge, of its sources and itself.
        parent: Number of the op around it, -1 at the top.
        view: For an edge of a manual computation.
    """

    kind: OpKind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    tensors: tuple[int, ...] = ()
    parent: int = -1
    view: View | None = None

    @property
    def name(self) -> str:
        """Full name."""
        return self.kind.name

    @property
    def rule(self) -> Rule | None:
        """The sharding rule."""
        return self.kind.rule


class ValueInfo(NamedTuple):
    """One value.

    Attributes:
        shape: Its static shape; None for tokens and the like.
        holder: The value that holds its sharding, `NO_VALUE` if none does.
        owner: The op that defines it, or the op around the block it is an argument of.
        users: The op of every use, in use-list order.
        notified: The ops to look at again when its sharding changes, in that order; the owner stands where it
            is to be pushed. Only filled for holders.
        siblings: The values whose shardings are stored in one list with its own; setting one makes the others
            explicitly open.
    """

    shape: Shape
    holder: int
    owner: int
    users: tuple[int, ...] = ()
    notified: tuple[int, ...] = ()
    siblings: tuple[int, ...] = ()


class FunctionResult(NamedTuple):
    """A returned value of the main function and the pseudo-value that holds the sharding of the result."""

    returned: int
    result: int


@dataclass(frozen=True, slots=True)
class Program:
    """A whole module, in columns: one entry per op, or per value, by number (`OpNode` and `ValueInfo` say of what).

    Attributes:
        meshes: The meshes by name.
        kinds: The different kinds of ops.
        kind_of: Per op, the number of its kind.
        operands: Per op, the values it uses.
        results: Per op, its results.
        tensors: Per op, the holders of the tensors of its rule.
        parents: Per op, the op around it; each stands before those inside it.
        views: The edges of manual computations, with what they see.
        shapes: Per value, its static shape.
        holders: Per value, the value that holds its sharding.
        owners: Per value, the op that defines it or that its block belongs to.
        users: Per value, the op of every use.
        notified: Per value for which it is not its owner and its users, the ops to look at again when its sharding
            changes.
        siblings: The values whose shardings are stored in a list, with the others of it.
        shardings: Per value, the sharding it holds.
        main_results: What the main function returns.
        groups: Per sharding group, the holders of its members.
    """

    meshes: Mapping[str, Mesh]
    kinds: Sequence[OpKind]
    kind_of: array[int]
    operands: Lists
    results: Lists
    tensors: Lists
    parents: Sequence[int]
    views: Mapping[int, View]
    shapes: Sequence[Shape]
    holders: array[int]
    owners: array[int]
    users: Lists
    notified: Mapping[int, tuple[int, ...]]
    siblings: Mapping[int, tuple[int, ...]]
    shardings: Sequence[TensorSharding | None]
    main_results: tuple[FunctionResult, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(
        cls,
        meshes: Mapping[str, Mesh],
        values: Sequence[ValueInfo],
        ops: Sequence[OpNode],
        shardings: Sequence[TensorSharding | None],
        main_results: tuple[FunctionResult, ...] = (),
        groups: tuple[tuple[int, ...], ...] = (),
    ) -> Program:
        """The program of these values and ops."""
        kinds: dict[OpKind, int] = {}
        return cls(
            meshes=meshes,
            kind_of=array(NUMBER, [kinds.setdefault(op.kind, len(kinds)) for op in ops]),
            kinds=list(kinds),
            operands=Lists.of(op.operands for op in ops),
            results=Lists.of(op.results for op in ops),
            tensors=Lists.of(op.tensors for op in ops),
            parents=[op.parent for op in ops],
            views={number: op.view for number, op in enumerate(ops) if op.view is not None},
            shapes=[value.shape for value in values],
            holders=array(NUMBER, [value.holder for value in values]),
            owners=array(NUMBER, [value.owner for value in values]),
            users=Lists.of(value.users for value in values),
            notified={
                number: value.notified
                for number, value in enumerate(values)
                if value.notified != (value.owner, *value.users)
            },
            siblings={number: value.siblings for number, value in enumerate(values) if value.siblings},
            shardings=shardings,
            main_results=main_results,
            groups=groups,
        )

    @property
    def ops(self) -> tuple[OpNode, ...]:
        """All ops, each before those inside it."""
        return tuple(
            OpNode(
                self.kinds[kind],
                self.operands[number],
                self.results[number],
                self.tensors[number],
                self.parents[number],
                self.views.get(number),
            )
            for number, kind in enumerate(self.kind_of)
        )

    @property
    def values(self) -> tuple[ValueInfo, ...]:
        """All values."""
        return tuple(
            ValueInfo(
                shape,
                self.holders[number],
                self.owners[number],
                self.users[number],
                self.to_revisit(number),
                self.siblings.get(number, ()),
            )
            for number, shape in enumerate(self.shapes)
        )

    def to_revisit(self, value: int) -> tuple[int, ...]:
        """The ops to look at again when the sharding of a value changes, in that order."""
        found = self.notified.get(value)
        return (self.owners[value], *self.users[value]) if found is None else found

    def kind(self, op: int) -> OpKind:
        """The kind of an op."""
        return self.kinds[self.kind_of[op]]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        depth = {-1: -1}
        for number, op in enumerate(self.ops):
            depth[number] = depth[op.parent] + 1
            results = ", ".join(f"v{value}" for value in op.results)
            operands = ", ".join(f"v{value}" for value in op.operands)
            shardings = [str(self.shardings[value]) for value in op.results if self.shardings[value] is not None]
            line = f"{results} = " if results else ""
            yield "  " * depth[number] + f"{line}{op.name}({operands})" + "".join(f" {text}" for text in shardings)
