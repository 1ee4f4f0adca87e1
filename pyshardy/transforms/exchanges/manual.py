"""An op inside a manual computation on shards along some axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size
from pyshardy.core.devices import padded_shape
from pyshardy.core.identities import zero_text
from pyshardy.core.mesh import Mesh
from pyshardy.core.needs import BORDERS, RESHARD, Need
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.shardings import get_sharding
from pyshardy.ir.source import place_for
from pyshardy.propagation.views import strip_manual_axes
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.exchanges.sharded_op import Environment
from pyshardy.transforms.exchanges.stretches import Taker
from pyshardy.transforms.reshards.operand_shardings import make_reshard

MakeBody = Callable[[Builder, list[Value]], Sequence[Value]]
"""Computes the results of the body from its arguments."""


def axes_of_dim(value: Value, dim: int) -> Axes:
    """The axes of a dimension of a value."""
    sharding = get_sharding(value)
    return () if sharding is None or not sharding.dims else sharding.dims[dim].axes


def reshard_operand(op: Op, index: int, axes: Mapping[int, Axes], ref: str | Mesh) -> None:
    """Change the sharding of some dimensions of an operand, and replace an earlier reshard of it for this op.

    Args:
        op: The op.
        index: The number of the operand.
        axes: The new axes of these dimensions.
        ref: The mesh of these axes, as shardings name it.
    """
    value = op.operands[index]
    sharding = get_sharding(value) or TensorSharding.fully_replicated(ref, value.type.rank)
    if all(sharding.dims[dim].axes == wanted for dim, wanted in axes.items()):
        return
    target = sharding.with_dims(
        DimSharding(axes[dim]) if dim in axes else kept for dim, kept in enumerate(sharding.dims)
    )
    made = value.defining_op
    source = made.operands[0] if made is not None and made.name == "sdy.reshard" else value
    if get_sharding(source) is not target:
        reshard = make_reshard(source, target).insert_before(op)
        reshard.location = place_for(op.place, Need(RESHARD, op.name, index))
        source = reshard.result
    op.set_operand(index, source)
    if made is not None and made.name == "sdy.reshard" and not made.has_uses():
        made.erase()


class Fill(NamedTuple):
    """The value outside the data of an input.

    Attributes:
        text: A constant, as MLIR writes it; None if the value is an operand.
        operand: The index of that operand, an initial value.
        combiner: The op that combines the initial value with a result that started from the constant; None if the
            initial value is used itself.
    """

    text: str | None
    operand: int = -1
    combiner: str | None = None


@dataclass(frozen=True, slots=True)
class Manual:
    """An op that is replaced by a manual computation.

    Attributes:
        op: The op.
        mesh: The mesh of all its tensors.
        ref: The same mesh, as shardings refer to it.
        env: What all ops of a module share.
        axes: The names of the manual axes, in the order of the mesh.
    """

    op: Op
    mesh: Mesh
    ref: str | Mesh
    env: Environment
    axes: tuple[str, ...]

    @staticmethod
    def along(op: Op, mesh: Mesh, ref: str | Mesh, env: Environment, axes: Iterable[Axes]) -> Manual:
        """The manual computation along all these axes."""
        names = {axis.name for one in axes for axis in one}
        return Manual(op, mesh, ref, env, tuple(name for name in mesh.axis_names if name in names))

    def emit(self, fills: Mapping[int, Fill], body: MakeBody) -> None:
        """Replace the op by the manual computation.

        Args:
            fills: The padding value of operands, by their numbers; the others are padded with zero.
            body: Makes the body.
        """
        op, outer = self.op, self.builder()
        values = [self._aligned(index, fills.get(index)) for index in range(len(op.operands))]
        in_shardings = [self.sharding(value) for value in op.operands]
        out_shardings = [self.sharding(result) for result in op.results]
        types = [outer.like(self._even_shape(result), result.type) for result in op.results]
        attrs = {
            "in_shardings": tuple(in_shardings),
            "out_shardings": tuple(out_shardings),
            "manual_axes": self.axes,
        }
        computation = outer.op("sdy.manual_computation", values, types, attrs, region_count=1)
        block = computation.region.add_block()
        args = [
            block.add_arg(outer.like(self._divided(value.type, sharding), value.type), op.place)
            for value, sharding in zip(values, in_shardings)
        ]
        inner = Builder(self.env.attrs, block, op.place, use_replicas=self.env.use_replicas)
        inner.op("sdy.return", body(inner, args), [])
        for result, new, sharding in zip(op.results, computation.results, out_shardings):
            if new.type is not result.type:
                new = self.builder(sharding).cut(new, result.type.shape or ())
            result.replace_uses(new)
        op.erase()

    def copy(self, inner: Builder, operands: Sequence[Value], shapes: Sequence[Sequence[int]]) -> Op:
        """A copy of the op in the body, with other operands and with results of these shapes."""
        made = self.op.clone()
        for index, value in enumerate(operands):
            made.set_operand(index, value)
        inner.put(made)
        for result, shape in zip(made.results, shapes):
            result.set_type(inner.like(shape, result.type))
        made.remove_attr(RULE)
        shardings = [strip_manual_axes(self.sharding(result), self.axes) for result in self.op.results]
        made.set_attr(SHARDING, tuple(shardings))
        return made

    def local_shape(self, value: Value) -> tuple[int, ...]:
        """The shape of the shard of a value along the manual axes, with padding."""
        even = self.builder().like(self._even_shape(value), value.type)
        return self._divided(even, self.sharding(value))

    def taker(self, inner: Builder, index: int, filler: Value, fills_zero: bool = False) -> Taker:
        """Takes intervals of the shard of an operand.

        Args:
            inner: Makes ops in the body.
            index: The number of the operand.
            filler: The value outside its data, a scalar in the body.
            fills_zero: Whether that value is zero.
        """
        marked = self.marked(inner, self.op.operands[index])
        need = Need(BORDERS, self.op.name, index)
        return Taker(inner, marked, self.mesh, self.env, filler, fills_zero, need)

    def marked(self, inner: Builder, value: Value) -> Builder:
        """Makes ops in the body on the shard of a value, sharded along the axes that are not manual."""
        free = strip_manual_axes(self.sharding(value), self.axes)
        return Builder(inner.attrs, inner.place, inner.location, free, inner.use_replicas)

    def sharding(self, value: Value) -> TensorSharding:
        """The sharding of a value on the mesh."""
        sharding = get_sharding(value)
        if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced):
            return TensorSharding.fully_replicated(self.ref, value.type.rank)
        return sharding

    def builder(self, sharding: TensorSharding | None = None) -> Builder:
        """Makes ops before the op."""
        return Builder(self.env.attrs, self.op, self.op.place, sharding, self.env.use_replicas)

    def _even_shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a value, padded to a multiple of the shard counts of the manual axes."""
        sharding = self.sharding(value)
        manual = sharding.with_dims(
            dim if dim.axes and dim.axes[0].name in self.axes else DimSharding() for dim in sharding.dims
        )
        return padded_shape(manual, self.mesh, value.type.shape or ())

    def _aligned(self, index: int, fill: Fill | None) -> Value:
        """An operand, padded after its data to a multiple of the shard counts of the manual axes."""
        value = self.op.operands[index]
        shape, even = value.type.shape or (), self._even_shape(value)
        if shape == even:
            return value
        text = zero_text(value.type.element) if fill is None else fill.text
        if text is None:
            assert fill is not None
            filler = self.op.operands[fill.operand]
        else:
            filler = scalar(self.builder(), value, text)
        high = [after - before for before, after in zip(shape, even)]
        return self.builder(get_sharding(value)).pad(value, filler, [0] * len(high), high)

    def _divided(self, type: ValueType, sharding: TensorSharding) -> tuple[int, ...]:
        """A shape, divided along the manual axes."""
        return tuple(
            size // axes_size([axis for axis in dim.axes if axis.name in self.axes], self.mesh)
            for size, dim in zip(type.shape or (), sharding.dims)
        )


def scalar(builder: Builder, like: Value, text: str) -> Value:
    """A scalar constant of the element type of a value."""
    return builder.splat(text, builder.like((), like.type))
