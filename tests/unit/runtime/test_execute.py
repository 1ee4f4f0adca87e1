"""Running modules on eight devices and on one."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import pyshardy
from pyshardy.errors import InvalidShardingError, ShardyError, UsageError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.runtime.arrays import check_inputs, jax_dtype
from pyshardy.runtime.execute import run_on_one_device
from support.global_runs import run_on_devices

pytestmark = pytest.mark.slow

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
T = "tensor<8x4xf32>"
A = np.arange(32, dtype=np.float32).reshape(8, 4)


def function(args: str, result: str, body: str, mesh: str = MESH) -> pyshardy.Module:
    return pyshardy.load(f"{mesh}func.func @main({args}) -> ({result}) {{\n{body}\n}}")


def on(sharding: str, mesh: str = "@mesh") -> str:
    return f"{{sdy.sharding = #sdy.sharding<{mesh}, {sharding}>}}"


def unary(sharding: str, op: str = "stablehlo.negate %a", mesh: str = MESH, element: str = "f32") -> pyshardy.Module:
    type = f"tensor<8x4x{element}>"
    return function(f"%a: {type} {on(sharding)}", type, f"%0 = {op} : {type}\nreturn %0 : {type}", mesh)


def test_outputs_lie_as_propagation_says() -> None:
    result = pyshardy.propagate(unary('[{"x"}, {"y"}]'))
    (found,) = run_on_devices(result.module, [A])
    np.testing.assert_array_equal(found, -A)
    assert found.sharding == result.out_shardings[0]
    assert len(found.sharding.device_set) == 8
    assert found.addressable_shards[0].data.shape == (2, 2)


def test_one_device_ignores_shardings() -> None:
    (found,) = run_on_one_device(unary('[{"x"}, {"y"}]'), [A])
    np.testing.assert_array_equal(found, -A)
    assert len(found.sharding.device_set) == 1


def test_devices_may_be_given() -> None:
    module = pyshardy.propagate(unary('[{"x"}, {}]', mesh='sdy.mesh @mesh = <["x"=2]>\n')).module
    devices = jax.devices()[5:7]
    (found,) = run_on_devices(module, [A], devices)
    assert [shard.device for shard in found.addressable_shards] == devices


def test_devices_are_those_of_the_function() -> None:
    devices = [jax.devices()[index] for index in (6, 1)]
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("x",)), jax.sharding.PartitionSpec("x"))
    result = pyshardy.propagate(pyshardy.load(lambda x: -x, A, in_shardings=sharding))
    found = result.run(A)
    assert found.sharding.is_equivalent_to(sharding, 2)
    np.testing.assert_array_equal(found, -A)


@pytest.mark.parametrize(
    "mesh",
    ['sdy.mesh @mesh = <["x"=4, "y"=2], device_ids=[7, 3, 0, 4, 1, 5, 6, 2]>\n', 'sdy.mesh @mesh = <["y"=8]>\n', ""],
)
def test_meshes(mesh: str) -> None:
    if mesh:
        module = unary('[{"y"}, {}]', mesh=mesh)
    else:
        module = pyshardy.load(f"func.func @main(%a: {T}) -> {T} {{ %0 = stablehlo.negate %a : {T}\nreturn %0 : {T} }}")
    (found,) = run_on_devices(pyshardy.propagate(module).module, [A])
    np.testing.assert_array_equal(found, -A)


@pytest.mark.parametrize(
    ("mesh", "sharding"),
    [('sdy.mesh @mesh = <["x"=3]>\n', '[{"x"}, {}]'), (MESH, '[{}, {"y", "x", ?}]'), (MESH, '[{"y", "x"}, {}]')],
)
def test_shards_that_are_not_even(mesh: str, sharding: str) -> None:
    module = pyshardy.propagate(unary(sharding, mesh=mesh)).module
    np.testing.assert_array_equal(run_on_devices(module, [A])[0], -A)


@pytest.mark.parametrize(
    "element",
    ["f32", "f64", "bf16", "f16", "i8", "i32", "i64", "ui64", "i4", "f8E4M3FN", "complex<f32>", "complex<f64>"],
)
def test_element_types(element: str) -> None:
    module = unary('[{"x"}, {}]', "stablehlo.add %a, %a", element=element)
    array = (np.arange(32).reshape(8, 4) % 3).astype(jax_dtype(element))
    for run in (run_on_devices, run_on_one_device):
        (found,) = run(module, [array])
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(np.asarray(found).astype(complex), 2 * array.astype(complex))
    assert not jax.config.jax_enable_x64


def test_a_loop_that_carries_a_value_unchanged() -> None:
    body = f"""
    %n = stablehlo.constant dense<3> : tensor<i32>
    %0:3 = stablehlo.while(%i = %n, %v = %a, %same = %b) : tensor<i32>, {T}, {T} cond {{
      %c = stablehlo.constant dense<0> : tensor<i32>
      %p = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %c = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.subtract %i, %c : tensor<i32>
      %w = stablehlo.add %v, %same : {T}
      stablehlo.return %j, %w, %same : tensor<i32>, {T}, {T}
    }}
    return %0#1 : {T}"""
    module = function(f'%a: {T} {on("""[{"x"}, {}]""")}, %b: {T} {on("""[{}, {"y"}]""")}', T, body)
    (found,) = run_on_devices(pyshardy.propagate(module).module, [A, A + 1])
    np.testing.assert_array_equal(found, A + 3 * (A + 1))


