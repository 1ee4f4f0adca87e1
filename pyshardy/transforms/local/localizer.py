"""The state while the ops of a module are made local: types before and after, shardings, meshes, channels.

Source: docs/semantics/partitioner.md#from-global-to-local
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import join_axes
from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.record import Record
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of, shard_counts
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.blocks import Value
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.op import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.ir.value_type import ValueType
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.channels import Channels
from pyshardy.transforms.context import PassContext


class LocalOptions(Record):
    """How collectives are written.

    Attributes:
        per_dim_all_gather: Whether an all-gather of several dimensions becomes one collective per dimension.
        combine_multi_dimension_reduce_scatter: Whether a reduce-scatter of several dimensions becomes one collective.
        mesh_axes_groups: Whether to write replica groups as mesh axes, not as device ids.
        axes_where_same: Whether to do so only where all consumers agree on the meaning. They do not on a mesh with a
            device order, which XLA ignores, and if StableHLO has no replica groups along mesh axes.
        use_replicas: Whether devices are replicas, not partitions.
        name_causes: Whether the location of a collective that completes a result names the op of that result.
    """

    per_dim_all_gather: bool = False
    combine_multi_dimension_reduce_scatter: bool = False
    mesh_axes_groups: bool = True
    axes_where_same: bool = False
    use_replicas: bool = False
    name_causes: bool = False


class Localizer:
    """Makes the ops of one module local, in program order.

    An op is either kept, with local operands and results, or replaced. Replaced ops stay in the program until `finish`.
    So a handler can still look at its operands in the global program, by `global_type` and `sharding`. `value` gives
    the local value of each.

    Args:
        root: The module.
        context: The pass context.
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
        """Values of the global program that are complete before the all-reduce that would complete them."""
        self.checked: set[Hashable] = set()
        """Kinds of ops that have been checked to run on shards."""
        self.global_types: dict[Value, ValueType] = {}
        """The types that values had before they became local."""
        self.merged: dict[tuple[Axes, str | Mesh], Axes] = {}
        """Axes sorted by the order of a mesh. A cache."""
        self.groups: dict[tuple[Axes, str | Mesh], Any] = {}
        """Replica groups along axes, as attributes. A cache."""
        self._values: dict[Value, Value] = {}
        self._kept: dict[Hashable, tuple[ValueType, ...]] = {}
        self._local_types: dict[tuple[ValueType, TensorSharding], ValueType | None] = {}
        self._replaced: list[Op] = []
        self._trimmed: list[tuple[Op, Collection[str]]] = []

    # Values of the global program

    def global_type(self, value: Value) -> ValueType:
        """The type of a value in the global program."""
        return self.global_types.get(value, value.type)

    def global_shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a value in the global program."""
        return self.global_type(value).shape or ()

    def sharding(self, value: Value) -> TensorSharding | None:
        """The sharding of a value of the global program."""
        return get_sharding(value)

    def mesh(self, sharding: TensorSharding) -> Mesh:
        """The mesh of a sharding."""
        return mesh_of(sharding, self.meshes)

    def dim_axes(self, value: Value) -> tuple[Axes, ...]:
        """The axes of every dimension of a value; empty without a sharding."""
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
        """The mesh of the first sharded value among some: as shardings refer to it, and resolved."""
        for value in values:
            sharding = self.sharding(value)
            if sharding is not None and not sharding.is_fully_replicated:
                return sharding.mesh, self.mesh(sharding)
        raise PassError(op, "has no operand that is sharded")

    # Types

    def local_type_of(self, op: Op, value: Value) -> ValueType:
        """The type of the shard of a value.

        Raises:
            PassError: A dimension is not divisible by its number of shards; the error names `op`.
        """
        return self.local_type(op, self.global_type(value), self.sharding(value))

    def local_type(self, op: Op, type: ValueType, sharding: TensorSharding | None) -> ValueType:
        """The type of the shard of a value with this type and sharding."""
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
        """The counterpart of a value in the local program."""
        return self._values.get(value, value)

    def values(self, values: Iterable[Value]) -> list[Value]:
        """The counterparts of some values in the local program."""
        return [self.value(value) for value in values]

    def stand_in(self, value: Value, new: Value) -> None:
        """Record the counterpart of a value of the global program."""
        self._values[value] = new

    def localize(self, op: Op, value: Value) -> None:
        """Give a value that is kept the type of its shard."""
        sharding = get_sharding(value)
        if sharding is not None:
            self._set_type(value, self.local_type(op, self.global_type(value), sharding))

    def _set_type(self, value: Value, type: ValueType) -> None:
        if type is not value.type:
            self.global_types.setdefault(value, value.type)
            value.set_type(type)

    def keep(self, op: Op) -> None:
        """Keep an op, with local operands, results and block arguments."""
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
        """Keep an op, and record that ops of its kind are kept."""
        self.keep(op)
        if kind is not None:
            self._kept[kind] = tuple([result.type for result in op.results])

    def keep_like_others(self, op: Op, kind: Hashable) -> bool:
        """Keep an op if others of its kind were kept; return whether it was kept."""
        types = self._kept.get(kind)
        if types is None:
            return False
        self._use_local_operands(op)
        for index, result in enumerate(op.results):
            self._set_type(result, types[index])
        return True

    def keep_only(self, op: Op, names: Collection[str]) -> None:
        """Keep an op; `finish` removes its attributes except these, among them its sharding."""
        self._trimmed.append((op, names))
        self.keep(op)

    def replace(self, op: Op, values: Sequence[Value]) -> None:
        """Replace the results of an op by values of the local program; `finish` erases the op."""
        for result, value in zip(op.results, values, strict=True):
            self._values[result] = value
        self._replaced.append(op)

    def builder(self, op: Op) -> Builder:
        """Makes ops of the local program before an op."""
        return Builder(self.attrs, op, op.place, use_replicas=self.options.use_replicas)

    def builder_after(self, op: Op) -> Builder:
        """Makes ops of the local program after an op that is kept."""
        assert op.next is not None
        return Builder(self.attrs, op.next, op.place, use_replicas=self.options.use_replicas)

    def finish(self) -> None:
        """Erase replaced ops, and attributes that are no longer needed."""
        for op, names in self._trimmed:
            op.replace_attrs({name: value for name, value in op.attrs.items() if name in names})
        for op in reversed(self._replaced):
            op.erase()
