"""`pyshardy-make-partitionable`: warnings, places and options; tests/filecheck/make_partitionable shows what it does."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.ir.diagnostics import Diagnostics, PassError
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import scope_of, source_position
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.passes.pipeline import run_pipeline

NAME = "pyshardy-make-partitionable"
TOP_K = """sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %values, %indices = chlo.top_k(%a, k = 2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>}
    : tensor<8x8xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>) loc("jit(f)/top_k"("f.py":3:4))
  return %values : tensor<8x2xf32>
}"""


def after(text: str, options: str = "") -> tuple[Module, Diagnostics]:
    diagnostics = Diagnostics()
    return run_pipeline(Module.parse(text), NAME + options, diagnostics), diagnostics


def test_what_every_device_holds_more_is_said_at_the_op() -> None:
    _, diagnostics = after(TOP_K)
    (message,) = diagnostics.messages
    held = (8 * 8 + 8 * 2) * 4 // 2
    assert message.message == (
        "'chlo.top_k' cannot run on shards and runs on whole tensors instead: "
        f"every device holds {held} B more than its share"
    )
    assert source_position(message.location) == ("f.py", 3, 4)


def test_a_custom_call_is_named_by_its_target() -> None:
    sharded = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}'
    _, diagnostics = after(f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<8x8xf32> {{
      %0 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {sharded} : (tensor<8x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}""")
    (message,) = diagnostics.messages
    assert message.message.startswith("'stablehlo.custom_call @lapack_spotrf_ffi' cannot run on shards")


def test_reshards_say_what_they_are_for() -> None:
    module, _ = after(TOP_K)
    reshards = [op for op in walk(main_function(module.root)) if op.name == "sdy.reshard"]
    assert [str(op.need) for op in reshards] == [
        "reshard of operand 0 of chlo.top_k", "reshard of result 0 of chlo.top_k",
    ]  # fmt: skip
    assert {scope_of(op.location) for op in reshards} == {"jit(f)/top_k"}
    assert {source_position(op.location) for op in reshards} == {("f.py", 3, 4)}


def test_it_may_leave_ops_alone() -> None:
    module, diagnostics = after(TOP_K, "{replicate=false}")
    assert module.text() == Module.parse(TOP_K).text()
    assert not diagnostics.messages


def test_then_partitioning_refuses_them() -> None:
    options = pyshardy.PartitionOptions(replicate_unsupported=False)
    with pytest.raises(PassError, match="'chlo.top_k' op") as caught:
        pyshardy.partition(pyshardy.load(TOP_K), options, view="stablehlo")
    assert '"f.py":3:4' in str(caught.value)


def test_a_program_that_is_fine_stays_as_it_is() -> None:
    text = TOP_K.replace('[{"x"}, {}]', "[{}, {}]")
    module, diagnostics = after(text)
    assert module.text() == Module.parse(text).text()
    assert not diagnostics.messages


def test_a_second_time_changes_nothing() -> None:
    once, _ = after(TOP_K)
    twice, diagnostics = after(once.text())
    assert twice.text() == once.text()
    assert not diagnostics.messages


def test_a_single_device_is_no_reason() -> None:
    text = """sdy.mesh @one = <[], device_ids=[0]>
    func.func @main(%a: tensor<f32> {sdy.sharding = #sdy.sharding<@one, []>}) -> tensor<f32> {
      %0 = stablehlo.custom_call @mine(%a) {sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    module, diagnostics = after(text)
    assert module.text() == Module.parse(text).text()
    assert not diagnostics.messages


@pytest.mark.parametrize("replicate", ["true", "false"])
def test_a_partitioner_that_is_not_known_is_refused_even_for_whole_tensors(replicate: str) -> None:
    text = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @CustomSPMDPartitioning(%a) : (tensor<8xf32>) -> tensor<8xf32> loc("f.py":3:4)
      return %0 : tensor<8xf32>
    }"""
    with pytest.raises(PassError) as caught:
        after(text, f"{{replicate={replicate}}}")
    assert str(caught.value) == (
        "'stablehlo.custom_call' op calls @CustomSPMDPartitioning, a custom partitioner in Python; "
        "load the function, not its text\n  at f.py:3:4"
    )
