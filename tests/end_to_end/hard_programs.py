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
    %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}) {{{_s(sharding)}}} : (tensor<4x6xf32>) -> tensor<4x6xf32>"""
    return _program([("4x6xf32", sharding)], ("4x6xf32", sharding), body)


def _gather(index_map: str, components: int) -> str:
    """Of rows, at row 0 unless they are indexed."""
    body = f"""
  %r = "stablehlo.gather"(%0, %1) <{{
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
      start_index_map = [{index_map}], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>
  }}> {{{_s("[{}, {}]")}}} : (tensor<4x6xf32>, tensor<3x{components}xi32>) -> tensor<3x6xf32>"""
    args = [("4x6xf32", '[{"a"}, {}]'), (f"3x{components}xi32", "[{}, {}]")]
    return _program(args, ("3x6xf32", "[{}, {}]"), body)


def _negate(type: str, before: str, after: str) -> str:
    return _program([(type, before)], (type, after), f"  %r = stablehlo.negate %0 {{{_s(before)}}} : tensor<{type}>")


def _reshape(before: str, after: str, first: str, second: str) -> str:
    """Between ops that have its shardings; inputs and outputs are whole."""
    body = f"""
  %n = stablehlo.negate %0 {{{_s(first)}}} : tensor<{before}>
  %h = stablehlo.reshape %n {{{_s(second)}}} : (tensor<{before}>) -> tensor<{after}>
  %r = stablehlo.negate %h : tensor<{after}>"""
    whole, out_whole = (f"[{', '.join(['{}'] * type.count('x'))}]" for type in (before, after))
    return _program([(before, whole)], (after, out_whole), body)


def _dot(sizes: tuple[int, int, int], lhs: str, rhs: str, out: str) -> str:
    rows, inner, columns = sizes
    types = f"{rows}x{inner}xf32", f"{inner}x{columns}xf32", f"{rows}x{columns}xf32"
    body = f"""
  %r = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] {{{_s(out)}}}
    : (tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>"""
    return _program([(types[0], lhs), (types[1], rhs)], (types[2], out), body)


def _gather_ones(before: str, after: str) -> str:
    """Of rows with a dimension of size 1, all of which is taken."""
    body = f"""
  %n = stablehlo.cosine %0 {{{_s(before)}}} : tensor<4x3x1xf32>
  %g = "stablehlo.gather"(%n, %1) <{{
    dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1>, slice_sizes = array<i64: 1, 3, 1>
  }}> {{{_s(after)}}} : (tensor<4x3x1xf32>, tensor<2x1xi32>) -> tensor<2x3x1xf32>
  %c = stablehlo.cosine %g {{{_s(after)}}} : tensor<2x3x1xf32>
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%c init: %i) applies stablehlo.add across dimensions = [1, 2] {{{_s("[{}]")}}}
    : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2xf32>"""
    return _program([("4x3x1xf32", before), ("2x1xi32", "[{}, {}]")], ("2xf32", "[{}]"), body)


def _scatter(
    combiner: str, index_map: str, input: str, indices: str, updates: str, type: str = "f32", count: int = 4
) -> str:
    """Of rows, into row 0 unless they are indexed."""
    scalar = f"tensor<{type}>"
    combined = {"set": "%b"}.get(combiner, "%c")
    line = "" if combiner == "set" else f"    %c = stablehlo.{combiner} %a, %b : {scalar}\n"
    components = len(index_map.split(",")) if index_map else 0
    types = f"6x8x{type}", f"{count}x{components}xi32", f"{count}x8x{type}"
    body = f"""
  %r = "stablehlo.scatter"(%0, %1, %2) <{{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [{index_map}], index_vector_dim = 1>
  }}> ({{
  ^bb0(%a: {scalar}, %b: {scalar}):
{line}    stablehlo.return {combined} : {scalar}
  }}) {{{_s(input)}}} : (tensor<{types[0]}>, tensor<{types[1]}>, tensor<{types[2]}>) -> tensor<{types[0]}>"""
    return _program(list(zip(types, (input, indices, updates))), (types[0], input), body)


def _broadcast(before: str, after: str) -> str:
    body = f"""
  %n = stablehlo.cosine %0 {{{_s(before)}}} : tensor<1x6xf32>
  %r = stablehlo.broadcast_in_dim %n, dims = [0, 1] {{{_s(after)}}} : (tensor<1x6xf32>) -> tensor<5x6xf32>"""
    return _program([("1x6xf32", before)], ("5x6xf32", after), body)


def _convolution(sizes: tuple[int, int, int], window: str, lhs: str, kernel: str, out: str) -> str:
    """Along one dimension; `sizes` are those of the input, the kernel and the output along it."""
    types = f"{sizes[0]}x4x8xf32", f"8x{sizes[1]}x6xf32", f"4x6x{sizes[2]}xf32"
    body = f"""
  %n = stablehlo.cosine %0 {{{_s(lhs)}}} : tensor<{types[0]}>
  %k = stablehlo.cosine %1 {{{_s(kernel)}}} : tensor<{types[1]}>
  %r = stablehlo.convolution(%n, %k) dim_numbers = [0, b, f]x[i, 0, o]->[b, f, 0], window = {{{window}}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, {_s(out)}}}
    : (tensor<{types[0]}>, tensor<{types[1]}>) -> tensor<{types[2]}>"""
    return _program([(types[0], lhs), (types[1], kernel)], (types[2], out), body)


def cholesky(batch: int, before: str, after: str, attribute: str = 'num_batch_dims = "1"') -> str:
    """By a custom call, of a batch of positive definite matrices."""
    type = f"{batch}x6x6xf32"
    body = f"""
  %t = stablehlo.dot_general %0, %0, batching_dims = [0] x [0], contracting_dims = [2] x [2]
    : (tensor<{type}>, tensor<{type}>) -> tensor<{type}>
  %i = stablehlo.iota dim = 1 : tensor<{type}>
  %j = stablehlo.iota dim = 2 : tensor<{type}>
  %d = stablehlo.compare EQ, %i, %j : (tensor<{type}>, tensor<{type}>) -> tensor<{batch}x6x6xi1>
  %v = stablehlo.convert %d : (tensor<{batch}x6x6xi1>) -> tensor<{type}>
  %p = stablehlo.add %t, %v {{{_s(before)}}} : tensor<{type}>
  %r, %info = stablehlo.custom_call @lapack_spotrf_ffi(%p) {{backend_config = {{uplo = 76 : ui8}}, api_version = 4 : i32,
    mhlo.frontend_attributes = {{{attribute}}}, operand_layouts = [dense<[1, 2, 0]> : tensor<3xindex>],
    result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : tensor<1xindex>], {_s(after, "[{}]")},
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m], [i]) {{i={batch}, j=6, k=6, l=6, m=6}}, custom>}}
    : (tensor<{type}>) -> (tensor<{type}>, tensor<{batch}xi32>)"""
    return _program([(type, before)], (type, after), body)


def _on_device(before: str, after: str) -> str:
    """A value that one device computes."""
    body = f"""
  %n = stablehlo.negate %0 {{{_s(before)}}} : tensor<4x6xf32>
  %c = stablehlo.cosine %n {{sdy.sharding = #sdy.sharding_per_value<[<@d, []>]>}} : tensor<4x6xf32>
  %r = stablehlo.abs %c {{{_s(after)}}} : tensor<4x6xf32>"""
    mesh = f"{_MESH}sdy.mesh @d = <[], device_ids=[3]>\n"
    return _program([("4x6xf32", before)], ("4x6xf32", after), body, mesh)


def _slice_one(sharding: str) -> str:
    """One row, of which a stride says nothing, of columns that are padded."""
    body = f"""
  %n = stablehlo.cosine %0 {{{_s(sharding)}}} : tensor<2x5xf32>
  %r = stablehlo.slice %n [0:2:2, 0:5] {{{_s(sharding)}}} : (tensor<2x5xf32>) -> tensor<1x5xf32>"""
    return _program([("2x5xf32", sharding)], ("1x5xf32", sharding), body)


def _reduce(combiner: str, type: str, sizes: int, sharding: str, start: str = "") -> str:
    """A vector to a number, from a number that comes in or from one that is given; `_` is a body of two numbers."""
    scalar = f"tensor<{type}>"
    body = f"    %c = stablehlo.{combiner} %a, %b : {scalar}\n"
    if combiner == "_":
        body = f"""    %x = stablehlo.add %a, %b : {scalar}
    %y = stablehlo.multiply %a, %b : {scalar}
    %c = stablehlo.add %x, %y : {scalar}
"""
    given = (
        f"  %s = stablehlo.constant dense<{start}> : {scalar}\n" if start else f"  %s = stablehlo.not %1 : {scalar}\n"
    )
    body = f"""  %n = stablehlo.not %0 {{{_s(sharding)}}} : tensor<{sizes}x{type}>
{given}  %r = "stablehlo.reduce"(%n, %s) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0(%a: {scalar}, %b: {scalar}):
{body}    stablehlo.return %c : {scalar}
  }}) {{{_s("[]")}}} : (tensor<{sizes}x{type}>, {scalar}) -> {scalar}"""
    return _program([(f"{sizes}x{type}", sharding), (type, "[]")], (type, "[]"), body)


def _reduce_two(sizes: int) -> str:
    """Two vectors at once, from numbers that come in."""
    type, scalar = f"tensor<{sizes}xi32>", "tensor<i32>"
    listed = ", ".join(f"%{name}: {scalar}" for name in "abcd")
    both = _s("[]", "[]")
    body = f"""  %n = stablehlo.not %0 {{{_s('[{"a", "b"}]')}}} : {type}
  %m:2 = "stablehlo.reduce"(%n, %n, %1, %1) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0({listed}):
    %x = stablehlo.add %a, %c : {scalar}
    %y = stablehlo.xor %b, %d : {scalar}
    stablehlo.return %x, %y : {scalar}, {scalar}
  }}) {{{both}}} : ({type}, {type}, {scalar}, {scalar}) -> ({scalar}, {scalar})
  %r = stablehlo.subtract %m#0, %m#1 : {scalar}"""
    return _program([(f"{sizes}xi32", '[{"a", "b"}]'), ("i32", "[]")], ("i32", "[]"), body)


