"""Modules with what pyshardy was not written for: types, ops and attributes of other dialects, odd names and places.

Every table maps a name to the text of a module with a sharded argument, so that a wrong sharding would show.
"""

from __future__ import annotations

T = "tensor<8x4xf32>"
MESH = 'sdy.mesh @m = <["x"=2, "y"=2]>\n'
SHARDED = '{sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}'
HELPER = f"func.func private @g(%a: {T}) -> {T} {{ return %a : {T} }}\n"
RESOURCE = '\n{-# dialect_resources: { builtin: { blob: "0x08000000%s" } } #-}'


def _main(lines: str, returned: str = "%a", before: str = "") -> str:
    return f"""{MESH}{before}func.func @main(%a: {T} {SHARDED}, %b: {T}, %i: tensor<i32>, %ix: index, %s: i1) -> {T} {{
  {lines}
  return {returned} : {T}
}}"""


# Types

_HLO_ELEMENTS = """
    f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3 f8E4M3FN f8E4M3FNUZ f8E4M3B11FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU bf16 f16
    f32 f64 i1 i2 i4 i8 i16 i32 i64 ui2 ui4 ui8 ui16 ui32 ui64 complex<f32> complex<f64>
"""
_OTHER_ELEMENTS = """
    f80 f128 tf32 i3 i128 si8 si32 index complex<i32> complex<f8E5M2> vector<4xf32> !shape.shape !llvm.ptr
    !stablehlo.token !vhlo.f32_v1
"""
ENCODINGS = ('"text"', "7 : i32", "{a = 1}", '#sdy.sharding<@m, [{"x"}, {}]>')
TYPES = (
    "f32", "index", "none", "i7", "complex<f32>", "!stablehlo.token", "!stablehlo.future<tensor<2xf32>>",
    "!mhlo.token", "tuple<>", "tuple<tensor<2xf32>, f32>", "memref<8x4xf32>", "memref<*xf32>", "memref<?x4xf32>",
    "vector<8x4xf32>", "vector<[4]xf32>", "tensor<*xf32>", "tensor<?x4xf32>",
    "tensor<?x4xf32, #stablehlo.bounds<8, ?>>", 'tensor<8x4xf32, "encoding">', "tensor<0x4xf32>",
    "tensor<99999999999x4xf32>", "!shape.witness", "!llvm.struct<(i32, f32)>", "!gpu.async.token",
    "(tensor<2xf32>) -> tensor<2xf32>", "!vhlo.token_v1", "!vhlo.tensor_v1<4x!vhlo.f32_v1>",
)  # fmt: skip


def _hlo_type(type: str) -> str:
    return f"""{MESH}func.func @main(%a: {type} {SHARDED}, %b: {type}, %p: tensor<i1>) -> ({type}, {type}) {{
  %0:2 = stablehlo.optimization_barrier %a, %b : {type}, {type}
  %1 = stablehlo.custom_call @unknown(%0#0) : ({type}) -> {type}
  %2 = stablehlo.select %p, %1, %0#1 : tensor<i1>, {type}
  return %0#0, %2 : {type}, {type}
}}"""


def _any_element(type: str) -> str:
    return f"""{MESH}func.func @main(%a: {type} {SHARDED}, %b: {type}, %s: i1) -> ({type}, {type}) {{
  %0:2 = func.call @f(%a, %b, %s) : ({type}, {type}, i1) -> ({type}, {type})
  %1 = arith.select %s, %0#0, %b : {type}
  return %0#1, %1 : {type}, {type}
}}
func.func private @f(%a: {type}, %b: {type}, %s: i1) -> ({type}, {type}) {{
  %0 = arith.select %s, %a, %b : {type}
  return %0, %0 : {type}, {type}
}}"""


def _passed(type: str) -> str:
    return f"""{MESH}func.func @main(%a: {T} {SHARDED}, %b: {type}) -> ({T}, {type}) {{
  %0 = stablehlo.tanh %a : {T}
  return %0, %b : {T}, {type}
}}"""


