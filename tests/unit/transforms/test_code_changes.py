"""Programs with other code are those that JAX makes of that code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import module_meshes
from pyshardy.transforms.code_changes import (
    interleave_pieces,
    merge_the_other_way,
    merged_dimension,
    pieces_of,
    run_on_shards,
    stride_micro_batches,
    takes_micro_batches,
)


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def loaded(function: Callable[..., Any], specs: tuple[P, ...], arguments: tuple[Any, ...]) -> Module:
    shardings = tuple(NamedSharding(mesh(), spec) for spec in specs)
    return pyshardy.load(jax.jit(function, in_shardings=shardings).lower(*arguments))


def changed(module: Module, wanted: Callable[[Op], Any], change: Callable[[Op], None]) -> Module:
    """The module with all wanted ops changed; at least one."""
    root = module.copy_root()
    ops = [op for op in ops_in(root) if wanted(op)]
    assert ops
    with module.context:
        for op in ops:
            change(op)
    return module.with_root(root)


def results(module: Module, arguments: tuple[Any, ...]) -> list[np.ndarray]:
    found = pyshardy.run(pyshardy.partition(module, compiler="none"), *arguments)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(found)]


def same(found: list[np.ndarray], right: Any) -> bool:
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(right)]
    return len(found) == len(leaves) and all(
        one.shape == other.shape and np.allclose(one, other, atol=1e-4) for one, other in zip(found, leaves)
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("whole", ["split", "slices"])
def test_interleaved_pieces_are_those_of_the_code(axis: int, whole: str) -> None:
    """In the gradient as well, which pads pieces or concatenates them."""

    def loss(x: jax.Array, w: jax.Array, interleaved: bool) -> jax.Array:
        h = x @ w
        size = h.shape[axis] // 3
        if interleaved:
            shape = (*h.shape[:axis], size, 3, *h.shape[axis + 1 :])
            q, k, v = (jnp.take(h.reshape(shape), at, axis=axis + 1) for at in range(3))
        elif whole == "split":
            q, k, v = jnp.split(h, 3, axis=axis)
        else:
            q, k, v = (jax.lax.slice_in_dim(h, at * size, (at + 1) * size, axis=axis) for at in range(3))
        return (jnp.tanh(q) * k + v * v).sum()

    arguments = numbers(12, 8), numbers(8, 24)
    made = loaded(jax.value_and_grad(lambda x, w: loss(x, w, False), (0, 1)), (P("a"), P(None, "b")), arguments)
    after = changed(made, pieces_of, lambda op: interleave_pieces(op, made.attrs))
    right = jax.value_and_grad(lambda x, w: loss(x, w, True), (0, 1))(*arguments)
    assert same(results(after, arguments), right)
    assert not same(results(made, arguments), right)


def test_strided_micro_batches_are_those_of_the_code() -> None:
    def step(x: jax.Array, strided: bool) -> jax.Array:
        xs = x.reshape(4, 4, 3).swapaxes(0, 1) if strided else x.reshape(4, 4, 3)
        return jax.lax.scan(lambda total, part: (total + 1, (part * total).sum()), 1.0, xs)[1]

    arguments = (numbers(16, 3),)
    made = loaded(lambda x: step(x, False), (P("a"),), arguments)
    after = changed(made, takes_micro_batches, lambda op: stride_micro_batches(op, made.attrs))
    right = step(arguments[0], True)
    assert same(results(after, arguments), right)
    assert not same(results(made, arguments), right)


def test_dimensions_that_are_merged_the_other_way_are_those_of_the_code() -> None:
    """Also where they are made of one again, and in the gradient."""

    def loss(x: jax.Array, w: jax.Array, swapped: bool) -> jax.Array:
        turned = x.swapaxes(1, 2) if swapped else x
        rows = turned.reshape(2, -1, 8) @ w
        rows = rows * jnp.arange(rows.shape[1])[None, :, None]  # differs by the order of rows
        back = rows.reshape(*turned.shape[:3], 8)
        return (jnp.tanh(back.swapaxes(1, 2) if swapped else back) * x).sum()

    arguments = numbers(2, 6, 4, 8), numbers(8, 8)
    made = loaded(jax.value_and_grad(lambda x, w: loss(x, w, False), (0, 1)), (P(None, None, "a"), P()), arguments)
    found = [op for op in ops_in(made.root) if merged_dimension(op) is not None]
    assert len(found) >= 4 and {merged_dimension(op) for op in found} == {1}
    after = changed(made, lambda op: merged_dimension(op) is not None, lambda op: merge_the_other_way(op, made.attrs))
    right = jax.value_and_grad(lambda x, w: loss(x, w, True), (0, 1))(*arguments)
    assert same(results(after, arguments), right)
    assert not same(results(made, arguments), right)


def test_an_op_on_shards_is_one_in_shard_map() -> None:
    def step(x: jax.Array) -> jax.Array:
        return jnp.tanh(jax.lax.linalg.cholesky(x, symmetrize_input=False)) * 2

    half = numbers(8, 6, 6)
    arguments = (half @ half.swapaxes(1, 2) + 6 * np.eye(6, dtype=np.float32),)
    made = loaded(step, (P("a"),), arguments)
    name, found = next((name, one) for name, one in module_meshes(made.root).items() if one.axes)
    rows = [parse_sharding(f'<@{name}, [{{"a"}}, {{}}, {{}}]>'), parse_sharding(f'<@{name}, [{{"a"}}, {{}}, {{}}]>')]
    flags = [parse_sharding(f'<@{name}, [{{"a"}}]>')]
    after = changed(
        made,
        lambda op: op.name in ("stablehlo.cholesky", "stablehlo.custom_call"),
        lambda op: run_on_shards(op, rows + flags * (len(op.results) - 1), found, made.attrs),
    )
    assert "sdy.manual_computation" in after.text() and "tensor<2x6x6xf32>" in after.text()
    assert same(results(after, arguments), step(*arguments))


@pytest.mark.parametrize(
    "line",
    [
        "%r = stablehlo.slice %x [0:4, 0:3] : (tensor<4x8xf32>) -> tensor<4x3xf32>",
        "%r = stablehlo.slice %x [0:4, 1:5] : (tensor<4x8xf32>) -> tensor<4x4xf32>",
        "%r = stablehlo.slice %x [0:4, 0:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>",
        "%r = stablehlo.slice %x [0:2, 0:4] : (tensor<4x8xf32>) -> tensor<2x4xf32>",
        "%r = stablehlo.concatenate %x, %x, %y, dim = 0 : "
        "(tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<10x8xf32>",
    ],
)
def test_what_is_no_equal_piece_stays(line: str) -> None:
    type = line.rpartition("-> ")[2]
    module = pyshardy.load(
        f"func.func @main(%x: tensor<4x8xf32>, %y: tensor<2x8xf32>) -> {type} {{\n  {line}\n  return %r : {type}\n}}"
    )
    assert [pieces_of(op) for op in ops_in(module.root) if op.name in ("stablehlo.slice", "stablehlo.concatenate")] == [
        None
    ]