def _compose(sharding: str, sizes: int) -> str:
    """Linear functions one after the other, each as a factor and a summand: their order matters."""
    type, scalar = f"tensor<{sizes}xi32>", "tensor<i32>"
    listed = ", ".join(f"%{name}: {scalar}" for name in "abcd")
    both = _s("[]", "[]")
    body = f"""  %n = stablehlo.iota dim = 0 {{{_s(sharding)}}} : {type}
  %f = stablehlo.constant dense<1> : {scalar}
  %s = stablehlo.constant dense<0> : {scalar}
  %m:2 = "stablehlo.reduce"(%0, %n, %f, %s) <{{dimensions = array<i64: 0>}}> ({{
  ^bb0({listed}):
    %x = stablehlo.multiply %a, %c : {scalar}
    %y = stablehlo.multiply %b, %c : {scalar}
    %z = stablehlo.add %y, %d : {scalar}
    stablehlo.return %x, %z : {scalar}, {scalar}
  }}) {{{both}}} : ({type}, {type}, {scalar}, {scalar}) -> ({scalar}, {scalar})
  %r = stablehlo.add %m#0, %m#1 : {scalar}"""
    return _program([(f"{sizes}xi32", sharding)], ("i32", "[]"), body)


def _approximate(dim: int, size: int, kept: int, sharding: str) -> str:
    """The largest elements along a dimension, as `jax.lax.approx_max_k` finds them."""
    shape = [6, 6]
    shape[dim] = size
    before = "x".join(map(str, shape))
    shape[dim] = kept
    after = "x".join(map(str, shape))
    scalars = "tensor<f32>, tensor<i32>"
    result = f"tensor<{after}xf32>"
    config = (
        "aggregate_to_topk = true, is_fallback = true, recall_target = 9.5e-01 : f32, "
        f"reduction_dim = {dim} : i64, reduction_input_size_override = -1 : i64, top_k = {kept} : i64"
    )
    body = f"""  %n = stablehlo.iota dim = {dim} {{{_s(sharding)}}} : tensor<{before}xi32>
  %l = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.constant dense<-1> : tensor<i32>
  %q:2 = stablehlo.custom_call @ApproxTopK(%0, %n, %l, %m)
    {{called_computations = [@greater], mhlo.backend_config = {{{config}}}, {_s(sharding, sharding)}}}
    : (tensor<{before}xf32>, tensor<{before}xi32>, {scalars}) -> ({result}, tensor<{after}xi32>)
  %r = stablehlo.negate %q#0 {{{_s(sharding)}}} : {result}"""
    greater = """
func.func private @greater(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}"""
    return _program([(f"{before}xf32", sharding)], (f"{after}xf32", "[{}, {}]"), body) + greater


