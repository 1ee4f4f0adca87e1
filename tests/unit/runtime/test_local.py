"""Per-device programs on JAX's devices: what goes in, what comes out, what is copied."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.frontend.interface import Interface
from pyshardy.runtime.arrays import jax_dtype
from pyshardy.runtime.local import LocalExecutable, place

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
A = np.arange(32, dtype=np.float32).reshape(8, 4)


def partitioned(
    sharding: str = '[{"x"}, {"y"}]', element: str = "f32", shape: str = "8x4x", op: str = "stablehlo.add %a, %a"
) -> pyshardy.Partition:
    type = f"tensor<{shape}{element}>"
    on = f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"
    body = f"func.func @main(%a: {type} {on}) -> ({type} {on}) {{ %0 = {op} : {type}\nreturn %0 : {type} }}"
    return pyshardy.partition(pyshardy.load(MESH + body))


def test_the_interface_is_global_and_every_device_has_its_part() -> None:
    interface = partitioned().interface
    assert interface.device_count == 8
    (tensor,) = interface.inputs
    assert tensor.shape == (8, 4)
    assert interface.local_shape(tensor) == (2, 2)


@pytest.mark.parametrize(
    "element",
    ["f32", "f64", "bf16", "f16", "i1", "i4", "i8", "i16", "i32", "i64", "ui8", "ui64", "f8E4M3FN", "f8E5M2",
     "complex<f32>", "complex<f64>"],
)  # fmt: skip
def test_element_types(element: str) -> None:
    array = (A % 3).astype(jax_dtype(element))
    op = "stablehlo.or %a, %a" if element == "i1" else "stablehlo.add %a, %a"
    (found,) = pyshardy.run(partitioned(element=element, op=op), array)
    assert found.dtype == array.dtype
    scale = 1 if element == "i1" else 2
    np.testing.assert_array_equal(np.asarray(found).astype(complex), scale * array.astype(complex))
    assert not jax.config.jax_enable_x64


def test_an_all_to_all_of_a_transposed_tensor_and_its_padding() -> None:
    """XLA for CPUs chose different layouts for the two pieces, and refused the program."""
    whole = """sdy.mesh @m = <["x"=2]>
    func.func @main(%a: tensor<4x4x1xi32> {sdy.sharding = #sdy.sharding<@m, [{"x"}, {}, {}]>})
        -> (tensor<8x2x2xi32> {sdy.sharding = #sdy.sharding<@m, [{}, {}, {"x"}]>}) {
      %0 = stablehlo.constant dense<0> : tensor<8x2x2xi32>
      return %0 : tensor<8x2x2xi32>
    }"""
    local = """func.func @main(%a: tensor<2x4x1xi32>) -> tensor<8x2x1xi32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.transpose %a, dims = [1, 0, 2] : (tensor<2x4x1xi32>) -> tensor<4x2x1xi32>
      %1 = stablehlo.pad %0, %zero, low = [0, 0, 0], high = [0, 0, 1], interior = [0, 0, 0]
        : (tensor<4x2x1xi32>, tensor<i32>) -> tensor<4x2x2xi32>
      %2 = "stablehlo.all_to_all"(%1) <{split_dimension = 2 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
      }> : (tensor<4x2x2xi32>) -> tensor<8x2x1xi32>
      return %2 : tensor<8x2x1xi32>
    }"""
    array = np.arange(16, dtype=np.int32).reshape(4, 4, 1)
    (found,) = LocalExecutable(pyshardy.load(local), Interface.of(pyshardy.load(whole).root))([array])
    pieces = [part.transpose(1, 0, 2) for part in np.split(array, 2)]
    np.testing.assert_array_equal(np.asarray(found)[..., :1], np.concatenate(pieces))
    assert not np.asarray(found)[..., 1:].any()


@pytest.mark.parametrize(
    ("sharding", "shape"), [("[]", ""), ('[{"x"}, {}]', "0x4x"), ('[{"x"}, {"y"}]', "8x0x"), ('[{"y", "x"}]', "8x")]
)
def test_shapes(sharding: str, shape: str) -> None:
    sizes = tuple(int(size) for size in shape.split("x") if size)
    array = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    (found,) = pyshardy.run(partitioned(sharding, shape=shape), array)
    np.testing.assert_array_equal(found, 2 * array)


def test_neither_inputs_nor_outputs_are_copied() -> None:
    partition = partitioned()
    executable = LocalExecutable(partition.module, partition.interface)
    (first,) = executable([A])
    (second,) = executable([first])
    assert second.sharding.is_equivalent_to(first.sharding, 2)
    np.testing.assert_array_equal(second, 4 * A)
    assert place(first, second.sharding) is first


def test_the_text_is_that_of_xla() -> None:
    partition = partitioned()
    text = LocalExecutable(partition.module, partition.interface).as_text()
    assert "f32[2,2]" in text
    assert "all-" not in text


@pytest.mark.parametrize("source", ["numpy", "list", "one device", "other sharding"])
def test_placing(source: str) -> None:
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
    given = {
        "numpy": A,
        "list": A.tolist(),
        "one device": jax.device_put(A, jax.devices()[3]),
        "other sharding": jax.device_put(A, NamedSharding(sharding.mesh, PartitionSpec(None))),
    }[source]
    found = place(np.asarray(given) if source == "list" else given, sharding)
    assert found.sharding.is_equivalent_to(sharding, 2)
    np.testing.assert_array_equal(found, A)


def test_devices_count_as_they_are_given() -> None:
    partition = partitioned('[{"x", "y"}, {}]')
    devices = jax.devices()[::-1]
    (found,) = LocalExecutable(partition.module, partition.interface, devices)([A])
    by_device = {shard.device: np.asarray(shard.data) for shard in found.addressable_shards}
    for row, device in enumerate(devices):
        np.testing.assert_array_equal(by_device[device], 2 * A[row : row + 1])


def test_too_few_devices() -> None:
    partition = partitioned()
    with pytest.raises(UsageError) as caught:
        LocalExecutable(partition.module, partition.interface, jax.devices()[:7])
    assert str(caught.value) == (
        "running a partitioned program: got 7 devices, needed 8\n"
        "  try: on a CPU, set XLA_FLAGS=--xla_force_host_platform_device_count=8 before importing jax"
    )


@pytest.mark.parametrize("argument", ["", "%a: tensor<f32>", "%a: tensor<0x4xf32>"])
def test_programs_of_which_no_input_is_split(argument: str) -> None:
    text = f"""sdy.mesh @m = <["x"=2, "y"=4]>
    func.func @main({argument}) -> (tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"y"}}, {{}}]>}}) {{
      %0 = stablehlo.iota dim = 0 : tensor<8x4xf32>
      return %0 : tensor<8x4xf32>
    }}"""
    shape = (0, 4) if "0x4" in argument else ()
    arrays = [np.zeros(shape, np.float32)] if argument else []
    (found,) = pyshardy.run(pyshardy.partition(pyshardy.load(text)), *arrays)
    np.testing.assert_array_equal(found, np.repeat(np.arange(8.0), 4).reshape(8, 4))
    assert found.addressable_shards[0].data.shape == (2, 4)
