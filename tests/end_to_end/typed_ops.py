"""Random valid ops in all element types, as MLIR text of one function."""

from __future__ import annotations

import re
from collections.abc import Callable

from differential.draw import Draw, array, combiner, function, op, op_line, tensor
from differential.rule_instances import KINDS
from end_to_end.typed_reductions import (
    ALL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    REAL,
    REDUCTIONS,
    SIGNED,
    combiners,
    constant,
    with_elements,
)  # fmt: skip

from pyshardy.core.identities import zero_text

_WIDTHS = {1: ("i8", "ui8"), 2: ("i16", "f16", "bf16"), 4: ("i32", "f32", "ui32"), 8: ("i64", "f64", "ui64")}


class Large(Draw):
    """Choices with one dimension that small integers cannot count, and small ones beside it."""

    has_large = False

    def size(self, low: int = 0) -> int:
        if not self.has_large and self.flag(0.4):
            self.has_large = True
            return self.choice((129, 130, 200, 256, 257, 300))
        return max(low, self.choice((1, 2, 3)))


def retyped(kind: str, elements: tuple[str, ...]) -> Callable[[Draw], str]:
    """What makes an op as `rule_instances` does, with other elements and other indices."""

    def make(draw: Draw) -> str:
        text, element = KINDS[kind](draw), draw.choice(elements)
        while element in COMPLEX and ("maximum" in text or "minimum" in text):
            text = KINDS[kind](draw)
        if kind in ("gather", "dynamic_slice", "dynamic_update_slice"):
            text = re.sub(r"(?<=[x<])i32(?=>)", draw.choice(INTEGERS), text)
        return with_elements(text, element)

    make.__name__ = kind
    return make


def arithmetic(draw: Draw) -> str:
    """One element-wise op on integers, truth values or complex numbers."""
    shape, element = draw.shape(), draw.choice((*INTEGERS, *COMPLEX, "i1"))
    type = tensor(shape, element)
    if element in INTEGERS:
        names = [*combiners(element), "subtract", "divide", "remainder", "power", "shift_left", "negate", "not",
                 "popcnt", "count_leading_zeros", "shift_right_logical", "shift_right_arithmetic"]  # fmt: skip
        names += ["abs", "sign"] if element in SIGNED else []
    elif element in COMPLEX:
        names = ["add", "subtract", "multiply", "divide", "negate", "exponential", "log", "sqrt", "tanh"]
    else:
        names = ["and", "or", "xor", "not"]
    name = draw.choice(names)
    is_unary = name in ("negate", "not", "popcnt", "count_leading_zeros", "abs", "sign", "exponential", "log", "sqrt", "tanh")  # fmt: skip
    return op(f"stablehlo.{name}", [type] * (1 if is_unary else 2), [type])


def convert(draw: Draw) -> str:
    """From any type to any other."""
    shape, first = draw.shape(), draw.choice(ALL)
    second = draw.choice([element for element in ALL if first not in COMPLEX or element in COMPLEX])
    return op("stablehlo.convert", [tensor(shape, first)], [tensor(shape, second)])


