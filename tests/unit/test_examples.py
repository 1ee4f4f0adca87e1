"""The training step of `pyshardy run example`."""

from __future__ import annotations

from dataclasses import replace

import jax
import pytest

from pyshardy.examples import transformer

SMALL = transformer.Config(layers=1, width=16, heads=2, vocabulary=32, batch=4, sequence=8, data=2, model=2)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"heads": 3}, "heads must divide width: 3, 16"),
        ({"batch": 3}, "data must divide batch: 2, 3"),
        ({"layers": 0}, "must be at least 1"),
        ({"optimizer": "lion"}, "optimizer must be adam or sgd: lion"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **sizes)


def test_concrete_arguments_have_the_shapes_of_the_abstract_ones() -> None:
    abstract, concrete = transformer.abstract_args(SMALL), transformer.concrete_args(SMALL, 0)
    assert jax.tree.structure(abstract) == jax.tree.structure(concrete)
    for shape, array in zip(jax.tree.leaves(abstract), jax.tree.leaves(concrete)):
        assert (shape.shape, shape.dtype) == (array.shape, array.dtype)


@pytest.mark.slow
def test_a_step_of_gradient_descent_makes_the_loss_smaller() -> None:
    config = replace(SMALL, optimizer="sgd", learning_rate=0.1)
    params, state, tokens, targets = transformer.concrete_args(config, 0)
    step = jax.jit(transformer.step(config))
    params, state, first = step(params, state, tokens, targets)
    _, _, second = step(params, state, tokens, targets)
    assert 0 < second < first