def _split_unsharded(before: str) -> str:
    """A reshape into a dimension of two factors, of which the first is not divisible."""
    body = f"""  %r = stablehlo.reshape %0 {{{_s('[{"b", "a"}, {}]')}}} : (tensor<3x16xf32>) -> tensor<12x4xf32>"""
    program = _program([("3x16xf32", "[{}, {}]")], ("12x4xf32", '[{"b", "a"}, {}]'), body)
    return program.replace('["a"=2, "b"=2]', '["a"=4, "b"=2]').replace(_port("3x16xf32", "[{}, {}]"), before)


def _update(part: int, update: str, place: str = "%2") -> str:
    """A vector of which a part is updated."""
    body = f"""  %z = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.negate %1 {{{_s(update)}}} : tensor<{part}xf32>
  %r = stablehlo.dynamic_update_slice %0, %n, {place} {{{_s('[{"a"}]')}}}
    : (tensor<4xf32>, tensor<{part}xf32>, tensor<i32>) -> tensor<4xf32>"""
    return _program([("4xf32", '[{"a"}]'), (f"{part}xf32", "[{}]"), ("i32", "[]")], ("4xf32", '[{"a"}]'), body)


def _nothing() -> str:
    """Two empty tensors, and the sum of what they hold."""
    sharding = '[{"a"}]'
    body = f"""  %n = stablehlo.add %0, %1 {{{_s(sharding)}}} : tensor<0xf32>
  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%n init: %s) applies stablehlo.add across dimensions = [0] {{{_s("[]")}}}
    : (tensor<0xf32>, tensor<f32>) -> tensor<f32>"""
    return _program([("0xf32", sharding)] * 2, ("f32", "[]"), body)