def bitcast_convert(draw: Draw) -> str:
    """Between types of any width."""
    shape = draw.shape(max_rank=3)
    small, large = sorted(draw.choice(list(_WIDTHS)) for _ in range(2))
    wide = tensor(shape, draw.choice(_WIDTHS[large]))
    split = tensor(shape if small == large else (*shape, large // small), draw.choice(_WIDTHS[small]))
    operand, result = draw.shuffled([wide, split])
    return op("stablehlo.bitcast_convert", [operand], [result])


def iota(draw: Draw) -> str:
    """Numbers of any type, added to others."""
    shape, element = draw.shape(1, 3), draw.choice((*REAL, *COMPLEX))
    type = tensor(shape, element)
    lines = [
        op_line("stablehlo.iota", [], [type], f"iota_dimension = {draw.randrange(len(shape))} : i64").replace(
            "%r", "%i"
        ),
        op_line("stablehlo.add", [type, type], [type], names="%a0, %i"),
    ]
    return function("\n".join(lines), [type])


def sort(draw: Draw) -> str:
    """Of several tensors by one or two keys."""
    shape, count = draw.shape(1, 3), draw.randint(1, 4)
    elements = [draw.choice(REAL if index < 2 else ALL) for index in range(count)]
    types = [tensor(shape, element) for element in elements]
    scalars = [tensor((), element) for element in elements for _ in range(2)]
    args = ", ".join(f"%x{index}: {scalar}" for index, scalar in enumerate(scalars))
    keys = min(count, draw.randint(1, 2))
    direction = draw.choice(("LT", "GT"))
    lines = [f"^bb0({args}):"]
    for key in range(keys):
        pair = f"%x{2 * key}, %x{2 * key + 1}"
        kind = ", TOTALORDER" if elements[key] in FLOATS else ""
        for name, how in (("lt", direction), ("eq", "EQ")):
            scalar = scalars[2 * key]
            lines.append(
                f"    %{name}{key} = stablehlo.compare {how}, {pair}{kind} : ({scalar}, {scalar}) -> tensor<i1>"
            )
    if keys == 2:
        lines += ["    %both = stablehlo.and %eq0, %lt1 : tensor<i1>", "    %p = stablehlo.or %lt0, %both : tensor<i1>"]
    lines.append(f'"stablehlo.return"({"%p" if keys == 2 else "%lt0"}) : (tensor<i1>) -> ()\n')
    attrs = f"dimension = {draw.randrange(len(shape))} : i64, is_stable = true"
    return function(op_line("stablehlo.sort", types, types, attrs, "\n".join(lines)), types)


def scatter(draw: Draw) -> str:
    """Into rows that are all different, some of them out of bounds, by any op."""
    element, index = draw.choice(ALL), draw.choice(INTEGERS)
    rows, rest = draw.size(low=1), draw.shape(max_rank=2)
    count = draw.randint(1, 12)
    step, first = draw.choice((1, 1, 2)), 0 if index.startswith("ui") else draw.choice((0, 0, -2))
    input, places = tensor((rows, *rest), element), tensor((count, 1), index)
    updates = tensor((count, *rest), element)
    name = draw.choice(("set", *combiners(element)))
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {list(range(1, len(rest) + 1))}, inserted_window_dims = [0], "
        f"scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    )
    attrs = (
        f"scatter_dimension_numbers = {numbers}, unique_indices = true, indices_are_sorted = {str(draw.flag()).lower()}"
    )
    body = combiner([element], [] if name == "set" else [name], "%x1" if name == "set" else "")
    lines = [
        op_line("stablehlo.iota", [], [places], "iota_dimension = 0 : i64").replace("%r", "%i"),
        constant("%s", str(step), places),
        constant("%o", str(first), places),
        op_line("stablehlo.multiply", [places] * 2, [places], names="%i, %s").replace("%r", "%m"),
        op_line("stablehlo.add", [places] * 2, [places], names="%m, %o").replace("%r", "%p"),
        op_line("stablehlo.scatter", [input, places, updates], [input], attrs, body, "%a0, %p, %a1"),
    ]
    return function("\n".join(lines), [input, updates])


def take(draw: Draw) -> str:
    """Rows at computed places, filled where these are out of bounds."""
    element, index = draw.choice(ALL), draw.choice(SIGNED)
    rows, rest, count = draw.size(low=1), draw.shape(max_rank=2), draw.size()
    rows = min(rows, 127) if index == "i8" else rows
    table, places, found = tensor((rows, *rest), element), tensor((count, 1), index), tensor((count, *rest), element)
    numbers = (
        f"#stablehlo.gather<offset_dims = {list(range(1, len(rest) + 1))}, collapsed_slice_dims = [0], "
        f"start_index_map = [0], index_vector_dim = 1>"
    )
    attrs = f"dimension_numbers = {numbers}, slice_sizes = {array([1, *rest])}"
    truth, row, mask = tensor((count, 1), "i1"), tensor((count,), "i1"), tensor((count, *rest), "i1")
    lines = [
        op_line("stablehlo.gather", [table, places], [found], attrs).replace("%r", "%g"),
        constant("%z", "0", places),
        constant("%e", str(rows), places),
        f"  %l = stablehlo.compare GE, %a1, %z : ({places}, {places}) -> {truth}",
        f"  %h = stablehlo.compare LT, %a1, %e : ({places}, {places}) -> {truth}",
        f"  %b = stablehlo.and %l, %h : {truth}",
        f"  %f = stablehlo.reshape %b : ({truth}) -> {row}",
        f"  %m = stablehlo.broadcast_in_dim %f, dims = [0] : ({row}) -> {mask}",
        constant("%n", zero_text(element), found),
        f"  %r = stablehlo.select %m, %g, %n : {mask}, {found}",
    ]
    return function("\n".join(lines), [table, places])


def scan(draw: Draw) -> str:
    """A loop that takes a row, combines it with what it carries, and stores the result."""
    element, index = draw.choice(ALL), draw.choice(("i32", "i64", "ui32", "i8"))
    rows, rest = draw.choice((1, 3, 4, 7, 8)), draw.shape(max_rank=2)
    all_rows, one, carry, count = (
        tensor((rows, *rest), element), tensor((1, *rest), element), tensor(rest, element), tensor((), index)
    )  # fmt: skip
    places = ", ".join(["%i", *["%z"] * len(rest)])
    types = ", ".join([count] * (len(rest) + 1))
    name = draw.choice(combiners(element))
    body = f"""{constant("%z", "0", count)}
{constant("%one", "1", count)}
{constant("%n", str(rows), count)}
  %w:3 = stablehlo.while(%i = %z, %c = %a1, %y = %a0) : {count}, {carry}, {all_rows} cond {{
    %p = stablehlo.compare LT, %i, %n : ({count}, {count}) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %s = "stablehlo.dynamic_slice"(%a0, {places}) {{slice_sizes = {array([1, *rest])}}} : ({all_rows}, {types}) -> {one}
    %t = stablehlo.reshape %s : ({one}) -> {carry}
    %u = stablehlo.{name} %c, %t : {carry}
    %v = stablehlo.reshape %u : ({carry}) -> {one}
    %d = "stablehlo.dynamic_update_slice"(%y, %v, {places}) : ({all_rows}, {one}, {types}) -> {all_rows}
    %k = stablehlo.add %i, %one : {count}
    stablehlo.return %k, %u, %d : {count}, {carry}, {all_rows}
  }}"""
    return function(body, [all_rows, carry])


def top_k(draw: Draw) -> str:
    """The largest elements and where they are."""
    shape, element = draw.shape(1, 3, low=1), draw.choice(("f32", "bf16", "i32", "ui8"))
    count = draw.below(shape[-1])
    kept = tensor((*shape[:-1], count), element), tensor((*shape[:-1], count), "i32")
    line = f"  %r:2 = chlo.top_k(%a0, k={count}) : {tensor(shape, element)} -> ({kept[0]}, {kept[1]})"
    return function(line, [tensor(shape, element)])


def batch_norm_training(draw: Draw) -> str:
    """A normalisation over all dimensions but one."""
    shape, element = draw.shape(1, 4, low=1), draw.choice(("f32", "f64"))
    feature = draw.randrange(len(shape))
    type, vector = tensor(shape, element), tensor((shape[feature],), element)
    attrs = f"epsilon = 0.5 : f32, feature_index = {feature} : i64"
    return op("stablehlo.batch_norm_training", [type, vector, vector], [type, vector, vector], attrs)


def rng_bit_generator(draw: Draw) -> str:
    """Bits of any width."""
    return KINDS["rng_bit_generator"](draw).replace("ui32", draw.choice(("ui8", "ui16", "ui32", "ui64")))


def dot_general(draw: Draw) -> str:
    """In any type, sometimes with a result of a wider one."""
    narrow, wide = draw.choice(
        [("i8", "i32"), ("ui8", "ui32"), ("bf16", "f32"), ("f16", "f32"), *((name, name) for name in (*REAL, *COMPLEX))]
    )
    operands, arrow, result = KINDS["dot_general"](draw).rpartition("-> (")
    return operands.replace("f32", narrow) + arrow + result.replace("f32", wide)


def cholesky(draw: Draw) -> str:
    """Of positive definite matrices, and what solves by the result."""
    batch, size, element = draw.shape(max_rank=2), draw.choice((1, 2, 3, 4, 6, 8)), draw.choice(("f32", "f64"))
    type, truth = tensor((*batch, size, size), element), tensor((*batch, size, size), "i1")
    rank = len(batch)
    every = list(range(rank))
    numbers = (
        f"#stablehlo.dot<lhs_batching_dimensions = {every}, rhs_batching_dimensions = {every}, "
        f"lhs_contracting_dimensions = [{rank + 1}], rhs_contracting_dimensions = [{rank + 1}]>"
    )
    lower = str(draw.flag()).lower()
    body = f"""{op_line("stablehlo.dot_general", [type] * 2, [type], f"dot_dimension_numbers = {numbers}", names="%a0, %a0").replace("%r", "%t")}
  %i = stablehlo.iota dim = {rank} : {type}
  %j = stablehlo.iota dim = {rank + 1} : {type}
  %d = stablehlo.compare EQ, %i, %j : ({type}, {type}) -> {truth}
  %v = stablehlo.convert %d : ({truth}) -> {type}
  %p = stablehlo.add %t, %v : {type}
  %c = stablehlo.cholesky %p, lower = {lower} : {type}
  %r = "stablehlo.triangular_solve"(%c, %a1) {{left_side = true, lower = {lower}, unit_diagonal = false,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>}} : ({type}, {type}) -> {type}"""
    return function(body, [type, type])


_OWN: tuple[Callable[[Draw], str], ...] = (
    arithmetic, convert, bitcast_convert, iota, sort, scatter, take, scan, rng_bit_generator, dot_general, cholesky,
    top_k, batch_norm_training,
)  # fmt: skip
_MOVING = (
    "select transpose reverse reshape broadcast_in_dim slice concatenate pad dynamic_slice dynamic_update_slice gather"
)
_RETYPED = tuple(retyped(name, ALL) for name in _MOVING.split()) + (
    retyped("scatter", (*REAL, *COMPLEX)),
    retyped("convolution", (*INTEGERS, *FLOATS, *COMPLEX)),
    retyped("clamp", REAL),
    retyped("fft", ("f32", "f64")),
    retyped("triangular_solve", ("f32", "f64", *COMPLEX)),
)
TYPED: tuple[Callable[[Draw], str], ...] = (*REDUCTIONS, *_OWN, *_RETYPED)
"""What makes a function with an op, `@NAME`, of arguments `%a0`, `%a1`, ..., that returns nothing."""
IS_MOVE = frozenset(["bitcast_convert", *_MOVING.split(), "sort", "take"])
"""Names of those that compute nothing."""
