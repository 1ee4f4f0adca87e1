"""Random gathers, scatters and dynamic slices at indices of any type, in bounds and out of them, with any windows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeVar

from differential.draw import Draw, array, combiner, op_line, tensor
from differential.rule_instances_indexed import Scheme
from end_to_end.typed_reductions import INTEGERS

T = TypeVar("T")
KINDS = ("gather", "scatter", "dynamic_slice", "dynamic_update_slice")
_SIZES = (1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8, 9, 12)
_READ_AS_SIGNED = ("ui32", "ui64")
"""Types of which XLA for CPUs reads large indices of a gather on one device as negative ones; these are left out. So are
large constants of all unsigned types: XLA makes slices of a gather at one constant index, and reads it as signed."""
_LARGE = (127, 128, 129, 200, 255, 256, 260, 300)


class Windows(Draw):
    """Choices of sizes that are never 0, now and then beyond small integers, and of windows of every kind."""

    has_large = False

    def size(self, low: int = 0) -> int:
        if not self.has_large and self.flag(0.08):
            self.has_large = True
            return self.choice(_LARGE)
        return self.choice(_SIZES)

    def shape(self, min_rank: int = 0, max_rank: int = 3, low: int = 0) -> tuple[int, ...]:
        return tuple(self.size(low) for _ in range(self.choice((1, 2, 2, 3, 3))))

    def below(self, size: int) -> int:
        return self.choice((1, size, size, self.randint(1, size)))

    def subset(self, items: Sequence[T], at_least: int = 0, at_most: int | None = None) -> list[T]:
        chosen = [item for item in items if self.flag(0.6)]
        return super().subset(items, at_least, at_most) if len(chosen) < at_least else chosen[:at_most]


def kind_of(seed: int) -> str:
    """The op of a program."""
    return KINDS[seed % len(KINDS)]


def is_move(seed: int) -> bool:
    """Whether the program computes nothing but moves data."""
    return kind_of(seed) != "scatter"


def unsharded(seed: int) -> tuple[str, Draw]:
    """A program without shardings that returns what the op gives, and the source of further choices."""
    draw = Windows(f"indexed {seed}")
    element = draw.choice(("f32", "f32", "i32"))
    make = {"gather": _gather, "scatter": _scatter}.get(kind_of(seed), _slice)
    return make(draw, element, draw.choice(INTEGERS), kind_of(seed)), draw


def mesh_for(draw: Draw, sharding: str) -> str:
    """A mesh that the first argument of a program is sharded by, as that says."""
    return f'sdy.mesh @m = <["a"={draw.choice((2, 4))}, "b"=2]>\n' if sharding else ""


def first_sharding(draw: Draw, rank: int) -> str:
    """A sharding by axes `a` and `b`, mostly of different dimensions."""
    dims: list[list[str]] = [[] for _ in range(rank)]
    places = draw.shuffled(range(rank))
    for index, axis in enumerate(draw.shuffled(['"a"', '"b"'])):
        dims[places[0] if draw.flag(0.1) else places[index % rank]].append(axis)
    return f"[{', '.join('{' + ', '.join(axes) + '}' for axes in dims)}]"


def _number(draw: Draw, element: str, size: int, is_gathered: bool = False) -> int:
    """An index along a dimension: in it, near its end, out of it, or as far as the type goes."""
    width, is_signed = int(element.lstrip("ui")), not element.startswith("u")
    half = 2 ** (width - 1)
    low, high = (
        -half if is_signed else 0,
        half - 1 if is_signed or is_gathered or element in _READ_AS_SIGNED else 2 * half - 1,
    )
    wanted = draw.choice(
        (0, draw.randrange(size), draw.randrange(size), size - 1, size, size + draw.randint(1, 9), -1,
         -draw.randint(1, size + 3), low, high)
    )  # fmt: skip
    return min(max(wanted, low), high)


def _indices(draw: Draw, shape: Sequence[int], vector: int, sizes: Sequence[int], element: str) -> str:
    """A constant of indices, each component for a dimension of its own."""
    inner = prod(shape[vector + 1 :])

    def component(place: int) -> int:
        return place // inner % shape[vector] if vector < len(shape) else 0

    numbers = [_number(draw, element, sizes[component(place)], is_gathered=True) for place in range(prod(shape))]
    return _nested(numbers, shape)


def _nested(numbers: Sequence[int], shape: Sequence[int]) -> str:
    if not shape:
        return str(numbers[0])
    if not numbers:
        return ""
    step = len(numbers) // shape[0]
    return f"[{', '.join(_nested(numbers[at : at + step], shape[1:]) for at in range(0, len(numbers), step))}]"


def _function(draw: Draw, args: Sequence[tuple[str, str]], lines: Sequence[str], result: str) -> str:
    """A function that returns `%r`, and sometimes the sum of it; with a sharding for its first argument, or none."""
    sharding = first_sharding(draw, args[0][1].count("x")) if draw.flag(0.6) else ""
    attr = f" {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}" if sharding else ""
    listed = ", ".join(f"{name}: {type}{'' if index else attr}" for index, (name, type) in enumerate(args))
    element = result.removeprefix("tensor<").removesuffix(">").rpartition("x")[2]
    returned, rank = [("%r", result)], result.count("x")
    if draw.flag(0.3) and rank:
        body = combiner([element])
        zero = "0" if element == "i32" else "0.0"
        scalar = tensor((), element)
        reduced = op_line(
            "stablehlo.reduce", [result, scalar], [scalar], f"dimensions = {array(range(rank))}", body, "%r, %z"
        )
        lines = [*lines, f"  %z = stablehlo.constant dense<{zero}> : {scalar}", reduced.replace("%r =", "%sum =", 1)]
        returned.append(("%sum", scalar))
    names, types = (", ".join(parts) for parts in zip(*returned))
    end = f"  return {names} : {types}\n}}\n"
    return "\n".join([mesh_for(draw, sharding) + f"func.func @main({listed}) -> ({types}) {{", *lines, end])


def _slice(draw: Draw, element: str, index: str, kind: str) -> str:
    shape = draw.shape()
    cut = [draw.below(size) for size in shape]
    scalar, operands, lines = tensor((), index), [("%a0", tensor(shape, element))], []
    if kind == "dynamic_update_slice":
        operands.append(("%a1", tensor(cut, element)))
    args = list(operands)
    for dim, size in enumerate(shape):
        name = f"%i{dim}"
        operands.append((name, scalar))
        if draw.flag(0.7) or index in _READ_AS_SIGNED:
            lines.append(f"  {name} = stablehlo.constant dense<{_number(draw, index, size)}> : {scalar}")
        else:
            args.append((name, scalar))
    result = tensor(cut if kind == "dynamic_slice" else shape, element)
    attrs = f"slice_sizes = {array(cut)}" if kind == "dynamic_slice" else ""
    names, types = ", ".join(name for name, _ in operands), [type for _, type in operands]
    lines.append(op_line(f"stablehlo.{kind}", types, [result], attrs, names=names))
    return _function(draw, args, lines, result)


def _with_indices(draw: Draw, scheme: Scheme, index: str, args: list[tuple[str, str]], line: str, result: str) -> str:
    """The function of a line on indices `%i`, which are a constant or an argument."""
    type, lines = tensor(scheme.indices, index), []
    if prod(scheme.indices) and (draw.flag(0.7) or index in _READ_AS_SIGNED):
        sizes = [scheme.input[dim] for dim in scheme.index_map]
        value = _indices(draw, scheme.indices, scheme.vector, sizes, index)
        lines.append(f"  %i = stablehlo.constant dense<{value}> : {type}")
    else:
        args = [*args, ("%i", type)]
    return _function(draw, args, [*lines, line], result)


def _gather(draw: Draw, element: str, index: str, kind: str) -> str:
    scheme = Scheme(draw)
    input, result = tensor(scheme.input, element), tensor(scheme.windows, element)
    attrs = f"dimension_numbers = {scheme.gather_numbers()}, slice_sizes = {array(scheme.slice_sizes)}"
    line = op_line(f"stablehlo.{kind}", [input, tensor(scheme.indices, index)], [result], attrs, names="%a0, %i")
    return _with_indices(draw, scheme, index, [("%a0", input)], line, result)


def _scatter(draw: Draw, element: str, index: str, kind: str) -> str:
    scheme = Scheme(draw)
    while not scheme.index_map:  # XLA takes updates of one place for those of all, on one device
        scheme = Scheme(draw)
    input, updates = tensor(scheme.input, element), tensor(scheme.windows, element)
    name = draw.choice(("set", "add", "add", "maximum", "minimum"))
    body = combiner([element], [] if name == "set" else [name], "%x1" if name == "set" else "")
    attrs = f"scatter_dimension_numbers = {scheme.scatter_numbers()}"
    types = [input, tensor(scheme.indices, index), updates]
    line = op_line(f"stablehlo.{kind}", types, [input], attrs, body, "%a0, %i, %a1")
    return _with_indices(draw, scheme, index, [("%a0", input), ("%a1", updates)], line, input)
