"""The modules on which resolving permutation factors and padding are compared, by seed.

Ops under random shardings, as they are when the stages before have made operands and results agree; and ops of which
the shards need the data of their neighbours, sharded alike on both sides.
"""

from __future__ import annotations

from collections.abc import Callable

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import append_or_merge, axes_size
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding

from .draw import Draw, Shape, array, combiner, tensor
from .random_shardings import random_pieces
from .reshard_compare import ours
from .reshard_programs import FAMILIES, STYLES, single_ops
from .rule_instances import KINDS as INSTANCES

_AXES = (
    (("a", 2), ("b", 2)),
    (("a", 2), ("b", 4)),
    (("a", 4), ("b", 2), ("c", 2)),
    (("a", 3), ("b", 2)),
    (("a", 8),),
    (("a", 6), ("b", 2)),
)
PREPARE = (
    "sdy-update-non-divisible-input-output-shardings,sdy-close-shardings,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true mark-partial-result-with-unreduced-axes=true})"
)
RESOLVE = tuple(
    f"sdy-resolve-permutation-factors{options}"
    for options in ("", "{enable-halo-exchange=false}", "{replica-count=8}", "{rng-bit-generator-unsafe=false}")
)
COLLECTIVES = (
    "func.func(sdy-reshard-to-collectives),func.func(sdy-optimize-collectives),"
    "canonicalize{enable-patterns=sdy-collective}"
)
PAD = "sdy-pad-for-divisibility"


