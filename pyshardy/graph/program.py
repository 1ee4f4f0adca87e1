"""`Program`: values and ops by number, with all that propagation needs and nothing of MLIR.

Values are numbered in the order in which they appear, function results after all others. Shardings live on
*holders*: a value that a data-flow edge stands for is held by the edge's result, most values by themselves,
and some (arguments of a reducer's body) by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
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
    """How the edge of a manual computation sees shardings on its other side (propagation spec, section 5.3).

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
    """A whole module.

    Attributes:
        meshes: The meshes by name.
        values: All values.
        ops: All ops, each before those inside it.
        shardings: Per value, the sharding it holds.
        main_results: What the main function returns.
        groups: Per sharding group, the holders of its members.
    """

    meshes: Mapping[str, Mesh]
    values: tuple[ValueInfo, ...]
    ops: tuple[OpNode, ...]
    shardings: tuple[TensorSharding | None, ...]
    main_results: tuple[FunctionResult, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

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
