"""Running the programs of `tests/programs`, and comparing what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest

import pyshardy
from programs import PROGRAMS, Program
from pyshardy.errors import ShardyError
from pyshardy.runtime.compare import TOLERANCE, Verdict, compare_outputs
from pyshardy.runtime.execute import run_on_one_device

NOT_ON_ONE_DEVICE = dict.fromkeys(
    ("manual_collectives", "manual_partial", "manual_nested", "ring_attention", "pipeline_stages", "device_order"),
    r"got a manual computation \(shard_map\), which is written per device",
) | {"partitioned_by_user": "got NOT_FOUND: .* CustomSPMDPartitioning"}
"""Programs that only JAX can give the right outputs of, and how they are refused on one device."""


def usable(name: str) -> Program:
    """The program of that name, or a skipped test if it cannot be lowered here."""
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    return program


def arrays(tree: Any) -> list[np.ndarray]:
    """The leaves of a tree; PRNG keys as their bits."""
    return [
        np.asarray(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
        for leaf in jax.tree.leaves(tree)
    ]


def inputs_of(module: pyshardy.Module, args: Any) -> list[np.ndarray]:
    """The arguments that the module takes."""
    leaves = arrays(args)
    return [leaves[index] for index in module.origin.kept]


def right_outputs(program: Program, module: pyshardy.Module, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of one device; those that JAX gives for a program that is written for several."""
    if program.name in NOT_ON_ONE_DEVICE:
        with pytest.raises(ShardyError, match=NOT_ON_ONE_DEVICE[program.name]):
            run_on_one_device(module, inputs)
        expected = arrays(program.jitted()(*program.concrete_args()))
    else:
        expected = [np.asarray(output) for output in run_on_one_device(module, inputs)]
    assert any(np.any(output) for output in expected)
    assert all(np.isfinite(output.astype(np.complex128)).all() for output in expected)
    return expected


def agree(result: pyshardy.Propagation | pyshardy.Partition, found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether all outputs agree within a hundredth of the tolerance of `pyshardy run`."""
    differences = compare_outputs([port.name for port in result.outputs], found, expected)
    return all(difference.verdict(TOLERANCE / 100) is Verdict.AGREE for difference in differences)


def check_shard_shapes(result: pyshardy.Propagation, found: Sequence[jax.Array]) -> None:
    """Every device holds as much of every output as the tables say."""
    assert [output.addressable_shards[0].data.shape for output in found] == [
        row.local_shape for row in result.summary.outputs
    ]
