"""Random convolutions and reductions of windows whose dimensions with windows are sharded.

Convolutions have one or two spatial dimensions and either compute a part of the output on every device, or, as the
gradients of kernels do, a part of every sum. A sum in front fills padding with other numbers than zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from random import Random
from typing import NamedTuple

MESHES = ('<["x"=2, "y"=2, "z"=2]>', '<["x"=2, "y"=4]>', '<["x"=8]>', '<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>')
_AXES = ({"x": 2, "y": 2, "z": 2}, {"x": 2, "y": 4}, {"x": 8}, {"x": 2, "y": 2})


class Window(NamedTuple):
    """A window along one dimension: the size of the input, and how windows move over it."""

    size: int
    taps: int
    low: int
    high: int
    stride: int
    dilation: int
    spread: int
    is_reversed: bool

    @property
    def count(self) -> int:
        """How many windows there are."""
        room = (self.size - 1) * self.dilation + 1 + self.low + self.high - (self.taps - 1) * self.spread - 1
        return 0 if room < 0 else room // self.stride + 1


def _window(random: Random, is_long: bool, reverses: bool) -> Window:
    while True:
        size = random.choice((4, 5, 6, 7, 8, 9, 12, 15, 16))
        taps = random.choice((1, 2, 3, 3, 4, 5))
        dilation, stride, spread = (random.choice((1, 1, 1, 2, 3)) for _ in range(3))
        if is_long:
            taps = random.randint(max(1, size // spread - 2), size)
            stride = random.choice((1, 1, 2))
        low, high = (random.choice((0, 0, 1, 1, 2, 3, -1)) for _ in range(2))
        if random.random() < 0.1:
            low = taps * spread - 1  # as for a running sum
        window = Window(size, taps, low, high, stride, dilation, spread, reverses and random.random() < 0.3)
        if window.count > 0 and (is_long or window.count > 1):
            return window


def _split(random: Random, axes: dict[str, int], count: int) -> list[list[str]]:
    """The axes of some dimensions; the first has some."""
    names = list(axes)
    random.shuffle(names)
    found: list[list[str]] = [[] for _ in range(count)]
    found[0].append(names.pop())
    for name in names:
        if random.random() < 0.7:
            found[random.randrange(count)].append(name)
    return found


def _sharding(dims: Sequence[Sequence[str]]) -> str:
    listed = ", ".join("{" + ", ".join(f'"{name}"' for name in dim) + "}" for dim in dims)
    return f"[{listed}]"


def _per_value(sharding: str) -> str:
    return f"sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>"


class Port(NamedTuple):
    """An input or output: its shape, and how it is sharded on some axes wherever these divide it."""

    shape: tuple[int, ...]
    dims: Sequence[Sequence[str]]
    axes: dict[str, int]

    @property
    def type(self) -> str:
        """The type."""
        return _type(self.shape)

    @property
    def text(self) -> str:
        """The type and the sharding."""
        counts = [prod(self.axes[name] for name in dim) for dim in self.dims]
        divides = all(size % count == 0 for size, count in zip(self.shape, counts))
        sharding = f" {{sdy.sharding = #sdy.sharding<@m, {_sharding(self.dims)}>}}" if divides else ""
        return f"tensor<{self.type}>{sharding}"


def _function(mesh: str, args: Sequence[Port], lines: Sequence[str], result: Port) -> str:
    listed = ", ".join(f"%{index}: {port.text}" for index, port in enumerate(args))
    body = "\n  ".join(lines)
    return (
        f"sdy.mesh @m = {mesh}\nfunc.func @main({listed}) -> ({result.text}) {{\n  {body}\n"
        f"  return %r : tensor<{result.type}>\n}}"
    )


def _type(shape: Sequence[int]) -> str:
    return "x".join(map(str, (*shape, "f32")))


def _opened(value: str, index: int, type: str, sharding: str) -> str:
    return f"%{value} = stablehlo.negate %{index} {{{_per_value(sharding)}}} : tensor<{type}>"


def _plus_one(value: str, source: str, type: str, sharding: str) -> str:
    """Exact numbers whose padding is not zero."""
    return (
        f"%{value}1 = stablehlo.constant dense<1.0> : tensor<{type}>\n"
        f"  %{value} = stablehlo.add %{source}, %{value}1 {{{_per_value(sharding)}}} : tensor<{type}>"
    )


def convolution(seed: int) -> str:
    """A convolution; the output is sharded along spatial dimensions, or the kernel is."""
    random = Random(seed)
    mesh = random.randrange(len(MESHES))
    rank = random.choice((1, 2, 2))
    sums = random.random() < 0.4
    windows = [_window(random, sums and place == 0, True) for place in range(rank)]
    groups = random.choice((1, 1, 1, 2, 4))
    by_batch = groups > 1 and random.random() < 0.4
    batch, inputs, outputs = random.choice((2, 3, 4)), random.choice((1, 2, 4)), random.choice((1, 2, 4)) * groups
    axes = _split(random, _AXES[mesh], rank + 2)
    spatial, others = axes[:rank], axes[rank:]
    lhs_batch, features = (batch * groups, inputs) if by_batch else (batch, inputs * groups)
    lhs = (lhs_batch, features, *(window.size for window in windows))
    kernel = (outputs, inputs, *(window.taps for window in windows))
    output = (batch, outputs, *(window.count for window in windows))
    is_sum = [sums and place == 0 for place in range(rank)]
    split_lhs = [
        list(dim) if not hides else [] for dim, hides in zip(spatial, (random.random() < 0.1 for _ in spatial))
    ]
    lhs_dims = [others[0] if not by_batch else [], [], *split_lhs]
    kernel_dims = [others[1], [], *(dim if summed else [] for dim, summed in zip(spatial, is_sum))]
    output_dims = [others[0], others[1], *([] if summed else dim for dim, summed in zip(spatial, is_sum))]
    if groups > 1 and random.random() < 0.5:
        lhs_dims[0 if by_batch else 1] = others[1]
    if by_batch:
        output_dims[0] = []
    shardings = [_sharding(dims) for dims in (lhs_dims, kernel_dims, output_dims)]
    found = zip((lhs, kernel, output), (lhs_dims, kernel_dims, output_dims))
    ports = [Port(shape, dims, _AXES[mesh]) for shape, dims in found]
    types = [port.type for port in ports]
    names = "".join(f", {place}" for place in range(rank))
    attrs = ", ".join(
        (
            f"stride = {[window.stride for window in windows]}",
            f"pad = {[[window.low, window.high] for window in windows]}",
            f"lhs_dilate = {[window.dilation for window in windows]}",
            f"rhs_dilate = {[window.spread for window in windows]}",
            f"reverse = [{', '.join(str(window.is_reversed).lower() for window in windows)}]",
        )
    )
    line = (
        f"%r = stablehlo.convolution(%b, %d) dim_numbers = [b, f{names}]x[o, i{names}]->[b, f{names}], window = {{{attrs}}} "
        f"{{batch_group_count = {groups if by_batch else 1} : i64, feature_group_count = {1 if by_batch else groups} : i64, "
        f"{_per_value(shardings[2])}}} : (tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>"
    )
    lines = [
        _opened("a", 0, types[0], shardings[0]),
        _plus_one("b", "a", types[0], shardings[0]),
        _opened("c", 1, types[1], shardings[1]),
        _plus_one("d", "c", types[1], shardings[1]),
        line,
    ]
    return _function(MESHES[mesh], ports[:2], lines, ports[2])


def reduction(seed: int) -> str:
    """A reduction of windows, by a sum that does not begin at zero, a maximum or a product."""
    random = Random(seed)
    mesh = random.randrange(len(MESHES))
    rank = random.choice((1, 2, 3))
    windows = [_window(random, random.random() < 0.2, False) for _ in range(rank)]
    windows = [window._replace(low=max(0, window.low), high=max(0, window.high)) for window in windows]
    if rank > 1 and random.random() < 0.5:
        windows[-1] = Window(random.choice((3, 4)), 1, 0, 0, 1, 1, 1, False)
    dims = _split(random, _AXES[mesh], rank)
    shapes = tuple(window.size for window in windows), tuple(window.count for window in windows)
    ports = [Port(shape, dims, _AXES[mesh]) for shape in shapes]
    type, out = (port.type for port in ports)
    combiner, start = random.choice((("add", "1.0"), ("add", "0.0"), ("maximum", "0xFF800000"), ("minimum", "-0.5")))
    count = random.choice((1, 1, 1, 2))
    sharding = _sharding(dims)
    padding = [[window.low, window.high] for window in windows]
    joined = ", ".join([_entry(sharding)] * count)
    scalars = [f"{side}{index}" for side in "pq" for index in range(count)]
    body = [f"%s{index} = stablehlo.{combiner} %p{index}, %q{index} : tensor<f32>" for index in range(count)]
    results, inits = ["tensor<f32>"] * count, ", ".join(["%i"] * count)
    line = (
        f'%w{":2" if count > 1 else ""} = "stablehlo.reduce_window"({", ".join(f"%b{index}" for index in range(count))}, {inits}) '
        f"<{{window_dimensions = array<i64: {_numbers([window.taps for window in windows])}>, "
        f"window_strides = array<i64: {_numbers([window.stride for window in windows])}>, "
        f"base_dilations = array<i64: {_numbers([window.dilation for window in windows])}>, "
        f"window_dilations = array<i64: {_numbers([window.spread for window in windows])}>, "
        f"padding = dense<{padding}> : tensor<{rank}x2xi64>}}> ({{\n"
        f"  ^bb0({', '.join(f'%{name}: tensor<f32>' for name in scalars)}):\n    " + "\n    ".join(body) + "\n"
        f"    stablehlo.return {', '.join(f'%s{index}' for index in range(count))} : {', '.join(results)}\n"
        f"  }}) {{sdy.sharding = #sdy.sharding_per_value<[{joined}]>}} : "
        f"({', '.join([f'tensor<{type}>'] * count + results)}) -> ({', '.join([f'tensor<{out}>'] * count)})"
    )
    lines = [f"%i = stablehlo.constant dense<{start}> : tensor<f32>"]
    for index in range(count):
        lines += [_opened(f"a{index}", index, type, sharding), _plus_one(f"b{index}", f"a{index}", type, sharding)]
    lines.append(line)
    if count > 1:
        lines.append(f"%r = stablehlo.subtract %w#0, %w#1 {{{_per_value(sharding)}}} : tensor<{out}>")
    else:
        lines.append(f"%r = stablehlo.negate %w {{{_per_value(sharding)}}} : tensor<{out}>")
    return _function(MESHES[mesh], ports[:1] * count, lines, ports[1])


def scattering(seed: int) -> str:
    """A `select_and_scatter` by a comparison and a combination."""
    random = Random(seed)
    mesh = random.randrange(len(MESHES))
    rank = random.choice((1, 2, 3))
    windows = [_window(random, False, False)._replace(dilation=1, spread=1) for _ in range(rank)]
    windows = [window._replace(low=max(0, window.low), high=max(0, window.high)) for window in windows]
    windows = [window._replace(taps=min(window.taps, window.size)) for window in windows]
    dims = _split(random, _AXES[mesh], rank)
    shapes = tuple(window.size for window in windows), tuple(window.count for window in windows)
    source_dims = dims if random.random() < 0.8 else [[] for _ in dims]
    operand, source = Port(shapes[0], dims, _AXES[mesh]), Port(shapes[1], source_dims, _AXES[mesh])
    direction, combiner = random.choice(("GE", "GT", "LE", "LT")), random.choice(("add", "add", "maximum"))
    sharding, of_source = _sharding(dims), _sharding(source_dims)
    line = (
        f'%r = "stablehlo.select_and_scatter"(%b, %d, %i) '
        f"<{{window_dimensions = array<i64: {_numbers([window.taps for window in windows])}>, "
        f"window_strides = array<i64: {_numbers([window.stride for window in windows])}>, "
        f"padding = dense<{[[window.low, window.high] for window in windows]}> : tensor<{rank}x2xi64>}}> ({{\n"
        f"  ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n    %s = stablehlo.compare {direction}, %p, %q : "
        f"(tensor<f32>, tensor<f32>) -> tensor<i1>\n    stablehlo.return %s : tensor<i1>\n  }}, {{\n"
        f"  ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n    %s = stablehlo.{combiner} %p, %q : tensor<f32>\n"
        f"    stablehlo.return %s : tensor<f32>\n  }}) {{{_per_value(sharding)}}} : "
        f"(tensor<{operand.type}>, tensor<{source.type}>, tensor<f32>) -> tensor<{operand.type}>"
    )
    lines = [
        f"%i = stablehlo.constant dense<{random.choice(('0.0', '1.5'))}> : tensor<f32>",
        _opened("a", 0, operand.type, sharding),
        *_distinct("b", "a", operand.type, rank, sharding),
        *_source(source, of_source, is_annotated=any(source_dims) or random.random() < 0.5),
        line,
    ]
    return _function(MESHES[mesh], [operand, source], lines, operand)


def _source(port: Port, sharding: str, is_annotated: bool) -> Iterator[str]:
    """What is scattered, replicated with or without a sharding that says so."""
    for line in (_opened("c", 1, port.type, sharding), _plus_one("d", "c", port.type, sharding)):
        yield line if is_annotated else line.replace(f" {{{_per_value(sharding)}}}", "")


def _distinct(value: str, source: str, type: str, rank: int, sharding: str) -> Iterator[str]:
    """Exact numbers of which no two are equal: which of two equal ones XLA selects depends on shapes."""
    yield _plus_one(f"{value}s", source, type, sharding)
    for dim in range(rank):
        before = f"{value}{dim - 1}n" if dim else f"{value}s"
        yield f"%{value}{dim}i = stablehlo.iota dim = {dim} : tensor<{type}>"
        yield f"%{value}{dim}c = stablehlo.constant dense<{2.0 ** (-4 * dim - 4)}> : tensor<{type}>"
        yield f"%{value}{dim}p = stablehlo.multiply %{value}{dim}i, %{value}{dim}c : tensor<{type}>"
        name = value if dim == rank - 1 else f"{value}{dim}n"
        yield f"%{name} = stablehlo.add %{before}, %{value}{dim}p {{{_per_value(sharding)}}} : tensor<{type}>"


def _entry(sharding: str) -> str:
    return f"<@m, {sharding}>"


def _numbers(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


FAMILIES = {"convolution": convolution, "reduction": reduction, "scattering": scattering}
