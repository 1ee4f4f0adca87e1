"""Modules as XLA takes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyshardy
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.runnable import partitionable, sequential
from pyshardy.runtime.stacked import stacked

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x8xf32>"
LOOP = f"""
func.func @main(%a: {T}, %b: {T}) -> {T} {{
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = stablehlo.while(%i = %n, %v = %a, %same = %b) : tensor<i32>, {T}, {T}
    attributes {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{{"x"}}, {{}}]>, <@mesh, [{{}}, {{"y"}}]>]>}}
  cond {{
    %c = stablehlo.constant dense<0> : tensor<i32>
    %p = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %c = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.subtract %i, %c : tensor<i32>
    %w = stablehlo.add %v, %same : {T}
    stablehlo.return %j, %w, %same : tensor<i32>, {T}, {T}
  }}
  return %0#1 : {T}
}}
"""


def arg(sharding: str = '[{"x"}, {"y"}]') -> str:
    return f"%a: {T} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"


def main(body: str, sharding: str = '[{"x"}, {"y"}]') -> Module:
    """A module whose main function computes %r from %a."""
    return Module.parse(f"{MESH}func.func @main({arg(sharding)}) -> {T} {{\n{body} : {T}\nreturn %r : {T} }}")


def names(module: Module) -> list[str]:
    return [op.name for op in walk(module.root)]


RESHARDS = [
    ('[{"x"}, {"y"}]', '%r = sdy.reshard %a <@mesh, [{}, {"x"}]>', '[{}, {"x"}]'),
    ('[{"x"}, {}]', '%r = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]>', "[{}, {}]"),
    ("[{}, {}]", '%r = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]>', '[{"x"}, {}]'),
    ('[{"x"}, {}]', '%r = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]>', '[{}, {"x"}]'),
    ('[{"x"}, {}]', '%r = sdy.collective_permute %a out_sharding=<@mesh, [{"x":(2)2, "x":(1)2}, {}]>',
     '[{"x":(2)2, "x":(1)2}, {}]'),
    ('[{}, {}], unreduced={"x"}', '%r = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}, {}]>', "[{}, {}]"),
    ('[{}, {}], unreduced={"x"}', '%r = sdy.reduce_scatter [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]>',
     '[{"x"}, {}]'),
    ('[{"x"}, {}]', '%r = sdy.sharded_to_unreduced [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x"}>',
     "[{}, {}]"),
    ("[{}, {}]", '%r = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{}, {}], unreduced={"y"}>',
     "[{}, {}]"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "line", "after"), RESHARDS)
def test_what_changes_a_sharding_becomes_a_constraint(before: str, line: str, after: str) -> None:
    module = main(line, before)
    found = partitionable(module, 8)
    found.verify()
    assert names(found).count("sdy.sharding_constraint") == 1
    assert f"sdy.sharding_constraint %arg0 <@mesh, {after}>" in found.text()
    assert not set(names(found)) & {re.search(r"sdy\.\w+", line)[0]} or "sdy.sharding_constraint" in line


@pytest.mark.parametrize(("before", "line", "after"), RESHARDS)
def test_for_one_device_it_goes_away(before: str, line: str, after: str) -> None:
    found = sequential(main(line, before))
    found.verify()
    assert names(found) == ["builtin.module", "func.func", "func.return"]
    assert "sdy" not in found.text()


@pytest.mark.parametrize(
    "line",
    [
        '%r = sdy.sharding_constraint %a <@mesh, [{}, {"x"}]>',
        "%r = sdy.propagation_barrier %a allowed_direction=NONE",
        f"sdy.sharding_group %a group_id=0 : {T}\n%r = stablehlo.tanh %a",
        f"%0 = stablehlo.optimization_barrier %a : {T}\n%r = sdy.data_flow_edge %0",
        "%r = sdy.func_data_flow_edge %a",
    ],
)
def test_other_ops_about_shardings(line: str) -> None:
    kept = re.search(r"sdy\.\w+", line)[0]
    assert kept in names(partitionable(main(line), 8))
    assert not [name for name in names(sequential(main(line))) if name.startswith("sdy.")]


def test_constants_are_plain() -> None:
    module = main("%r = sdy.constant dense<1.0>")
    for found in (partitionable(module, 8), sequential(module)):
        assert "sdy.constant" not in found.text()
        assert "stablehlo.constant" in found.text()


def test_a_loop_has_constraints_instead_of_a_list_of_shardings() -> None:
    found = partitionable(Module.parse(MESH + LOOP), 8)
    found.verify()
    (loop,) = [op for op in walk(found.root) if op.name == "stablehlo.while"]
    assert "sdy.sharding" not in loop.attrs
    (constraint,) = [op for op in walk(found.root) if op.name == "sdy.sharding_constraint"]
    assert constraint.operands == (loop.results[1],)  # the only result that is used
    assert str(constraint.attrs["sharding"]) == '<@mesh, [{"x"}, {}]>'


def test_a_loop_without_shardings_stays_as_it_is() -> None:
    text = MESH + re.sub(r"attributes \{.*\}", "", LOOP)
    assert "sdy.sharding_constraint" not in names(partitionable(Module.parse(text), 8))


def test_all_that_names_a_sharding_goes_away() -> None:
    text = MESH + LOOP.replace(f"%a: {T}", arg()).replace(
        f"-> {T} {{\n  %n", f'-> ({T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}}) {{\n  %n'
    )
    assert text.count("sdy.sharding =") == 3
    assert "sdy" not in sequential(Module.parse(text)).text()


def test_named_computations_become_functions() -> None:
    module = main(
        f'%r = sdy.named_computation<"blk">(%a) (%b: {T}) {{\n%0 = stablehlo.tanh %b : {T}\nsdy.return %0 : {T}\n}} : ({T}) -> {T} //'
    )
    found = sequential(module)
    found.verify()
    assert "func.call" in names(found)
    assert "sdy" not in re.sub(r'sdy\.original_\w+ = "\w+"', "", found.text())


def test_manual_computations_are_refused() -> None:
    module = Module.parse(f"""{MESH}func.func @main(%a: {T}) -> {T} {{
      %r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
        manual_axes={{"x"}} (%b: tensor<2x8xf32>) {{ sdy.return %b : tensor<2x8xf32> }} : ({T}) -> {T}
      return %r : {T} }}""")
    assert "sdy.manual_computation" in names(partitionable(module, 8))
    with pytest.raises(ShardyError, match=r"got a manual computation \(shard_map\).*\n  at -:3:12"):
        sequential(module)


@pytest.mark.parametrize("head", ["func.func @step", "func.func private @step", "func.func public @main"])
def test_the_main_function_and_the_devices_are_named(head: str) -> None:
    module = Module.parse(f"{MESH}{head}({arg()}) -> {T} {{ return %a : {T} }}")
    before = module.text()
    for found, count in ((partitionable(module, 8), 8), (sequential(module), 1)):
        found.verify()
        assert f"module attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32}}" in found.text()
        assert "func.func @main(" in found.text()
    assert module.text() == before


@pytest.mark.parametrize(("given", "expected"), [("dimension = -2 : i64", 0), ("", 1), ("dimension = 0 : i64", 0)])
def test_sorted_dimensions_are_counted_from_the_front(given: str, expected: int) -> None:
    """XLA does not know what -2 means."""
    sort = f"""%r = "stablehlo.sort"(%a) <{{{given}}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %c = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1> }}) : ({T}) -> {T}
    %s = stablehlo.negate %r"""
    module = main(sort.replace("%r", "%q").replace("%s", "%r"))
    for made in (sequential(module), partitionable(module, 8), stacked(module, 4)):
        (op,) = [op for op in walk(made.root) if op.name == "stablehlo.sort"]
        assert op.attrs["dimension"].value == expected


def test_buffers_with_anything_in_them_hold_zeros() -> None:
    module = main(f"%b = stablehlo.custom_call @AllocateBuffer() : () -> {T}\n  %r = stablehlo.add %a, %b")
    for made in (sequential(module), partitionable(module, 8), stacked(module, 4)):
        assert "stablehlo.custom_call" not in names(made)
        made.verify()
    value = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(run_on_one_device(module, [value])[0], value)


@pytest.mark.parametrize("make", [lambda module: partitionable(module, 2), sequential])
def test_a_custom_call_of_what_is_only_declared_is_refused(make: Any) -> None:
    """XLA ends the process over it."""
    text = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @foo(%a) {called_computations = [@there, @called]} : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @there() { return }
    func.func private @unused()
    func.func private @called()"""
    with pytest.raises(
        ShardyError, match="got a custom call of @called, which is only declared, needed a function with a body"
    ):
        make(Module.parse(text))
    make(Module.parse(text.replace("private @called()", "private @called() { return }")))


