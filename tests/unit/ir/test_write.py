from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import pytest
from jaxlib.mlir import ir

from pyshardy.core.notation import parse_sharding
from pyshardy.errors import UnsupportedVersionError
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.context import make_context
from pyshardy.ir.functions import set_arg_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.read import read_module
from pyshardy.ir.write import OpByOpWarning, write_module
from support.reference import jaxlib_version

from .reading import find

PROGRAMS = {
    "empty": "",
    "attributes of the module": "module @name attributes {mhlo.num_partitions = 8 : i32, my.flag} {}",
    "modules in a module": "module @outer { module @inner { func.func @f() { return } } func.func private @g() }",
    "meshes": 'sdy.mesh @"a b" = <["x\\22"=2], device_ids=[1, 0]> {my.note = [1 : i8]} sdy.mesh @e = <[]> '
    "sdy.mesh @one = <[], device_ids=[3]>",
    "declarations": "func.func private @f(tensor<8xf32> {my.a}, i32) -> (tensor<8xf32> {my.b = 2 : i64}, i1)",
    "visibility": 'func.func nested @f() attributes {execution_thread = "host", no_inline} { return }',
    "types": """func.func @f(%a: tensor<?x4xf32>, %b: tensor<*xf64>, %c: !stablehlo.token,
        %d: tuple<tensor<8xf32>, tuple<i1>>, %e: vector<4xi8>, %f: memref<2x?xindex>, %g: tensor<2xf8E4M3FN>,
        %h: tensor<4xui4>, %i: complex<f64>, %j: none, %k: tensor<8xf32, #stablehlo.bounds<?>>) { return }""".replace(
        "8xf32, #stablehlo.bounds<?>", "?xf32, #stablehlo.bounds<8>"
    ),
    "constants": """func.func @f() {
        %0 = stablehlo.constant dense<[(1.0, 2.0), (3.0, -4.0)]> : tensor<2xcomplex<f32>>
        %1 = stablehlo.constant dense<0xFF800000> : tensor<4xf32>
        %2 = stablehlo.constant dense<[[true, false]]> : tensor<1x2xi1>
        %3 = stablehlo.constant dense<> : tensor<0x3xi32>
        %4 = stablehlo.constant dense<"0x01020304"> : tensor<4xi8>
        %5 = stablehlo.constant dense<1.5> : tensor<2xbf16>
        return
      }""",
    "resources": """func.func @f() {
        %0 = stablehlo.constant dense_resource<blob> : tensor<4xf32>
        return
      }
      {-# dialect_resources: { builtin: { blob: "0x040000000000803F000000400000404000008040" } } #-}""",
    "attributes": """func.func @f(%a: tensor<8xf32>) {
        %0 = stablehlo.custom_call @"quoted name"(%a) {api_version = 4 : i32, backend_config = {a = [1, "x", unit]},
          my.map = affine_map<(d0, d1) -> (d1 + 1)>, my.symbol = @a::@b, my.type = tuple<i32>, my.text = "\\22\\\\\\0A",
          my.array = array<i64: 1, 2>, my.sparse = sparse<[[0]], 1> : tensor<2xi32>, my.number = 0x7FC00000 : f32
        } : (tensor<8xf32>) -> tensor<8xf32>
        return
      }""",
    "branches": """func.func @f(%a: i32, %c: i1) -> i32 {
        cf.cond_br %c, ^bb1(%a : i32), ^bb2
      ^bb1(%b: i32):
        cf.switch %b : i32, [default: ^bb2, 42: ^bb1(%a : i32)]
      ^bb2:
        return %a : i32
      }""",
    "blocks in another order": """func.func @f(%a: i32) -> i32 {
        cf.br ^bb2
      ^bb1:
        return %x : i32
      ^bb2:
        %x = arith.addi %a, %a : i32
        cf.br ^bb1
      }""",
    "regions": """func.func @f(%a: tensor<8xf32>, %z: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.while(%i = %a) : tensor<8xf32> cond {
          %1 = stablehlo.constant dense<true> : tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          stablehlo.return %i : tensor<8xf32>
        }
        %2 = stablehlo.reduce(%0 init: %z) across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
          %3 = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %3 : tensor<f32>
        }
        return %2 : tensor<f32>
      }""",
    "places": """#here = loc("model.py":1:2)
      func.func @f(%a: i32 loc("arg"("x.py":3:4))) -> (i32 {jax.result_info = "y"}) {
        %0 = arith.addi %a, %a : i32 loc(fused<"meta">[#here, "name"])
        %1 = arith.addi %0, %a : i32 loc(callsite("callee" at #here))
        return %1 : i32 loc(unknown)
      } loc(#here)""",
}
UNKNOWN = {
    "ops": '%0:2 = "t.op"() {a = #t.attr<x>, b = !t.type<1>} : () -> (i32, !t.other)\n"t.use"(%0#1) : (!t.other) -> ()',
    "graph": '%0 = "t.a"(%1) : (i32) -> i32\n%1 = "t.b"(%0) : (i32) -> i32',
    "successors": '"t.f"() ({\n"t.br"()[^bb1, ^bb1] : () -> ()\n^bb1:\n"t.ret"() : () -> ()\n}) : () -> ()',
    "empty blocks": '"t.f"() ({\n^bb0(%a: i32):\n}, {\n}) : () -> ()',
    "quantized": "func.func @f(%a: tensor<4x!quant.uniform<i8:f32, 0.5:3>>) { return }",
}
OP_BY_OP = {
    PROGRAMS["resources"]: "it has resources",
    PROGRAMS["blocks in another order"]: "func.return uses a value that it cannot see",
    UNKNOWN["graph"]: "t.a uses a value that it cannot see",
}
"""What bytecode does not hold, with the reason."""
CASES = [(text, False) for text in PROGRAMS.values()] + [(text, True) for text in UNKNOWN.values()]