def _called(type: str) -> str:
    return f"""{MESH}func.func @main(%a: {T} {SHARDED}, %b: {type}) -> ({T}, {type}) {{
  %0:2 = func.call @f(%a, %b) : ({T}, {type}) -> ({T}, {type})
  return %0#0, %0#1 : {T}, {type}
}}
func.func private @f(%a: {T}, %b: {type}) -> ({T}, {type}) {{
  %0 = stablehlo.tanh %a : {T}
  return %0, %b : {T}, {type}
}}"""


TYPE_CASES = {
    **{f"tensor of {element}": _hlo_type(f"tensor<8x4x{element}>") for element in _HLO_ELEMENTS.split()},
    **{f"tensor of {element}": _any_element(f"tensor<8x4x{element}>") for element in _OTHER_ELEMENTS.split()},
    **{f"encoding {encoding}": _hlo_type(f"tensor<8x4xf32, {encoding}>") for encoding in ENCODINGS},
    **{f"passed {type}": _passed(type) for type in TYPES},
    **{f"called with {type}": _called(type) for type in TYPES},
}

# Ops

_TOKEN = "%t = stablehlo.create_token : !stablehlo.token\n  "
OP_LINES = {
    "chlo.tan": f"%0 = chlo.tan %a : {T} -> {T}",
    "chlo.broadcast_add": f"%0 = chlo.broadcast_add %a, %b : ({T}, {T}) -> {T}",
    "chlo.top_k": f"%0, %k = chlo.top_k(%a, k=2) : {T} -> (tensor<8x2xf32>, tensor<8x2xi32>)",
    "mhlo.tanh": f"%0 = mhlo.tanh %a : {T}",
    "mhlo.topk": f"%0:2 = mhlo.topk(%a, k=2) : {T} -> (tensor<8x2xf32>, tensor<8x2xi32>)",
    "arith.addf": f"%0 = arith.addf %a, %b fastmath<fast> : {T}",
    "arith.constant": f"%0 = arith.constant dense<1.0> : {T}\n  %1 = stablehlo.add %0, %a : {T}",
    "arith.select": f"%0 = arith.select %s, %a, %b : {T}",
    "math.sin": f"%0 = math.sin %a : {T}",
    "scf.if": f"%0 = scf.if %s -> {T} {{ scf.yield %a : {T} }} else {{ scf.yield %b : {T} }}",
    "scf.for": f"""%0 = scf.for %k = %ix to %ix step %ix iter_args(%v = %a) -> {T} {{
    %1 = stablehlo.tanh %v : {T}
    scf.yield %1 : {T}
  }}""",
    "scf.while": f"%0 = scf.while (%v = %a) : ({T}) -> {T} {{ scf.condition(%s) %v : {T} }} do "
    f"{{ ^bb0(%w: {T}): scf.yield %w : {T} }}",
    "scf.execute_region": f"%0 = scf.execute_region -> {T} {{ scf.yield %a : {T} }}",
    "func.call_indirect": f"%c = func.constant @g : ({T}) -> {T}\n  %0 = func.call_indirect %c(%a) : ({T}) -> {T}",
    "tensor.cast": f"%0 = tensor.cast %a : {T} to tensor<?x4xf32>\n  %1 = tensor.cast %0 : tensor<?x4xf32> to {T}",
    "tensor.dim": f"%0 = tensor.dim %a, %ix : {T}",
    "tensor.extract": f"%0 = tensor.extract %a[%ix, %ix] : {T}",
    "tensor.collapse_shape": f"%0 = tensor.collapse_shape %a [[0, 1]] : {T} into tensor<32xf32>",
    "tensor.generate": f"%0 = tensor.generate {{ ^bb0(%x: index, %y: index): %e = tensor.extract %a[%x, %y] : {T}\n"
    f"    tensor.yield %e : f32 }} : {T}",
    "shape.shape_of": f"%0 = shape.shape_of %a : {T} -> tensor<2xindex>",
    "shape.assuming": f"%w = shape.const_witness true\n  %0 = shape.assuming %w -> {T} {{ shape.assuming_yield %a : {T} }}",
    "complex.create": "%e = tensor.extract %a[%ix, %ix] : tensor<8x4xf32>\n  %0 = complex.create %e, %e : complex<f32>",
    "ub.poison": f"%0 = ub.poison : {T}\n  %1 = stablehlo.add %0, %a : {T}",
    "builtin.unrealized_conversion_cast": f"%0 = builtin.unrealized_conversion_cast %a : {T} to tensor<32xf32>",
    "cf.assert": 'cf.assert %s, "message"',
    "stablehlo.rng": """%n = stablehlo.constant dense<[8, 4]> : tensor<2xi64>
  %l = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.rng %l, %l, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>""",
    "stablehlo.tuple": f"%0 = stablehlo.tuple %a, %b : tuple<{T}, {T}>",
    "stablehlo.composite": f'%0 = stablehlo.composite "my.op" %a {{composite_attributes = {{x = 1}}, decomposition = @g, '
    f"version = 3 : i32}} : ({T}) -> {T}",
    "stablehlo.dynamic_reshape": "%n = stablehlo.constant dense<[4, 8]> : tensor<2xi32>\n"
    f"  %0 = stablehlo.dynamic_reshape %a, %n : ({T}, tensor<2xi32>) -> tensor<?x8xf32>",
    "stablehlo.set_dimension_size": f"%0 = stablehlo.set_dimension_size %a, %i, dim = 0 : ({T}, tensor<i32>) -> "
    "tensor<?x4xf32, #stablehlo.bounds<8, ?>>",
    "stablehlo.get_dimension_size": f"%0 = stablehlo.get_dimension_size %a, dim = 0 : ({T}) -> tensor<i32>",
    "stablehlo.send": _TOKEN + '%0 = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 5, '
    f"type = 2>, is_host_transfer = true}} : ({T}, !stablehlo.token) -> !stablehlo.token",
    "stablehlo.infeed": _TOKEN + f'%0:2 = "stablehlo.infeed"(%t) {{infeed_config = "c"}} : (!stablehlo.token) -> '
    f"({T}, !stablehlo.token)",
    "stablehlo.einsum": f'%0 = stablehlo.einsum %a, %b, config = "ab,ab->a" : ({T}, {T}) -> tensor<8xf32>',
    "stablehlo.custom_call": f"""%0 = stablehlo.custom_call @unknown(%a) {{api_version = 4 : i32,
    backend_config = {{a = 1 : i32}}, called_computations = [@g], has_side_effect = true,
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>],
    output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0,
      operand_tuple_indices = []>]}} : ({T}) -> {T}""",
    "a target with odd characters": f'%0 = stablehlo.custom_call @"odd \\22 \\0A é"(%a) : ({T}) -> {T}',
}
OP_CASES = {name: _main(lines, before=HELPER if "@g" in lines else "") for name, lines in OP_LINES.items()}