def _sum_elsewhere() -> str:
    """A sum of which nothing says that it is on the devices in the order that the summands are on."""
    body = f"""  %s = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.negate %0 {{sdy.sharding = #sdy.sharding_per_value<[<@o, [{{"b"}}]>]>}} : tensor<8xf32>
  %r = stablehlo.reduce(%n init: %s) applies stablehlo.add across dimensions = [0] {{{_s("[]")}}}
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>"""
    mesh = f'{_MESH}sdy.mesh @o = <["a"=2, "b"=2], device_ids=[3, 1, 2, 0]>\n'
    return _program([("8xf32", "[{}]")], ("f32", "[]"), body, mesh)


def _convolve_singles(kernel: str, result: str) -> str:
    """A batch and an output feature of size 1, which the rule of a convolution ties to nothing."""
    body = f"""  %k = stablehlo.negate %1 {{{_s(kernel)}}} : tensor<3x1x1xf32>
  %c = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[i, 0, o]->[f, b, 0], window = {{}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64, {_s(result)}}}
    : (tensor<1x5x3xf32>, tensor<3x1x1xf32>) -> tensor<1x1x5xf32>
  %r = stablehlo.negate %c {{{_s(result)}}} : tensor<1x1x5xf32>"""
    return _program([("1x5x3xf32", '[{"b"}, {}, {}]'), ("3x1x1xf32", kernel)], ("1x1x5xf32", "[{}, {}, {}]"), body)


