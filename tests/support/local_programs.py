"""Programs on four devices that are hard to partition. Tests run each, and compare it with the unpartitioned program."""

from __future__ import annotations

_MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'


def _s(*shardings: str) -> str:
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(f'<@m, {sharding}>' for sharding in shardings)}]>"


def _arg(name: str, type: str, sharding: str) -> str:
    return f"%{name}: tensor<{type}> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}"


def _program(args: list[str], result: str, sharding: str, body: str, mesh: str = _MESH) -> str:
    """A function that returns `%r`."""
    return (
        f"{mesh}func.func @main({', '.join(args)}) -> (tensor<{result}> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}) "
        f"{{\n{body}\n  return %r : tensor<{result}>\n}}"
    )


def _reduce(combiner: str, type: str, marks: str, initial: str = "%i") -> str:
    """A reduction of all of dimension 0, which is sharded."""
    return f"""
  %0 = stablehlo.reduce(%a init: {initial}) applies stablehlo.{combiner} across dimensions = [0]
    {{{_s(marks)}}} : (tensor<4x4x{type}>, tensor<{type}>) -> tensor<4x{type}>"""


_A, _B = '[{"x"}, {}]', '[{"x", "y"}, {}]'
_XY, _ROWS, _ALL, _LARGEST = '[{"x"}, {"y"}]', '[{}, {"x"}]', '[{"x", "y"}]', '[{}], unreduced=max{"x"}'
_SUM = """
  %r = sdy.all_reduce {"x"} %0 out_sharding=<@m, [{}]> : tensor<4xTYPE>"""
_PLAIN = """
  %r = stablehlo.reshape %0 {SHARDING} : (tensor<4xTYPE>) -> tensor<4xTYPE>""".replace("SHARDING", _s("[{}]"))
_SCATTERED = """
  %r = sdy.reduce_scatter [{"x"}] %0 out_sharding=<@m, [{"x"}]> : tensor<4xTYPE>"""


def _initial(combiner: str, type: str, end: str = _PLAIN, marks: str = "[{}]", result: str = "[{}]") -> str:
    args = [_arg("a", f"4x4x{type}", _A), f"%i: tensor<{type}>"]
    return _program(args, f"4x{type}", result, _reduce(combiner, type, marks) + end.replace("TYPE", type))


def _scatter(combiner: str, type: str, shardings: tuple[str, str, str], updates: str = "4x1") -> str:
    """A scatter of rows, or of updates with windows of a given size."""
    first, indices, update = shardings
    args = [_arg("a", f"4x4x{type}", first), _arg("i", "4xi32", indices), _arg("u", f"4x4x{type}", update)]
    return _program(
        args,
        f"4x4x{type}",
        first,
        f"""
  %r = "stablehlo.scatter"(%a, %i, %u) ({{
    ^bb0(%p: tensor<{type}>, %q: tensor<{type}>):
      %s = stablehlo.{combiner} %p, %q : tensor<{type}>
      stablehlo.return %s : tensor<{type}>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
         scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, {_s(first)}}}
    : (tensor<4x4x{type}>, tensor<4xi32>, tensor<4x4x{type}>) -> tensor<4x4x{type}>""",
    )


_SHARDED_UPDATES = ("[{}, {}]", '[{"y"}]', '[{"y"}, {}]')
_SHARDED_BOTH = ('[{"x"}, {}]', '[{"y"}]', '[{"y"}, {}]')