@pytest.mark.parametrize("make", [lambda module: partitionable(module, 2), sequential])
def test_a_call_of_what_is_only_declared_is_refused(make: Any) -> None:
    text = """func.func @main() { call @there() : () -> () call @called() : () -> () return }
    func.func private @there() { return }
    func.func private @called()"""
    with pytest.raises(
        ShardyError, match="got a call of @called, which is only declared, needed a function with a body"
    ):
        make(Module.parse(text))
    make(Module.parse(text.replace("private @called()", "private @called() { return }")))


def test_ops_beside_the_functions_go_away() -> None:
    text = "%0 = stablehlo.constant dense<1.0> : tensor<2xf32>\n%1 = stablehlo.negate %0 : tensor<2xf32>\n"
    module = pyshardy.load(text + "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    assert "stablehlo" not in sequential(module).text()
    np.testing.assert_array_equal(run_on_one_device(module, [np.float32([1, 2])])[0], [1, 2])


@pytest.mark.parametrize("element", ["i8", "i1", "f8E5M2"])
def test_random_numbers_over_which_xla_ends_the_process_are_refused(element: str) -> None:
    type_ = f"tensor<8x{element}>"
    text = f"""func.func @main(%a: tensor<{element}>, %b: tensor<1xi64>) -> {type_} {{
      %0 = stablehlo.rng %a, %a, %b, distribution = UNIFORM : (tensor<{element}>, tensor<{element}>, tensor<1xi64>) -> {type_}
      return %0 : {type_}
    }}"""
    with pytest.raises(ShardyError, match=f"got 'stablehlo.rng' of {element}, needed one of bf16, f16, f32"):
        sequential(pyshardy.load(text))
    assert "stablehlo.rng" in sequential(pyshardy.load(text.replace(element, "f32"))).text()


def test_what_propagation_noted_goes_away() -> None:
    text = """sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>,
    sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [result-0]}]}]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    assert "sdy." not in sequential(pyshardy.load(text)).text()
