"""Random valid reductions in all element types, as MLIR text of one function."""

from __future__ import annotations

import re
from collections.abc import Callable

from differential.draw import Draw, array, combiner, dense_pairs, function, op, op_line, replaced, tensor
from differential.rule_instances import KINDS

from pyshardy.core.identities import identity_text

SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = (*SIGNED, "ui8", "ui16", "ui32", "ui64")
FLOATS = ("f32", "f16", "bf16", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
REAL = (*INTEGERS, *FLOATS)
ALL = (*REAL, *COMPLEX, "i1")


def combiners(element: str) -> tuple[str, ...]:
    """The ops that combine two scalars of a type in any order."""
    if element in COMPLEX:
        return ("add", "multiply")
    if element in FLOATS:
        return ("add", "maximum", "minimum", "multiply")
    return ("and", "or", "xor") if element == "i1" else ("add", "maximum", "minimum", "multiply", "and", "or", "xor")


def constant(name: str, value: str, type: str) -> str:
    """A line with a constant."""
    return f"  {name} = stablehlo.constant dense<{value}> : {type}"


def with_elements(text: str, element: str) -> str:
    """The text with elements of another type than `f32`."""
    return re.sub(r"(?<=[x<])f32(?=>)", element, text)


def reduce(draw: Draw) -> str:
    """Of one or two tensors, from any initial values, by any op."""
    shape, count = draw.shape(max_rank=3), draw.choice((1, 1, 2))
    elements = [draw.choice(ALL) for _ in range(count)]
    dims = draw.subset(range(len(shape)), at_least=1)
    kept = [size for dim, size in enumerate(shape) if dim not in dims]
    operands = [tensor(shape, element) for element in elements] + [tensor((), element) for element in elements]
    body = combiner(elements, [draw.choice(combiners(element)) for element in elements])
    results = [tensor(kept, element) for element in elements]
    return op("stablehlo.reduce", operands, results, f"dimensions = {array(dims)}", body)


def _best_body(element: str, index: str, direction: str) -> str:
    value, place = f"tensor<{element}>", f"tensor<{index}>"
    args = f"%v: {value}, %i: {place}, %w: {value}, %j: {place}"
    return f"""^bb0({args}):
    %g = stablehlo.compare {direction}, %v, %w : ({value}, {value}) -> tensor<i1>
    %n = stablehlo.compare NE, %v, %v : ({value}, {value}) -> tensor<i1>
    %p = stablehlo.or %g, %n : tensor<i1>
    %e = stablehlo.compare EQ, %v, %w : ({value}, {value}) -> tensor<i1>
    %l = stablehlo.compare LT, %i, %j : ({place}, {place}) -> tensor<i1>
    %f = stablehlo.and %e, %l : tensor<i1>
    %q = stablehlo.or %p, %f : tensor<i1>
    %x = stablehlo.select %p, %v, %w : tensor<i1>, {value}
    %y = stablehlo.select %q, %i, %j : tensor<i1>, {place}
    "stablehlo.return"(%x, %y) : ({value}, {place}) -> ()
"""


def best(draw: Draw) -> str:
    """The largest element and where it is."""
    shape = draw.shape(1, 3, low=1)
    element, dim = draw.choice(REAL), draw.randrange(len(shape))
    index = draw.choice([name for name in INTEGERS if shape[dim] <= 127 or name not in ("i8", "ui8")])
    types = [tensor(shape, element), tensor(shape, index)]
    scalars = [tensor((), element), tensor((), index)]
    results = [tensor((*shape[:dim], *shape[dim + 1 :]), name) for name in (element, index)]
    lines = [
        op_line("stablehlo.iota", [], types[1:], f"iota_dimension = {dim} : i64").replace("%r", "%k"),
        constant("%c", identity_text("maximum", element) or "", scalars[0]),
        constant("%d", "0", scalars[1]),
        op_line(
            "stablehlo.reduce", types + scalars, results, f"dimensions = {array([dim])}",
            _best_body(element, index, "GT"), "%a0, %k, %c, %d",
        ),
    ]  # fmt: skip
    return function("\n".join(lines), types[:1])


def reduce_window(draw: Draw) -> str:
    """With strides, padding and dilations, by any op."""
    element = draw.choice((*REAL, *COMPLEX))
    text = KINDS["reduce_window"](draw).replace('"stablehlo.add"', f'"stablehlo.{draw.choice(combiners(element))}"')
    return with_elements(text, element)


def cumulative(draw: Draw) -> str:
    """Of all elements before, along one dimension, or of all behind."""
    shape, element = draw.shape(1, 3, low=1), draw.choice((*REAL, *COMPLEX))
    dim = draw.randrange(len(shape))
    name = draw.choice(combiners(element))
    before = (shape[dim] - 1, 0) if draw.flag(0.7) else (0, shape[dim] - 1)
    padding = dense_pairs([before if index == dim else (0, 0) for index in range(len(shape))])
    window = array(replaced([1] * len(shape), dim, shape[dim]))
    type, scalar = tensor(shape, element), tensor((), element)
    value = identity_text(name, element)
    assert value is not None
    line = op_line(
        "stablehlo.reduce_window", [type, scalar], [type], f"window_dimensions = {window}, padding = {padding}",
        combiner([element], [name]), "%a0, %c",
    )  # fmt: skip
    return function(f"{constant('%c', value, scalar)}\n{line}", [type])


def select_and_scatter(draw: Draw) -> str:
    """To the largest element of every window; over one of no dimension XLA ends the process."""
    text = KINDS["select_and_scatter"](draw)
    while "%a0: tensor<f32>" in text:
        text = KINDS["select_and_scatter"](draw)
    return with_elements(text, draw.choice(REAL))


def branch(draw: Draw) -> str:
    """One of two ways to combine rows, as a number says that is computed from the data."""
    element = draw.choice(INTEGERS)
    shape = draw.shape(1, 3, low=1)
    type, scalar = tensor(shape, element), tensor((), element)
    names = [draw.choice(("add", "minimum", "subtract", "xor")) for _ in range(2)]
    dims, first = array(range(len(shape))), draw.randrange(len(shape))
    body = f"""{constant("%c", "1", scalar)}
{op_line("stablehlo.reduce", [type, scalar], [scalar], f"dimensions = {dims}", combiner([element], ["xor"]), "%a0, %c").replace("%r", "%x")}
  %o = stablehlo.and %x, %c : {scalar}
  %p = stablehlo.compare EQ, %o, %c : ({scalar}, {scalar}) -> tensor<i1>
  %r = "stablehlo.if"(%p) ({{
    %t = stablehlo.{names[0]} %a0, %a1 : {type}
    "stablehlo.return"(%t) : ({type}) -> ()
  }}, {{
    %b = "stablehlo.reverse"(%a1) {{dimensions = {array([first])}}} : ({type}) -> {type}
    %f = stablehlo.{names[1]} %a0, %b : {type}
    "stablehlo.return"(%f) : ({type}) -> ()
  }}) : (tensor<i1>) -> {type}"""
    return function(body, [type, type])


REDUCTIONS: tuple[Callable[[Draw], str], ...] = (
    reduce, reduce, best, reduce_window, cumulative, select_and_scatter, branch,
)  # fmt: skip