PROGRAMS: dict[str, str] = {
    **{f"reduce {combiner} from an argument": _initial(combiner, "f32") for combiner in ("add", "multiply", "maximum")},
    "reduce xor from an argument": _initial("xor", "i32"),
    "partial sum from an argument": _initial("add", "f32", _SUM, '[{}], unreduced={"x"}'),
    "product that is to be summed": _initial("multiply", "f32", _SUM, '[{}], unreduced={"x"}'),
    "product that is to be summed and scattered": _initial(
        "multiply", "f32", _SCATTERED, '[{}], unreduced={"x"}', '[{"x"}]'
    ),
    "conjunction that is to be summed": _initial("and", "i1", _SUM, '[{}], unreduced={"x"}'),
    "largest that is to be summed": _initial("maximum", "i32", _SUM, '[{}], unreduced={"x"}'),
    "reduce of two from arguments": _program(
        [_arg("a", "4x4xf32", _A), _arg("b", "4x4xf32", _A), "%i: tensor<f32>", "%j: tensor<f32>"],
        "4xf32",
        "[{}]",
        f"""
  %0:2 = stablehlo.reduce(%a init: %i), (%b init: %j) across dimensions = [0] {{{_s("[{}]", "[{}]")}}}
    : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<f32>, %t: tensor<f32>) {{
      %u = stablehlo.add %p, %q : tensor<f32>
      %v = stablehlo.multiply %s, %t : tensor<f32>
      stablehlo.return %u, %v : tensor<f32>, tensor<f32>
    }}
  %r = stablehlo.add %0#0, %0#1 {{{_s("[{}]")}}} : tensor<4xf32>""",
    ),
    **{
        f"scatter {combiner} of {type}": _scatter(combiner, type, _SHARDED_UPDATES)
        for combiner, type in (
            ("maximum", "ui8"),
            ("minimum", "ui8"),
            ("maximum", "f32"),
            ("minimum", "i8"),
            ("multiply", "f32"),
            ("add", "i32"),
        )
    },
    "scatter of sharded updates into rows": _scatter("add", "f32", _SHARDED_BOTH),
    "scatter of and": _scatter("and", "i1", _SHARDED_UPDATES),
    "size of a dimension": _program(
        [_arg("a", "4x4xf32", _B)],
        "i32",
        "[]",
        "  %r = stablehlo.get_dimension_size %a, dim = 0 : (tensor<4x4xf32>) -> tensor<i32>",
    ),
    "constant that is sharded": _program(
        [],
        "4xf32",
        '[{"y"}]',
        f"""  %r = stablehlo.constant {{{_s('[{"y"}]')}}} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>""",
    ),
    "pad that moves elements": _program(
        [_arg("a", "4x4xf32", _B), "%i: tensor<f32>"],
        "8x4xf32",
        _B,
        f"""
  %r = stablehlo.pad %a, %i, low = [2, 0], high = [-1, 0], interior = [1, 0] {{{_s(_B)}}}
    : (tensor<4x4xf32>, tensor<f32>) -> tensor<8x4xf32>""",
    ),
    "dynamic update of one row": _program(
        [_arg("a", "4x4xf32", _A), _arg("u", "1x4xf32", "[{}, {}]"), "%i: tensor<i32>", "%j: tensor<i32>"],
        "4x4xf32",
        _A,
        f"""
  %r = stablehlo.dynamic_update_slice %a, %u, %i, %j {{{_s(_A)}}}
    : (tensor<4x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>""",
    ),
    "indices of a type that is too small": _program(
        [_arg("a", "512xf32", '[{"x"}]'), "%i: tensor<4x1xui8>"],
        "4xf32",
        "[{}]",
        f"""
  %r = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>, {_s("[{}]")}}}
    : (tensor<512xf32>, tensor<4x1xui8>) -> tensor<4xf32>""",
    ),
    "gather, indices beyond the ends": _program(
        [_arg("a", "4x4xf32", '[{"y"}, {"x"}]'), _arg("i", "6x1xi32", "[{}, {}]")],
        "6x4xf32",
        '[{}, {"x"}]',
        f"""
  %r = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>, {_s(_ROWS)}}}
    : (tensor<4x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>""",
    ),
    "iota": _program([], "4x6xi32", _XY, f"  %r = stablehlo.iota dim = 1 {{{_s(_XY)}}} : tensor<4x6xi32>"),
    "iota of small floats": _program(
        [], "4104xf16", '[{"x", "y"}]', f"  %r = stablehlo.iota dim = 0 {{{_s(_ALL)}}} : tensor<4104xf16>"
    ),
    "scatter of two types": _program(
        [
            _arg("a", "4xf32", "[{}]"),
            _arg("b", "4xi32", "[{}]"),
            _arg("i", "4x1xi32", '[{"y"}, {}]'),
            _arg("u", "4xf32", '[{"y"}]'),
            _arg("v", "4xi32", '[{"y"}]'),
        ],
        "4xf32",
        "[{}]",
        f"""
  %0:2 = "stablehlo.scatter"(%a, %b, %i, %u, %v) ({{
    ^bb0(%p: tensor<f32>, %q: tensor<i32>, %s: tensor<f32>, %t: tensor<i32>):
      %w = stablehlo.multiply %p, %s : tensor<f32>
      %x = stablehlo.multiply %q, %t : tensor<i32>
      stablehlo.return %w, %x : tensor<f32>, tensor<i32>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
         scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, {_s("[{}]", "[{}]")}}}
    : (tensor<4xf32>, tensor<4xi32>, tensor<4x1xi32>, tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  %1 = stablehlo.convert %0#1 {{{_s("[{}]")}}} : (tensor<4xi32>) -> tensor<4xf32>
  %r = stablehlo.add %0#0, %1 {{{_s("[{}]")}}} : tensor<4xf32>""",
    ),
    "largest, partial for a while": _program(
        [_arg("a", "4xi8", '[{"x"}]'), _arg("b", "4xi8", "[{}]")],
        "4xi8",
        "[{}]",
        f"""
  %0 = sdy.sharded_to_unreduced [{{"x"}}] %a out_sharding=<@m, [{{}}], unreduced=max{{"x"}}> : tensor<4xi8>
  %1 = sdy.replicated_to_unreduced {{"x"}} %b out_sharding=<@m, [{{}}], unreduced=max{{"x"}}> : tensor<4xi8>
  %2 = sdy.constant {{{_s(_LARGEST)}}} dense<[-5, 3, -8, 4]> : tensor<4xi8>
  %3 = stablehlo.maximum %0, %1 {{{_s(_LARGEST)}}} : tensor<4xi8>
  %4 = stablehlo.maximum %2, %3 {{{_s(_LARGEST)}}} : tensor<4xi8>
  %r = sdy.all_reduce max {{"x"}} %4 out_sharding=<@m, [{{}}]> : tensor<4xi8>""",
    ),
    "windows that cover a dimension": _program(
        [_arg("a", "4x4xf32", '[{}, {"x"}]'), _arg("u", "2x4xf32", '[{}, {"x"}]')],
        "4x4xf32",
        '[{}, {"x"}]',
        f"""
  %2 = stablehlo.constant dense<[[1, 0], [3, 0]]> : tensor<2x2xi32>
  %r = "stablehlo.scatter"(%a, %2, %u) ({{
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
         scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, {_s(_ROWS)}}}
    : (tensor<4x4xf32>, tensor<2x2xi32>, tensor<2x4xf32>) -> tensor<4x4xf32>""",
    ),
}
