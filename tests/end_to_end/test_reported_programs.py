"""Programs of public reports: their shardings are those that XLA compiles with, and their numbers those of one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from end_to_end.reported_programs import PROGRAMS, P, Reported, on
from jax.sharding import NamedSharding

import pyshardy
from pyshardy.core.sharding import TensorSharding


def expected(program: Reported) -> list[np.ndarray]:
    """What one device gives; what XLA gives on the mesh if one device cannot run it."""
    function = program.jitted() if program.on_mesh else program.function
    return [np.asarray(leaf) for leaf in jax.tree.leaves(function(*program.arguments))]


def same_numbers(found: Sequence[Any], right: Sequence[np.ndarray]) -> bool:
    """Whether outputs are equal within rounding; integers exactly."""
    return len(found) == len(right) and all(
        np.allclose(one, other, rtol=1e-5, atol=1e-5) if other.dtype.kind == "f" else np.array_equal(one, other)
        for one, other in zip(map(np.asarray, found), right)
    )


def same_shardings(found: Sequence[NamedSharding], right: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether shardings put the same parts on the same devices."""
    return len(found) == len(right) and all(
        one.devices_indices_map(shape) == other.devices_indices_map(shape)
        for one, other, shape in zip(found, right, shapes, strict=True)
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_shardings_are_those_that_xla_compiles_with(name: str) -> None:
    program = PROGRAMS[name]
    lowered = program.jitted().lower(*program.arguments)
    result = pyshardy.propagate(pyshardy.load(lowered))
    compiled = lowered.compile()
    right = [*jax.tree.leaves(compiled.input_shardings[0]), *jax.tree.leaves(compiled.output_shardings)]
    shapes = [np.shape(leaf) for leaf in [*jax.tree.leaves(program.arguments), *expected(program)]]
    found = [*jax.tree.leaves(result.in_shardings), *jax.tree.leaves(result.out_shardings)]
    assert same_shardings(found, right, shapes), (found, right)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_those_of_one_device(name: str) -> None:
    program = PROGRAMS[name]
    partition = pyshardy.partition(pyshardy.load(program.jitted().lower(*program.arguments)))
    found = pyshardy.run(partition, *program.arguments)
    assert same_numbers(jax.tree.leaves(found), expected(program))


def test_other_numbers_and_shardings_are_noticed() -> None:
    right = [np.arange(6, dtype=np.float32), np.arange(3)]
    assert same_numbers([one.copy() for one in right], right)
    assert not same_numbers([right[0] + np.float32(1e-3), right[1]], right)
    assert not same_numbers([right[0], np.array([0, 1, 3])], right)
    assert not same_numbers(right[:1], right)
    shape = (8, 8)
    assert same_shardings([on(P("data"))], [on(P("data", None))], [shape])
    assert not same_shardings([on(P("data"))], [on(P("model"))], [shape])
    assert not same_shardings([on(P())], [on(P(None, "model"))], [shape])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("constraint that does not divide", [P(None, None)]),
        ("argmax over a sharded vocabulary", [P("data")]),
        ("cache sharded by position", [P(None, "data", "model"), P(None, "model")]),
        ("gradient of an embedding with sharded features", [P(None, "model")]),
        ("sort of a sharded dimension", [P("data", "model")]),
    ],
)
def test_what_outputs_are_sharded_like(name: str, expected: Sequence[Any]) -> None:
    program = PROGRAMS[name]
    result = pyshardy.propagate(pyshardy.load(program.jitted().lower(*program.arguments)))
    assert [sharding.spec for sharding in jax.tree.leaves(result.out_shardings)] == list(expected)
    assert all(isinstance(port.sharding, TensorSharding) for port in result.outputs)
