"""What pyshardy was not written for gives the reference's result, or a refusal with op and place; nothing gets lost."""

from __future__ import annotations

import re
from contextlib import nullcontext

import pytest

import pyshardy
from pyshardy.errors import InvalidModuleError
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.module import Module
from pyshardy.ir.write import OpByOpWarning
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import parse_pipeline
from support.reference import jaxlib_version

from .reference_process import Died, ReferenceProcess, Refused
from .uncommon_ops import CASES, OP_CASES, UNKNOWN_CASES, UNUSED_CASES

PIPELINE = "sdy-propagation-pipeline"
IS_OLD = jaxlib_version() < (0, 12)
needs_newest = pytest.mark.skipif(IS_OLD, reason="on an older jaxlib the reference itself gives other results")
PLACE = re.compile(r"\n  at -:\d+:\d+$")
SIZE = re.compile(r"looking up the size of an element type: got .*, needed a type of known size\n  at arg\d")
REFUSED = ("tensor.cast", "stablehlo.tuple", "stablehlo.dynamic_reshape", "stablehlo.set_dimension_size")
SILENT = ("stablehlo.infeed", "stablehlo.send")
OF_XLA = ("mhlo.topk",)
"""Ops that the passes alone have no rule for; XLA has one, and so has pyshardy (docs/differences.md)."""
KEPT = (
    "mhlo.custom_call with effect", "mhlo.all_reduce", "mhlo.infeed", "mhlo.fusion", "mhlo.case with effect",
    "stablehlo.custom_call with effect", "stablehlo.case with effect", "scf.if with effect", "shape.cstr_require",
)  # fmt: skip


def parsed(text: str, allow_unregistered: bool = False) -> Module:
    return Module.parse(text, allow_unregistered_dialects=allow_unregistered)


def printed(module: Module) -> str:
    return module.text(generic=True, debug_info=True).strip()


def check(module: Module, text: str, reference: ReferenceProcess, allow_unregistered: bool = False) -> None:
    """Both give the same module, or both refuse it."""
    try:
        expected = reference.run(text, PIPELINE, allow_unregistered).strip()
    except Refused:
        with pytest.raises(InvalidModuleError, match=r"^'[a-z_]+\.\w+' op ") as caught:
            run_passes(module, parse_pipeline(PIPELINE))
        assert PLACE.search(str(caught.value))
    else:
        result = run_passes(module, parse_pipeline(PIPELINE))
        result.verify()
        assert printed(result) == expected


OP_BY_OP = ("a identity as attribute", "a resource as attribute", "resource")
"""What is written op by op, with a warning: bytecode cannot tell all of it."""


@needs_newest
@pytest.mark.parametrize("name", CASES)
def test_the_result_is_that_of_the_reference(name: str, reference: ReferenceProcess) -> None:
    with pytest.warns(OpByOpWarning) if name in OP_BY_OP else nullcontext():
        check(parsed(CASES[name]), CASES[name], reference)


@needs_newest
@pytest.mark.parametrize("name", UNKNOWN_CASES)
def test_the_result_with_ops_of_unknown_dialects_is_that_of_the_reference(
    name: str, reference: ReferenceProcess
) -> None:
    check(parsed(UNKNOWN_CASES[name], True), UNKNOWN_CASES[name], reference, True)


@pytest.mark.parametrize("name", [*CASES, *UNKNOWN_CASES])
def test_reading_and_writing_loses_nothing(name: str) -> None:
    text = UNKNOWN_CASES.get(name) or CASES[name]
    module = parsed(text, name in UNKNOWN_CASES)
    with pytest.warns(OpByOpWarning, match="resources") if "resource" in name else nullcontext():
        assert printed(module.with_root(module.copy_root())) == printed(module)


@pytest.mark.parametrize("name", CASES)
def test_the_tables_are_shown_or_say_which_op_or_input_cannot_be(name: str) -> None:
    module = parsed(CASES[name])
    try:
        with pytest.warns(OpByOpWarning) if name in OP_BY_OP else nullcontext():
            shown = str(pyshardy.propagate(module))
    except InvalidModuleError as error:
        assert PLACE.search(str(error)) or SIZE.fullmatch(str(error))
    else:
        assert "inputs" in shown and "devices: " in shown


WITHOUT_RULE = [name for name in OP_CASES if name not in (*REFUSED, *SILENT, *OF_XLA)]


@pytest.mark.parametrize("name", WITHOUT_RULE)
def test_a_kind_of_op_without_rule_is_named_in_one_warning_with_its_place(name: str) -> None:
    diagnostics = Diagnostics()
    run_passes(parsed(OP_CASES[name]), parse_pipeline(PIPELINE), diagnostics)
    kind = re.escape({"a target with odd characters": "custom call @odd"}.get(name, name))
    kind = "custom call @unknown" if name == "stablehlo.custom_call" else kind
    warning = rf"-:\d+:\d+: warning: no sharding rule is known for {kind}\b(?!_).* \(\d in the module\)"
    assert sum(re.match(warning, str(message), re.DOTALL) is not None for message in diagnostics.messages) == 1


