"""Ops with windows along sharded dimensions: every shard fetches the elements that its windows cover."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import Axes
from pyshardy.core.identities import zero_text
from pyshardy.core.mesh import Mesh
from pyshardy.ir.nodes import Op, Value
from pyshardy.reshard.window_halo import Stretches, fetch_of, fetch_of_whole
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.exchanges.manual import Fill, Manual, axes_of_dim, reshard_operand, scalar
from pyshardy.transforms.exchanges.sharded_op import Environment
from pyshardy.transforms.exchanges.stretches import Along, Margins
from pyshardy.transforms.exchanges.window_numbers import DilationNames, WindowDim


class Windowed:
    """A convolution or window reduction along sharded dimensions that is being rewritten.

    Args:
        op: The op.
        mesh: The mesh of all its tensors.
        ref: The same mesh, as shardings refer to it.
        env: What all ops of a module share.
        fills: The values outside the operands that windows move over, which are the first operands.
        names: The names of its attributes for dilations.
    """

    def __init__(
        self, op: Op, mesh: Mesh, ref: str | Mesh, env: Environment, fills: Sequence[Fill], names: DilationNames
    ) -> None:  # fmt: skip
        self.op = op
        self.on = (mesh, ref, env)
        self.fills = tuple(fills)
        self.names = names
        self.along: list[Along] = []

    def add(self, dim: int, place: int, axes: Axes, stretches: Stretches) -> None:
        """Handle a dimension: every shard fetches its interval.

        Args:
            dim: The dimension of the inputs.
            place: Its number in the window.
            axes: The axes along which the start of the interval grows from shard to shard.
            stretches: The interval that every shard needs.
        """
        fetch = fetch_of(stretches) if axes_of_dim(self.op.operands[0], dim) else None
        is_whole = fetch is None
        self.along.append(Along(dim, axes, stretches, fetch or fetch_of_whole(stretches), is_whole, place))

    def emit(self, windows: Sequence[WindowDim]) -> None:
        """Replace the op by a manual computation."""
        for index in range(len(self.fills)):
            reshard_operand(self.op, index, {along.dim: () for along in self.along if along.is_whole}, self.on[1])
        self.along.sort(key=lambda along: not along.is_whole)
        manual = Manual.along(self.op, *self.on, [along.axes for along in self.along])
        manual.emit(dict(enumerate(self.fills)), lambda inner, args: self._fill(manual, inner, args, windows))

    def _fill(
        self, manual: Manual, inner: Builder, args: list[Value], windows: Sequence[WindowDim]
    ) -> list[Value]:  # fmt: skip
        """Make the body: the op on the device's own and fetched data."""
        operands = list(args)
        margins: dict[int, Margins] = {}
        for index, fill in enumerate(self.fills):
            outer = self.op.operands[index]
            filler = args[fill.operand] if fill.text is None else scalar(inner, outer, fill.text)
            if fill.combiner is not None:
                operands[fill.operand] = filler
            taker = manual.taker(inner, index, filler, fill.text == zero_text(outer.type.element))
            for along in self.along:
                operands[index], margins[along.place] = taker.take(operands[index], along)
        made = manual.copy(inner, operands, [manual.local_shape(result) for result in self.op.results])
        self._set_window(made, windows, margins)
        return self._begun(manual, inner, made, args)

    def _begun(self, manual: Manual, inner: Builder, made: Op, args: Sequence[Value]) -> list[Value]:
        """The results of the op, combined with the initial values that were replaced by the identity."""
        results = list(made.results)
        for index, fill in enumerate(self.fills):
            if fill.combiner is not None:
                marked = manual.marked(inner, self.op.results[index])
                initial = marked.broadcast(args[fill.operand], results[index].type.shape or ())
                results[index] = marked.combine(fill.combiner, results[index], initial)
        return results

    def _set_window(self, made: Op, windows: Sequence[WindowDim], margins: dict[int, Margins]) -> None:
        padding = [[window.low, window.high] for window in windows]
        dilations = [window.dilation for window in windows]
        for place, found in margins.items():
            padding[place] = [found.low, found.high]
            dilations[place] = found.dilation
        attrs = self.on[2].attrs
        made.set_attr("padding", attrs.parse(f"dense<{padding}> : tensor<{len(padding)}x2xi64>"))
        name = self.names.dilation
        if name in made.attrs or set(dilations) != {1}:
            made.set_attr(name, attrs.i64_array(tuple(dilations)))