# Ops that nothing uses: those without effects go, the others stay

_COMBINE = "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): DIALECT.return %x : tensor<f32> })"
_GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
_HLO_LINES = {
    "all_reduce": f'%0 = "DIALECT.all_reduce"(%a) {_COMBINE} {{{_GROUPS}}} : ({T}) -> {T}',
    "collective_permute": '%0 = "DIALECT.collective_permute"(%a) {source_target_pairs = dense<[[0, 1]]> : '
    f"tensor<1x2xi64>}} : ({T}) -> {T}",
    "custom_call": f'%0 = "DIALECT.custom_call"(%a) {{call_target_name = "f"}} : ({T}) -> {T}',
    "custom_call with effect": f'%0 = "DIALECT.custom_call"(%a) {{call_target_name = "f", has_side_effect = true}} : '
    f"({T}) -> {T}",
    "custom_call without results": f'"DIALECT.custom_call"(%a) {{call_target_name = "f"}} : ({T}) -> ()',
    "infeed": '%t = "DIALECT.create_token"() : () -> !DIALECT.token\n'
    f'  %0:2 = "DIALECT.infeed"(%t) : (!DIALECT.token) -> ({T}, !DIALECT.token)',
    "partition_id": '%0 = "DIALECT.partition_id"() : () -> tensor<ui32>',
    "case without results": '"DIALECT.case"(%i) ({ DIALECT.return }) : (tensor<i32>) -> ()',
    "case with effect": '"DIALECT.case"(%i) ({ "DIALECT.custom_call"(%a) {call_target_name = "f", has_side_effect = true}'
    f" : ({T}) -> ()\n  DIALECT.return }}) : (tensor<i32>) -> ()",
    "tanh": f"%0 = DIALECT.tanh %a : {T}",
}
UNUSED_LINES = {
    **{f"mhlo.{name}": line.replace("DIALECT", "mhlo") for name, line in _HLO_LINES.items()},
    **{f"stablehlo.{name}": line.replace("DIALECT", "stablehlo") for name, line in _HLO_LINES.items()},
    **{f"mhlo.{name}": f"%0 = mhlo.{name} %a : {T}" for name in ("acos", "asinh", "cosh", "erf", "copy")},
    "mhlo.fusion": f'%0 = "mhlo.fusion"(%a) ({{ ^bb0(%x: {T}): mhlo.return %x : {T} }}) : ({T}) -> {T}',
    "mhlo.xla.rng_get_and_update_state": "%0 = mhlo.xla.rng_get_and_update_state {delta = 1 : i64}",
    "scf.if without results": "scf.if %s { }",
    "scf.if with effect": 'scf.if %s { cf.assert %s, "message" }',
    "scf.parallel": "scf.parallel (%k) = (%ix) to (%ix) step (%ix) { scf.reduce }",
    "scf.forall": "scf.forall (%k) in (%ix) { }",
    "scf.index_switch": "%0 = scf.index_switch %ix -> i1 case 2 { scf.yield %s : i1 } default { scf.yield %s : i1 }",
    "shape.cstr_require": '%0 = shape.cstr_require %s, "message"',
    "shape.const_witness": "%0 = shape.const_witness true",
    "sdy.named_computation": 'sdy.named_computation<"n">() () { sdy.return } : () -> ()',
    "func.constant": f"%0 = func.constant @g : ({T}) -> {T}",
}
UNUSED_CASES = {f"unused {name}": _main(lines, before=HELPER) for name, lines in UNUSED_LINES.items()}

