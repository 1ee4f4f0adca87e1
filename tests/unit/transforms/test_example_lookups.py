"""Lookups in each example are those in one list of the rows of all, with indices of the example alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from pyshardy.transforms.example_lookups import flat_dimension, look_up_in_examples

from .test_code_changes import changed, loaded, numbers, results, same


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("pairs", [True, False])
def test_lookups_in_examples_are_those_in_all_rows(axis: int, pairs: bool) -> None:
    """In the gradient as well; the indices have the examples as a dimension, or are one list."""
    examples, rows, own = 4, 6, 3

    def loss(x: jax.Array, places: jax.Array) -> jax.Array:
        index = places + rows * jnp.arange(examples)[:, None]
        flat = x.reshape(*x.shape[:axis], examples * rows, *x.shape[axis + 2 :])
        found = jnp.take(flat, index if pairs else index.reshape(-1), axis=axis, mode="clip")
        return (jnp.tanh(found) * jnp.arange(1, 1 + found.size).reshape(found.shape)).sum()

    x = numbers(*[2] * axis, examples, rows, 5)
    places = np.random.default_rng(1).integers(0, rows, (examples, own)).astype(np.int32)
    arguments = x, places
    made = loaded(jax.value_and_grad(loss), (P(*[None] * axis, "a"), P("a")), arguments)
    after = changed(
        made, lambda op: flat_dimension(op) == axis, lambda op: look_up_in_examples(op, made.attrs, examples)
    )
    assert after.text().count("batching_dims = [") >= 4
    assert same(results(after, arguments), jax.value_and_grad(loss)(*arguments))
    assert not same(results(after, (x, (places + 1) % rows)), jax.value_and_grad(loss)(*arguments))


def test_other_ops_look_nothing_up() -> None:
    made = loaded(
        lambda x, i, j: x[i, j] + jnp.tanh(x[0]).sum(), (P("a"), P(), P()), (numbers(4, 6), *np.zeros((2, 8), np.int32))
    )
    with pytest.raises(AssertionError):
        changed(made, lambda op: flat_dimension(op) is not None, lambda op: None)
