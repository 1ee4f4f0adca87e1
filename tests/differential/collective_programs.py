"""Random modules of collectives that follow one another, with constants and dead ops in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge, subtract_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import InvalidShardingError

_MESHES = (
    Mesh([("a", 2), ("b", 2), ("c", 2), ("d", 2)]),
    Mesh([("a", 2), ("b", 4), ("c", 3)]),
    Mesh([("a", 4), ("b", 2), ("c", 2)]),
)


class CollectiveWriter:
    """Lines of one function.

    Args:
        random: The source of all choices.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.mesh = random.choice(_MESHES)
        self.rank = random.choice((2, 3, 5))
        self.type = f"tensor<{'16x' * self.rank}f32>"
        self.lines: list[str] = []
        self.values: list[tuple[str, TensorSharding]] = []
        self.gathered = TensorSharding.fully_replicated("m", self.rank)

    def emit(self, text: str, sharding: TensorSharding) -> None:
        """Write an op with one result, which is sharded like this."""
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {text} : {self.type}")
        self.values.append((name, sharding))

    def pick(self) -> tuple[str, TensorSharding]:
        """A value, mostly the last."""
        return self.values[-1] if self.random.random() < 0.7 else self.random.choice(self.values)

    def free_axes(self, sharding: TensorSharding) -> list[AxisRef]:
        """The axes that a sharding does not use, in random order, sometimes cut."""
        used = tuple(sharding.all_axes())
        free: list[AxisRef] = []
        for axis in subtract_axes(tuple(map(AxisRef, self.mesh.axis_names)), used, self.mesh):
            length = axis.length(self.mesh)
            if length == 4 and self.random.random() < 0.3:
                free += [axis.head(2, self.mesh), axis.tail(2, self.mesh)]
            else:
                free.append(axis)
        self.random.shuffle(free)
        return free

    def deal(self, axes: Sequence[AxisRef], chance: float) -> list[list[AxisRef]]:
        """Some of the axes, spread over the dimensions."""
        dims: list[list[AxisRef]] = [[] for _ in range(self.rank)]
        for axis in axes:
            if self.random.random() < chance:
                append_or_merge(self.random.choice(dims), axis, self.mesh)
        return dims

    def sharding(self, chance: float = 0.6, unreduced: float = 0.2) -> TensorSharding:
        """A random sharding."""
        empty = TensorSharding.fully_replicated("m", self.rank)
        sharding = empty.with_dims(map(DimSharding, self.deal(self.free_axes(empty), chance)))
        if self.random.random() < unreduced:
            sharding = sharding.with_unreduced(sort_and_merge(self.free_axes(sharding)[:1], self.mesh))
        return sharding

    # Collectives

    def all_gather(self) -> None:
        """Take axes off the ends of dimensions."""
        name, sharding = self.pick()
        self.gathered = sharding
        counts = [self.random.randint(0, len(dim.axes)) for dim in sharding.dims]
        gathered = [dim.axes[len(dim.axes) - count :] for dim, count in zip(sharding.dims, counts)]
        rest = [dim.axes[: len(dim.axes) - count] for dim, count in zip(sharding.dims, counts)]
        self._per_dim("all_gather", name, gathered, sharding.with_dims(map(DimSharding, rest)))

    def all_slice(self) -> None:
        """Put free axes at the ends of dimensions; sometimes those of another slice or gather."""
        name, sharding = self.pick()
        self._per_dim("all_slice", name, *self._extended(sharding, self.free_axes(sharding)))

    def slice_again(self) -> None:
        """Slice one value several times alike."""
        name, sharding = self.pick()
        sliced, out = self._extended(sharding, self.free_axes(sharding))
        for _ in range(self.random.randint(2, 3)):
            self._per_dim("all_slice", name, sliced, out)

    def _extended(self, sharding: TensorSharding, axes: Sequence[AxisRef]) -> tuple[list[Axes], TensorSharding]:
        sliced = self.deal(axes, 0.5)
        dims = []
        for old, new in zip(sharding.dims, sliced):
            joined = list(old.axes)
            for axis in new:
                append_or_merge(joined, axis, self.mesh)
            dims.append(DimSharding(joined))
        return list(map(tuple, sliced)), sharding.with_dims(dims)

    def gather_then_slice(self) -> None:
        """Undo a gather, or nearly."""
        self.all_gather()
        name, gathered = self.values[-1]
        before = self.random.choice(self.values)[1] if self.random.random() < 0.1 else self.gathered
        pairs = list(zip(before.dims, gathered.dims))
        if all(dim.axes[: len(old.axes)] == old.axes for dim, old in pairs):
            axes = [dim.axes[len(old.axes) :] for dim, old in pairs]
            self._per_dim("all_slice", name, axes, gathered.with_dims(before.dims))

    def all_reduce(self) -> None:
        """Reduce unreduced or replicated axes."""
        name, sharding = self.pick()
        axes = sharding.unreduced or tuple(self.free_axes(sharding)[: self.random.randint(0, 2)])
        axes = sort_and_merge(axes, self.mesh)
        out = sharding.with_unreduced(())
        self.emit(f"sdy.all_reduce {_axes(axes)} {name} out_sharding={out}", out)

    def reduce_scatter(self) -> None:
        """Reduce axes onto dimensions."""
        name, sharding = self.pick()
        self._per_dim("reduce_scatter", name, *self._extended(sharding, self.free_axes(sharding)))

    def reduce_then_slice(self) -> None:
        """Slice along the axes that have been reduced, and others, and sometimes use the sum itself."""
        self.all_reduce()
        self.random.choice((self.all_slice, self.slice_again))()
        if self.random.random() < 0.2:
            self.abs()

    def all_to_all(self) -> None:
        """Move the last axes of dimensions to others."""
        name, sharding = self.pick()
        order = self.random.sample(range(self.rank), self.rank)
        dims, params = [list(dim.axes) for dim in sharding.dims], []
        for source, target in sorted(zip(order[::2], order[1::2])):
            count = self.random.randint(0, len(dims[source]))
            if count:
                moved = dims[source][-count:]
                del dims[source][-count:]
                for axis in moved:
                    append_or_merge(dims[target], axis, self.mesh)
                params.append(f"{_axes(moved)}: {source}->{target}")
        if params:
            out = sharding.with_dims(map(DimSharding, dims))
            self.emit(f"sdy.all_to_all [{', '.join(params)}] {name} out_sharding={out}", out)

    def all_to_alls(self) -> None:
        """A chain of them."""
        for _ in range(self.random.randint(2, 4)):
            self.all_to_all()

    def permute(self) -> None:
        """Exchange axes of equal size, or nothing."""
        name, sharding = self.pick()
        axes = [axis for dim in sharding.dims for axis in dim.axes] + self.free_axes(sharding)
        new = {axis: axis for axis in axes}
        if self.random.random() < 0.6 and len(axes) > 1:
            one, other = self.random.sample(axes, 2)
            if one.length(self.mesh) == other.length(self.mesh):
                new[one], new[other] = other, one
        out = sharding.with_dims(DimSharding(new[axis] for axis in dim.axes) for dim in sharding.dims)
        self.emit(f"sdy.collective_permute {name} out_sharding={out}", out)

    def make_unreduced(self) -> None:
        """Make replicated axes unreduced, then mostly reduce them."""
        name, sharding = self.pick()
        axes = sort_and_merge(self.free_axes(sharding)[:2], self.mesh)
        if axes and not sharding.unreduced:
            out = sharding.with_unreduced(axes)
            self.emit(f"sdy.replicated_to_unreduced {_axes(axes)} {name} out_sharding={out}", out)
            self._reduce_again()

    def make_dims_unreduced(self) -> None:
        """Make axes of dimensions unreduced, then mostly reduce them."""
        name, sharding = self.pick()
        axes = [dim.axes[self.random.randint(0, len(dim.axes)) :] for dim in sharding.dims]
        rest = [dim.axes[: len(dim.axes) - len(cut)] for dim, cut in zip(sharding.dims, axes)]
        if any(axes) and not sharding.unreduced:
            unreduced = sort_and_merge(sum(axes, ()), self.mesh)
            out = sharding.with_dims(map(DimSharding, rest)).with_unreduced(unreduced)
            self._per_dim("sharded_to_unreduced", name, axes, out)
            self._reduce_again()

    def _reduce_again(self) -> None:
        if self.random.random() < 0.8:
            self.all_reduce()

    def _per_dim(self, kind: str, name: str, axes: Sequence[Sequence[AxisRef]], out: TensorSharding) -> None:
        self.emit(f"sdy.{kind} [{', '.join(map(_axes, axes))}] {name} out_sharding={out}", out)

    def nothing(self) -> None:
        """Collectives without axes."""
        for _ in range(self.random.randint(1, 4)):
            name, sharding = self.pick()
            kind = self.random.choice(("all_gather", "all_slice", "all_slice", "reduce_scatter", "all_reduce"))
            axes = "{}" if kind == "all_reduce" else f"[{', '.join(['{}'] * self.rank)}]"
            self.emit(f"sdy.{kind} {axes} {name} out_sharding={sharding}", sharding)

    # Others

    def reshard(self) -> None:
        """To any sharding, several times."""
        for _ in range(self.random.randint(1, 3)):
            name, _ = self.pick()
            sharding = self.sharding(unreduced=0.0)
            self.emit(f"sdy.reshard {name} {sharding}", sharding)

    def abs(self) -> None:
        """An op that keeps the sharding."""
        name, sharding = self.pick()
        self.emit(f"stablehlo.abs {name} {{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}", sharding)

    def constant(self) -> None:
        """A constant, of few values, with any sharding."""
        sharding = self.sharding(unreduced=0.0)
        attrs = f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"
        self.emit(f"stablehlo.constant {attrs} dense<{self.random.randint(1, 3)}.0>", sharding)

    def write(self) -> str:
        """The module."""
        args = []
        for index in range(2):
            sharding = self.sharding()
            args.append(f"%x{index}: {self.type} {{sdy.sharding = #sdy.sharding{sharding}}}")
            self.values.append((f"%x{index}", sharding))
        makers = [
            self.all_gather, self.all_slice, self.slice_again, self.gather_then_slice, self.all_reduce,
            self.reduce_scatter, self.reduce_then_slice, self.all_to_all, self.all_to_alls, self.permute,
            self.nothing, self.nothing, self.make_unreduced, self.make_dims_unreduced, self.reshard, self.abs,
            self.constant,
        ]  # fmt: skip
        for _ in range(self.random.randint(3, 12)):
            with suppress(InvalidShardingError):  # an axis that is used already
                self.random.choice(makers)()
        names = [name for name, _ in self.random.sample(self.values, min(3, len(self.values)))]
        types = ", ".join([self.type] * len(names))
        head = f"sdy.mesh @m = {self.mesh}\nfunc.func @main({', '.join(args)}) -> ({types}) {{"
        return "\n".join([head, *self.lines, f"  return {', '.join(names)} : {types}", "}", ""])


def _axes(axes: Sequence[AxisRef]) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"


def collective_program(seed: int) -> str:
    """The text of a random module."""
    return CollectiveWriter(Random(f"collectives {seed}")).write()
