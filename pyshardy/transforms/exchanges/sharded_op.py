"""An op that exchanges data, and the ops that replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import padded_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.propagation.views import strip_manual_axes
from pyshardy.transforms.builder import Builder, zero_text
from pyshardy.transforms.channels import Channels

FillBody = Callable[["Body", list[Value]], Value]


@dataclass(frozen=True, slots=True)
class Environment:
    """The data that all ops of a module share.

    Attributes:
        attrs: The attributes and types of the context.
        channels: Makes channels for collectives.
        use_replicas: Whether devices are replicas, not partitions.
    """

    attrs: AttrTable
    channels: Channels
    use_replicas: bool

    def next_channel(self) -> Any:
        """A new channel; replicas need none."""
        return None if self.use_replicas else self.channels.next()


@dataclass(frozen=True, slots=True)
class ShardedOp:
    """An op with one sharded tensor operand and one result.

    Attributes:
        op: The op.
        sharding: The sharding of its first operand.
        mesh: The mesh of that sharding.
        env: What all ops of the module share.
    """

    op: Op
    sharding: TensorSharding
    mesh: Mesh
    env: Environment

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand."""
        return _shape(self.op.operands[0].type)

    @property
    def out_shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return _shape(self.op.result.type)

    def builder(self, sharding: TensorSharding | None = None) -> Builder:
        """Makes ops before the op."""
        return Builder(self.env.attrs, self.op, self.op.place, sharding, self.env.use_replicas)

    def zero(self) -> Value:
        """A scalar zero of the element type."""
        builder, type = self.builder(), self.op.operands[0].type
        return builder.splat(zero_text(type.element), builder.like((), type))

    def aligned(
        self, padding: Callable[[], Value], value: Value | None = None, sharding: TensorSharding | None = None
    ) -> Value:
        """The operand, or another value, padded after its data to a multiple of its shard counts."""
        value, sharding = value or self.op.operands[0], sharding or self.sharding
        shape = _shape(value.type)
        padded = padded_shape(sharding, self.mesh, shape)
        if padded == shape:
            return value
        high = [after - before for before, after in zip(shape, padded)]
        filler = padding()
        return self.builder(sharding).pad(value, filler, [0] * len(high), high)

    def padded_type(self, sharding: TensorSharding) -> ValueType:
        """The type of the result, padded to a multiple of its shard counts."""
        shape = padded_shape(sharding, self.mesh, self.out_shape)
        return self.env.attrs.ranked_type(shape, self.op.result.type)

    def manual(
        self,
        operands: Sequence[Value],
        in_shardings: Sequence[TensorSharding],
        out_sharding: TensorSharding,
        out_type: ValueType,
        axes: tuple[str, ...],
        fill: FillBody,
    ) -> Value:
        """An `sdy.manual_computation` whose body `fill` makes."""
        builder = self.builder()
        attrs = {"in_shardings": tuple(in_shardings), "out_shardings": (out_sharding,), "manual_axes": axes}
        computation = builder.op("sdy.manual_computation", operands, [out_type], attrs, region_count=1)
        block = computation.region.add_block()
        args = [
            block.add_arg(
                builder.like(self.local_shape(_shape(value.type), sharding, axes), value.type), self.op.location
            )
            for value, sharding in zip(operands, in_shardings)
        ]
        inner = Builder(self.env.attrs, block, self.op.place, use_replicas=self.env.use_replicas)
        body = Body(self, inner, axes)
        inner.op("sdy.return", [fill(body, args)], [])
        return computation.result

    def local_shape(self, shape: Sequence[int], sharding: TensorSharding, axes: Iterable[str]) -> tuple[int, ...]:
        """The shape of a shard along some axes only."""
        if not sharding.dims:
            return tuple(shape)
        names = set(axes)
        counts = [axes_size([ref for ref in dim.axes if ref.name in names], self.mesh) for dim in sharding.dims]
        return tuple(size // count for size, count in zip(shape, counts))

    def replace(self, value: Value, sharding: TensorSharding) -> None:
        """Replace the op by a value, without its padding."""
        if value.type.shape != self.out_shape:
            value = self.builder(sharding).cut(value, self.out_shape)
        self.op.result.replace_uses(value)
        self.op.erase()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a manual computation.

    Attributes:
        sharded: The op that it computes.
        plain: Makes ops without a sharding.
        axes: The names of the manual axes.
    """

    sharded: ShardedOp
    plain: Builder
    axes: tuple[str, ...]

    def marked(self, sharding: TensorSharding | None = None) -> Builder:
        """Makes ops with the sharding of the operand, or another one, without the manual axes."""
        outer = self.sharded.sharding if sharding is None else sharding
        inner = strip_manual_axes(outer, self.axes)
        return Builder(self.plain.attrs, self.plain.place, self.plain.location, inner, self.plain.use_replicas)


def _shape(type: ValueType) -> tuple[int, ...]:
    assert type.shape is not None
    return type.shape