class _Neighbours:
    """Writes a module with one op along whose sharded dimensions data moves between shards."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Draw(f"neighbours {seed}")
        axes = draw.choice(_AXES)
        mesh = Mesh(axes)
        self.mesh = Mesh(axes, draw.shuffled(range(mesh.size))) if draw.flag(0.25) else mesh
        self.element = draw.choice(["f32"] * 6 + ["i32", "i1", "ui8", "bf16", "complex<f32>"])

    def sharding(self, rank: int) -> TensorSharding:
        """A sharding of one or two dimensions, often with all axes on one."""
        draw = self.draw
        dims: list[list[AxisRef]] = [[] for _ in range(rank)]
        favourite = draw.randrange(rank)
        for piece in random_pieces(draw, self.mesh, 0.3):
            if draw.flag(0.75):
                append_or_merge(dims[favourite if draw.flag(0.6) else draw.randrange(rank)], piece, self.mesh)
        return TensorSharding("mesh", [DimSharding(axes) for axes in dims])

    def shape(self) -> Shape:
        """One to three dimensions, of which some are large enough for many shards."""
        return tuple(self.draw.choice((1, 3, 5, 7, 8, 9, 12, 16, 17, 24, 30)) for _ in range(self.draw.randint(1, 3)))

    def module(self, line: str, shape: Shape, out: Shape, sharding: TensorSharding, after: TensorSharding) -> str:
        """A module with one op on `%x` and perhaps the scalar `%p`; its attributes end where its sharding begins."""
        given, result = tensor(shape, self.element), tensor(out, self.element)
        scalar = f"tensor<{self.element}>"
        return (
            f"sdy.mesh @mesh = {self.mesh}\n"
            f"func.func private @f(%x: {given} {{sdy.sharding = #sdy.sharding{sharding}}}, %p: {scalar}) -> ({result} "
            f"{{sdy.sharding = #sdy.sharding{after}}}) {{\n"
            + line.replace("SHARDING", f"sdy.sharding = #sdy.sharding_per_value<[{after}]>")
            .replace("GIVEN", given)
            .replace("SCALAR", scalar)
            .replace("RESULT", result)
            + f"\n  return %r : {result}\n}}\n"
        )

    def slice(self, is_strided: bool = False) -> str:
        draw, shape = self.draw, self.shape()
        starts = [draw.choice((0, 0, 0, 1, 2, 3)) if size > 3 else 0 for size in shape]
        limits = [max(start, size - draw.choice((0, 0, 1, 2, 5))) for start, size in zip(starts, shape)]
        strides = [draw.choice((1, 2, 3)) if is_strided else 1 for _ in shape]
        sharding = self.sharding(len(shape))
        out = tuple(-(-(limit - start) // stride) for start, limit, stride in zip(starts, limits, strides))
        attrs = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
        line = f'  %r = "stablehlo.slice"(%x) {{{attrs}, SHARDING}} : (GIVEN) -> RESULT'
        return self.module(line, shape, out, sharding, sharding)

    def pad(self) -> str:
        draw, shape = self.draw, self.shape()
        low = [draw.choice((0, 0, 0, 1, 2, 3, 5, -1)) if size > 1 else 0 for size in shape]
        high = [draw.choice((0, 0, 0, 1, 2, 3, 5, -1)) if size > 2 else 0 for size in shape]
        interior = [draw.choice((0, 0, 0, 0, 1, 2)) for _ in shape]
        out = tuple(
            size + before + after + (size - 1) * inner for size, before, after, inner in zip(shape, low, high, interior)
        )
        sharding = self.sharding(len(shape))
        attrs = (
            f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(interior)}"
        )
        line = f'  %r = "stablehlo.pad"(%x, %p) {{{attrs}, SHARDING}} : (GIVEN, SCALAR) -> RESULT'
        return self.module(line, shape, out, sharding, sharding)

    def reverse(self) -> str:
        draw, shape = self.draw, self.shape()
        sharding = self.sharding(len(shape))
        dims = draw.subset(range(len(shape)), at_least=1)
        line = f'  %r = "stablehlo.reverse"(%x) {{dimensions = {array(dims)}, SHARDING}} : (GIVEN) -> RESULT'
        return self.module(line, shape, shape, sharding, sharding)

    def reshape(self) -> str:
        """Splits and combinations in which the axes stay in order."""
        draw = self.draw
        axes = [draw.choice((2, 2, 3, 4, 5, 7, 10, 11, 14, 15, 22)) for _ in range(draw.randint(2, 4))]
        cuts = [draw.flag(0.6) for _ in axes[1:]]
        pieces = [piece for piece in random_pieces(draw, self.mesh, 0.3) if draw.flag(0.85)]
        places = sorted(draw.randrange(len(axes)) for _ in pieces)
        if draw.flag(0.5):
            for index, place in enumerate(places[:-1]):
                axes[place] = pieces[index].length(self.mesh)
        fine: list[list[AxisRef]] = [[] for _ in axes]
        for piece, place in zip(pieces, places):
            append_or_merge(fine[place], piece, self.mesh)
        shape, joined = [axes[0]], [list(fine[0])]
        is_full = axes[0] == axes_size(fine[0], self.mesh)
        for size, own, joins in zip(axes[1:], fine[1:], cuts):
            if joins and not is_full:
                own.clear()
            is_full = (is_full or not joins) and size == axes_size(own, self.mesh)
            if joins:
                shape[-1] *= size
                for axis in own:
                    append_or_merge(joined[-1], axis, self.mesh)
            else:
                shape.append(size)
                joined.append(list(own))
        sides = [(tuple(shape), joined), (tuple(axes), fine)]
        if draw.flag(0.3):
            sides.reverse()
        (before, first), (after, second) = sides
        shardings = [TensorSharding("mesh", [DimSharding(dim) for dim in dims]) for dims in (first, second)]
        line = '  %r = "stablehlo.reshape"(%x) {SHARDING} : (GIVEN) -> RESULT'
        return self.module(line, before, after, *shardings)

    def regroup(self) -> str:
        """A reshape between any two shapes, some dimensions of which are 1, with the same axes in the same order."""
        draw = self.draw
        factors = [draw.choice((2, 2, 2, 3, 3, 5)) for _ in range(draw.randint(2, 4))]
        pieces = [piece for piece in random_pieces(draw, self.mesh, 0.3) if draw.flag(0.85)]
        shapes, shardings = [], []
        for _ in range(2):
            shape = [1] * draw.randint(1, 4)
            places = sorted(draw.randrange(len(shape)) for _ in factors)
            for place, factor in zip(places, draw.shuffled(factors)):
                shape[place] *= factor
            dims: list[list[AxisRef]] = [[] for _ in shape]
            for place, piece in zip(sorted(draw.randrange(len(shape)) for _ in pieces), pieces):
                append_or_merge(dims[place], piece, self.mesh)
            shapes.append(tuple(shape))
            shardings.append(TensorSharding("mesh", [DimSharding(axes) for axes in dims]))
        line = '  %r = "stablehlo.reshape"(%x) {SHARDING} : (GIVEN) -> RESULT'
        return self.module(line, *shapes, *shardings)

    def window(self) -> str:
        """A sum over windows, in which no dimension is padded."""
        draw, shape = self.draw, self.shape()
        self.element = draw.choice(("f32", "i32"))
        sizes = [draw.choice((1, 1, 2, 3)) if size > 3 else 1 for size in shape]
        strides = [draw.choice((1, size, size)) for size in sizes]
        out = tuple((size - window) // stride + 1 for size, window, stride in zip(shape, sizes, strides))
        sharding = self.sharding(len(shape))
        attrs = f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}"
        line = f'  %r = "stablehlo.reduce_window"(%x, %p) ({{{combiner([self.element])}}}) {{{attrs}, SHARDING}} '
        return self.module(line + ": (GIVEN, SCALAR) -> RESULT", shape, out, sharding, sharding)


NEIGHBOURS: dict[str, Callable[[_Neighbours], str]] = {
    "slice": _Neighbours.slice,
    "pad": _Neighbours.pad,
    "reverse": _Neighbours.reverse,
    "reshape": _Neighbours.reshape,
    "regroup": _Neighbours.regroup,
    "strided slice": lambda writer: writer.slice(is_strided=True),
    "window": _Neighbours.window,
}
"""Per op, how to make a module with it whose operand and result are sharded alike."""


def neighbour_program(kind: str, seed: int) -> str:
    """A module with one op of a kind."""
    return NEIGHBOURS[kind](_Neighbours(seed))


KINDS = tuple(
    name
    for name in (
        "concatenate", "convolution", "dot_general", "dynamic_slice", "dynamic_update_slice", "gather", "pad of any",
        "reduce", "reduce_window", "reshape of any", "scatter", "slice of any", "transpose", "chain",
    )
)  # fmt: skip
"""Kinds of ops under random shardings, of which stage 0 has made operands and results agree."""


def prepared_program(kind: str, seed: int) -> str:
    """Two ops of a kind, or a whole program, as resolving permutation factors gets them; may raise `Refused`."""
    if kind == "chain":
        return ours(FAMILIES["chain"][0](seed, STYLES), PREPARE)
    name = kind.removesuffix(" of any")
    return ours(single_ops({name: INSTANCES[name]}, 2, seed, STYLES), PREPARE)