def _convolve_one_group(batch: str, kernel: str) -> str:
    """A batch of two that groups make one of, which the rule ties to nothing."""
    result = '[{"a"}, {"b"}, {}]'
    body = f"""  %r = stablehlo.convolution(%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 2]]}}
    {{batch_group_count = 2 : i64, feature_group_count = 1 : i64, {_s(result)}}}
    : (tensor<2x1x1xf32>, tensor<4x1x2xf32>) -> tensor<1x1x2xf32>"""
    return _program([("2x1x1xf32", batch), ("4x1x2xf32", kernel)], ("1x1x2xf32", result), body)


_ALL = '[{"a", "b"}]'
_SIX = 'sdy.mesh @m = <["a"=6]>\n'


def _move(before: str, after: str) -> str:
    body = f"  %r = stablehlo.abs %0 {{{_s(before)}}} : tensor<12x12xf32>"
    return _program([("12x12xf32", before)], ("12x12xf32", after), body, _SIX)


def _buffer() -> str:
    """A buffer with anything in it, of which every device makes its part; nothing of it gets into the result."""
    body = """
  %b = stablehlo.custom_call @AllocateBuffer() : () -> tensor<6x8xf32>
  %z = stablehlo.subtract %b, %b : tensor<6x8xf32>
  %r = stablehlo.add %z, %0 : tensor<6x8xf32>"""
    return _program([("6x8xf32", '[{"a"}, {"b"}]')], ("6x8xf32", '[{"a"}, {"b"}]'), body)


_DILATED = "stride = [2], pad = [[1, 2]], lhs_dilate = [2], rhs_dilate = [2]"


def _twice(first: str, second: str, functions: str = "") -> str:
    """The difference between what two ops give."""
    body = f"  %1 = {first}\n  %2 = {second}\n  %r = stablehlo.subtract %1, %2 : tensor<8xf32>"
    return _program([("8xf32", '[{"a"}]')], ("8xf32", '[{"a"}]'), body) + functions


def _computation(op: str) -> str:
    return f"""sdy.named_computation<"f">(%0) (%a: tensor<8xf32>) {{
    %9 = stablehlo.{op} %a : tensor<8xf32>
    sdy.return %9 : tensor<8xf32>
  }} : (tensor<8xf32>) -> tensor<8xf32>"""


