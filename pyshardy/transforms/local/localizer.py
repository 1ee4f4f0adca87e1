"""What every op needs to become local: types before and after, shardings, meshes, channels.

Source: docs/semantics/partitioner.md#from-global-to-local
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import join_axes
from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of, shard_counts
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.blocks import Value
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.ir.value_type import ValueType
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.channels import Channels
from pyshardy.transforms.context import PassContext

Shape = tuple[int, ...]


@dataclass(frozen=True)
class LocalOptions:
    """How collectives are written.

    Attributes:
        per_dim_all_gather: Whether a gather of several dimensions is one collective per dimension.
        combine_multi_dimension_reduce_scatter: Whether a scatter of several dimensions is one collective.
        mesh_axes_groups: Whether groups of devices are written as axes of a mesh, not as numbers.
        axes_where_same: Whether they are so only where axes say the same to every consumer that knows them: not on a
            mesh with an order of its devices, which XLA forgets, nor where StableHLO has no groups along axes.
        use_replicas: Whether devices are replicas, not partitions.
        name_causes: Whether collectives that complete a result are located at its op, by name.
    """

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    mesh_axes_groups: bool = True
    axes_where_same: bool = False
    use_replicas: bool = False
    name_causes: bool = False


class Localizer:
    """Makes the ops of one module local, one after the other in program order.

    An op either stays, with local operands and results, or is replaced. Until `finish`, replaced ops remain where
    they are, so that a handler sees of its operands what they were: `global_type` and `sharding` tell of those,
    `value` gives what stands for them in the local program.

    Args:
        root: The module.
        context: What passes share.
        options: How collectives are written.
    """

    def __init__(self, root: Op, context: PassContext, options: LocalOptions) -> None:
        self.context = context
        self.attrs = context.attrs
        self.meshes = context.meshes
        self.options = options
        self.symbols = SymbolTable(root)
        self.channels = Channels(root, context.attrs)
        self.complete: set[Value] = set()
        """Values of the global program that are complete already where an all-reduce is to complete them."""
        self.checked: set[Hashable] = set()
        """Kinds of ops that have been checked to run on shards."""
        self.global_types: dict[Value, ValueType] = {}
        """The types that values had before they became local."""
        self.merged: dict[tuple[Axes, str | Mesh], Axes] = {}
        """Axes in the order of a mesh."""
        self.groups: dict[tuple[Axes, str | Mesh], Any] = {}
        """Groups of devices along axes, as attributes."""
        self._values: dict[Value, Value] = {}
        self._kept: dict[Hashable, tuple[ValueType, ...]] = {}
        self._local_types: dict[tuple[ValueType, TensorSharding], ValueType | None] = {}
        self._replaced: list[Op] = []
        self._trimmed: list[tuple[Op, Collection[str]]] = []

    # Values as they are in the global program

    def global_type(self, value: Value) -> ValueType:
        """The type that a value had before anything became local."""
        return self.global_types.get(value, value.type)

    def global_shape(self, value: Value) -> Shape:
        """The shape that a value had before anything became local."""
        return self.global_type(value).shape or ()

    def sharding(self, value: Value) -> TensorSharding | None:
        """The sharding of a value of the global program."""
        return get_sharding(value)

    def mesh(self, sharding: TensorSharding) -> Mesh:
        """The mesh of a sharding."""
        return mesh_of(sharding, self.meshes)

    def dim_axes(self, value: Value) -> tuple[Axes, ...]:
        """The axes of every dimension of a value; none for each if it has no sharding."""
        sharding = self.sharding(value)
        if sharding is None or not sharding.dims:
            return ((),) * len(self.global_shape(value))
        return sharding.dim_axes

    def splitting_axes(self, value: Value) -> tuple[Axes, ...]:
        """The axes of every dimension of a value without those of size 1."""
        sharding = self.sharding(value)
        if sharding is None or not sharding.dims:
            return self.dim_axes(value)
        mesh = self.mesh(sharding)
        return tuple(
            join_axes([tuple(axis for axis in axes if axis.length(mesh) > 1)], mesh) for axes in sharding.dim_axes
        )

    def shard_counts(self, value: Value) -> tuple[int, ...]:
        """The number of shards of every dimension of a value."""
        sharding = self.sharding(value)
        if sharding is None or not sharding.dims:
            return (1,) * len(self.global_shape(value))
        return shard_counts(sharding, self.mesh(sharding))

    def is_sharded(self, value: Value) -> bool:
        """Whether any dimension of a value has axes."""
        sharding = self.sharding(value)
        return sharding is not None and not sharding.is_fully_replicated

    def mesh_of(self, op: Op, values: Iterable[Value]) -> tuple[str | Mesh, Mesh]:
        """The mesh of the first of some values that is sharded, as shardings name it and resolved."""
        for value in values:
            sharding = self.sharding(value)
            if sharding is not None and not sharding.is_fully_replicated:
                return sharding.mesh, self.mesh(sharding)
        raise PassError(op, "has no operand that is sharded")

    # Types

    def local_type_of(self, op: Op, value: Value) -> ValueType:
        """The type of what one device holds of a value.

        Raises:
            PassError: A dimension is not divisible by the number of its shards; `op` is at fault.
        """
        return self.local_type(op, self.global_type(value), self.sharding(value))

    def local_type(self, op: Op, type: ValueType, sharding: TensorSharding | None) -> ValueType:
        """The type of what one device holds of a value of this type and sharding."""
        if sharding is None or not type.is_ranked_tensor:
            return type
        key = (type, sharding)
        if key not in self._local_types:
            self._local_types[key] = type if sharding.is_fully_replicated else self._divide(type, sharding)
        found = self._local_types[key]
        if found is None:
            raise PassError(
                op,
                f"has a value of type {type} that is sharded {sharding}; needed sizes that are multiples of the "
                "number of shards, as sdy-pad-for-divisibility makes them",
            )
        return found

    def _divide(self, type: ValueType, sharding: TensorSharding) -> ValueType | None:
        shape = type.shape or ()
        mesh = self.mesh(sharding)
        counts = shard_counts(sharding, mesh)
        if len(counts) != len(shape):
            raise InvalidShardingError(
                f"computing a local type under {sharding}", got=f"the type {type}", needed=f"rank {len(counts)}"
            )
        if any(size > 0 and size % count for size, count in zip(shape, counts)):
            return None
        local = local_shape(sharding, mesh, [max(size, 0) for size in shape])
        return self.attrs.ranked_type(tuple(-1 if size < 0 else new for size, new in zip(shape, local)), type)

    # Values of the local program

    def value(self, value: Value) -> Value:
        """What stands for a value in the local program."""
        return self._values.get(value, value)

    def values(self, values: Iterable[Value]) -> list[Value]:
        """What stands for some values in the local program."""
        return [self.value(value) for value in values]

    def stand_in(self, value: Value, new: Value) -> None:
        """Let a value of the local program stand for one of the global program."""
        self._values[value] = new

    def localize(self, op: Op, value: Value) -> None:
        """Give a value that stays the type of what one device holds of it."""
        sharding = get_sharding(value)
        if sharding is not None:
            self._set_type(value, self.local_type(op, self.global_type(value), sharding))

    def _set_type(self, value: Value, type: ValueType) -> None:
        if type is not value.type:
            self.global_types.setdefault(value, value.type)
            value.set_type(type)

    def keep(self, op: Op) -> None:
        """Let an op stay, with local operands, results, and arguments of its blocks."""
        self._use_local_operands(op)
        for result in op.results:
            self.localize(op, result)
        for region in op.regions:
            for block in region.blocks:
                for arg in block.args:
                    self.localize(op, arg)

    def _use_local_operands(self, op: Op) -> None:
        known = self._values
        for index, value in enumerate(op.operands):
            new = known.get(value)
            if new is not None and new is not value:
                op.set_operand(index, new)

    def keep_for_kind(self, op: Op, kind: Hashable) -> None:
        """Let an op stay, as all others of its kind."""
        self.keep(op)
        if kind is not None:
            self._kept[kind] = tuple([result.type for result in op.results])

    def keep_like_others(self, op: Op, kind: Hashable) -> bool:
        """Let an op stay if others of its kind do, and say whether that is so."""
        types = self._kept.get(kind)
        if types is None:
            return False
        self._use_local_operands(op)
        for index, result in enumerate(op.results):
            self._set_type(result, types[index])
        return True

    def keep_only(self, op: Op, names: Collection[str]) -> None:
        """Let an op stay, in the end with its attributes of these names only: without its sharding."""
        self._trimmed.append((op, names))
        self.keep(op)

    def replace(self, op: Op, values: Sequence[Value]) -> None:
        """Let values of the local program stand for the results of an op, which goes away in the end."""
        for result, value in zip(op.results, values, strict=True):
            self._values[result] = value
        self._replaced.append(op)

    def builder(self, op: Op) -> Builder:
        """Makes ops of the local program in front of an op."""
        return Builder(self.attrs, op, op.location, use_replicas=self.options.use_replicas)

    def builder_after(self, op: Op) -> Builder:
        """Makes ops of the local program behind an op that stays."""
        assert op.next is not None
        return Builder(self.attrs, op.next, op.location, use_replicas=self.options.use_replicas)

    def finish(self) -> None:
        """Erase what was replaced, and the attributes that are no longer needed."""
        for op, names in self._trimmed:
            op.replace_attrs({name: value for name, value in op.attrs.items() if name in names})
        for op in reversed(self._replaced):
            op.erase()