@pytest.mark.parametrize("name", SILENT)
def test_an_op_that_is_known_to_have_no_rule_gets_no_warning(name: str) -> None:
    diagnostics = Diagnostics()
    run_passes(parsed(OP_CASES[name]), parse_pipeline(PIPELINE), diagnostics)
    assert diagnostics.messages == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_result_that_propagation_cannot_hold_is_refused_at_its_op(name: str) -> None:
    with pytest.raises(
        InvalidModuleError, match=rf"^'{name}' op has a result of type .*: propagation does not"
    ) as caught:
        run_passes(parsed(OP_CASES[name]), parse_pipeline(PIPELINE))
    assert PLACE.search(str(caught.value))


def test_warnings_of_a_summary_say_where() -> None:
    summary = pyshardy.propagate(parsed(OP_CASES["chlo.tan"]), view="stablehlo").summary
    assert summary.warnings == (
        "-:3:8: no sharding rule is known for chlo.tan (1 in the module): nothing propagates through it; its results, "
        "128 B, stay whole unless others shard them",
    )


def test_unused_ops_stay_if_they_may_have_an_effect() -> None:
    """The same as above, on every jaxlib: what the reference keeps is not lost."""
    for name in KEPT:
        result = run_passes(parsed(UNUSED_CASES[f"unused {name}"]), parse_pipeline(PIPELINE))
        assert f'"{name.partition(" ")[0]}"(' in printed(result), name
    for name in ("mhlo.tanh", "scf.parallel", "stablehlo.custom_call without results"):
        result = run_passes(parsed(UNUSED_CASES[f"unused {name}"]), parse_pipeline(PIPELINE))
        assert f'"{name.partition(" ")[0]}"(' not in printed(result), name


@pytest.mark.parametrize("place", ["%b", "%0"])
def test_a_data_flow_edge_without_data_flow_is_refused_at_its_op(place: str, reference: ReferenceProcess) -> None:
    text = OP_CASES["mhlo.tanh"].replace("  return", f"  %1 = sdy.data_flow_edge {place} : tensor<8x4xf32>\n  return")
    with pytest.raises(Died):
        reference.run(text, PIPELINE)
    with pytest.raises(
        InvalidModuleError, match="^'sdy.data_flow_edge' op is on a value of '.*', an op without"
    ) as caught:
        run_passes(parsed(text), parse_pipeline(PIPELINE))
    assert PLACE.search(str(caught.value))


@pytest.mark.parametrize("line", ['"foo.bar"() ({}) : () -> ()', '"foo.bar"() ({ "foo.end"() : () -> () }) : () -> ()'])
def test_an_unknown_op_with_a_region_is_propagated_around(line: str, reference: ReferenceProcess) -> None:
    text = OP_CASES["mhlo.tanh"].replace("  return", f"  {line}\n  return")
    with pytest.raises(Refused, match="potentially unknown symbol table"):
        reference.run(text, PIPELINE, allow_unregistered=True)
    diagnostics = Diagnostics()
    result = run_passes(parsed(text, True), parse_pipeline(PIPELINE), diagnostics)
    assert '"foo.bar"() ({' in printed(result)
    assert any("no sharding rule is known for foo.bar" in str(message) for message in diagnostics.messages)


@pytest.mark.parametrize(
    "line",
    [
        "%0 = affine.apply affine_map<(d0) -> (d0 + 3)>(%ix)",
        "%0 = gpu.thread_id x",
        "%0 = llvm.mlir.undef : i32",
        "%0 = memref.alloc() : memref<8x4xf32>",
        "%0 = vector.broadcast %ix : index to vector<4xindex>",
    ],
)
def test_an_unused_op_of_a_dialect_whose_effects_are_unknown_stays_with_a_warning(
    line: str, reference: ReferenceProcess
) -> None:
    text = OP_CASES["mhlo.tanh"].replace("  return", f"  {line}\n  return".replace("%0", "%9"))
    name = line.split()[2].partition("(")[0]
    assert name not in reference.run(text, PIPELINE)
    diagnostics = Diagnostics()
    result = run_passes(parsed(text), parse_pipeline(PIPELINE), diagnostics)
    assert f'"{name}"(' in printed(result)
    assert any(f"no sharding rule is known for {name} " in str(message) for message in diagnostics.messages)


BLOCKS = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %s: i1) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  cf.cond_br %s, ^next(%0 : tensor<8xf32>), ^last
^next(%b: tensor<8xf32>):
  %1 = stablehlo.cosine %b : tensor<8xf32>
  cf.br ^last
^last:
  return %0 : tensor<8xf32>
}"""


def test_blocks_of_a_function_are_propagated_one_by_one(reference: ReferenceProcess) -> None:
    with pytest.raises(Died):
        reference.run(BLOCKS, PIPELINE)
    text = run_passes(parsed(BLOCKS), parse_pipeline(PIPELINE)).text(generic=True)
    assert '"stablehlo.sine"(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>}' in text
    assert '"cf.cond_br"(%arg1, %0)[^bb1, ^bb2]' in text
    assert "cosine" not in text
