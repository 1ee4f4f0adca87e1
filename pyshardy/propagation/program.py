"""`Program`: values and ops by number, with all that propagation needs and nothing of MLIR.

Values are numbered in the order in which they appear, function results after all others. Shardings live on
*holders*. A data-flow edge's result holds the sharding of the values that the edge stands for; most other values
hold their own; some (arguments of a reducer's body) have no holder.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.lists import NUMBER, Lists
from pyshardy.rules.properties import Priority
from pyshardy.rules.rule import Rule, Shape

NO_VALUE = -1
"""Means "no holder": the sharding of such a value is absent and cannot be set."""


class Direction(IntEnum):
    """The sides of an op between which shardings move; the numbers are those of the `sdy` dialect."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


class ManualView(NamedTuple):
    """How the edge of a manual computation sees the sharding on its other side.

    Source: docs/semantics/propagation.md#manual-computations

    Attributes:
        is_argument: Whether the edge belongs to a block argument, whose sharding is held without the manual axes; the
            sharding of a result is held with them.
        outer: The in- or out-sharding of the computation.
        manual_axes: Names of its manual axes.
    """

    is_argument: bool
    outer: TensorSharding
    manual_axes: tuple[str, ...]


class OpKind(NamedTuple):
    """The properties that many ops of a program share.

    Attributes:
        name: Full name, "stablehlo.add".
        rule: The sharding rule, for a data-flow edge the identity; None if nothing propagates here.
        priority: How it takes part in op-priority propagation.
        direction: The direction of a `Priority.FIXED` op.
        is_elementwise: Whether conflicts are resolved as for element-wise ops.
        ignores_conservative: Whether conservative mode does not affect it, as for edges and barriers.
        is_erasable: Whether it is removed when nothing uses its results.
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
        kind: The properties that it shares with other ops.
        operands: Numbers of the values it uses.
        results: Numbers of its results.
        tensors: Holders of the tensors of the rule, operands first; for an edge, of its sources and itself.
        parent: Number of the op around it, -1 at the top level.
        view: The view of a manual computation's edge, else None.
    """

    kind: OpKind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    tensors: tuple[int, ...] = ()
    parent: int = -1
    view: ManualView | None = None

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
        notified: The ops to visit again when its sharding changes, in the order of the visits; its owner is one of
            them. Only filled for holders.
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
    """A returned value of the main function, and the pseudo-value that holds the sharding of the result."""

    returned: int
    result: int


@dataclass(frozen=True, slots=True)
class Program:
    """A whole module in columns: one entry per op or value, by number; `OpNode` and `ValueInfo` document the entries.

    Attributes:
        meshes: The meshes by name.
        kinds: The different kinds of ops.
        kind_of: Per op, the number of its kind.
        operands: Per op, the values it uses.
        results: Per op, its results.
        tensors: Per op, the holders of the tensors of its rule.
        parents: Per op, the op around it; each stands before those inside it.
        views: The view of every edge of a manual computation.
        shapes: Per value, its static shape.
        holders: Per value, the value that holds its sharding.
        owners: Per value, the op that defines it or that its block belongs to.
        users: Per value, the op of every use.
        notified: Per value, the ops to visit again when its sharding changes, if they are others than its owner and its
            users.
        siblings: Per value whose sharding is stored in a list, the other values of that list.
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
    views: Mapping[int, ManualView]
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
        """The ops to visit again when the sharding of a value changes, in that order."""
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


def is_same_program(one: Program, other: Program) -> bool:
    """Whether two programs are the same in all that propagation looks at.

    >>> empty = Program.of({}, [], [], [])
    >>> is_same_program(empty, Program.of({}, [], [], []))
    True
    >>> is_same_program(empty, Program.of({}, [], [], [], groups=((0,),)))
    False
    """
    return all(_is_same(getattr(one, name), getattr(other, name)) for name in Program.__dataclass_fields__)


def _is_same(one: object, other: object) -> bool:
    if isinstance(one, Lists) and isinstance(other, Lists):
        return one.numbers == other.numbers and one.starts == other.starts
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and list(one) == list(other)
    return one == other
