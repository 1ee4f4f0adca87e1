"""Axes that the specs of `jax.shard_map` leave out, left to propagation."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.manual_axes import idle_axes, manual_cures
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes

SOURCE = """
sdy.mesh @mesh = <["data"=4, "rows"=8]>
func.func @main(%table: tensor<64x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"rows"}, {}]>},
                %ids: tensor<16x1xi32>, %rows: tensor<16x4xf32>) -> tensor<SIZEx4xf32> {
  %0 = sdy.manual_computation(%table, %ids, %rows)
      in_shardings=[<@mesh, [{"rows"}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{}, {}]>]
      out_shardings=[<@mesh, [OUT, {}]>] manual_axes={"data", "rows"}
      (%a: tensor<8x4xf32>, %b: tensor<16x1xi32>, %c: tensor<16x4xf32>) {
    %c0 = stablehlo.constant dense<STRIDE> : tensor<ui32>
    %c1 = stablehlo.constant dense<8> : tensor<ui32>
    %p = stablehlo.partition_id : tensor<ui32>
    %q = stablehlo.divide %p, %c0 : tensor<ui32>
    %r = stablehlo.remainder %q, %c1 : tensor<ui32>
    %i = stablehlo.convert %r : (tensor<ui32>) -> tensor<i32>
    %j = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<16x1xi32>
    %k = stablehlo.subtract %b, %j : tensor<16x1xi32>
    %s = "stablehlo.scatter"(%a, %k, %c) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %z = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %z : tensor<f32>
    }) : (tensor<8x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    sdy.return %s : tensor<8x4xf32>
  } : (tensor<64x4xf32>, tensor<16x1xi32>, tensor<16x4xf32>) -> tensor<SIZEx4xf32> loc("lookup"("tables.py":7:0))
  return %0 : tensor<SIZEx4xf32>
}"""


def program(out: str = '{"rows"}', stride: int = 1) -> pyshardy.Module:
    size = 256 if "data" in out else 64
    return pyshardy.load(SOURCE.replace("OUT", out).replace("STRIDE", str(stride)).replace("SIZE", str(size)))


def cures(module: pyshardy.Module) -> list[Cure]:
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    return list(manual_cures(module, mesh))


def test_the_axis_is_left_open_as_jax_leaves_it() -> None:
    """Its results are constrained openly, also in what a scatter-add computes; the program given stays as it is."""
    module = program()
    (cure,) = cures(module)
    assert 'tables.py:7 leave out "data"' in cure.what and "axis_names={'rows'}" in cure.text
    found = cure.apply(module)
    (manual,) = ops_named(found.root, ("sdy.manual_computation",))
    assert manual.attrs["manual_axes"] == ("rows",)
    assert all(dim.is_open for one in manual.attrs["in_shardings"] for dim in one.dims)
    constraints: list[Op] = list(ops_named(found.root, ("sdy.sharding_constraint",)))
    (added,) = (op for op in constraints if op.enclosing("stablehlo.scatter") is not None)
    assert added.operands[0].defining_op is not None and added.operands[0].defining_op.name == "stablehlo.add"
    assert "sharding_constraint" not in module.text() and found.text() == pyshardy.load(found.text()).text()


@pytest.mark.parametrize(("out", "stride"), [('{"data", "rows"}', 1), ('{"rows"}', 8)])
def test_axes_that_are_used_stay(out: str, stride: int) -> None:
    """An axis of the results is not idle; a place along "data", a stride of 8 and then 4, is asked for otherwise."""
    module = program(out, stride)
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    assert bool(list(idle_axes(module, mesh))) == (stride == 8) and cures(module) == []


WHOLE = """
sdy.mesh @mesh = <["data"=8]>
func.func @main(%x: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<SIZEx4xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [IN, {}]>] out_shardings=[<@mesh, [{}, {}]>]
      manual_axes={"data"} (%a: tensor<SIZEx4xf32>) {
    %b = stablehlo.tanh %a : tensor<SIZEx4xf32>
    DEVICE
    %s = "stablehlo.all_reduce"(%b) <{replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%y: tensor<f32>, %z: tensor<f32>):
        %w = stablehlo.add %y, %z : tensor<f32>
        stablehlo.return %w : tensor<f32>
    }) : (tensor<SIZEx4xf32>) -> tensor<SIZEx4xf32>
    sdy.return %s : tensor<SIZEx4xf32>
  } : (tensor<16x4xf32>) -> tensor<SIZEx4xf32> loc("match"("loss.py":7:0))
  return %0 : tensor<SIZEx4xf32>
}"""


@pytest.mark.parametrize(
    ("given", "device", "idle"),
    [
        ("{}", "", [("data",)]),
        ('{"data"}', "", []),
        ("{}", "%p = stablehlo.partition_id : tensor<ui32>", []),
    ],
)
def test_what_whole_operands_make_is_the_same_also_where_it_is_summed(
    given: str, device: str, idle: list[tuple[str, ...]]
) -> None:
    """But not if the function asks for its device."""
    size = "2" if "data" in given else "16"
    module = pyshardy.load(WHOLE.replace("IN", given).replace("DEVICE", device).replace("SIZE", size))
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    assert [one.axes for one in idle_axes(module, mesh)] == idle and cures(module) == []
