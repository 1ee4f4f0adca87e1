"""Gathers, scatters and updates at indices out of bounds, or of a small type, that were once partitioned wrongly."""

from __future__ import annotations

_MESH = 'sdy.mesh @m = <["a"=2, "b"=2]>\n'


def _s(sharding: str) -> str:
    return f"sdy.sharding = #sdy.sharding_per_value<[<@m, {sharding}>]>"


def _function(args: list[tuple[str, str]], result: str, lines: str) -> str:
    listed = ", ".join(
        f"%{index}: tensor<{type}> {{sdy.sharding = #sdy.sharding<@m, {sharding}>}}"
        for index, (type, sharding) in enumerate(args)
    )
    return f"{_MESH}func.func @main({listed}) -> tensor<{result}> {{\n{lines}\n  return %r : tensor<{result}>\n}}"


def _indices(numbers: str, type: str, sharding: str) -> str:
    return f"  %i = stablehlo.constant {{{_s(sharding)}}} dense<{numbers}> : tensor<{type}>\n"


def _gather(rows: int, numbers: str, type: str, sharding: str, sizes: str, index_map: str, of_indices: str = "") -> str:
    """Rows of 8 columns, or parts of rows."""
    is_vector = type.count("x") == 1
    count, width = type.partition("x")[0], sizes.partition(", ")[2]
    line = f"""
  %n = stablehlo.negate %0 {{{_s(sharding)}}} : tensor<{rows}x8xf32>
  %r = "stablehlo.gather"(%n, %i) <{{
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [{index_map}], index_vector_dim = 1>, slice_sizes = array<i64: {sizes}>
  }}> : (tensor<{rows}x8xf32>, tensor<{type}>) -> tensor<{count}x{width}xf32>"""
    constant = _indices(numbers, type, of_indices or ("[{}]" if is_vector else "[{}, {}]"))
    return _function([(f"{rows}x8xf32", sharding)], f"{count}x{width}xf32", constant + line)


def _scatter(rows: int, numbers: str, type: str, sharding: str, updates: str, index_map: str = "0") -> str:
    """Rows of 8 columns, which are set."""
    count = type.partition("x")[0]
    rows_of_updates = updates.partition("}")[0] + "}"
    dims = f"{rows_of_updates}]" if type.count("x") == 1 else f"{rows_of_updates}, {{}}]"
    line = f"""  %r = "stablehlo.scatter"(%0, %i, %1) <{{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [{index_map}], index_vector_dim = 1>
  }}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }}) : (tensor<{rows}x8xf32>, tensor<{type}>, tensor<{count}x8xf32>) -> tensor<{rows}x8xf32>"""
    args = [(f"{rows}x8xf32", sharding), (f"{count}x8xf32", updates)]
    return _function(args, f"{rows}x8xf32", _indices(numbers, type, dims) + line)


def _update(sharding: str, type: str) -> str:
    """One element of 130, at a computed place."""
    line = f"""
  %n = stablehlo.negate %0 {{{_s(sharding)}}} : tensor<130xf32>
  %i = stablehlo.negate %2 : tensor<{type}>
  %r = stablehlo.dynamic_update_slice %n, %1, %i : (tensor<130xf32>, tensor<1xf32>, tensor<{type}>) -> tensor<130xf32>"""
    return _function([("130xf32", sharding), ("1xf32", "[{}]"), (type, "[]")], "130xf32", line)


_TWO, _ROWS = '[{"a"}, {"b"}]', '[{"a", "b"}, {}]'
PROGRAMS = {
    "gather whole rows from column 1, which is column 0": _gather(8, "[[0, 7]]", "1x2xi32", _TWO, "1, 8", "0, 1"),
    "gather whole rows from any column": _gather(
        8, "[[9, 4], [3, -1], [-5, 3], [7, 100]]", "4x2xi8", _TWO, "1, 8", "0, 1"
    ),
    "gather whole rows from any column, unsigned": _gather(8, "[[5, 255], [200, 0]]", "2x2xui8", _TWO, "1, 8", "0, 1"),
    "gather whole rows, column first": _gather(8, "[[6, 5], [4, 0]]", "2x2xi64", _TWO, "1, 8", "1, 0"),
    "gather parts of rows out of bounds": _gather(
        8, "[[5, 6], [9, 9], [-1, -9]]", "3x2xi32", '[{"a"}, {}]', "1, 3", "0, 1"
    ),
    "gather from more rows than the type of the indices counts": _gather(
        130, "[[5], [127], [-1]]", "3x1xi8", _ROWS, "1, 8", "0"
    ),
    "gather from more rows, one index each": _gather(130, "[5, 127, -1, 64]", "4xi8", _ROWS, "1, 8", "0"),
    "gather from padded rows at sharded indices": _gather(
        7, "[5, 6, 7, -1]", "4xi32", '[{"a"}, {}]', "1, 8", "0", '[{"b"}]'
    ),
    "scatter whole rows out of bounds": _scatter(
        8, "[[0, 0], [3, 1], [9, 0], [-1, 0]]", "4x2xi32", _TWO, '[{}, {"b"}]', "0, 1"
    ),
    "scatter padded updates, one index each": _scatter(6, "[1, 5, 6, -1, 0]", "5xi32", "[{}, {}]", '[{"a"}, {}]'),
    "scatter padded updates where all numbers of the type are rows": _scatter(
        256, "[[255], [0], [7]]", "3x1xui8", "[{}, {}]", '[{"a"}, {}]'
    ),
    "scatter padded updates where more than all numbers of the type are rows": _scatter(
        300, "[[127], [-1], [7]]", "3x1xi8", '[{"b"}, {}]', '[{"a"}, {}]'
    ),
    "update at a place of a type that does not count the rows": _update('[{"a", "b"}]', "i8"),
    "update at an unsigned place": _update('[{"a", "b"}]', "ui8"),
}
"""By what they do."""