def test_functions_that_are_called() -> None:
    module = pyshardy.load(f"""{MESH}
    func.func @main(%a: {T} {on('[{"x"}, {"y"}]')}) -> ({T}, {T}) {{
      %0 = call @twice(%a) : ({T}) -> {T}
      %1 = call @twice(%0) : ({T}) -> {T}
      return %0, %1 : {T}, {T}
    }}
    func.func private @twice(%a: {T}) -> {T} {{ %0 = stablehlo.add %a, %a : {T}\nreturn %0 : {T} }}""")
    for found in (run_on_devices(pyshardy.propagate(module).module, [A]), run_on_one_device(module, [A])):
        np.testing.assert_array_equal(found[0], 2 * A)
        np.testing.assert_array_equal(found[1], 4 * A)


def test_no_inputs_and_no_outputs() -> None:
    constant = function("", T, f"%0 = stablehlo.constant dense<2.0> : {T}\nreturn %0 : {T}")
    np.testing.assert_array_equal(run_on_devices(constant, [])[0], np.full((8, 4), 2.0))
    nothing = pyshardy.load(f"{MESH}func.func @main(%a: {T}) {{ return }}")
    assert run_on_devices(nothing, [A]) == []


# Refusals


def test_a_sub_axis_that_the_user_gave() -> None:
    result = pyshardy.propagate(unary('[{"x":(1)2}, {}]'))
    with pytest.raises(InvalidShardingError, match=r'converting the sharding of arg0: got the sub-axis "x":\(1\)2'):
        result.run(A)


def test_too_few_devices() -> None:
    module = unary('[{"x"}, {}]', mesh='sdy.mesh @mesh = <["x"=16]>\n')
    with pytest.raises(UsageError, match=r"over devices: got 8 devices, needed 16"):
        run_on_devices(module, [A])


def test_meshes_that_jax_does_not_take_together() -> None:
    mesh = MESH + 'sdy.mesh @back = <["z"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n'
    args = f'%a: {T} {on("""[{"x"}, {}]""")}, %b: {T} {on("""[{"z"}, {}]""", "@back")}'
    module = function(args, f"{T}, {T}", f"return %a, %b : {T}, {T}", mesh)
    message = r"got inputs or outputs on the devices \[0, 1, .*\] and \[7, 6, .*\], needed the same devices in the same"
    with pytest.raises(ShardyError, match=message):
        run_on_devices(module, [A, A])


def test_what_xla_cannot_run() -> None:
    module = unary("[{}, {}]", f'"stablehlo.custom_call"(%a) {{call_target_name = "missing"}} : ({T}) -> {T} //')
    with pytest.raises(
        ShardyError, match=r"running a module: got .*missing.*needed a program that XLA can compile here"
    ):
        run_on_devices(module, [A])


