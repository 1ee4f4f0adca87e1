"""What `docs/differences.md` says of modules that no file-check holds: what the reference does, and what we do."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from support.reference import jaxlib_version

from .compare import our_outcome, reference_pipeline
from .reference_process import Died, ReferenceProcess, Refused

MIXED_RANKS = """
func.func @main(%a: tensor<4x8xf32>, %b: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %0:2 = "stablehlo.all_to_all"(%a, %b) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<4x8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<4xf32>
}"""
DECLARATION = """
sdy.mesh @m = <["x"=2]>
func.func private @f(tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}"""
INLINED_MESH = """
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
IDENTITY = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  %1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.sine %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}"""
SLICE_IN_A_REGION = """
sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{}]>}, %i: tensor<i32>)
    -> (tensor<8xf32>, tensor<8xf32>) {
  %1 = sdy.all_reduce {"a"} %x out_sharding=<@m, [{}]> : tensor<8xf32>
  %2 = "stablehlo.case"(%i) ({
    %4 = sdy.all_slice [{"a"}] %1 out_sharding=<@m, [{"a"}]> : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  %3 = sdy.all_slice [{"a"}] %1 out_sharding=<@m, [{"a"}]> : tensor<8xf32>
  return %2, %3 : tensor<8xf32>, tensor<8xf32>
}"""
CALLED_TWICE = """
sdy.mesh @m = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f(%0, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @f(%x: tensor<8xf32>, %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %y : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
PARTS_THAT_DO_NOT_FIT = """
sdy.mesh @m = <["a"=12]>
func.func @main(%x: tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(2)3}]>})
    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)3}]>}) {
  %0 = sdy.collective_permute %x out_sharding=<@m, [{"a":(1)3}]> : tensor<12xf32>
  return %0 : tensor<12xf32>
}"""
THREE_INTO_ONE = """
sdy.mesh @m = <["b"=4, "c"=6]>
func.func @main(%x: tensor<4x3x2xf32>) -> tensor<24x1xf32> {
  %0 = stablehlo.reshape %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"c"}, {"b"}]>]>} :
    (tensor<4x3x2xf32>) -> tensor<24x1xf32>
  return %0 : tensor<24x1xf32>
}"""
FUNCTION_PASSES = (
    "sdy-close-shardings",
    "sdy-inline-meshes",
    "sdy-insert-explicit-reshards",
    "sdy-lift-inlined-meshes",
    "sdy-propagate-to-func-results",
    "sdy-update-non-divisible-input-output-shardings",
)


def body(text: str | None) -> list[str]:
    """The names of the ops in a printed module."""
    assert text is not None
    return re.findall(r'"([a-z_]+\.[a-z_]+)"\(', text)


def test_collectives_over_tensors_of_different_ranks_have_no_rule(reference: ReferenceProcess) -> None:
    pipeline = "sdy-populate-op-sharding-rules"
    with pytest.raises(Died):
        reference.run(MIXED_RANKS, reference_pipeline(pipeline))
    text = our_outcome(MIXED_RANKS, pipeline).text
    assert "stablehlo.all_to_all" in body(text)
    assert "sharding_rule" not in str(text)


@pytest.mark.parametrize("pipeline", FUNCTION_PASSES)
def test_declarations_are_passed_over(pipeline: str) -> None:
    # The reference reads what is not there: whether that ends its process depends on what it did before.
    code = "import sys; from support.reference import run_reference; run_reference(*sys.argv[1:])"
    command = [sys.executable, "-c", code, DECLARATION, reference_pipeline(pipeline)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment, capture_output=True).returncode < 0
    text = our_outcome(DECLARATION, pipeline).text
    assert re.search(r'"func.func"\(\) <\{arg_attrs = \[\{sdy.sharding = #sdy.sharding<.*, \[\{"x"\}\]>', str(text))
    assert body(text)[-3:] == ["func.func", "func.func", "func.return"]


def test_inlined_meshes_need_not_be_lifted_to_propagate(reference: ReferenceProcess) -> None:
    with pytest.raises(Died):
        reference.run(INLINED_MESH, "sdy-basic-propagate")
    text = our_outcome(INLINED_MESH, "sdy-basic-propagate").text
    assert '"stablehlo.sine"(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=2]>, [{"x", ?}]>]>}' in str(
        text
    )


@pytest.mark.parametrize("is_full", ["false", "true"])
def test_inlined_meshes_need_not_be_lifted_to_insert_reshards(is_full: str, reference: ReferenceProcess) -> None:
    pipeline = f"sdy-insert-explicit-reshards{{enable-full-version={is_full}}}"
    with pytest.raises(Died):
        reference.run(INLINED_MESH, reference_pipeline(pipeline))
    text = str(our_outcome(INLINED_MESH, pipeline).text)
    lifted = our_outcome(INLINED_MESH, f"sdy-lift-inlined-meshes,{pipeline},sdy-inline-meshes").text
    assert text == lifted
    assert text.count("sdy.reshard") == (is_full == "true")


def test_three_dimensions_may_become_one_whose_axes_do_not_fit_them(reference: ReferenceProcess) -> None:
    pipeline = "sdy-insert-explicit-reshards{enable-full-version=true}"
    with pytest.raises(Died):
        reference.run(THREE_INTO_ONE, reference_pipeline(pipeline))
    shardings = re.findall(r'"sdy.reshard".*<@m, (\[.*?\])>', str(our_outcome(THREE_INTO_ONE, pipeline).text))
    assert shardings == ['[{"c":(1)2, "b":(1)2}, {"c":(2)3}, {}]', '[{"c"}, {"b"}]', "[{}, {}]"]


def test_a_function_with_some_arguments_sharded_may_be_called_twice(reference: ReferenceProcess) -> None:
    pipeline = "sdy-import-func-calls{add-data-flow-edges-on-named-computations=false}"
    with pytest.raises(Died):
        reference.run(CALLED_TWICE, pipeline)
    shardings = re.findall(r"in_shardings = (.*?), name", str(our_outcome(CALLED_TWICE, pipeline).text))
    assert shardings == ['#sdy.sharding_per_value<[<@m, [{?}]>, <@m, [{"a"}]>]>'] * 2
    once = CALLED_TWICE.replace("%1 = call @f(%0, %x)", "%1 = stablehlo.add %0, %x").replace(
        "%x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>\n  return %1", "%x : tensor<8xf32>\n  return %1"
    )
    assert shardings[0] in reference.run(once, pipeline)


def test_slices_in_different_regions_make_no_reduce_scatter(reference: ReferenceProcess) -> None:
    pipeline = "canonicalize{enable-patterns=sdy-collective}"
    with pytest.raises(Refused, match="does not dominate this use"):
        reference.run(SLICE_IN_A_REGION, pipeline)
    found = body(our_outcome(SLICE_IN_A_REGION, pipeline).text)
    assert found.count("sdy.all_slice") == 2
    assert "sdy.all_reduce" in found and "sdy.reduce_scatter" not in found


def test_an_identity_called_on_its_own_result_ends(reference: ReferenceProcess) -> None:
    with pytest.raises(Died):
        reference.run(IDENTITY, "sdy-basic-propagate")
    text = our_outcome(IDENTITY, "sdy-basic-propagate").text
    assert '"stablehlo.sine"(%arg1) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", ?}]>]>}' in str(text)


@pytest.mark.skipif(jaxlib_version() < (0, 12), reason="made for the newest reference")
def test_every_device_gets_a_shard_where_parts_of_an_axis_do_not_fit(reference: ReferenceProcess) -> None:
    pipeline = "sdy-convert-global-to-local{partition-count=12}"
    with pytest.raises(Refused, match="duplicate targets"):
        reference.run(PARTS_THAT_DO_NOT_FIT, pipeline)
    text = str(our_outcome(PARTS_THAT_DO_NOT_FIT, pipeline).text)
    (pairs,) = re.findall(r"source_target_pairs = dense<\[(.*?)\]> : tensor<12x2xi64>", text)
    found = [tuple(map(int, pair.split(", "))) for pair in re.findall(r"\[([^\[\]]*)\]", pairs)]
    assert [source for source, _ in found] == list(range(12)) == sorted(target for _, target in found)
    assert all(source // 2 % 3 == target // 4 for source, target in found)
