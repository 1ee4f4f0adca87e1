"""Collectives in the program itself: kept where they fit, reshards where their operand is sharded otherwise by then."""

from __future__ import annotations

import numpy as np
import pytest

import pyshardy
import pyshardy.ir.functions
from pyshardy import Module
from pyshardy.passes.pipeline import run_pipeline

MESH = 'sdy.mesh @mesh = <["a"=4, "b"=2]>'
FITTING = {
    '{"a"}': 'sdy.all_gather [{"a"}, {}] %x out_sharding=<@mesh, [{}, {}]>',
    "": 'sdy.all_slice [{"a"}, {}] %x out_sharding=<@mesh, [{"a"}, {}]>',
    '{"a":(1)2}': 'sdy.all_slice [{"a":(2)2}, {}] %x out_sharding=<@mesh, [{"a"}, {}]>',
    '{"b", "a"}': 'sdy.all_to_all [{"a"}: 0->1] %x out_sharding=<@mesh, [{"b"}, {"a"}]>',
    '{"a", "b"}': 'sdy.collective_permute %x out_sharding=<@mesh, [{"b", "a"}, {}]>',
}


def program(given: str, op: str, rows: int = 16) -> str:
    """A collective of an input that is sharded as it wants."""
    type_, dims = f"tensor<{rows}x16xf32>", f"[{given or '{}'}, {{}}]"
    return f"""{MESH}
func.func @main(%x: {type_} {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}) -> {type_} {{
  %0 = {op} : {type_}
  return %0 : {type_}
}}"""


@pytest.mark.parametrize("given", FITTING)
def test_a_collective_that_fits_stays(given: str) -> None:
    module = Module.parse(program(given, FITTING[given]))
    assert run_pipeline(module, "pyshardy-make-partitionable").text() == module.text()


@pytest.mark.parametrize("given", [given for given in FITTING if "," in given])
def test_where_an_input_loses_axes_the_collective_becomes_a_reshard(given: str) -> None:
    text = program(given, FITTING[given], rows=12)
    passes = "sdy-update-non-divisible-input-output-shardings,pyshardy-make-partitionable"
    found = run_pipeline(Module.parse(text), passes).text()
    assert "sdy.reshard" in found and "sdy.all_to_all" not in found and "sdy.collective_permute" not in found
    data = np.arange(192, dtype=np.float32).reshape(12, 16)
    np.testing.assert_array_equal(pyshardy.run(pyshardy.partition(text, view="stablehlo"), data)[0], data)


@pytest.mark.parametrize(("given", "wrong"), [('{"b", "a"}', '{"a"}'), ('{"a"}', "{}"), ('{"a":(1)2}', '{"b"}')])
def test_another_sharding_of_the_operand_is_noticed(given: str, wrong: str) -> None:
    module = Module.parse(program(given, FITTING[given])).with_root(
        changed(Module.parse(program(given, FITTING[given])), wrong)
    )
    assert "sdy.reshard" in run_pipeline(module, "pyshardy-make-partitionable").text()


SUMS = {
    "an all-reduce": 'sdy.all_reduce {"b"} %0 out_sharding=<@mesh, [{"a"}, {}]>',
    "a reduce-scatter": 'sdy.reduce_scatter [{}, {"b"}] %0 out_sharding=<@mesh, [{"a"}, {"b"}]>',
}


@pytest.mark.parametrize("view", ["xla", "stablehlo"])
@pytest.mark.parametrize("shared", ["{}", '{"b"}'])
@pytest.mark.parametrize("line", SUMS)
def test_a_product_is_summed_once(line: str, shared: str, view: str) -> None:
    """Also where the program sums it, and whether it is partial or not."""
    type_, sharding = "tensor<8x8xf32>", "sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>"
    text = f"""{MESH}
    func.func @main(%x: {type_} {{{sharding.format('{"a"}', shared)}}}, %y: {type_} {{{sharding.format(shared, "{}")}}}) -> {type_} {{
      %0 = stablehlo.dot %x, %y {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"a"}}, {{}}]>]>}} : ({type_}, {type_}) -> {type_}
      %1 = {SUMS[line]} : {type_}
      return %1 : {type_}
    }}"""
    data = np.arange(64, dtype=np.float32).reshape(8, 8)
    partition = pyshardy.partition(text, view=view)
    np.testing.assert_array_equal(pyshardy.run(partition, data, data + 1)[0], data @ (data + 1))
    assert len(partition.traffic.collectives) == (shared != "{}")


def changed(module: Module, dims: str) -> object:
    """The module with another sharding of its input, which MLIR would not read."""
    root = module.copy_root()
    main = pyshardy.ir.functions.main_function(root)
    sharding = pyshardy.parse_sharding(f"#sdy.sharding<@mesh, [{dims}, {{}}]>")
    pyshardy.ir.functions.set_arg_sharding(main, 0, sharding)
    return root
