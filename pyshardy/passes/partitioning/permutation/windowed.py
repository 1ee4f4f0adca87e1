"""Ops whose windows move along sharded dimensions: every shard gets what its windows cover, and runs the op on that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyshardy.core.axes import Axes, axes_size
from pyshardy.core.devices import padded_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.functions import RULE, SHARDING
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.passes.partitioning.builder import Builder, zero_text
from pyshardy.passes.partitioning.meeting import make_reshard
from pyshardy.passes.partitioning.permutation.site import Tools
from pyshardy.passes.partitioning.permutation.stretches import Along, Margins, Taker
from pyshardy.propagation.views import strip_manual_axes
from pyshardy.reshard.window_halo import Fetch, Stretches, fetch_of, fetch_of_whole


class WindowDim(NamedTuple):
    """How windows move along one dimension.

    Attributes:
        low: The padding in front; negative if some of the input is cut away.
        high: The padding behind.
        stride: The distance of windows.
        dilation: The distance of the elements of the input.
        spread: The distance of the elements of a window.
        is_reversed: Whether the elements of the kernel come in reversed order.
    """

    low: int
    high: int
    stride: int
    dilation: int
    spread: int
    is_reversed: bool = False


class Fill(NamedTuple):
    """What stands outside of the data of an input.

    Attributes:
        text: A constant, as MLIR writes it; None if it is an operand.
        operand: The number of that operand, an initial value.
        combiner: The op that combines the initial value with a result that begins with the constant instead; None
            if the initial value stays.
    """

    text: str | None
    operand: int = -1
    combiner: str | None = None


class Names(NamedTuple):
    """What an op calls the distances of its elements.

    Attributes:
        dilation: Those of the input.
        spread: Those of the window.
    """

    dilation: str
    spread: str


def window_dims(op: Op, rank: int, names: Names) -> list[WindowDim]:
    """How windows move, dimension by dimension.

    Args:
        op: The op.
        rank: How many dimensions its windows have.
        names: What it calls dilations.
    """
    margins = _margins(op.shared_attrs.get("padding"), rank)
    strides, dilations, spreads = (_list(op, name, rank) for name in ("window_strides", *names))
    reversal = op.shared_attrs.get("window_reversal")
    flags = [False] * rank if reversal is None else [bool(reversal[place]) for place in range(rank)]
    return [WindowDim(*margins[at], strides[at], dilations[at], spreads[at], flags[at]) for at in range(rank)]


def _list(op: Op, name: str, rank: int) -> list[int]:
    attr = op.shared_attrs.get(name)
    return [1] * rank if attr is None else list(attr)


def _margins(attr: Any, rank: int) -> list[tuple[int, int]]:
    if attr is None:
        return [(0, 0)] * rank
    flat = [attr.get_splat_value().value] * (2 * rank) if attr.is_splat else list(attr)
    return list(zip(flat[::2], flat[1::2]))


def of_outputs(window: WindowDim, size: int, taps: int, out_size: int, shards: int) -> Stretches:
    """What shards need that compute a part of the output each.

    >>> of_outputs(WindowDim(1, 1, 1, 1, 1), size=16, taps=3, out_size=16, shards=4)
    Stretches(size=16, shards=4, first=-1, step=4, extent=6, used=4, dilation=1)
    """
    out_shard = -(-out_size // shards)
    extent = (out_shard - 1) * window.stride + (taps - 1) * window.spread + 1
    used = -(-out_size // out_shard)
    return Stretches(size, shards, -window.low, out_shard * window.stride, extent, used, window.dilation)


def of_taps(window: WindowDim, size: int, taps: int, out_size: int, shards: int) -> Stretches:
    """What shards need that have a part of the kernel each, and compute a part of every sum.

    >>> of_taps(WindowDim(1, 1, 1, 1, 1), size=16, taps=16, out_size=3, shards=4)
    Stretches(size=16, shards=4, first=-1, step=4, extent=6, used=4, dilation=1)
    """
    shard = -(-taps // shards)
    extent = (out_size - 1) * window.stride + (shard - 1) * window.spread + 1
    used, step = -(-taps // shard), shard * window.spread
    first = -window.low
    if window.is_reversed:
        first, step = first + (taps - shard) * window.spread, -step
    return Stretches(size, shards, first, step, extent, used, window.dilation)


def axes_of(value: Value, dim: int) -> Axes:
    """The axes of a dimension of a value."""
    sharding = get_sharding(value)
    return () if sharding is None or not sharding.dims else sharding.dims[dim].axes


class Windowed:
    """An op with windows along sharded dimensions, while it is rewritten.

    Args:
        op: The op.
        mesh: The mesh of all its tensors.
        ref: That mesh, as shardings name it.
        tools: What is needed for every op of a module.
        inputs: The operands over which windows move.
        fills: Per input, what stands outside of it.
        names: What the op calls dilations.
    """

    def __init__(
        self, op: Op, mesh: Mesh, ref: str | Mesh, tools: Tools, inputs: Sequence[int], fills: Sequence[Fill],
        names: Names,
    ) -> None:  # fmt: skip
        self.op = op
        self.mesh = mesh
        self.ref = ref
        self.tools = tools
        self.inputs = tuple(inputs)
        self.fills = tuple(fills)
        self.names = names
        self.along: list[Along] = []

    def add(self, dim: int, place: int, axes: Axes, stretches: Stretches) -> None:
        """Let every shard get its stretch along a dimension.

        Args:
            dim: The dimension of the inputs.
            place: Its number in the window.
            axes: The axes along which there is a shard for each.
            stretches: What every shard needs.
        """
        is_whole = not axes_of(self.op.operands[self.inputs[0]], dim)
        fetch: Fetch | None = None if is_whole else fetch_of(stretches)
        if fetch is None:
            is_whole, fetch = True, fetch_of_whole(stretches)
        self.along.append(Along(dim, place, axes, stretches, fetch, is_whole))

    def emit(self, windows: Sequence[WindowDim]) -> Op:
        """Put a manual computation in place of the op; returns the op inside it."""
        op = self.op
        for along in self.along:
            if along.is_whole:
                self._gather(along.dim)
        self.along.sort(key=lambda along: not along.is_whole)
        names = {axis.name for along in self.along for axis in along.axes}
        return _Emitter(self, tuple(name for name in self.mesh.axis_names if name in names)).emit(windows)

    def _gather(self, dim: int) -> None:
        """Give every device all of a dimension of the inputs."""
        for index in self.inputs:
            sharding = get_sharding(self.op.operands[index])
            if sharding is None or not sharding.dims or not sharding.dims[dim].axes:
                continue
            target = sharding.with_dims(
                DimSharding() if at == dim else kept for at, kept in enumerate(sharding.dims)
            )
            reshard = make_reshard(self.op.operands[index], target).insert_before(self.op)
            self.op.set_operand(index, reshard.result)


@dataclass(frozen=True)
class _Emitter:
    """Makes the manual computation along some axes."""

    windowed: Windowed
    axes: tuple[str, ...]

    def emit(self, windows: Sequence[WindowDim]) -> Op:
        op = self.windowed.op
        outer = self._builder()
        values = [self._aligned(index) for index in range(len(op.operands))]
        in_shardings = [self._sharding(value) for value in op.operands]
        out_shardings = [self._sharding(result) for result in op.results]
        out_types = [outer.like(self._even_shape(result), result.type) for result in op.results]
        attrs = {
            "in_shardings": tuple(in_shardings),
            "out_shardings": tuple(out_shardings),
            "manual_axes": self.axes,
        }
        computation = outer.op("sdy.manual_computation", values, out_types, attrs, region_count=1)
        block = computation.region.add_block()
        args = [
            block.add_arg(outer.like(self._local_shape(value, sharding), value.type), op.location)
            for value, sharding in zip(values, in_shardings)
        ]
        inner = Builder(self.windowed.tools.attrs, block, op.location, use_replicas=self.windowed.tools.use_replicas)
        made = self._fill(inner, args, windows, out_types, out_shardings)
        inner.op("sdy.return", self._begun(inner, made, args), [])
        for result, new, sharding in zip(op.results, computation.results, out_shardings):
            if new.type is not result.type:
                new = self._builder(sharding).cut(new, result.type.shape or ())
            result.replace_uses(new)
        op.erase()
        return made

    def _fill(
        self, inner: Builder, args: list[Value], windows: Sequence[WindowDim], out_types: Sequence[Any],
        out_shardings: Sequence[TensorSharding],
    ) -> Op:  # fmt: skip
        """The op on what a device has and gets."""
        windowed, op = self.windowed, self.windowed.op
        operands = list(args)
        margins: dict[int, Margins] = {}
        for index, fill in zip(windowed.inputs, windowed.fills):
            filler = args[fill.operand] if fill.text is None else self._constant(inner, args[index], fill.text)
            if fill.combiner is not None:
                operands[fill.operand] = filler
            marked = self._marked(inner, op.operands[index])
            taker = Taker(inner, marked, windowed.mesh, windowed.tools, filler, self._is_zero(index, fill))
            for along in windowed.along:
                operands[index], margins[along.place] = taker.take(operands[index], along)
        made = op.clone()
        for index, value in enumerate(operands):
            made.set_operand(index, value)
        inner.put(made)
        for result, type, sharding in zip(made.results, out_types, out_shardings):
            result.set_type(inner.like(self._divided(type.shape, sharding), type))
        made.attrs.pop(RULE, None)
        made.attrs[SHARDING] = tuple(strip_manual_axes(sharding, self.axes) for sharding in out_shardings)
        self._set_window(made, windows, margins)
        return made

    def _begun(self, inner: Builder, made: Op, args: Sequence[Value]) -> list[Value]:
        """The results of the op, combined with the initial values that it did not begin with."""
        results = list(made.results)
        for index, fill in enumerate(self.windowed.fills):
            if fill.combiner is not None:
                marked = self._marked(inner, self.windowed.op.results[index])
                initial = marked.broadcast(args[fill.operand], results[index].type.shape or ())
                results[index] = marked.combine(fill.combiner, results[index], initial)
        return results

    def _is_zero(self, index: int, fill: Fill) -> bool:
        return fill.text == zero_text(self.windowed.op.operands[index].type.element)

    def _marked(self, inner: Builder, value: Value) -> Builder:
        """Makes ops inside on what a device has of a value, sharded along the axes that are not manual."""
        free = strip_manual_axes(self._sharding(value), self.axes)
        return Builder(inner.attrs, inner.place, inner.location, free, inner.use_replicas)

    def _constant(self, builder: Builder, like: Value, text: str) -> Value:
        return builder.splat(text, builder.like((), like.type))

    def _set_window(self, made: Op, windows: Sequence[WindowDim], margins: dict[int, Margins]) -> None:
        padding = [[window.low, window.high] for window in windows]
        dilations = [window.dilation for window in windows]
        for place, found in margins.items():
            padding[place] = [found.low, found.high]
            dilations[place] = found.dilation
        attrs = self.windowed.tools.attrs
        made.attrs["padding"] = attrs.parse(f"dense<{padding}> : tensor<{len(padding)}x2xi64>")
        name = self.windowed.names.dilation
        if name in made.shared_attrs or set(dilations) != {1}:
            made.attrs[name] = attrs.i64_array(tuple(dilations))

    def _builder(self, sharding: TensorSharding | None = None) -> Builder:
        op, tools = self.windowed.op, self.windowed.tools
        return Builder(tools.attrs, op, op.location, sharding, tools.use_replicas)

    def _sharding(self, value: Value) -> TensorSharding:
        sharding = get_sharding(value)
        if sharding is None or (sharding.is_fully_replicated and not sharding.unreduced):
            return TensorSharding.replicated_like(self.windowed.ref, value.type.rank)
        return sharding

    def _even_shape(self, value: Value) -> tuple[int, ...]:
        """The shape of a value, padded where the manual axes would not divide it."""
        sharding, shape = self._sharding(value), value.type.shape or ()
        manual = sharding.with_dims(
            dim if dim.axes and dim.axes[0].name in self.axes else DimSharding() for dim in sharding.dims
        )
        return padded_shape(manual, self.windowed.mesh, shape)

    def _aligned(self, index: int) -> Value:
        """An operand, padded behind its data so that the manual axes divide it."""
        op, windowed = self.windowed.op, self.windowed
        value = op.operands[index]
        shape, even = value.type.shape or (), self._even_shape(value)
        if shape == even:
            return value
        builder = self._builder()
        fill = dict(zip(windowed.inputs, windowed.fills)).get(index, Fill(zero_text(value.type.element)))
        filler = op.operands[fill.operand] if fill.text is None else self._constant(builder, value, fill.text)
        high = [after - before for before, after in zip(shape, even)]
        return self._builder(get_sharding(value)).pad(value, filler, [0] * len(high), high)

    def _local_shape(self, value: Value, sharding: TensorSharding) -> tuple[int, ...]:
        return self._divided(value.type.shape or (), sharding)

    def _divided(self, shape: Sequence[int], sharding: TensorSharding) -> tuple[int, ...]:
        """The shape of what is inside, of which a device has its part along the manual axes."""
        names = set(self.axes)
        return tuple(
            size // axes_size([axis for axis in dim.axes if axis.name in names], self.windowed.mesh)
            for size, dim in zip(shape, sharding.dims)
        )