def warnings_of(text: str) -> AbstractContextManager[object]:
    """That a module is written op by op is said with the reason; any other warning is an error."""
    reason = OP_BY_OP.get(text)
    return nullcontext() if reason is None else pytest.warns(OpByOpWarning, match=f"written op by op: {reason}")


@pytest.mark.parametrize(("text", "unknown"), CASES, ids=[*PROGRAMS, *UNKNOWN])
def test_writing_undoes_reading(text: str, unknown: bool) -> None:
    module = Module.parse(text, allow_unregistered_dialects=unknown)
    written = module.with_root(module.copy_root())
    with warnings_of(text):
        assert written.mlir
    for debug_info in (False, True):
        for generic in (False, True):
            expected = module.text(debug_info=debug_info, generic=generic)
            assert written.text(debug_info=debug_info, generic=generic) == expected
    again = Module.parse(written.bytecode(), allow_unregistered_dialects=unknown)
    assert again.text(debug_info=True) == module.text(debug_info=True)
    with warnings_of(text):
        assert again.with_root(again.copy_root()).text(debug_info=True) == module.text(debug_info=True)


def test_a_change_is_written() -> None:
    module = Module.parse("func.func @main() { return }")
    root = module.copy_root()
    find(root, "func.func").set_attr("sym_name", "other")
    assert "@other" in module.with_root(root).text()


def test_ops_without_a_place() -> None:
    with make_context(), ir.Location.unknown():
        table = AttrTable()
        root = read_module(ir.Module.parse("func.func @main() { return }"), table)
        attrs = {"call_target_name": ir.StringAttr.get("foo")}
        Op("stablehlo.custom_call", attrs=attrs).insert_before(find(root, "func.return"))
        assert "custom_call @foo() : () -> ()" in str(write_module(root, table))


@pytest.mark.skipif(jaxlib_version() >= (0, 12), reason="this dialect knows all kinds of reductions")
def test_what_the_dialect_cannot_hold_is_refused() -> None:
    sharding = parse_sharding('<@m, [{}], unreduced=max{"x"}>')
    module = Module.parse("""sdy.mesh @m = <["x"=2]>
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}) { return }""")
    root = module.copy_root()
    set_arg_sharding(find(root, "func.func"), 0, sharding)
    with pytest.raises(UnsupportedVersionError) as caught, pytest.warns(OpByOpWarning, match="Unable to parse"):
        module.with_root(root).text()
    assert str(caught.value) == (
        'writing an attribute of the sdy dialect: got <@m, [{}], unreduced=max{"x"}>, '
        "needed a jaxlib whose dialect can hold it\n"
        "  try: pip install --upgrade jax jaxlib, to 0.12 or newer"
    )
