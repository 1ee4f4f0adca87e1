"""Inserts StableHLO ops at one position of a program.

Source: docs/semantics/partitioner.md#device-numbers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pyshardy.core.axes import Axes
from pyshardy.core.devices import shard_indices
from pyshardy.core.identities import zero_text as zero_text
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING
from pyshardy.ir.nodes import Block, Op, Value, ValueType

_LARGEST_INDEX = 2**31 - 1


class Builder:
    """Inserts ops before a given op, or at the end of a block.

    Args:
        attrs: The attributes and types of the context.
        place: The op before which to insert new ops, or the block to append them to.
        location: The location of new ops.
        sharding: The sharding of new results of the same rank; None for no sharding.
        use_replicas: Whether devices are replicas rather than partitions.
    """

    def __init__(
        self,
        attrs: AttrTable,
        place: Op | Block,
        location: Any = None,
        sharding: TensorSharding | None = None,
        use_replicas: bool = False,
    ) -> None:
        self.attrs = attrs
        self.place = place
        self.location = location
        self.sharding = sharding
        self.use_replicas = use_replicas

    # Ops in general

    def put(self, op: Op) -> Op:
        """Insert a detached op at the position of this builder."""
        if isinstance(self.place, Block):
            return self.place.append(op)
        return op.insert_before(self.place)

    def op(
        self,
        name: str,
        operands: Iterable[Value],
        types: Sequence[ValueType],
        attrs: dict[str, Any] | None = None,
        region_count: int = 0,
    ) -> Op:
        """Insert an op of any kind; a `name` without a dialect means an op of StableHLO."""
        full_name = name if "." in name else f"stablehlo.{name}"
        made = Op(full_name, operands, types, attrs or {}, region_count, self.location)
        sharding = self.sharding
        if sharding is not None and len(types) == 1 and types[0].rank == sharding.rank:
            made.set_attr(SHARDING, (sharding,))
        return self.put(made)

    def value(self, name: str, operands: Iterable[Value], type: ValueType, **attrs: Any) -> Value:
        """Insert an op with one result; return the result."""
        return self.op(name, operands, [type], attrs).result

    def combine(self, name: str, first: Value, second: Value) -> Value:
        """An elementwise op on two values of the same type: "add", "subtract", "multiply", "and", "minimum", ..."""
        return self.value(name, [first, second], first.type)

    # Types and attributes

    def type(self, shape: Sequence[int], element: str) -> ValueType:
        """A tensor type from a static shape and the text of an element type."""
        return self.attrs.tensor_type(tuple(shape), element)

    def like(self, shape: Sequence[int], type: ValueType) -> ValueType:
        """A tensor type of another shape with the element type of `type`."""
        return self.attrs.ranked_type(tuple(shape), type)

    def array(self, values: Iterable[int]) -> Any:
        """`array<i64: ...>`."""
        return self.attrs.i64_array(tuple(values))

    def number(self, value: int) -> Any:
        """`value : i64`."""
        return self.attrs.i64(value)

    # Constants

    def splat(self, text: str, type: ValueType) -> Value:
        """A constant with one value, as MLIR writes it.

        Raises:
            InvalidShardingError: The type has a dynamic shape.
        """
        if not type.is_static:
            raise InvalidShardingError("making a constant", got=f"{type}", needed="a static shape")
        return self.value("constant", (), type, value=self.attrs.parse(f"dense<{text}> : {type}"))

    def position(self, value: int) -> Value:
        """A position in a shard, or a count of devices, as a constant `tensor<i32>`.

        Raises:
            InvalidShardingError: It does not fit into 32 bits.
        """
        _check_32_bits((value,))
        return self.splat(str(value), self.type((), "i32"))

    def table(self, values: Sequence[int] | Sequence[bool], element: str) -> Value:
        """A constant of rank 1.

        Raises:
            InvalidShardingError: The type is i32, and a value does not fit into it.
        """
        if element == "i32":
            _check_32_bits(values)
        type = self.type([len(values)], element)
        if len(set(values)) == 1:
            return self.splat(_text_of(values[0]), type)
        if element in ("i32", "i64"):
            return self.value("constant", (), type, value=self.attrs.integers(values, [len(values)], element))
        text = ", ".join(map(_text_of, values))
        return self.value("constant", (), type, value=self.attrs.parse(f"dense<[{text}]> : {type}"))

    # StableHLO

    def compare(self, direction: str, first: Value, second: Value) -> Value:
        """Compare elementwise: "LT", "GE", "EQ", ..."""
        attr = self.attrs.parse(f"#stablehlo<comparison_direction {direction}>")
        return self.value("compare", [first, second], self.like_bool(first.type), comparison_direction=attr)

    def like_bool(self, type: ValueType) -> ValueType:
        """The type of booleans of the same shape."""
        return self.type(type.shape or (), "i1")

    def select(self, predicate: Value, on_true: Value, on_false: Value) -> Value:
        """Select elementwise, or one whole value if the predicate is a scalar."""
        return self.value("select", [predicate, on_true, on_false], on_true.type)

    def broadcast(self, value: Value, shape: Sequence[int], dims: Iterable[int] = ()) -> Value:
        """`broadcast_in_dim`; `dims` gives the result dimension of every dimension of the value."""
        return self.value(
            "broadcast_in_dim", [value], self.like(shape, value.type), broadcast_dimensions=self.array(dims)
        )

    def convert(self, value: Value, element: str) -> Value:
        """The value with another element type. The op is inserted even if the types are equal."""
        return self.value("convert", [value], self.type(value.type.shape or (), element))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The value with another shape."""
        return self.value("reshape", [value], self.like(shape, value.type))

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        shape = _shape(value)
        type = self.like([shape[dim] for dim in order], value.type)
        return self.value("transpose", [value], type, permutation=self.array(order))

    def slice(
        self, value: Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> Value:
        """A static slice."""
        strides = strides or [1] * len(starts)
        shape = [max(0, -(-(limit - start) // step)) for start, limit, step in zip(starts, limits, strides)]
        return self.value(
            "slice",
            [value],
            self.like(shape, value.type),
            start_indices=self.array(starts),
            limit_indices=self.array(limits),
            strides=self.array(strides),
        )

    def cut(self, value: Value, shape: Sequence[int]) -> Value:
        """The leading part of the value, of the given shape."""
        return self.slice(value, [0] * len(shape), shape)

    def dynamic_slice(self, value: Value, starts: Iterable[Value], shape: Sequence[int]) -> Value:
        """A dynamic slice."""
        return self.value(
            "dynamic_slice", [value, *starts], self.like(shape, value.type), slice_sizes=self.array(shape)
        )

    def pad(
        self,
        value: Value,
        padding: Value,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> Value:
        """The value with edge padding and interior padding."""
        interior = interior or [0] * len(low)
        shape = [
            before + size + max(0, size - 1) * inner + after
            for before, size, inner, after in zip(low, _shape(value), interior, high)
        ]
        return self.value(
            "pad",
            [value, padding],
            self.like(shape, value.type),
            edge_padding_low=self.array(low),
            edge_padding_high=self.array(high),
            interior_padding=self.array(interior),
        )

    def concatenate(self, values: Sequence[Value], dim: int) -> Value:
        """The concatenation of the values along a dimension."""
        shape = list(_shape(values[0]))
        shape[dim] = sum(_shape(value)[dim] for value in values)
        return self.value("concatenate", values, self.like(shape, values[0].type), dimension=self.number(dim))

    def iota(self, type: ValueType, dim: int) -> Value:
        """The index of every element along a dimension."""
        return self.value("iota", (), type, iota_dimension=self.number(dim))

    def permute(self, value: Value, pairs: Sequence[Sequence[int]], channel: Any = None) -> Value:
        """`collective_permute`: in every pair, the first device sends its value to the second."""
        attrs = {"source_target_pairs": self.attrs.integers(chain.from_iterable(pairs), (len(pairs), 2))}
        if channel is not None:
            attrs["channel_handle"] = channel
        return self.op("collective_permute", [value], [value.type], attrs).result

    def all_to_all(self, value: Value, groups: Sequence[Sequence[int]], dim: int, channel: Any = None) -> Value:
        """`all_to_all`: every device receives its part of a dimension from all devices of its group, in order."""
        attrs = {
            "split_dimension": self.number(dim),
            "concat_dimension": self.number(dim),
            "split_count": self.number(len(groups[0])),
            "replica_groups": self.attrs.device_rows(groups),
        }
        if channel is not None:
            attrs["channel_handle"] = channel
        return self.op("all_to_all", [value], [value.type], attrs).result

    def all_reduce(self, value: Value, groups: Sequence[Sequence[int]], channel: Any) -> Value:
        """`all_reduce`: the sum of the values in a group; for booleans, the logical or."""
        attrs = {
            "replica_groups": self.attrs.device_rows(groups),
            "channel_handle": channel,
            "use_global_device_ids": self.attrs.parse("unit"),
        }
        op = self.op("all_reduce", [value], [value.type], attrs, region_count=1)
        scalar = self.like((), value.type)
        name = "or" if value.type.element == "i1" else "add"
        self.body(op, [scalar, scalar], lambda inner, args: [inner.combine(name, *args)])
        return op.result

    # Devices

    def device_id(self) -> Value:
        """The id of the device that runs this, a `tensor<ui32>`."""
        return self.value("replica_id" if self.use_replicas else "partition_id", (), self.type((), "ui32"))

    def look_up(self, values: Sequence[int] | Sequence[bool], element: str = "i32", id: Value | None = None) -> Value:
        """The entry of this device in a list with one entry per device, as a scalar.

        Args:
            values: One per device id.
            element: Their type.
            id: The device id, if it has been computed before.
        """
        id = self.device_id() if id is None else id
        return self.entry(values, id, element)

    def entry(self, values: Sequence[int] | Sequence[bool], id: Value, element: str = "i32") -> Value:
        """The entry of a list at a dynamic index, as a scalar."""
        return self.reshape(self.dynamic_slice(self.table(values, element), [id], [1]), ())

    def dim_offset(self, axes: Axes, mesh: Mesh, shard_size: int, id: Value | None = None) -> Value:
        """The offset of this device's shard: its index along `axes` times the shard size.

        Raises:
            PassError: An offset does not fit into 32 bits.
        """
        offsets = [index * shard_size for index in shard_indices(axes, mesh)]
        if max(offsets) > _LARGEST_INDEX:
            anchor = self.place if isinstance(self.place, Op) else self.place.parent_op
            raise PassError(anchor, f"has a shard that begins at {max(offsets)}; offsets must fit into 32 bits")
        return self.look_up(offsets, id=id)

    # Regions

    def body(self, op: Op, types: Sequence[ValueType], fill: Callable[[Builder, list[Value]], Sequence[Value]]) -> None:
        """Add a block to the only region of an op: arguments of these types, the ops of `fill`, and a return."""
        block = op.region.add_block()
        args = [block.add_arg(type, self.location) for type in types]
        inner = Builder(self.attrs, block, self.location, use_replicas=self.use_replicas)
        inner.op("return", fill(inner, args), [])


def _check_32_bits(values: Sequence[int]) -> None:
    if values and not -(2**31) <= min(values) <= max(values) < 2**31:
        far = max(values, key=abs)
        needed = "at most 32 bits, as programs count positions with so many"
        raise InvalidShardingError("computing positions in shards", got=str(far), needed=needed, hint="smaller shards")


def _text_of(value: int | bool) -> str:
    return str(value).lower() if isinstance(value, (bool, np.bool_)) else str(value)


def _shape(value: Value) -> tuple[int, ...]:
    shape = value.type.shape
    assert shape is not None
    return shape
