"""Making the program of one device, and running it."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest

import pyshardy
from pyshardy.errors import ShardyError, UsageError
from pyshardy.runtime.engine import Engine
from support.reference import jaxlib_version
from support.tables import tables_in

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
A = np.arange(96, dtype=np.float32).reshape(8, 12) % 7 - 3
B = np.arange(192, dtype=np.float32).reshape(12, 16) % 5 - 2
PRODUCT = (
    MESH
    + """
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<12x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32> loc("jit(f)/dot_general"("f.py":3:8))
  %1 = stablehlo.negate %0 : tensor<8x16xf32> loc("jit(f)/neg"("f.py":4:9))
  return %1 : tensor<8x16xf32>
}"""
)
NEWEST = jaxlib_version() >= (0, 12)
ENGINES = [Engine.LOCAL, Engine.XLA, *([Engine.INTERPRETER] if NEWEST else [])]


@pytest.fixture(scope="module")
def product() -> pyshardy.Partition:
    """A partitioned product."""
    return pyshardy.partition(pyshardy.load(PRODUCT))


def test_every_collective_says_what_it_costs_and_why_it_is_there(product: pyshardy.Partition) -> None:
    (row,) = product.traffic.collectives
    assert (row.kind, row.axes, row.group_size) == ("all_reduce", ('"y"',), 4)
    assert (row.shape_before, row.shape_after, row.dtype) == ((4, 16), (4, 16), "f32")
    assert row.sent_bytes_per_device == product.traffic.sent_bytes_per_device == 2 * 3 * (4 * 16 * 4) // 4
    assert (row.op, row.source) == ("jit(f)/dot_general", ("f.py", 3, 8))
    assert row.cause == "sum of result of stablehlo.dot_general"


def test_a_reshard_is_named_after_the_op_that_needs_it() -> None:
    text = (
        MESH
        + """func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
        -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
      %0 = stablehlo.abs %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : tensor<8x8xf32>
        loc("jit(f)/abs"("f.py":7:1))
      return %0 : tensor<8x8xf32>
    }"""
    )
    (row,) = pyshardy.partition(pyshardy.load(text)).traffic.collectives
    assert (row.kind, row.axes, row.sent_bytes_per_device) == ("all_to_all", ('"x"',), 4 * 8 * 4 // 2)
    assert (row.cause, row.source) == ("reshard of result of stablehlo.abs", ("f.py", 7, 1))


def test_the_module_is_that_of_one_device(product: pyshardy.Partition) -> None:
    text = product.module.text()
    assert "tensor<4x3xf32>" in text
    assert "sdy.sharding" not in text
    assert "replica_groups = " in text
    product.module.verify()


def test_what_is_given_is_not_changed() -> None:
    module = pyshardy.load(PRODUCT)
    before = module.text()
    pyshardy.partition(module)
    assert module.text() == before


def test_a_propagated_program_is_partitioned_as_it_was_propagated(product: pyshardy.Partition) -> None:
    options = pyshardy.PropagateOptions(op_priorities=False)
    found = pyshardy.partition(pyshardy.propagate(pyshardy.load(PRODUCT), options))
    assert found.propagate_options is options
    assert found.module.text() == product.module.text()


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree_with_numpy(engine: Engine, product: pyshardy.Partition) -> None:
    (found,) = pyshardy.run(product, A, B, engine=engine.value)
    np.testing.assert_array_equal(found, -(A @ B))


def test_outputs_lie_as_the_program_says(product: pyshardy.Partition) -> None:
    (found,) = pyshardy.run(product, A, B)
    assert [shard.data.shape for shard in found.addressable_shards] == [(4, 16)] * 8
    assert found.sharding.spec == jax.sharding.PartitionSpec("x", None)


def test_inputs_that_are_placed_stay_where_they_are(product: pyshardy.Partition) -> None:
    (first,) = pyshardy.run(product, A, B)
    mesh = first.sharding.mesh
    placed = [
        jax.device_put(array, jax.sharding.NamedSharding(mesh, spec))
        for array, spec in zip((A, B), (jax.sharding.PartitionSpec("x", "y"), jax.sharding.PartitionSpec("y")))
    ]
    (second,) = pyshardy.run(product, *placed)
    np.testing.assert_array_equal(second, first)
    assert not any(array.is_deleted() for array in placed)


def test_a_program_is_compiled_once_for_its_devices(product: pyshardy.Partition) -> None:
    pyshardy.run(product, A, B)
    executables = dict(product._executables)
    pyshardy.run(product, A, B)
    assert product._executables == executables
    devices = jax.devices()[::-1]
    (found,) = pyshardy.run(product, A, B, devices=devices)
    assert found.sharding.mesh.devices.flat[0] == devices[0]
    np.testing.assert_array_equal(found, -(A @ B))


def test_the_functions_own_devices_are_used() -> None:
    devices = [jax.devices()[index] for index in (6, 1)]
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("x",)), jax.sharding.PartitionSpec("x"))
    found = pyshardy.partition(pyshardy.load(lambda x: -x, A, in_shardings=sharding))
    output = pyshardy.run(found, A)
    assert output.devices() == set(devices)
    np.testing.assert_array_equal(output, -A)


def test_a_donated_input_is_used_up() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    step = jax.jit(lambda x, y: (x + y, y * 2), donate_argnums=0, in_shardings=(sharding, sharding))
    first, second = (jax.device_put(A, sharding) for _ in range(2))
    found = pyshardy.partition(pyshardy.load(step.lower(A, A)))
    total, double = pyshardy.run(found, first, second)
    np.testing.assert_array_equal(total, 2 * A)
    np.testing.assert_array_equal(double, 2 * A)
    assert not second.is_deleted()
    np.testing.assert_array_equal(second, A)
    with pytest.raises(RuntimeError, match="deleted|donated"):
        np.asarray(first)


def test_meshes_of_several_orders_of_devices() -> None:
    text = """sdy.mesh @m = <["x"=8]>
    sdy.mesh @n = <["x"=8], device_ids=[7, 3, 0, 4, 1, 5, 6, 2]>
    func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>},
                    %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@n, [{"x"}, {}]>})
        -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}]>}) {
      %0 = stablehlo.subtract %a, %b : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }"""
    found = pyshardy.partition(pyshardy.load(text))
    one, other = A[:, :4], A[:, 4:8]
    (output,) = pyshardy.run(found, one, other)
    np.testing.assert_array_equal(output, one - other)
    assert [row.kind for row in found.traffic.collectives] == ["collective_permute"]


def test_sub_axes_at_the_border() -> None:
    text = """sdy.mesh @m = <["x"=8]>
    func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@m, [{"x":(2)2}, {"x":(1)2}]>}) -> tensor<8x12xf32> {
      %0 = stablehlo.abs %a : tensor<8x12xf32>
      return %0 : tensor<8x12xf32>
    }"""
    (found,) = pyshardy.run(pyshardy.partition(pyshardy.load(text)), A)
    np.testing.assert_array_equal(found, np.abs(A))


@pytest.mark.parametrize("user_priorities", [True, False])
def test_shardings_at_the_border_have_no_priorities(user_priorities: bool) -> None:
    text = PRODUCT.replace('[{"x"}, {"y"}]', '[{"x"}p1, {"y"}]')
    assert "p1" in text
    found = pyshardy.partition(text, user_priorities=user_priorities)
    assert str(found.inputs[0].sharding) == '<@mesh, [{"x"}, {"y"}]>'


def test_without_a_mesh_one_device_does_it_all() -> None:
    text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.negate %a : tensor<f32>\nreturn %0 : tensor<f32> }"
    found = pyshardy.partition(pyshardy.load(text))
    assert found.device_count == 1
    assert str(found).endswith("\n\nno collectives: no device needs anything from another\n")
    (output,) = pyshardy.run(found, np.float32(2))
    assert output == -2


def test_groups_as_numbers() -> None:
    found = numbered(PRODUCT)
    text = found.module.text()
    assert "sdy." not in text
    assert "dense<[[0, 1, 2, 3], [4, 5, 6, 7]]>" in text
    assert [row.axes for row in found.traffic.collectives] == [('"y"',)]
    (output,) = pyshardy.run(found, A, B)
    np.testing.assert_array_equal(output, -(A @ B))


def test_groups_as_axes_of_a_mesh() -> None:
    options = pyshardy.PartitionOptions(mesh_axes_groups=True)
    found = pyshardy.partition(pyshardy.load(PRODUCT), options)
    assert "replica_group_mesh_axes" in found.module.text()
    assert [row.axes for row in found.traffic.collectives] == [('"y"',)]
    (output,) = pyshardy.run(found, A, B)
    np.testing.assert_array_equal(output, -(A @ B))


def test_groups_are_axes_unless_asked_otherwise() -> None:
    by_default, as_axes = (
        pyshardy.partition(pyshardy.load(PRODUCT), pyshardy.PartitionOptions(mesh_axes_groups=asked))
        for asked in (None, True)
    )
    assert by_default.module.text() == as_axes.module.text()


def test_groups_on_a_mesh_with_an_order_of_its_devices_are_numbers_unless_asked_otherwise() -> None:
    ordered = PRODUCT.replace('"y"=4]>', '"y"=4], device_ids=[7, 6, 5, 4, 0, 1, 2, 3]>')
    assert ordered != PRODUCT
    found = pyshardy.partition(pyshardy.load(ordered))
    assert "dense<[[7, 6, 5, 4], [0, 1, 2, 3]]>" in found.module.text()
    asked = pyshardy.partition(pyshardy.load(ordered), pyshardy.PartitionOptions(mesh_axes_groups=True))
    assert "replica_group_mesh_axes" in asked.module.text()
    for one in (found, asked):
        (output,) = pyshardy.run(one, A, B)
        np.testing.assert_array_equal(output, -(A @ B))


def numbered(text: str) -> pyshardy.Partition:
    """The program of one device with groups as numbers."""
    return pyshardy.partition(pyshardy.load(text), pyshardy.PartitionOptions(mesh_axes_groups=False))


TWO_MESHES = """sdy.mesh @a = <["x"=2, "y"=4]>
sdy.mesh @b = <["p"=4, "x"=2], device_ids=[7, 2, 4, 6, 1, 3, 5, 0]>
func.func @main(%v: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {"p"}]>},
                %w: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@b, [{"p"}, {}]>},
                %u: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@b, [{}, {}]>},
        tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@a, [{}, {}]>}) {
  %0 = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0, %u : tensor<8x8xf32>, tensor<8x16xf32>
}"""


@pytest.mark.parametrize("mesh_axes_groups", [False, True])
def test_collectives_are_counted_on_the_mesh_they_are_on(mesh_axes_groups: bool) -> None:
    """Not on the largest one, of which the axes have other names, sizes and devices."""
    options = pyshardy.PartitionOptions(mesh_axes_groups=mesh_axes_groups)
    found = pyshardy.partition(pyshardy.load(TWO_MESHES), options)
    one, other = np.resize(A, (8, 16)), np.resize(B, (16, 8))
    assert ("replica_group_mesh_axes" in found.module.text()) == mesh_axes_groups
    assert [(row.kind, row.mesh, row.axes, row.sent_bytes_per_device) for row in found.traffic.collectives] == [
        ("all_reduce", "@b", ('"p"',), 2 * 3 * (8 * 8 * 4) // 4),
        ("all_gather", "@a", ('"x"',), 4 * 16 * 4),
    ]
    dot, whole = pyshardy.run(found, one, other, one)
    np.testing.assert_array_equal(dot, one @ other)
    np.testing.assert_array_equal(whole, one)
    assert pyshardy.api.run.compiled_collectives(found) == found.traffic.kinds


def test_a_broken_collective_gives_wrong_numbers() -> None:
    """What the comparisons with one device rely on."""
    product = numbered(PRODUCT)
    text = product.module.text()
    assert "[[0, 1, 2, 3], [4, 5, 6, 7]]" in text
    broken = text.replace("[[0, 1, 2, 3], [4, 5, 6, 7]]", "[[0, 1, 2, 7], [4, 5, 6, 3]]")
    wrong = dataclasses.replace(product, module=pyshardy.load(broken))
    (found,) = pyshardy.run(wrong, A, B)
    assert not np.array_equal(found, -(A @ B))


# Reports


def test_the_table_of_collectives(product: pyshardy.Partition) -> None:
    (row,) = tables_in(str(product))["collectives"]
    assert (row["kind"], row["along"], row["source"]) == ("all_reduce", "y", "f.py:3")
    assert tables_in(str(product))["totals"][0]["count"] == "1"


def test_json(product: pyshardy.Partition) -> None:
    data = json.loads(json.dumps(product.to_json()))
    assert data["device_count"] == 8
    assert [row["kind"] for row in data["traffic"]["collectives"]] == ["all_reduce"]
    assert (data["version"], "stages" in data) == (1, False)
    stages = {stage["name"] for stage in product.to_json(times=True)["stages"]}
    assert stages == {"read", "import", "propagate", "export", "partition", "write"}


# Refusals


def test_an_unknown_engine(product: pyshardy.Partition) -> None:
    with pytest.raises(UsageError) as caught:
        pyshardy.run(product, A, B, engine="gpu")
    assert str(caught.value) == ("running a program: got the engine 'gpu', needed one of local, xla, interpreter")


def test_too_few_devices(product: pyshardy.Partition) -> None:
    with pytest.raises(UsageError, match="got 3 devices, needed 8"):
        pyshardy.run(product, A, B, devices=jax.devices()[:3])


@pytest.mark.parametrize("arrays", [(A,), (A, A), (A, B, B)])
def test_inputs_that_do_not_fit(arrays: tuple[Any, ...], product: pyshardy.Partition) -> None:
    with pytest.raises(UsageError, match="running a module|reading the input"):
        pyshardy.run(product, *arrays)


def test_partial_values_at_the_border() -> None:
    text = (
        MESH
        + """func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>})
      -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}) { return %a : tensor<8xf32> }"""
    )
    found = pyshardy.partition(pyshardy.load(text))
    with pytest.raises(ShardyError, match="got arg0, which is unreduced"):
        pyshardy.run(found, A[0, :8])


@pytest.mark.slow
def test_importing_the_package_does_not_import_jax() -> None:
    code = "import sys, pyshardy; pyshardy.partition; print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


SUM = (
    MESH
    + """func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<12xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}], unreduced={"x"}>]>} : (tensor<8x12xf32>, tensor<f32>) -> tensor<12xf32>
  %1 = LINE : tensor<12xf32>
  return %1 : tensor<12xf32>
}"""
)
COMPLETED = [
    'sdy.reshard %0 <@mesh, [{"y"}]>',
    'sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{"y"}]>',
    'sdy.reduce_scatter [{"x"}] %0 out_sharding=<@mesh, [{"y", "x"}]>',
]


@pytest.mark.parametrize("view", ["xla", "stablehlo"])
@pytest.mark.parametrize("line", COMPLETED)
def test_sums_that_the_program_completes_itself_are_completed_once(line: str, view: str) -> None:
    program = pyshardy.load(SUM.replace("LINE", line))
    partition = pyshardy.partition(program, view=view)
    (found,) = pyshardy.run(partition, A)
    np.testing.assert_array_equal(found, A.sum(0))


def test_inputs_lie_on_all_devices_if_on_no_mesh() -> None:
    """With meshes of different sizes, which only groups of devices are on."""
    text = """
    sdy.mesh @two = <["x"=2]>
    sdy.mesh @four = <["y"=4]>
    func.func @main(%a: tensor<8xf32>) -> tensor<32xf32> {
      %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @four, axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<8xf32>) -> tensor<32xf32>
      return %0 : tensor<32xf32>
    }"""
    if jaxlib_version() < (0, 12):
        pytest.skip("groups as axes of a mesh need jaxlib 0.12")
    a = np.arange(8, dtype=np.float32)
    (found,) = pyshardy.run(pyshardy.partition(pyshardy.load(text), view="stablehlo"), a)
    np.testing.assert_array_equal(found, np.tile(a, 4))