# Attributes

VALUES = {
    "unit": "unit", "dictionary": '{b = 1 : i32, c = [1, 2.0, "x", @g]}', "symbol": "@g", "path": "@m::@g",
    "bf16": "1.0 : bf16", "NaN": "0x7F800001 : f32", "f80": "1.0 : f80", "i128": "99999999999999999999999999 : i128",
    "i0": "0 : i0", "ui8": "3 : ui8", "type": "tensor<4xf32>", "map": "affine_map<(d0) -> (d0 + 1)>",
    "set": "affine_set<(d0) : (d0 >= 0)>", "location": 'loc("file":1:2)', "named location": 'loc("name"("file":1:2))',
    "call site": 'loc(callsite("a" at "b"))', "fused location": 'loc(fused["a", "b"])',
    "unknown location": "loc(unknown)", "array": "array<i8: 1, 2>", "array of booleans": "array<i1: true, false>",
    "layout": "strided<[1], offset: 3>", "identity": "distinct[0]<1>", "sharding": '#sdy.sharding<@m, [{"x"}, {}]>',
    "mesh": '#sdy.mesh<["x"=2]>', "precision": "#stablehlo<precision HIGHEST>", "vhlo": "#vhlo.bool_v1<true>",
    "resource": "dense_resource<blob> : tensor<2xi32>", "sparse": "sparse<[[0, 0]], [1]> : tensor<3x4xi32>",
    "strings": 'dense<["a", "b"]> : tensor<2x!shape.shape>',
    **{f"dense {element}": f"dense<[1, 2]> : tensor<2x{element}>" for element in ("i3", "i4", "i64", "i128", "ui64", "index")},
    **{f"dense {element}": f"dense<1.0> : tensor<2x{element}>"
       for element in ("f4E2M1FN", "f8E4M3FN", "bf16", "tf32", "f80", "f128")},
    **{f"dense complex<{element}>": f"dense<(1{dot}, 2{dot})> : tensor<2xcomplex<{element}>>"
       for element, dot in (("i32", ""), ("f32", ".0"), ("f64", ".0"))},
}  # fmt: skip
NAMED = (
    'mhlo.sharding = "{replicated}"', 'mhlo.frontend_attributes = {a = "b"}', 'mhlo.memory_kind = "pinned_host"',
    'jax.result_info = "x"', "jax.buffer_donor = true", "tf.aliasing_output = 0 : i32",
    "sdy.unknown = 1 : i32", 'sdy.sharding_origins = {a = "b"}', '"my.odd name\\22" = 1', "llvm.noalias",
)  # fmt: skip


