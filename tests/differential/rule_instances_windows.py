"""Random valid convolutions and window reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .draw import Draw, array, combiner, dense_pairs, op, tensor


@dataclass(frozen=True)
class _Window:
    """A window along one dimension."""

    size: int
    stride: int
    padding: tuple[int, int]
    base_dilation: int
    dilation: int

    def count(self, size: int) -> int:
        """How many windows fit into a dimension of `size`."""
        base = 0 if size == 0 else (size - 1) * self.base_dilation + 1
        room = base + sum(self.padding) - ((self.size - 1) * self.dilation + 1)
        return 0 if room < 0 or base + sum(self.padding) == 0 else room // self.stride + 1


def _window(draw: Draw, size: int, dilates: bool = True) -> _Window:
    if draw.flag(0.3):
        return _Window(1, 1, (0, 0), 1, 1)
    width = draw.choice([1, 2, 2, 3, 4, 5, max(1, size), max(1, size + 1), max(1, size // 2)])
    return _Window(
        width,
        draw.choice([1, 1, 2, 3, width]),
        (draw.choice([0, 0, 1, 2]), draw.choice([0, 0, 1, 2])),
        draw.choice([1, 1, 1, 2]) if dilates else 1,
        draw.choice([1, 1, 1, 2]) if dilates else 1,
    )


def _window_attrs(draw: Draw, windows: list[_Window], dilates: bool = True) -> str:
    """Attributes of a window reduction; those with default values are sometimes left out."""
    parts = [f"window_dimensions = {array([window.size for window in windows])}"]
    strides = [window.stride for window in windows]
    if set(strides) - {1} or draw.flag():
        parts.append(f"window_strides = {array(strides)}")
    if any(sum(window.padding) for window in windows) or draw.flag():
        parts.append(f"padding = {dense_pairs([window.padding for window in windows])}")
    if dilates:
        parts.append(f"base_dilations = {array([window.base_dilation for window in windows])}")
        parts.append(f"window_dilations = {array([window.dilation for window in windows])}")
    return ", ".join(parts)


def reduce_window(draw: Draw) -> str:
    """Of one or two tensors, with strides, padding and dilations."""
    shape, count = draw.shape(max_rank=3), draw.randint(1, 2)
    windows = [_window(draw, size) for size in shape]
    result = tensor([window.count(size) for window, size in zip(windows, shape)])
    operands = [tensor(shape)] * count + ["tensor<f32>"] * count
    attrs = _window_attrs(draw, windows)
    return op("stablehlo.reduce_window", operands, [result] * count, attrs, combiner(["f32"] * count))


def select_and_scatter(draw: Draw) -> str:
    """With strides and padding."""
    shape = draw.shape(max_rank=3)
    windows = [_window(draw, size, dilates=False) for size in shape]
    source = tensor([window.count(size) for window, size in zip(windows, shape)])
    operand = tensor(shape)
    compare = (
        "^bb0(%x0: tensor<f32>, %x1: tensor<f32>):\n"
        '%y = "stablehlo.compare"(%x0, %x1) {comparison_direction = #stablehlo<comparison_direction GE>} : '
        '(tensor<f32>, tensor<f32>) -> tensor<i1>\n"stablehlo.return"(%y) : (tensor<i1>) -> ()\n'
    )
    attrs = _window_attrs(draw, windows, dilates=False)
    regions = f"{compare}}}, {{{combiner(['f32'])}"
    return op("stablehlo.select_and_scatter", [operand, source, "tensor<f32>"], [operand], attrs, regions)


def convolution(draw: Draw) -> str:
    """With any layout, strides, padding, dilations and one kind of groups."""
    spatial = draw.choice([0, 1, 1, 2, 3])
    batch_groups, feature_groups = draw.choice([(1, 1), (1, 1), (draw.randint(2, 4), 1), (1, draw.randint(2, 6))])
    kernel_input, output_per_group = draw.size(low=1), draw.size(low=1)
    output_features = output_per_group * batch_groups * feature_groups
    batch = draw.size() * batch_groups
    sizes = draw.shape(spatial, spatial)
    windows = [_window(draw, size) for size in sizes]
    layouts = [draw.shuffled(range(spatial + 2)) for _ in range(3)]
    lhs = _placed(layouts[0], (batch, kernel_input * feature_groups, *sizes))
    kernel = _placed(layouts[1], (kernel_input, output_features, *(window.size for window in windows)))
    counts = tuple(window.count(size) for window, size in zip(windows, sizes))
    output = _placed(layouts[2], (batch // batch_groups, output_features, *counts))
    texts = [_layout_text(layout, names) for layout, names in zip(layouts, ("bf", "io", "bf"))]
    attrs = ", ".join(
        (
            f"dimension_numbers = #stablehlo.conv<{texts[0]}x{texts[1]}->{texts[2]}>",
            f"batch_group_count = {batch_groups} : i64, feature_group_count = {feature_groups} : i64",
            f"window_strides = {array([window.stride for window in windows])}",
            f"padding = {dense_pairs([window.padding for window in windows])}",
            f"lhs_dilation = {array([window.base_dilation for window in windows])}",
            f"rhs_dilation = {array([window.dilation for window in windows])}",
        )
    )
    return op("stablehlo.convolution", [tensor(lhs), tensor(kernel)], [tensor(output)], attrs)


def _placed(layout: list[int], sizes: tuple[int, ...]) -> list[int]:
    """The sizes, given in the order of their roles, at the places of the layout."""
    return [sizes[role] for role in layout]


def _layout_text(layout: list[int], names: str) -> str:
    return "[" + ", ".join(names[role] if role < 2 else str(role - 2) for role in layout) + "]"


KINDS: tuple[Callable[[Draw], str], ...] = (reduce_window, select_and_scatter, convolution)
