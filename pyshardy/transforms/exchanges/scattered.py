"""`select_and_scatter` along sharded dimensions: every shard computes all windows that overlap it."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.identities import extreme_text, identity_text
from pyshardy.core.mesh import Mesh
from pyshardy.ir.constants import comparison_direction
from pyshardy.ir.nodes import Op, Value
from pyshardy.reshard.window_halo import Fetch, Stretches, fetch_of, fetch_of_whole
from pyshardy.transforms.builder import Builder
from pyshardy.transforms.exchanges.manual import Fill, Manual, axes_of_dim, reshard_operand, scalar
from pyshardy.transforms.exchanges.sharded_op import Environment
from pyshardy.transforms.exchanges.stretches import Along
from pyshardy.transforms.exchanges.window_numbers import WindowDim
from pyshardy.transforms.reduction_kinds import combiners_of

_OPERAND, _SOURCE = range(2)


class Touching(NamedTuple):
    """The windows that overlap a shard along one dimension.

    Attributes:
        windows: The elements of the source that belong to these windows.
        covered: The interval of the operand that they cover.
        phases: Per shard, the start of the covered elements in that interval; a single number if all are equal.
        extent: The number of elements that they cover.
        starts: Per shard, the start of the shard itself in the covered elements; a single number if all are equal.
        shard: Size of a shard.
    """

    windows: Stretches
    covered: Stretches
    phases: tuple[int, ...]
    extent: int
    starts: tuple[int, ...]
    shard: int


def touching(window: WindowDim, size: int, taps: int, count: int, shards: int) -> Touching:
    """The windows that overlap each shard.

    Args:
        window: How windows move.
        size: Size of the operand.
        taps: Size of a window.
        count: Number of windows.
        shards: Number of shards of the operand.

    >>> found = touching(WindowDim(0, 0, 2, 1, 1), size=16, taps=2, count=8, shards=4)
    >>> found.extent, found.phases, found.starts
    (4, (0,), (0,))
    """
    shard = -(-size // shards)
    used = -(-size // shard)
    windows = Stretches(count, shards, window.low - taps + 1, shard, shard + taps - 1, used, window.stride)
    found = fetch_of_whole(windows)
    least = min(found.phases)
    extent = (found.length - 1) * window.stride + taps
    wide = extent + max(found.phases) - least
    covered = Stretches(size, shards, least - taps + 1, shard, wide, used)
    phases = tuple(phase - least for phase in found.phases)
    return Touching(windows, covered, phases, extent, tuple(taps - 1 - phase for phase in found.phases), shard)


def fills_of(op: Op) -> tuple[Fill, Fill] | None:
    """A value that no window selects, and the identity of the scatter's combiner; None if they are unknown.

    They are unknown for integers: data may have any value, so a window could select padding that equals its data.
    """
    block = op.regions[0].blocks[0]
    chosen = block.terminator.operands[0].defining_op
    combined = combiners_of(op.regions[1])
    if chosen is None or chosen.name != "stablehlo.compare" or combined is None:
        return None
    direction = comparison_direction(chosen)
    if direction in ("EQ", "NE") or set(chosen.operands) != set(block.args):
        return None
    selects_larger = (direction in ("GE", "GT")) == (chosen.operands[0] is block.args[0])
    element = op.operands[_OPERAND].type.element
    if not element.startswith(("f", "bf")):
        return None
    worst, neutral = extreme_text(element, largest=not selects_larger), identity_text(combined[0], element)
    return None if worst is None or neutral is None else (Fill(worst), Fill(neutral))


class Scattered:
    """A `select_and_scatter` along sharded dimensions that is being rewritten.

    Args:
        op: The op.
        mesh: The mesh of all its tensors.
        ref: The same mesh, as shardings refer to it.
        env: What all ops of a module share.
        fills: The result of `fills_of`.
    """

    def __init__(self, op: Op, mesh: Mesh, ref: str | Mesh, env: Environment, fills: tuple[Fill, Fill]) -> None:
        self.op = op
        self.on = (mesh, ref, env)
        self.fills = fills
        self.dims: list[tuple[Along, Along, Touching]] = []

    def add(self, dim: int, axes: Axes, found: Touching) -> None:
        """Handle a dimension: every shard fetches the windows that overlap it, and the elements that they cover."""
        covered = fetch_of(found.covered) if axes_of_dim(self.op.operands[_OPERAND], dim) else None
        windows = fetch_of(found.windows)
        self.dims.append((_along(dim, axes, found.covered, covered), _along(dim, axes, found.windows, windows), found))

    def emit(self, windows: list[WindowDim]) -> None:
        """Replace the op by a manual computation."""
        for index, along in enumerate(zip(*((covered, touched) for covered, touched, _ in self.dims))):
            axes = {one.dim: () if one.is_whole else one.axes for one in along}
            reshard_operand(self.op, index, axes, self.on[1])
        manual = Manual.along(self.op, *self.on, [covered.axes for covered, _, _ in self.dims])
        manual.emit(dict(enumerate(self.fills)), lambda inner, args: [self._fill(manual, inner, args, windows)])

    def _fill(self, manual: Manual, inner: Builder, args: list[Value], windows: list[WindowDim]) -> Value:
        """Make the body: the op on the device's own and fetched data, and the device's part of the result."""
        operand, source, initial = args
        worst, neutral = (scalar(inner, value, fill.text or "") for value, fill in zip(self.op.operands, self.fills))
        takers = [manual.taker(inner, index, filler) for index, filler in enumerate((worst, neutral))]
        crops = manual.taker(inner, _OPERAND, initial)
        for covered, touched, found in self.dims:
            operand = takers[_OPERAND].elements(operand, covered)
            operand = takers[_OPERAND].part(operand, covered.dim, covered.axes, found.phases, found.extent)
            source = takers[_SOURCE].elements(source, touched)
        made = manual.copy(inner, [operand, source, initial], [operand.type.shape or ()])
        padding = [[window.low, window.high] for window in windows]
        result = made.result
        for covered, _, found in self.dims:
            padding[covered.dim] = [0, 0]
            result = crops.part(result, covered.dim, covered.axes, found.starts, found.shard)
        attrs = manual.env.attrs
        made.set_attr("padding", attrs.parse(f"dense<{padding}> : tensor<{len(padding)}x2xi64>"))
        return result


def _along(dim: int, axes: Axes, stretches: Stretches, fetch: Fetch | None) -> Along:
    return Along(dim, axes, stretches, fetch or fetch_of_whole(stretches), fetch is None)
