"""What writes a random program line by line: what it may hold, and the values that can be used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding

from .random_shardings import random_sharding

SIZES = (1, 2, 2, 3, 4, 4, 6, 8, 8, 12, 16)
Shape = tuple[int, ...]


def tensor(shape: Shape, element: str = "f32") -> str:
    """The text of a tensor type."""
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


@dataclass(frozen=True)
class Features:
    """What a program may hold; the numbers are probabilities.

    Attributes:
        ops: Number of ops of the main function, from a few to a few hundred.
        control_flow: Loops, branches, barriers.
        calls: Calls of shared functions.
        manual: Manual computations.
        constraints: Sharding constraints and propagation barriers.
        groups: Sharding groups.
        annotated: Ops with a sharding of their own.
        priorities: Dimensions with a user priority.
        unreduced: Axes not used by a sharding that are unreduced.
        meshes: Number of meshes.
        without: Names of ops that are left out, such as "reshape".
    """

    ops: int = 15
    control_flow: float = 0.08
    calls: float = 0.06
    manual: float = 0.04
    constraints: float = 0.1
    groups: float = 0.03
    annotated: float = 0.1
    priorities: float = 0.0
    unreduced: float = 0.0
    meshes: int = 1
    without: frozenset[str] = frozenset()


@dataclass
class Writer:
    """Lines of one function under construction and the values that can be used.

    Attributes:
        random: The source of all choices.
        features: What may be made.
        meshes: The meshes by name.
        lines: What has been written.
        values: Name and shape of every usable value.
        taken: Axes that are manual around here.
    """

    random: Random
    features: Features
    meshes: dict[str, Mesh]
    functions: list[str]
    lines: list[str] = field(default_factory=list)
    values: list[tuple[str, Shape]] = field(default_factory=list)
    callees: list[tuple[str, list[Shape], Shape]] = field(default_factory=list)
    counter: int = 0
    depth: int = 0
    taken: frozenset[str] = frozenset()

    def fresh(self) -> str:
        self.counter += 1
        return f"%{'abcdefgh'[min(self.depth, 7)]}{self.counter}"

    def sharding(self, rank: int, **chances: float) -> TensorSharding:
        """A random sharding on a random mesh, without axes that are manual around here."""
        name = self.random.choice(list(self.meshes))
        mesh = Mesh([axis for axis in self.meshes[name].axes if axis[0] not in self.taken])
        chances = {"priorities": self.features.priorities, "unreduced": self.features.unreduced, **chances}
        return random_sharding(self.random, name, mesh, rank, **chances)

    def annotation(self, rank: int) -> str:
        """The attribute of an op that is annotated, or nothing."""
        if self.random.random() >= self.features.annotated:
            return ""
        # Without priorities: the reference crashes on a dead op that has one.
        return f"sdy.sharding = #sdy.sharding_per_value<[{self.sharding(rank, priorities=0.0)}]>"

    def pick(self, want: Callable[[Shape], bool] = lambda shape: True) -> tuple[str, Shape] | None:
        """A random value whose shape is wanted, recent ones more often."""
        found = [value for value in self.values if want(value[1])]
        if not found:
            return None
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def emit(self, text: str, shape: Shape | None = None, result: str = "", attrs: str = "") -> None:
        """Write an op; `text` has `{attrs}` where an attribute dictionary may stand."""
        inside = ", ".join(part for part in (attrs, self.annotation(len(shape)) if shape is not None else "") if part)
        body = text.replace("{attrs}", f" {{{inside}}}" if inside else "")
        self.lines.append("  " * self.depth + (f"{result} = " if result else "") + body)
        if shape is not None:
            self.values.append((result, shape))

    def generic(self, name: str, operands: list[tuple[str, Shape]], shape: Shape, properties: str = "") -> None:
        """Write an op with one result in generic form."""
        names = ", ".join(operand for operand, _ in operands)
        types = ", ".join(tensor(operand_shape) for _, operand_shape in operands)
        inner = f" <{{{properties}}}>" if properties else ""
        self.emit(f'"stablehlo.{name}"({names}){inner}{{attrs}} : ({types}) -> {tensor(shape)}', shape, self.fresh())

    def of_shape(self, shape: Shape) -> str:
        """A value of this shape, made if there is none."""
        found = self.pick(lambda other: other == shape)
        if found and self.random.random() < 0.9:
            return found[0]
        self.emit(f"stablehlo.constant dense<3.0> : {tensor(shape)}", shape, name := self.fresh())
        return name

    def attribute(self, shape: Shape, chance: float) -> str:
        """With this chance, the attributes of an argument or result that give it a random sharding."""
        if self.random.random() >= chance:
            return ""
        return f" {{sdy.sharding = #sdy.sharding{self.sharding(len(shape))}}}"