def _attributed(attribute: str) -> str:
    """A module with the attribute on the module, functions, arguments, results, and ops of several kinds."""
    shardings = '#sdy.sharding_per_value<[<@m, [{"x"}, {}]>]>'
    return f"""module @all attributes {{{attribute}}} {{
"sdy.mesh"() {{sym_name = "m", mesh = #sdy.mesh<["x"=2, "y"=2]>, {attribute}}} : () -> ()
func.func @main(%a: {T} {SHARDED[:-1]}, {attribute}}}, %b: {T} {{{attribute}}}) -> ({T} {{{attribute}}})
    attributes {{{attribute}}} {{
  %0 = stablehlo.tanh %a {{{attribute}}} : {T}
  %1 = stablehlo.constant {{{attribute}}} dense<1.0> : {T}
  %2 = stablehlo.add %0, %1 : {T}
  %3 = stablehlo.multiply %b, %1 : {T}
  %4 = "sdy.sharding_constraint"(%2) {{sharding = #sdy.sharding<@m, [{{?}}, {{"y"}}]>, {attribute}}} : ({T}) -> {T}
  %5 = func.call @f(%4) {{{attribute}}} : ({T}) -> {T}
  %6 = func.call @f(%3) {{{attribute}}} : ({T}) -> {T}
  %7 = stablehlo.add %5, %6 : {T}
  %8 = "sdy.manual_computation"(%7) <{{in_shardings = {shardings}, out_shardings = {shardings},
      manual_axes = #sdy<manual_axes{{"x"}}>}}> ({{
  ^bb0(%l: tensor<4x4xf32>):
    %9 = arith.negf %l {{{attribute}}} : tensor<4x4xf32>
    sdy.return %9 : tensor<4x4xf32>
  }}) {{{attribute}}} : ({T}) -> {T}
  "func.return"(%8) {{{attribute}}} : ({T}) -> ()
}}
func.func private @f(%a: {T} {{{attribute}}}) -> ({T} {{{attribute}}}) attributes {{{attribute}}} {{
  %0 = stablehlo.tanh %a : {T}
  return %0 : {T}
}}
{HELPER}}}"""


ATTRIBUTE_CASES = {
    **{f"a {name} as attribute": _attributed(f"my.a = {value}") for name, value in VALUES.items()},
    **{f"the attribute {attribute}": _attributed(attribute) for attribute in NAMED},
}
ATTRIBUTE_CASES["a resource as attribute"] += RESOURCE % "0100000002000000"

# Constants, names, places


def _constant(value: str, type: str = T) -> str:
    return f"""{MESH}func.func @main(%a: {type} {SHARDED}, %b: {type}, %p: tensor<i1>) -> ({type}, {type}) {{
  %0 = stablehlo.constant {value} : {type}
  %1 = stablehlo.select %p, %a, %0 : tensor<i1>, {type}
  %2 = stablehlo.select %p, %b, %0 : tensor<i1>, {type}
  return %1, %2 : {type}, {type}
}}"""


def _splat(value: str, element: str) -> str:
    return _constant(f"dense<{value}>", f"tensor<8x4x{element}>")


CONSTANT_CASES = {
    "splat": _constant("dense<1.5>"),
    "infinity": _constant("dense<0x7F800000>"),
    "NaN with payload": _constant("dense<0xFFC00001>"),
    "hexadecimal": _constant(f'dense<"0x{"3F80000040000000" * 16}">'),
    "resource": _constant("dense_resource<blob>") + RESOURCE % ("3F800000" * 32),
    "sparse": _constant("sparse<[[0, 0], [1, 2]], [1.0, 5.0]>"),
    "large": _constant(f"dense<{[list(range(row, row + 64)) for row in range(64)]}>", "tensor<64x64xi32>"),
    **{
        f"constant of {element}": _splat(value, element)
        for element, value in {
            "f4E2M1FN": "1.0", "f8E4M3FN": "1.0", "f8E8M0FNU": "1.0", "i2": "1", "i4": "-3", "i1": "true",
            "ui64": "18446744073709551615", "f64": "1.0e300", "complex<f32>": "(1.0, 2.0)", "complex<f64>": "(1.0, 2.0)",
        }.items()
    },
}  # fmt: skip


