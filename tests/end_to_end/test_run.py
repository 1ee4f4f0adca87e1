"""Programs compute the same on eight devices, under the shardings found, as on one; a wrong result is noticed.

`test_partition.py` does so with all real programs.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from end_to_end.real_programs import agree, arrays, check_shard_shapes, inputs_of
from jax.experimental.custom_partitioning import custom_partitioning

import pyshardy
from programs import PROGRAMS
from pyshardy.errors import ShardyError
from pyshardy.runtime.execute import run_on_one_device
from support.global_runs import run_on_devices
from support.programs import load_example


def test_an_exception_in_a_partitioner_of_the_user_is_named() -> None:
    @custom_partitioning
    def scaled(x: jax.Array) -> jax.Array:
        return 2 * x

    def partition(*_: Any) -> None:
        raise ValueError("no idea")

    scaled.def_partition(partition=partition, sharding_rule="rows columns -> rows columns")
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    array = np.ones((8, 4), np.float32)
    lowered = jax.jit(scaled, in_shardings=rows).lower(array)
    message = "running a module: got INTERNAL: [^:]*: ValueError: no idea, needed a program that XLA can compile here"
    with pytest.raises(ShardyError, match=message):
        pyshardy.propagate(pyshardy.load(lowered)).run(array)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_transformer_computes_the_same_on_eight_devices(optimizer: str) -> None:
    example = load_example("transformer")
    sizes = {"layers": 1, "width": 32, "heads": 4, "vocabulary": 64, "batch": 8, "sequence": 16}
    config = example.Config(**sizes, optimizer=optimizer)
    module = pyshardy.load(example.lower(config))
    inputs = inputs_of(module, example.concrete_args(config))
    result = pyshardy.propagate(module)
    found = result.run_flat(inputs)
    assert agree(result, found, run_on_one_device(module, inputs))
    check_shard_shapes(result, found)
    own = arrays(jax.jit(example.step(config))(*example.concrete_args(config)))
    assert agree(result, found, own)


# That a wrong result would be noticed


@pytest.fixture(scope="module")
def mlp() -> tuple[pyshardy.Propagation, list[np.ndarray], list[np.ndarray]]:
    """A propagated program, its inputs, and its right outputs."""
    program = PROGRAMS["mlp_training"]
    module = pyshardy.load(program.lower())
    inputs = inputs_of(module, program.concrete_args())
    return pyshardy.propagate(module), inputs, [np.asarray(output) for output in run_on_one_device(module, inputs)]


@pytest.mark.parametrize("error", [2e-5, -0.5, np.nan, np.inf])
def test_one_wrong_number_in_any_output_is_noticed(error: float, mlp: Any) -> None:
    result, _, right = mlp
    assert agree(result, right, right)
    for index, output in enumerate(right):
        wrong = output.copy().astype(np.float64)
        wrong.flat[-1] += error * (1 + abs(wrong.flat[-1]))
        assert not agree(result, [*right[:index], wrong, *right[index + 1 :]], right)


def test_other_inputs_are_noticed(mlp: Any) -> None:
    result, inputs, right = mlp
    assert agree(result, run_on_devices(result.module, inputs), right)
    index = next(index for index, array in enumerate(inputs) if array.ndim == 2)
    inputs = [*inputs[:index], inputs[index] + 0.1, *inputs[index + 1 :]]
    assert not agree(result, run_on_devices(result.module, inputs), right)


def test_another_program_is_noticed(mlp: Any) -> None:
    result, inputs, right = mlp
    text = result.module.text()
    assert text.count("stablehlo.maximum ") > 0
    wrong = pyshardy.load(text.replace("stablehlo.maximum ", "stablehlo.minimum "))
    assert not agree(result, run_on_devices(wrong, inputs), right)


@pytest.mark.parametrize("count", [-1, 1])
def test_a_missing_output_and_one_too_many_are_noticed(count: int, mlp: Any) -> None:
    result, _, right = mlp
    found = right[:-1] if count < 0 else [*right, right[0]]
    with pytest.raises(ValueError, match="zip"):
        agree(result, found, right)
