from __future__ import annotations

import pytest

from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.purity import is_pure

from .reading import find, main, read

MESH = 'sdy.mesh @m = <["x"=2]>'
T = "tensor<8xf32>"


def op(name: str, **attrs: object) -> Op:
    return Op(name, attrs=attrs)


@pytest.mark.parametrize(
    "name",
    [
        "stablehlo.add", "stablehlo.constant", "stablehlo.dot_general", "stablehlo.iota", "stablehlo.while",
        "stablehlo.partition_id", "stablehlo.rng_bit_generator", "stablehlo.sort", "stablehlo.optimization_barrier",
        "stablehlo.create_token", "stablehlo.cholesky", "chlo.top_k", "mhlo.topk", "arith.addi", "math.sin",
        "complex.mul", "tensor.empty", "shape.shape_of", "sdy.constant", "sdy.reshard", "sdy.propagation_barrier",
        "mhlo.tanh", "mhlo.all_to_all", "shape.const_witness", "scf.if", "scf.for", "builtin.unrealized_conversion_cast",
        "func.constant", "ub.poison",
    ],
)  # fmt: skip
def test_ops_without_effects(name: str) -> None:
    assert is_pure(op(name))


@pytest.mark.parametrize(
    "name",
    [
        "stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.all_to_all", "stablehlo.collective_permute",
        "stablehlo.collective_broadcast", "stablehlo.reduce_scatter", "stablehlo.infeed", "stablehlo.outfeed",
        "stablehlo.send", "stablehlo.recv", "stablehlo.rng", "stablehlo.composite", "stablehlo.async_start",
        "stablehlo.async_done", "sdy.sharding_constraint", "sdy.data_flow_edge", "sdy.sharding_group", "sdy.all_gather",
        "sdy.all_reduce", "sdy.mesh", "func.call", "func.func", "func.return", "stablehlo.return", "sdy.return",
        "cf.br", "memref.load", "t.op", "unknown", "mhlo.custom_call", "mhlo.all_reduce", "mhlo.infeed", "mhlo.fusion",
        "mhlo.xla.rng_get_and_update_state", "mhlo.partition_id", "shape.cstr_require", "scf.yield", "scf.condition",
        "tensor.yield", "shape.assuming_yield", "cf.switch", "llvm.call", "gpu.barrier", "builtin.module",
    ],
)  # fmt: skip
def test_ops_with_effects(name: str) -> None:
    assert not is_pure(op(name))


@pytest.mark.parametrize(
    ("attributes", "pure"), [("", True), ("has_side_effect = false", True), ("has_side_effect = true", False)]
)
def test_custom_calls_say_whether_they_have_effects(attributes: str, pure: bool) -> None:
    root = main(f"%0 = stablehlo.custom_call @f(%a) {{{attributes}}} : ({T}) -> {T}")
    assert is_pure(find(root, "stablehlo.custom_call")) == pure


LOOP = f"""%0 = stablehlo.while(%i = %a) : {T} cond {{
  %c = stablehlo.constant dense<true> : tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  BODY
  stablehlo.return %x : {T}
}}"""
NAMED = f'%0 = sdy.named_computation<"n">(%a) (%i: {T}) {{\n  BODY\n  sdy.return %x : {T}\n}} : ({T}) -> {T}'
MANUAL = (
    f'%0 = sdy.manual_computation(%a) in_shardings=[<@m, [{{}}]>] out_shardings=[<@m, [{{}}]>] manual_axes={{"x"}} '
    f"(%i: {T}) {{\n  BODY\n  sdy.return %x : {T}\n}} : ({T}) -> {T}"
)


SCF = f"%0 = scf.execute_region -> {T} {{\n  BODY\n  scf.yield %x : {T}\n}}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("stablehlo.while", LOOP),
        ("sdy.named_computation", NAMED),
        ("sdy.manual_computation", MANUAL),
        ("scf.execute_region", SCF),
    ],
)
def test_what_an_op_holds_counts(name: str, text: str) -> None:
    sine = f"%x = stablehlo.sine %i : {T}"
    constraint = f"%x = sdy.sharding_constraint %i <@m, [{{}}]> : {T}"
    inner = NAMED.replace("%0", "%x").replace("(%a)", "(%i)").replace("(%i: ", "(%j: ")
    inner = inner.replace("BODY", f"%y = sdy.sharding_constraint %j <@m, [{{}}]> : {T}").replace("%x :", "%y :")
    for body, pure in ((sine, True), (constraint, False), (inner, False)):
        body = body.replace("%i ", "%a ").replace("%i)", "%a)") if text is SCF else body
        root = main(text.replace("BODY", body), before=MESH)
        assert is_pure(find(root, name)) == pure


def test_looking_changes_nothing() -> None:
    root = read(f"func.func @f(%a: {T}) {{ %0 = stablehlo.sine %a : {T} return }}")
    before = [inner.name for inner in walk(root)]
    assert not is_pure(root)
    assert [inner.name for inner in walk(root)] == before
