"""Real programs compute the same on eight devices, propagated and as one program per device, as on one device."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from end_to_end.real_programs import agree, arrays, check_shard_shapes, inputs_of, right_outputs, usable

import pyshardy
from programs import PROGRAMS
from pyshardy.core.boxes import device_boxes
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import ShardyError
from pyshardy.ir.nodes import walk
from pyshardy.runtime.execute import run_on_one_device
from support.global_runs import run_on_devices
from support.programs import load_example
from support.reference import jaxlib_version

BY_INTERPRETER = ("mlp_training", "reshapes", "uneven", "einsum_many_dims", "device_order")
"""Small programs that StableHLO's interpreter runs too."""
OPTIONS = {
    "without halo exchange": pyshardy.PartitionOptions(halo_exchange=False),
    "groups as axes": pyshardy.PartitionOptions(mesh_axes_groups=True),
}


def check_placement(partition: pyshardy.Partition, found: Sequence[jax.Array]) -> None:
    """Every device holds the part of every output that the partition says."""
    devices = partition.before.origin.devices or jax.devices()
    for port, output in zip(partition.outputs, found, strict=True):
        assert output.devices() == set(devices[: partition.device_count])
        whole = tuple(slice(0, size) for size in port.shape)
        held = dict.fromkeys(range(partition.device_count), whole)
        if port.sharding is not None and port.shape:
            boxes = device_boxes(port.sharding, mesh_of(port.sharding, partition.meshes), port.shape)
            held = {device: tuple(map(slice, box.starts, box.stops)) for device, box in boxes.items()}
        for shard in output.addressable_shards:
            index = tuple(slice(*part.indices(size)[:2]) for part, size in zip(shard.index, port.shape))
            assert index == held[devices.index(shard.device)]


@pytest.mark.slow_but_for("mlp_training")
@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_computes_the_same_on_eight_devices(name: str) -> None:
    program = usable(name)
    module = pyshardy.load(program.lower())
    inputs = inputs_of(module, program.concrete_args())
    right = right_outputs(program, module, inputs)
    propagated = pyshardy.propagate(module)
    found = run_on_devices(propagated.module, inputs)
    assert agree(propagated, found, right)
    assert all(output.devices() == set(jax.devices()) for output in found)
    check_shard_shapes(propagated, found)
    partition = pyshardy.partition(propagated)
    assert partition.device_count == 8
    found = partition.run_flat(inputs)
    assert agree(partition, found, right)
    check_placement(partition, found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["mlp_training", "spatial_convolution", "stencil", "unet"])
def test_options_do_not_change_the_numbers(name: str, options: str) -> None:
    program = usable(name)
    module = pyshardy.load(program.lower())
    inputs = inputs_of(module, program.concrete_args())
    partition = pyshardy.partition(module, OPTIONS[options])
    assert agree(partition, partition.run_flat(inputs), right_outputs(program, module, inputs))


@pytest.mark.skipif(jaxlib_version() < (0, 12), reason="the interpreter needs a thread of the machine for every device")
@pytest.mark.parametrize("name", BY_INTERPRETER)
def test_the_interpreter_computes_the_same(name: str) -> None:
    program = usable(name)
    module = pyshardy.load(program.lower())
    inputs = inputs_of(module, program.concrete_args())
    partition = pyshardy.partition(module)
    found = partition.run_flat(inputs, engine="interpreter")
    assert agree(partition, found, right_outputs(program, module, inputs))


def test_callbacks_run_on_one_device_and_get_whole_values() -> None:
    program = usable("callbacks")
    module = pyshardy.load(program.lower())
    partition = pyshardy.partition(module)
    root = partition.module.root
    calls = [op for op in walk(root) if op.name == "stablehlo.custom_call"]
    assert [op.parent_op.name for op in calls] == ["stablehlo.if"] * 3
    assert [str(op.operands[-1].type) for op in calls] == ["tensor<f32>", "tensor<8x8xf32>", "tensor<8x8xf32>"]
    assert not any("@InspectSharding" in warning for warning in partition.warnings)  # it is answered
    with pytest.raises(ShardyError, match="calls back into Python.*needed an engine that runs in this process"):
        pyshardy.run(partition, *inputs_of(module, program.concrete_args()), engine="interpreter")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_transformer_computes_the_same_on_eight_devices(optimizer: str) -> None:
    example = load_example("transformer")
    sizes = {"layers": 1, "width": 32, "heads": 4, "vocabulary": 64, "batch": 8, "sequence": 16}
    config = example.Config(**sizes, optimizer=optimizer)
    module = pyshardy.load(example.lower(config))
    inputs = inputs_of(module, example.concrete_args(config))
    partition = pyshardy.partition(module)
    found = partition.run_flat(inputs)
    check_placement(partition, found)
    assert agree(partition, found, run_on_one_device(module, inputs))
    assert agree(partition, found, arrays(jax.jit(example.step(config))(*example.concrete_args(config))))


# That a wrong result would be noticed