def _function(name: str, op: str, attributes: str = "") -> str:
    return f"""
func.func private @{name}(%a: tensor<8xf32>) -> tensor<8xf32> {attributes} {{
  %0 = stablehlo.{op} %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""


def _called(name: str) -> str:
    return f"call @{name}(%0) : (tensor<8xf32>) -> tensor<8xf32>"


_COPY_OF_F = 'attributes {sdy.original_func_name = "f"}'
_MAJOR, _MINOR = '{"a":(1)2}', '{"a":(3)2}'
"""Halves of an axis of six devices that cannot be cut from it at once."""


def _take_by_halves(rows: str, places: str) -> str:
    """Rows of a table, at places that are made inside."""
    body = f"""
  %i = stablehlo.iota dim = 0 {{{_s(f"[{places}, {{}}]")}}} : tensor<4x1xi32>
  %r = "stablehlo.gather"(%0, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
    start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>}}>
    {{{_s(f"[{places}, {{}}]")}}} : (tensor<4x6xf32>, tensor<4x1xi32>) -> tensor<4x6xf32>"""
    return _program([("4x6xf32", f"[{rows}, {{}}]")], ("4x6xf32", f"[{places}, {{}}]"), body, _SIX)


def _multiply_by_halves(contracted: str, kept: str) -> str:
    """Matrices, contracted along one half of the axis, with columns along the other."""
    body = f"""
  %n = stablehlo.negate %1 {{{_s(f"[{contracted}, {kept}]")}}} : tensor<6x4xf32>
  %r = stablehlo.dot_general %0, %n, contracting_dims = [1] x [0] {{{_s(f"[{{}}, {kept}]")}}}
    : (tensor<4x6xf32>, tensor<6x4xf32>) -> tensor<4x4xf32>"""
    inputs = [("4x6xf32", f"[{{}}, {contracted}]"), ("6x4xf32", f"[{{}}, {kept}]")]
    return _program(inputs, ("4x4xf32", f"[{{}}, {kept}]"), body, _SIX)


def _add_in_halves() -> str:
    """Matrices along one half each, in a branch of a case, whose results are along both halves."""
    body = f"""
  %i = stablehlo.constant dense<1> : tensor<i32>
  %r = "stablehlo.case"(%i) ({{
    stablehlo.return %0 : tensor<4x6xf32>
  }}, {{
    %s = stablehlo.add %0, %1 {{{_s(f"[{_MAJOR}, {_MINOR}]")}}} : tensor<4x6xf32>
    stablehlo.return %s : tensor<4x6xf32>
  }}) {{{_s(f"[{_MINOR}, {_MAJOR}]")}}} : (tensor<i32>) -> tensor<4x6xf32>"""
    inputs = [("4x6xf32", f"[{_MAJOR}, {{}}]"), ("4x6xf32", f"[{{}}, {_MINOR}]")]
    return _program(inputs, ("4x6xf32", f"[{_MAJOR}, {{}}]"), body, _SIX)


PROGRAMS = {
    "sort along the last dimension, counted from the end": _sort("dimension = -1 : i64", '[{"a"}, {"b"}]'),
    "sort along the first dimension, counted from the end": _sort("dimension = -2 : i64", '[{"a"}, {"b"}]'),
    "sort along the dimension that is meant when none is given": _sort("", '[{}, {"a", "b"}]'),
    "gather without an index": _gather("", 0),
    "gather of rows with an index for columns": _gather("1", 1),
    "gather an empty dimension": _negate("0x6xf32", '[{"a"}, {}]', "[{}, {}]"),
    "gather an empty dimension and another one": _negate("0x6xf32", '[{"a"}, {"b"}]', "[{}, {}]"),
    "exchange an empty dimension": _negate("0x6xf32", '[{"a"}, {}]', '[{}, {"a"}]'),
    "exchange for an empty dimension": _negate("0x6xf32", '[{}, {"a"}]', '[{"a"}, {}]'),
    "scatter an empty sum": _dot((0, 4, 6), '[{}, {"a"}]', '[{"a"}, {}]', '[{"a"}, {}]'),
    "scatter that sets, of sharded updates": _scatter("set", "0", "[{}, {}]", '[{"a"}, {}]', '[{"a"}, {}]'),
    "scatter that sets, of updates sharded like the input": _scatter(
        "set", "0", '[{"a"}, {}]', "[{}, {}]", '[{"a"}, {}]'
    ),
    "scatter that subtracts, of sharded updates": _scatter("subtract", "0", "[{}, {}]", "[{}, {}]", '[{"a"}, {"b"}]'),
    "scatter that sets rows without an index": _scatter("set", "", '[{"a"}, {}]', "[{}, {}]", "[{}, {}]"),
    "scatter that adds rows without an index": _scatter("add", "", '[{"a"}, {}]', "[{}, {}]", '[{"b"}, {}]'),
    "scatter that adds rows with an index for columns": _scatter("add", "1", '[{"a"}, {}]', "[{}, {}]", '[{"b"}, {}]'),
    "scatter that multiplies, of sharded updates": _scatter(
        "multiply", "0", '[{}, {"a"}]', "[{}, {}]", '[{"b"}, {"a"}]'
    ),
    "scatter of updates that are padded and not indexed": _scatter(
        "add", "", "[{}, {}]", '[{"a"}, {}]', '[{"a"}, {}]', count=5
    ),
    "scatter by xor, of sharded updates": _scatter("xor", "0", "[{}, {}]", "[{}, {}]", '[{"a"}, {}]', "i32"),
    "expand a dimension that is sharded": _broadcast('[{"a"}, {"b"}]', '[{}, {"b"}]'),
    "expand a dimension that is sharded otherwise": _broadcast('[{"a"}, {}]', '[{"b"}, {}]'),
    "convolution with one window that is sharded": _convolution(
        (1, 2, 1), _DILATED, "[{}, {}, {}]", "[{}, {}, {}]", '[{}, {"a"}, {"b"}]'
    ),
    "convolution of one element that is sharded": _convolution(
        (1, 1, 1), "", '[{"a"}, {}, {}]', '[{}, {"b"}, {}]', "[{}, {}, {}]"
    ),
    "convolution of one element with a long kernel": _convolution(
        (1, 3, 3), "pad = [[2, 2]]", '[{"a"}, {}, {}]', '[{}, {"b"}, {}]', '[{}, {}, {"a"}]'
    ),
    "convolution that sums up everything": _convolution(
        (5, 5, 1), "", '[{"a"}, {}, {}]', '[{}, {"a"}, {}]', '[{}, {}, {"b"}]'
    ),
    "convolution with single features that are sharded": _convolve_singles('[{}, {}, {"a"}]', "[{}, {}, {}]"),
    "convolution into single features that are sharded": _convolve_singles("[{}, {}, {}]", '[{"a"}, {"b"}, {}]'),
    "convolution with single features that are sharded alike": _convolve_singles(
        '[{}, {}, {"a"}]', '[{"a"}, {"b"}, {}]'
    ),
    "convolution of groups into one sharded batch": _convolve_one_group("[{}, {}, {}]", '[{}, {"b"}, {}]'),
    "convolution of sharded groups into one sharded batch": _convolve_one_group('[{"b"}, {}, {}]', '[{}, {"a"}, {}]'),
    "exchange parts of an axis for those of an empty tensor": _negate("0x16xf32", '[{}, {"a"}]', '[{}, {"b"}]'),
    "decompose a batch of matrices": cholesky(4, '[{"a"}, {}, {}]', '[{"a"}, {}, {}]'),
    "decompose a batch of matrices that is not divisible": cholesky(5, '[{"a"}, {"b"}, {}]', '[{"b"}, {}, {"a"}]'),
    "decompose a batch whose matrices are sharded": cholesky(4, '[{}, {"a"}, {"b"}]', '[{}, {}, {"a"}]'),
    "decompose matrices of which nothing says that they are a batch": cholesky(
        4, '[{"a"}, {}, {}]', '[{"a"}, {}, {}]', ""
    ),
    "run on one device": _on_device('[{"a"}, {"b"}]', '[{"b"}, {"a"}]'),
    "run on one device what is not divisible": _on_device('[{}, {"a", "b"}]', '[{}, {"a", "b"}]'),
    "run on one device what all have": _on_device("[{}, {}]", "[{}, {}]"),
    "slice one row beside a padded dimension": _slice_one('[{}, {"a"}]'),
    "move parts of an axis that do not fit each other": _move('[{"a":(3)2}, {}]', '[{}, {"a":(1)2}]'),
    "move parts of an axis that do not fit, the other way": _move('[{"a":(1)2}, {}]', '[{}, {"a":(3)2}]'),
    "take rows by halves that exclude each other": _take_by_halves(_MAJOR, _MINOR),
    "take rows by halves that exclude each other, the other way": _take_by_halves(_MINOR, _MAJOR),
    "multiply by halves that exclude each other": _multiply_by_halves(_MAJOR, _MINOR),
    "multiply by halves that exclude each other, the other way": _multiply_by_halves(_MINOR, _MAJOR),
    "add in halves that exclude each other": _add_in_halves(),
    "exchange parts of an axis": _move('[{"a":(1)3}, {"a":(3)2}]', '[{"a":(3)2}, {"a":(1)3}]'),
    "gather all of a padded dimension of size 1": _gather_ones('[{"b"}, {}, {"a"}]', '[{}, {}, {"a"}]'),
    "find some of the largest approximately": _approximate(1, 8, 2, '[{"a"}, {"b"}]'),
    "find all of the largest approximately": _approximate(0, 8, 8, '[{"a"}, {"b"}]'),
    "find the largest approximately along a dimension that is not divisible": _approximate(0, 7, 3, '[{"b"}, {}]'),
    "compose functions in the order of their shards": _compose('[{"b", "a"}]', 8),
    "compose functions in the order of shards that are padded": _compose('[{"b", "a"}]', 7),
    "reshape what is not sharded at all": _split_unsharded("tensor<3x16xf32>"),
    "reshape what is replicated": _split_unsharded(_port("3x16xf32", "[{}, {}]")),
    "reduce by and": _reduce("and", "i32", 8, _ALL, "-1"),
    "reduce by or": _reduce("or", "ui8", 7, _ALL, "0"),
    "reduce by xor": _reduce("xor", "i64", 8, '[{"b"}]', "0"),
    "reduce truth values by xor": _reduce("xor", "i1", 5, _ALL, "false"),
    "reduce by a body of several ops": _reduce("_", "i32", 8, _ALL, "0"),
    "reduce by xor from any number": _reduce("xor", "i32", 12, _ALL),
    "add up single elements from any number": _reduce("add", "i32", 4, _ALL),
    "find the largest of single elements and any number": _reduce("maximum", "i32", 4, _ALL),
    "multiply padded elements by any number": _reduce("multiply", "i32", 5, _ALL),
    "reduce padded elements from any numbers, two ways at once": _reduce_two(5),
    "reduce single elements from any numbers, two ways at once": _reduce_two(4),
    "update one element, which is sharded": _update(1, '[{"b"}]'),
    "update elements of one shard, which are sharded": _update(1, '[{"a"}]', "%z"),
    "update elements of several shards, which are sharded": _update(2, '[{"b"}]'),
    "add up over devices in another order": _sum_elsewhere(),
    "add up nothing": _nothing(),
    "take a buffer with anything in it": _buffer(),
    "shard by two parts of an axis around one of size 1": _negate(
        "16x6xf32", "[{}, {}]", '[{"a":(1)2, "b", "a":(2)2}, {}]'
    ).replace('"a"=2, "b"=2', '"a"=4, "b"=1'),
    "computations of one name that differ": _twice(_computation("negate"), _computation("abs")),
    "a computation with the name of another function": _twice(
        _computation("negate"), _called("f"), _function("f", "abs")
    ),
    "a function that says that it is a copy of another one": _twice(
        _called("f"), _called("g"), _function("f", "negate") + _function("g", "abs", _COPY_OF_F)
    ),
    "a function and its copy": _twice(
        _called("f"), _called("g"), _function("f", "negate") + _function("g", "negate", _COPY_OF_F)
    ),
    "reshape what one shard of a dimension of size 1 has, and move borders": _reshape(
        "2x8x1x3xf32", "16x3xf32", '[{"a"}, {}, {"b"}, {}]', '[{"a"}, {}]'
    ).replace('"a"=2, "b"=2', '"a"=3, "b"=2'),
    "reshape what one shard of a dimension of size 1 has": _reshape(
        "2x1x1x4x2xf32", "2x4x2xf32", '[{}, {"b"}, {}, {"a"}, {"c"}]', '[{}, {"a", "b"}, {}]'
    ).replace('"a"=2, "b"=2', '"a"=2, "b"=2, "c"=2'),
    "reshape where one side alone shards a dimension that stays": _reshape(
        "4x1x2x2xf32", "1x4x4xf32", '[{"a"}, {}, {}, {"b"}]', '[{}, {}, {"b"}]'
    ),
    "reshape of a padded dimension, beside one whose shards have other elements": _reshape(
        "6x3x2xf32", "12x3xf32", '[{"b"}, {}, {"a"}]', '[{"b"}, {"a"}]'
    ).replace('"a"=2, "b"=2', '"a"=4, "b"=2'),
    "gather from rows, beside a padded dimension": _gather_ones('[{"b"}, {"a"}, {}]', '[{}, {"a"}, {}]'),
}
"""By what they do."""
