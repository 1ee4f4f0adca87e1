"""Random modules, with their shardings, that hit conditions which random shardings hardly ever meet."""

from __future__ import annotations

from random import Random

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding

from .draw import tensor

_MESHES = (
    Mesh([("a", 2), ("b", 2), ("c", 2), ("d", 2)]),
    Mesh([("a", 2), ("b", 4), ("c", 2)]),
    Mesh([("a", 4), ("b", 6)]),
)
_CONTEXTS = ("return", "reshard", "barrier", "case", "call", "abs")


def product_program(seed: int) -> str:
    """A product whose result wants, on one factor, the axes of the contraction, or nearly so."""
    random = Random(f"product {seed}")
    mesh = random.choice(_MESHES)
    sizes = {letter: random.choice((4, 8, 16, 64)) for letter in "bijk"}
    axes = [AxisRef(name) for name in random.sample(mesh.axis_names, len(mesh.axes))]
    given = {letter: [axes.pop()] if axes and random.random() < 0.7 else [] for letter in "kijb"}
    if random.random() < 0.3 and axes:
        given["k"].append(axes.pop())
    wanted = {**given, random.choice("iijb"): given["k"]}
    if random.random() < 0.2:
        wanted[random.choice("ijb")] = axes[:1]
    if random.random() < 0.3 and sizes["k"] > 4:
        sizes["i"] = sizes["j"] = 4
    has_batch = random.random() < 0.5
    lhs, rhs, result = ("bik", "bkj", "bij") if has_batch else ("ik", "kj", "ij")
    texts = [_sharding(letters, given) for letters in (lhs, rhs)] + [_sharding(result, wanted)]
    types = [tensor([sizes[letter] for letter in letters]) for letters in (lhs, rhs, result)]
    if random.random() < 0.2:
        texts[2] = _sharding(result, given, sort_and_merge(given["k"], mesh))
    batch = "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], " if has_batch else ""
    offset = int(has_batch)
    numbers = f"{batch}lhs_contracting_dimensions = [{1 + offset}], rhs_contracting_dimensions = [{offset}]"
    op = f'"stablehlo.dot_general"(%x, %y) {{dot_dimension_numbers = #stablehlo.dot<{numbers}>'
    op += f", sdy.sharding = #sdy.sharding_per_value<[{texts[2]}]>}} : ({types[0]}, {types[1]}) -> {types[2]}"
    return (
        f"sdy.mesh @m = {mesh}\n"
        f"func.func @main(%x: {types[0]} {{sdy.sharding = #sdy.sharding{texts[0]}}}, "
        f"%y: {types[1]} {{sdy.sharding = #sdy.sharding{texts[1]}}}) -> {types[2]} {{\n"
        f"  %0 = {op}\n  return %0 : {types[2]}\n}}\n"
    )


def _sharding(letters: str, axes: dict[str, list[AxisRef]], unreduced: tuple[AxisRef, ...] = ()) -> TensorSharding:
    """The sharding of a tensor with these factors; repeated axes are left out."""
    used = set(unreduced)
    dims = []
    for letter in letters:
        own = [axis for axis in axes[letter] if axis not in used]
        used.update(own)
        dims.append(DimSharding(own))
    return TensorSharding("m", dims, (), unreduced)


def unreduced_program(seed: int) -> str:
    """A value that becomes unreduced along axes that it is sharded by, or is not, in some place."""
    random = Random(f"unreduced {seed}")
    mesh = random.choice(_MESHES)
    have, want = _transition(random, mesh)
    type = "tensor<8x8xf32>"
    annotation = f"{{sdy.sharding = #sdy.sharding_per_value<[{want}]>}}"
    context = random.choice(_CONTEXTS)
    lines = {
        "return": ["%r = stablehlo.abs %x : TYPE"],
        "reshard": [f"%r = sdy.reshard %x {want} : TYPE"],
        "barrier": [f"%r = stablehlo.optimization_barrier {annotation} %x : TYPE"],
        "case": [
            "%i = stablehlo.constant dense<0> : tensor<i32>",
            f'%r = "stablehlo.case"(%i) ({{ stablehlo.return %x : TYPE }}) {annotation} : (tensor<i32>) -> TYPE',
        ],
        "call": [f"%r = func.call @f(%x) {annotation} : (TYPE) -> TYPE"],
        "abs": [f"%r = stablehlo.abs %x {annotation} : TYPE"],
    }[context]
    returned = "%x" if context == "return" else random.choice(("%x", "%r"))
    callee = f"func.func private @f(%x: TYPE {{sdy.sharding = #sdy.sharding{want}}}) -> TYPE {{\n  return %x : TYPE\n}}"
    text = "\n".join(
        [
            f"sdy.mesh @m = {mesh}",
            f"func.func @main(%x: TYPE {{sdy.sharding = #sdy.sharding{have}}}) "
            f"-> (TYPE {{sdy.sharding = #sdy.sharding{want}}}) {{",
            *(f"  {line}" for line in lines),
            f"  return {returned} : TYPE\n}}",
            *([callee] if context == "call" else []),
        ]
    )
    return text.replace("TYPE", type) + "\n"


def _transition(random: Random, mesh: Mesh) -> tuple[TensorSharding, TensorSharding]:
    """A sharding, and one in which some of its last axes, and some free ones, are unreduced instead."""
    pieces = []
    for name, size in mesh.axes:
        axis = AxisRef(name)
        pieces += [axis.head(2, mesh), axis.tail(2, mesh)] if size > 2 and random.random() < 0.6 else [axis]
    random.shuffle(pieces)
    dims: list[list[AxisRef]] = [[], []]
    free: list[AxisRef] = []
    for piece in pieces:
        append_or_merge(random.choice([*dims, *dims, free]), piece, mesh)
    have = TensorSharding(
        "m", map(DimSharding, dims), (), sort_and_merge(free[:1] if random.random() < 0.2 else [], mesh)
    )
    rest = [piece for piece in free if piece not in have.unreduced]
    moved = [piece for piece in rest if random.random() < 0.5]
    kept = []
    for dim in dims:
        count = random.randint(0, len(dim)) if random.random() < 0.7 else len(dim)
        axes, gone = dim[:count], dim[count:]
        last = axes[-1] if axes else None
        if last is not None and last.length(mesh) == 4 and random.random() < 0.6:
            axes[-1] = last.head(2, mesh)
            gone = [last.tail(2, mesh), *gone]
        kept.append(axes)
        moved += gone if random.random() < 0.8 else gone[:1]
    if random.random() < 0.2:
        kept.reverse()
    unreduced = sort_and_merge([*moved, *have.unreduced], mesh)
    return have, TensorSharding("m", map(DimSharding, kept), (), unreduced)