@pytest.fixture(scope="module")
def mlp() -> tuple[pyshardy.Partition, list[np.ndarray], list[np.ndarray]]:
    """A partitioned program, its inputs, and its right outputs."""
    program = PROGRAMS["mlp_training"]
    module = pyshardy.load(program.lower())
    inputs = inputs_of(module, program.concrete_args())
    partition = pyshardy.partition(module, pyshardy.PartitionOptions(mesh_axes_groups=False))
    return partition, inputs, right_outputs(program, module, inputs)


def other(partition: pyshardy.Partition, old: str, new: str) -> pyshardy.Partition:
    """The partition with another program per device."""
    text = partition.module.text()
    assert old in text
    module = pyshardy.load(text.replace(old, new))
    return dataclasses.replace(partition, module=module)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.maximum ", "stablehlo.minimum "),
        ("dense<[[0, 1], [2, 3], [4, 5], [6, 7]]>", "dense<[[1, 2], [3, 4], [5, 6], [7, 0]]>"),
    ],
    ids=["op", "groups"],
)
def test_another_program_is_noticed(old: str, new: str, mlp: Any) -> None:
    partition, inputs, right = mlp
    assert agree(partition, partition.run_flat(inputs), right)
    wrong = other(partition, old, new)
    assert not agree(wrong, wrong.run_flat(inputs), right)


def test_other_inputs_are_noticed(mlp: Any) -> None:
    partition, inputs, right = mlp
    index = next(index for index, array in enumerate(inputs) if array.ndim == 2)
    changed = [*inputs[:index], inputs[index] + 0.1, *inputs[index + 1 :]]
    assert not agree(partition, partition.run_flat(changed), right)


def test_another_placement_is_noticed(mlp: Any) -> None:
    partition, inputs, _ = mlp
    found = partition.run_flat(inputs)
    check_placement(partition, found)
    index = next(index for index, output in enumerate(found) if not output.is_fully_replicated)
    moved = [*found[:index], jax.device_put(found[index], jax.devices()[0]), *found[index + 1 :]]
    with pytest.raises(AssertionError):
        check_placement(partition, moved)
    turned = partition.run_flat(inputs, devices=jax.devices()[::-1])
    with pytest.raises(AssertionError):
        check_placement(partition, turned)


def test_shardings_on_meshes_of_different_sizes_are_refused() -> None:
    text = """sdy.mesh @few = <["x"=4]>
    sdy.mesh @all = <["x"=8]>
    sdy.mesh @unused = <["x"=16]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@few, [{"x"}]>},
                    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@all, [{"x"}]>}) -> tensor<8xf32> {
      return %a : tensor<8xf32>
    }"""
    with pytest.raises(ShardyError) as caught:
        pyshardy.partition(pyshardy.load(text))
    assert str(caught.value) == (
        "partitioning a program: got shardings on meshes of 4 and of 8 devices, "
        "needed the same devices for all, because they run one program together"
    )
    assert pyshardy.partition(pyshardy.load(text.replace("@all, ", "@few, "))).device_count == 4


@pytest.mark.parametrize("unused", [2, 8, 16])
def test_an_unused_mesh_does_not_count(unused: int) -> None:
    """Results of one device go to all devices of the meshes that are used, whatever other mesh comes first."""
    module = pyshardy.load(f"""sdy.mesh @unused = <["u"={unused}]>
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    sdy.mesh @device = <[], device_ids=[5]>
    func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}}) -> tensor<8x8xf32> {{
      %0 = stablehlo.abs %a {{sdy.sharding = #sdy.sharding_per_value<[<@device, []>]>}} : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }}""")
    partition = pyshardy.partition(module)
    assert partition.device_count == 8
    array = np.arange(-32, 32, dtype=np.float32).reshape(8, 8)
    (found,) = pyshardy.run(partition, array)
    assert len(found.addressable_shards) == 8
    for shard in found.addressable_shards:
        np.testing.assert_array_equal(shard.data, np.abs(array)[shard.index])


def manual(rows: int, sharding: str) -> pyshardy.Module:
    """A manual computation over "x", which has four shards, of a tensor of so many rows."""
    whole, part = f"tensor<{rows}x7xf32>", f"tensor<{rows // 4}x7xf32>"
    return pyshardy.load(f"""sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(%a: {whole}) -> {whole} {{
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, {sharding}>] out_shardings=[<@mesh, {sharding}>]
          manual_axes={{"x"}} (%b: {part}) {{
        %1 = stablehlo.abs %b : {part}
        sdy.return %1 : {part}
      }} : ({whole}) -> {whole}
      return %0 : {whole}
    }}""")


@pytest.mark.parametrize("sharding", ['[{"x", "y"}, {}]', '[{"x"}, {"y"}]'])
def test_axes_besides_manual_ones_need_not_divide(sharding: str) -> None:
    """Twelve rows are three on each of four devices, which two do not share evenly; nor seven columns."""
    array = np.random.default_rng(0).normal(size=(12, 7)).astype(np.float32)
    (found,) = pyshardy.run(pyshardy.partition(manual(12, sharding)), array)
    np.testing.assert_array_equal(np.asarray(found), np.abs(array))


def test_manual_axes_must_divide() -> None:
    with pytest.raises(ShardyError, match="dimension size 10 is not divisible by the manual axes size 4"):
        manual(10, '[{"x"}, {}]')
