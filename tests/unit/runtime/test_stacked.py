"""Programs per device as global ones."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.runtime.stacked import DEVICES, rename_program, stacked, stacked_shape

PROGRAM = """
func.func @main(%a: tensor<2x3xf32> {jax.buffer_donor = true}, %n: tensor<i32>) -> (tensor<2x3xf32> {jax.result_info = "y"}, tensor<i32>) {
  %0 = stablehlo.negate %a : tensor<2x3xf32>
  return %0, %n : tensor<2x3xf32>, tensor<i32>
}"""


def test_what_devices_hold_lies_along_the_first_dimension() -> None:
    assert stacked_shape((2, 3), 4) == (8, 3)
    assert stacked_shape((0, 3), 4) == (0, 3)
    assert stacked_shape((), 4) == ()


def test_a_manual_computation_calls_the_program() -> None:
    module = stacked(Module.parse(PROGRAM), 4)
    module.verify()
    text = module.text()
    assert f'sdy.mesh @{DEVICES} = <["{DEVICES}"=4]>' in text
    rows = f'<@{DEVICES}, [{{"{DEVICES}"}}, {{}}]>'
    assert f"tensor<8x3xf32> {{sdy.sharding = #sdy.sharding{rows}}}" in text
    assert f"in_shardings=[{rows}, <@{DEVICES}, []>]" in text
    assert f'manual_axes={{"{DEVICES}"}} (%arg2: tensor<2x3xf32>, %arg3: tensor<i32>)' in text
    assert re.search(r"func.call @device_program\(%arg2, %arg3\)", text)
    assert "func.func private @device_program" in text
    assert "mhlo.num_partitions = 4 : i32" in text
    assert "jax.buffer_donor" not in text and "jax.result_info" not in text


def test_what_holds_nothing_stays_outside() -> None:
    empty = PROGRAM.replace("2x3xf32", "0x3xf32")
    module = stacked(Module.parse(empty), 4)
    module.verify()
    text = module.text()
    taken = re.search(r"sdy.manual_computation\((.*?)\)", text)
    assert taken is not None
    assert taken[1] == "%arg1, %0" and "%0 = stablehlo.iota dim = 0 : tensor<4xi32>" in text
    assert re.search(r"func.call @device_program\(%cst, %arg\d\)", text)


def test_one_device_runs_the_program_itself() -> None:
    text = stacked(Module.parse(PROGRAM), 1).text()
    assert "sdy." not in text
    assert "func.func @main(%arg0: tensor<2x3xf32>" in text


def test_the_module_given_is_not_changed() -> None:
    module = Module.parse(PROGRAM)
    before = module.text()
    stacked(module, 4)
    assert module.text() == before


@pytest.mark.parametrize(("taken", "name"), [(1, "device_program_0"), (2, "device_program_1")])
def test_a_name_that_is_free(taken: int, name: str) -> None:
    others = ["device_program", "device_program_0"][:taken]
    text = PROGRAM + "".join(f"\nfunc.func private @{other}() {{ return }}" for other in others)
    root = Module.parse(text).copy_root()
    main = main_function(root)
    assert rename_program(root, main) == name
    assert (main.attrs["sym_name"], main.attrs["sym_visibility"]) == (name, "private")


@pytest.mark.parametrize("element", ["complex64", "float32"])
def test_a_constant_summed_over_devices(element: str) -> None:
    """XLA ends the process over the sum of a complex constant that it sees; of others it makes a product."""
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    ones = jax.shard_map(
        lambda: jax.lax.psum(jnp.ones(8, element), "x"), mesh=mesh, in_specs=(), out_specs=P("y"), check_vma=False
    )
    partition = pyshardy.partition(pyshardy.load(ones))
    assert ("optimization_barrier" in stacked(partition.module, 8).text()) == (element == "complex64")
    np.testing.assert_array_equal(partition.run(), np.full(16, 4))
