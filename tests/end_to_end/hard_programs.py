"""Programs that were once partitioned wrongly, or refused: on eight devices they give what they give on one."""

from __future__ import annotations

_MESH = 'sdy.mesh @m = <["a"=2, "b"=2]>\n'


def _s(*shardings: str) -> str:
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(f'<@m, {sharding}>' for sharding in shardings)}]>"


def _port(type: str, sharding: str) -> str:
    return f"tensor<{type}> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}"


def _program(args: list[tuple[str, str]], result: tuple[str, str], body: str, mesh: str = _MESH) -> str:
    """A function of arguments `%0`, `%1`, ... that returns `%r`; arguments and result with their shardings."""
    listed = ", ".join(f"%{index}: {_port(*arg)}" for index, arg in enumerate(args))
    return f"{mesh}func.func @main({listed}) -> ({_port(*result)}) {{\n{body}\n  return %r : tensor<{result[0]}>\n}}"


def _sort(attrs: str, sharding: str) -> str:
    body = f"""
  %r = "stablehlo.sort"(%0) <{{{attrs}}}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) {{{_s(sharding)}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>"""
    return _program([("4x6xf32", sharding)], ("4x6xf32", sharding), body)


PROGRAMS = {
    "sort along the last dimension, counted from the end": _sort("dimension = -1 : i64", '[{"a"}, {"b"}]'),
    "sort along the first dimension, counted from the end": _sort("dimension = -2 : i64", '[{"a"}, {"b"}]'),
    "sort along the dimension that is meant when none is given": _sort("", '[{}, {"a", "b"}]'),
}
"""By what they do."""