@pytest.mark.parametrize("type", ["tensor<?xf32>", f"tuple<{T}>"])
def test_inputs_that_are_no_static_tensors(type: str) -> None:
    module = pyshardy.load(f"func.func @main(%a: {T}, %b: {type}) -> {T} {{ return %a : {T} }}")
    with pytest.raises(ShardyError, match="argument 1 of the main function"):
        run_on_one_device(module, [A, A])


def test_manual_computations_on_one_device() -> None:
    body = f"""%r = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>] out_shardings=[<@mesh, [{{"x"}}, {{}}]>]
        manual_axes={{"x", "y"}} (%b: tensor<2x4xf32>) {{ sdy.return %b : tensor<2x4xf32> }} : ({T}) -> {T}
      return %r : {T}"""
    module = function(f"%a: {T}", T, body)
    np.testing.assert_array_equal(run_on_devices(pyshardy.propagate(module).module, [A])[0], A)
    with pytest.raises(ShardyError, match="making a single-device version of the program: got a manual computation"):
        run_on_one_device(module, [A])


PORTS = [InterfaceTensor("x", 0, (2, 3), "f32", None), InterfaceTensor("n", 1, (), "i32", None)]


def test_checked_inputs() -> None:
    x, n = check_inputs([np.ones((2, 3), np.float32), 3], PORTS)
    assert (x.dtype, n.dtype, n.shape) == (np.float32, np.int32, ())
    assert isinstance(n, np.ndarray)
    array = jax.numpy.ones((2, 3))
    assert check_inputs([array, np.int32(3)], PORTS)[0] is array


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "got 0 arrays, needed 2, one per input"),
        ([np.ones((2, 3))] * 3, "got 3 arrays, needed 2"),
        ([np.ones((3, 2)), 1], r"reading the input x: got float64\[3, 2\], needed float32\[2, 3\]"),
        ([np.ones(6), 1], r"reading the input x: got float64\[6\]"),
        ([np.ones((2, 3), complex), 1], r"reading the input x: got complex128\[2, 3\], needed float32"),
        ([np.ones((2, 3)), 1.5], r"reading the input n: got float64\[\], needed int32\[\]"),
        ([np.ones((2, 3)), "three"], r"reading the input n: got <U5\[\], needed int32\[\]"),
    ],
)
def test_inputs_that_do_not_fit(arrays: list, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_inputs(arrays, PORTS)


def test_types_of_the_same_kind_are_converted() -> None:
    x, n = check_inputs([np.ones((2, 3), np.float64), np.int64(7)], PORTS)
    assert (x.dtype, n.dtype) == (np.float32, np.int32)


@pytest.mark.parametrize("there, back", [
    ("reshape %0#1 : (tensor<8xf32>) -> tensor<1x8xf32>", "reshape %1 : (tensor<1x8xf32>) -> tensor<8xf32>"),
    ("broadcast_in_dim %0#1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>", "reshape %1 : (tensor<1x8xf32>) -> tensor<8xf32>"),
])  # fmt: skip
def test_a_result_of_several_that_is_reshaped_and_back(there: str, back: str) -> None:
    """As in the gradient of a rematerialized layer: XLA takes the sharding of `%2` for that of `%0#0`."""
    module = pyshardy.propagate(
        f"""
    sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                    %b: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8x4xf32> {{
      %0:2 = stablehlo.optimization_barrier %a, %b : tensor<8x4xf32>, tensor<8xf32>
      %1 = stablehlo.{there}
      %2 = stablehlo.{back}
      %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
      %4 = stablehlo.add %0#0, %3 : tensor<8x4xf32>
      return %4 : tensor<8x4xf32>
    }}""",
        view="stablehlo",
    ).module
    given = A, A.reshape(-1)[:8]
    (found,) = run_on_devices(module, given)
    np.testing.assert_array_equal(found, given[0] + given[1][:, None])
    assert found.sharding.shard_shape(found.shape) == (2, 4)