def _named(name: str) -> str:
    sharding = f'{{sdy.sharding = #sdy.sharding<@"{name}m", [{{"{name}x"}}, {{}}]>}}'
    return f"""sdy.mesh @"{name}m" = <["{name}x"=2, "y"=2]>
func.func @main(%a: {T} {sharding}) -> {T} {{
  %0 = func.call @"f{name}"(%a) : ({T}) -> {T}
  %1 = func.call @"f{name}"(%0) : ({T}) -> {T}
  return %1 : {T}
}}
func.func private @"f{name}"(%a: {T}) -> {T} {{
  %0 = stablehlo.tanh %a {{my.reference = @"h{name}"}} : {T}
  return %0 : {T}
}}
func.func private @"h{name}"() {{ return }}"""


def _located(place: str) -> str:
    return f"""{MESH}func.func @main(%a: {T} {SHARDED} loc({place})) -> {T} {{
  %0 = arith.negf %a : {T} loc({place})
  %1 = func.call @f(%0) : ({T}) -> {T} loc({place})
  return %1 : {T} loc({place})
}} loc({place})
func.func private @f(%a: {T} loc({place})) -> {T} {{
  %0 = stablehlo.tanh %a : {T} loc({place})
  return %0 : {T}
}}"""


NAMES = ("a b", "a\\22b", "\\0A", "é", "0", "a-b", "a.b$c", "@m", "\\00x", "%s", "a\\5Cb")
PLACES = (
    '"file":1:2', '"":0:0', '""', "unknown", '"name"("f.py":3:4)', '"a\\22b\\0A"("é\\22.py":3:4)', 'fused["a", "b"]',
    'fused<"meta">["a":1:2, "b"]', 'fused<#sdy.sharding<@m, [{}]>>["a"]', 'callsite("a" at "b":3:4)', '"f":1:2 to 3:4',
    'callsite(fused<{a = 1}>["x"("f":1:1)] at callsite("b" at "c":1:1))',
)  # fmt: skip
TEXT_CASES = {
    **CONSTANT_CASES,
    **{f"names with {name}": _named(name) for name in NAMES},
    **{f"located at {place}": _located(place) for place in PLACES},
}

CASES = {**TYPE_CASES, **OP_CASES, **UNUSED_CASES, **ATTRIBUTE_CASES, **TEXT_CASES}

# Ops of dialects that are not registered

UNKNOWN_LINES = {
    "op": f'%0 = "foo.bar"(%a) : ({T}) -> {T}',
    "attributes": f'%0 = "foo.bar"(%a) {{a = 1 : i32, sdy.unknown = 2 : i32, b.c = #x.y<z>}} : ({T}) -> {T}',
    "sharding": '%0 = "foo.bar"(%a) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{}, {"y"}]>]>} : '
    f"({T}) -> {T}",
    "no results": f'"foo.bar"(%a) : ({T}) -> ()',
    "no operands": f'%0 = "foo.bar"() : () -> {T}',
    "types": f'%0 = "foo.bar"(%a) : ({T}) -> !foo.bar<"x">\n  %1 = "foo.bar"(%0) : (!foo.bar<"x">) -> tensor<2x!foo.z>',
    "odd name": f'%0 = "foo.b ar"(%a) : ({T}) -> {T}',
    "no dialect": f'%0 = "foo"(%a) : ({T}) -> {T}',
    "reference": f'%0 = "foo.bar"(%a) {{callee = @g, all = [@g]}} : ({T}) -> {T}',
    "dynamic result": f'%0 = "foo.bar"(%a) : ({T}) -> tensor<?xf32>',
    "several regions": '"foo.bar"() ({ "foo.next"()[^end] : () -> ()\n  ^end: "foo.end"() : () -> () }, {}) : () -> ()',
}  # fmt: skip
UNKNOWN_CASES = {name: _main(lines, before=HELPER) for name, lines in UNKNOWN_LINES.items()}
