from __future__ import annotations

from support.after_pass import ABC, after, on, tensor_args

PASS = "sdy-remove-all-gather-reduce-scatter-for-cmv1"
T = "tensor<8x8xf32>"
GATHER = f'%0 = sdy.all_gather [{{"b"}}, {{}}] %y out_sharding=<@m, [{{}}, {{}}]> : {T}'
SCATTER = f'%3 = sdy.reduce_scatter [{{}}, {{"b"}}] %2 out_sharding=<@m, [{{"a"}}, {{"b"}}]> : {T}'


def product(left: str, right: str, sharding: str | None = '[{"a"}, {}]') -> str:
    attrs = "" if sharding is None else on(sharding)
    return f"%2 = stablehlo.dot {left}, {right} {attrs} : ({T}, {T}) -> {T}"


def ops(*lines: str, returned: str) -> list[str]:
    """The names of the ops after the pass."""
    args = tensor_args(x='[{"a"}, {}]', y='[{"b"}, {}]')
    types = ", ".join([T] * len(returned.split(", ")))
    body = "\n  ".join([*lines, f"return {returned} : {types}"])
    found = after(f"{ABC}func.func @main({args}) -> ({types}) {{\n  {body}\n}}", PASS)
    return [line.split(" = ")[-1].split()[0].removeprefix("sdy.").removeprefix("stablehlo.") for line in found]


def test_gathers_go_first() -> None:
    assert ops(GATHER, product("%x", "%0"), SCATTER, returned="%3") == ["dot", "reduce_scatter", "return"]
    second = GATHER.replace("%0", "%1")
    assert ops(GATHER, second, product("%0", "%1"), returned="%2") == ["dot", "return"]


def test_a_reduce_scatter_goes_where_no_gather_does() -> None:
    assert ops(product("%x", "%y"), SCATTER, returned="%3") == ["dot", "return"]
    of_unsharded = SCATTER.replace('[{"a"}, {"b"}]', '[{}, {"b"}]')
    assert ops(product("%x", "%y", None), of_unsharded, returned="%3") == ["dot", "return"]


def test_what_has_other_uses_stays() -> None:
    assert ops(GATHER, product("%0", "%0"), returned="%2") == ["all_gather", "dot", "return"]
    assert ops(GATHER, product("%x", "%0"), returned="%0, %2") == ["all_gather", "dot", "return"]
    assert ops(product("%x", "%y"), SCATTER, returned="%2, %3") == ["dot", "reduce_scatter", "return"]


def test_an_unreduced_product_keeps_its_reduce_scatter() -> None:
    scatter = SCATTER.replace('{"b"}]>', '{"b"}], unreduced={"c"}>')
    text = product("%x", "%y", '[{"a"}, {}], unreduced={"c"}')
    assert ops(text, scatter, returned="%3") == ["dot", "reduce_scatter", "return"]
