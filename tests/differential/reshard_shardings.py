"""Putting random closed shardings on every value of a module."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import sort_and_merge
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.functions import is_declaration, return_op, set_arg_sharding, set_result_sharding
from pyshardy.ir.nodes import Op, Value, ValueType, walk

_AXES: Sequence[Sequence[tuple[str, int]]] = (
    (("a", 2), ("b", 2), ("c", 2)),
    (("a", 2), ("b", 4)),
    (("b", 4), ("a", 2), ("c", 2)),
    (("a", 3), ("b", 2), ("c", 2)),
    (("a", 6), ("b", 2)),
    (("a", 8), ("b", 3)),
    (("a", 2), ("b", 1), ("c", 4)),
)
_SCOPES = frozenset(
    f"{name}"
    for name in (
        "func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation",
        "sdy.named_computation",
    )
)  # fmt: skip
"""Ops in whose regions values have shardings."""


@dataclass(frozen=True)
class Style:
    """Which shardings there are; the numbers are probabilities.

    Attributes:
        missing: A value without a sharding.
        density: An axis that shards some dimension.
        repeat: A sharding that a value of the same rank already has.
        sub_axes: An axis that is cut.
        unreduced: A sharding with unreduced axes.
        replicated: A sharding with explicit replicated axes.
        single_device: A result on one device.
        other_mesh: A sharding on another mesh than the first.
        kinds: How partial values combine.
    """

    missing: float = 0.2
    density: float = 0.5
    repeat: float = 0.4
    sub_axes: float = 0.15
    unreduced: float = 0.0
    replicated: float = 0.0
    single_device: float = 0.0
    other_mesh: float = 0.0
    kinds: tuple[ReductionKind, ...] = (ReductionKind.SUM,)


class Sharder:
    """Makes shardings for one module.

    Args:
        random: The source of all choices.
        style: What to make.
        meshes: The meshes by name, the first the most usual one; made up if there are none.
    """

    def __init__(self, random: Random, style: Style, meshes: dict[str, Mesh] | None = None) -> None:
        self.random = random
        self.style = style
        self.meshes = meshes or _random_meshes(random)
        self.on_axes = [name for name, mesh in self.meshes.items() if mesh.axes]
        self.on_device = [name for name, mesh in self.meshes.items() if mesh.is_single_device]
        self.made: dict[tuple[int, frozenset[str]], list[TensorSharding]] = {}

    def shard(self, root: Op) -> None:
        """Shard all functions of a module in place, and declare the meshes in front."""
        for op in root.region.block:
            if op.name == "sdy.mesh":
                op.erase()
        for name, mesh in reversed(self.meshes.items()):
            root.region.block.prepend(Op("sdy.mesh", attrs={"sym_name": name, "mesh": mesh}, location=root.location))
        for op in walk(root):
            if op.name == "func.func":
                self._shard_function(op)
            elif op.parent_op is not None and op.parent_op.name in _SCOPES:
                self._shard_op(op)

    def _shard_function(self, function: Op) -> None:
        if is_declaration(function):
            return
        for arg in function.region.blocks[0].args:
            set_arg_sharding(function, arg.index, self.maybe(arg.type))
        for index, value in enumerate(return_op(function).operands):
            set_result_sharding(function, index, self.maybe(value.type))

    def _shard_op(self, op: Op) -> None:
        manual = frozenset(
            name
            for outer in op.ancestors()
            if outer.name == "sdy.manual_computation"
            for name in outer.attrs["manual_axes"]
        )
        if op.name in ("sdy.reshard", "sdy.sharding_constraint"):
            op.set_attr("sharding", self.sharding(op.result.type, manual))
        elif op.name == "sdy.named_computation":
            for name, values in (("in_shardings", op.operands), ("out_shardings", op.results)):
                if values and self.random.random() < 0.8:
                    op.set_attr(name, self._list(values, manual))
        elif (
            op.results
            and op.name not in ("sdy.manual_computation", "stablehlo.tuple")
            and self.random.random() >= self.style.missing
        ):
            op.set_attr("sdy.sharding", self._list(op.results, manual, may_be_single=not manual))

    def _list(
        self, values: Sequence[Value], manual: Collection[str], may_be_single: bool = False
    ) -> tuple[TensorSharding, ...]:
        found = [self.sharding(value.type, manual) for value in values]
        if may_be_single and self.on_device and self.random.random() < self.style.single_device:
            for index in range(len(found)):
                if self.random.random() < 0.7:
                    found[index] = TensorSharding(self.random.choice(self.on_device))
        if len(found) > 1 and any(sharding.unreduced for sharding in found) and self.random.random() < 0.9:
            found = [sharding.with_unreduced(()) for sharding in found]
        return tuple(found)

    def maybe(self, type: ValueType, manual: Collection[str] = ()) -> TensorSharding | None:
        """A sharding, or none."""
        return None if self.random.random() < self.style.missing else self.sharding(type, manual)

    def sharding(self, type: ValueType, manual: Collection[str] = ()) -> TensorSharding:
        """A sharding of a value of this type, without the axes that are manual around it."""
        if type.shape is None:
            return TensorSharding(self.on_axes[0])
        made = self.made.setdefault((type.rank, frozenset(manual)), [])
        if made and self.random.random() < self.style.repeat:
            return self.random.choice(made)
        while True:
            try:
                made.append(self._new(type.rank, manual))
                return made[-1]
            except InvalidShardingError:
                continue

    def _new(self, rank: int, manual: Collection[str]) -> TensorSharding:
        random, style = self.random, self.style
        others = self.on_axes[1:]
        name = random.choice(others) if others and random.random() < style.other_mesh else self.on_axes[0]
        mesh = self.meshes[name]
        dims: list[list[AxisRef]] = [[] for _ in range(rank)]
        free: list[AxisRef] = []
        for piece in self._pieces(mesh, manual):
            if rank and random.random() < style.density:
                random.choice(dims).append(piece)
            else:
                free.append(piece)
        unreduced = [piece for piece in free if random.random() < 0.6] if random.random() < style.unreduced else []
        rest = [piece for piece in free if piece not in unreduced]
        replicated = [piece for piece in rest if random.random() < style.replicated]
        return TensorSharding(
            name,
            [DimSharding(axes) for axes in dims],
            sort_and_merge(replicated, mesh),
            sort_and_merge(unreduced, mesh),
            random.choice(style.kinds) if unreduced else ReductionKind.SUM,
        )

    def _pieces(self, mesh: Mesh, manual: Collection[str]) -> list[AxisRef]:
        pieces: list[AxisRef] = []
        for name, size in mesh.axes:
            if name in manual:
                continue
            cuts = [factor for factor in range(2, size) if size % factor == 0]
            if cuts and self.random.random() < self.style.sub_axes:
                cut = self.random.choice(cuts)
                pieces += [AxisRef(name, 1, cut), AxisRef(name, cut, size // cut)]
            else:
                pieces.append(AxisRef(name))
        self.random.shuffle(pieces)
        return pieces


def _random_meshes(random: Random) -> dict[str, Mesh]:
    """A usual mesh; the same with other device orders or under another name; others; single devices."""
    axes = random.choice(_AXES)
    mesh = Mesh(axes)
    order = list(range(mesh.size))
    random.shuffle(order)
    found = {
        "mesh": Mesh(axes, order) if random.random() < 0.1 else mesh,
        "same": mesh,
        "backwards": Mesh(axes, range(mesh.size)[::-1]),
        "other": Mesh(random.choice(_AXES)),
        "device0": Mesh((), [0]),
        "device1": Mesh((), [1]),
    }
    kept = random.sample(list(found)[1:], random.randint(0, len(found) - 1))
    return {name: mesh for name, mesh in found.items() if name == "mesh" or name in kept}
