"""Random modules for what chains of ordinary ops reach too seldom: odd rules, tokens, reducers, regions.

`SPECIAL` maps a name to a function from a `Draw` to the text of one function, like `rule_instances.KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from pyshardy.errors import InvalidRuleError
from pyshardy.rules.rule import SPECIAL_KINDS, FactorKind, Rule

from .draw import Draw, Shape, array, combiner, function, op, op_line, tensor

_TOKEN = "!stablehlo.token"


def custom_rule(draw: Draw) -> str:
    """An op with a random rule of its own."""
    while True:
        try:
            rule, shapes = _random_rule(draw)
            break
        except InvalidRuleError:
            continue
    count = len(rule.operands)
    attrs = f'call_target_name = "f", sdy.sharding_rule = #sdy.op_sharding_rule{rule}'
    types = [tensor(shape) for shape in shapes]
    name = "stablehlo.reshape" if _is_reshape(rule, shapes) and draw.flag(0.8) else "stablehlo.custom_call"
    if name == "stablehlo.reshape":
        attrs = attrs.partition(", ")[2]
    return op(name, types[:count], types[count:], attrs)


def _is_reshape(rule: Rule, shapes: Sequence[Shape]) -> bool:
    return len(shapes) == 2 and prod(shapes[0]) == prod(shapes[1])


def _random_rule(draw: Draw) -> tuple[Rule, list[Shape]]:
    sizes = [draw.choice([1, 2, 2, 3, 4, 4, 6, 8]) for _ in range(draw.randint(1, 5))]
    kinds = [draw.choice([*[FactorKind.PASS_THROUGH] * 4, *SPECIAL_KINDS]) for _ in sizes]
    tensors, shapes = [], []
    operands, results = draw.choice([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
    for index in range(operands + results):
        factors = draw.subset(range(len(sizes)))
        if index >= operands:
            factors = [factor for factor in factors if kinds[factor] is not FactorKind.REDUCTION]
        factors = draw.shuffled(factors) if draw.flag(0.3) else factors
        dims: list[list[int]] = []
        for factor in factors:
            if dims and draw.flag(0.4):
                dims[-1].append(factor)
            else:
                dims.append([factor])
        tensors.append(dims)
        shapes.append(tuple(prod(sizes[factor] for factor in dim) for dim in dims))
    is_custom = draw.flag(0.1)
    return Rule(sizes, tensors[:operands], tensors[operands:], kinds, (), is_custom), shapes


def reducers(draw: Draw) -> str:
    """A reduction of several tensors by known and unknown functions."""
    shape, count = draw.shape(min_rank=1), draw.randint(1, 2)
    dims = draw.subset(range(len(shape)), at_least=1)
    kept = tensor([size for dim, size in enumerate(shape) if dim not in dims])
    names = [draw.choice(["add", "maximum", "minimum", "multiply"])] * count
    if draw.flag(0.2):
        names = [draw.choice(["add", "maximum", "multiply"]) for _ in range(count)]
    returned = ", ".join("%x0" for _ in range(count)) if draw.flag(0.1) else ""
    region = combiner(["f32"] * count, names, returned)
    operands = [tensor(shape)] * count + ["tensor<f32>"] * count
    return op("stablehlo.reduce", operands, [kept] * count, f"dimensions = {array(dims)}", region)


def scatters(draw: Draw) -> str:
    """A scatter into rows by known and unknown functions."""
    shape, rows = draw.shape(min_rank=1, max_rank=3, low=1), draw.size(low=1)
    update = (rows, *shape[1:])
    numbers = (
        f"#stablehlo.scatter<update_window_dims = {list(range(1, len(shape)))}, inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    )
    names = [draw.choice(["add", "maximum", "minimum", "multiply"])]
    region = combiner(["f32"], names, "%x1" if draw.flag(0.2) else "")
    operands = [tensor(shape), tensor((rows, 1), "i32"), tensor(update)]
    return op("stablehlo.scatter", operands, [tensor(shape)], f"scatter_dimension_numbers = {numbers}", region)


def token_calls(draw: Draw) -> str:
    """Calls that take and give tokens between tensors."""
    shape = tensor(draw.shape())
    operands = draw.shuffled([_TOKEN, shape, tensor(draw.shape())])
    results = draw.shuffled([_TOKEN, shape] if draw.flag() else [_TOKEN, shape, shape])
    return op("stablehlo.custom_call", operands, results, 'call_target_name = "f"')


def data_flow(draw: Draw) -> str:
    """A barrier, branches, a loop and a named computation over two tensors, one after the other."""
    one, other = tensor(draw.shape()), tensor(draw.shape())
    types, arguments = f"{one}, {other}", f"%x: {one}, %y: {other}"
    swapped = draw.flag() and one == other
    pair = "%y, %x" if swapped else "%x, %y"
    branch = (
        f'{{ "stablehlo.return"(%a0, %b#1) : ({types}) -> () }}, {{ "stablehlo.return"(%b#0, %a1) : ({types}) -> () }}'
    )
    number, name = ("tensor<i32>", "case") if draw.flag() else ("tensor<i1>", "if")
    condition = (
        f'^bb0({arguments}): %p = "stablehlo.constant"() {{value = dense<true> : tensor<i1>}} : () -> tensor<i1>\n'
        '"stablehlo.return"(%p) : (tensor<i1>) -> ()'
    )
    body = f'^bb0({arguments}): %n = "stablehlo.negate"(%x) : ({one}) -> {one}\n'
    lines = [
        f'  %b:2 = "stablehlo.optimization_barrier"(%a0, %a1) : ({types}) -> ({types})',
        f'  %i = "stablehlo.constant"() {{value = dense<0> : {number}}} : () -> {number}',
        f'  %c:2 = "stablehlo.{name}"(%i) ({branch}) : ({number}) -> ({types})',
        f'  %d:2 = "sdy.named_computation"(%c#0, %b#1) <{{name = "f"}}> ({{ {body} "sdy.return"({pair}) : '
        f"({types}) -> () }}) : ({types}) -> ({types})",
        f'  %e:2 = "stablehlo.while"(%d#0, %a1) ({{ {condition} }}, {{ {body} "stablehlo.return"({pair}) : '
        f"({types}) -> () }}) : ({types}) -> ({types})",
        f'  %f = "stablehlo.add"(%e#0, %d#0) : ({one}, {one}) -> {one}',
    ]
    return function("\n".join(lines), [one, other])


def reshards(draw: Draw) -> str:
    """Reshards, constraints and barriers in a row, with uses on the way."""
    type = tensor(draw.shape())
    lines, name = [], "%a0"
    placeholder = f"sharding = #sdy.sharding<@mesh, [{', '.join(['{}'] * type.count('x'))}]>"
    for index in range(draw.randint(1, 5)):
        kind, attrs = draw.choice(
            [
                ("sdy.reshard", placeholder),
                ("sdy.sharding_constraint", placeholder),
                ("sdy.propagation_barrier", f"allowed_direction = {draw.randint(0, 2)} : i32"),
                ("stablehlo.abs", ""),
                ("stablehlo.add", ""),
            ]
        )
        operands = [name, draw.choice([name, "%a0"])] if kind == "stablehlo.add" else [name]
        line = op_line(kind, [type] * len(operands), [type], attrs, names=", ".join(operands))
        name = f"%v{index}"
        lines.append(line.replace("%r", name, 1))
    return function("\n".join(lines), [type])


def joins(draw: Draw) -> str:
    """Concatenations of one to three values, some the same."""
    shape = draw.shape(min_rank=1)
    dim, count = draw.randrange(len(shape)), draw.randint(1, 3)
    total = tensor((*shape[:dim], shape[dim] * count, *shape[dim + 1 :]))
    names = ", ".join(draw.choice(["%a0", "%a1"]) for _ in range(count))
    line = op_line("stablehlo.concatenate", [tensor(shape)] * count, [total], f"dimension = {dim} : i64", names=names)
    return function(line, [tensor(shape)] * 2)


SPECIAL: dict[str, Callable[[Draw], str]] = {
    make.__name__: make
    for make in (custom_rule, reducers, scatters, token_calls, data_flow, reshards, joins)
}  # fmt: skip
