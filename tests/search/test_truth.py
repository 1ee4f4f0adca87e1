"""Plans agree with the programs that XLA compiles; a difference would fail."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from search.models import PROGRAMS, small
from search.truth import (
    Ranks,
    are_same,
    correlation,
    drawn,
    jax_mesh,
    largest_difference,
    measured,
    numbers,
    ranks_table,
    saved_specs,
    sent,
    small_module,
    stock,
    truth,
    truth_table,
)

import pyshardy
from pyshardy import PartitionSpec as Spec


@pytest.mark.sampled(4)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_plan_is_what_xla_makes_of_it(program: str) -> None:
    found = truth(program, saved_specs(program))
    assert found.error < 1e-3
    assert 0.85 * sent(found.predicted) <= sent(found.local) <= sent(found.predicted), (
        "XLA does once what is done twice"
    )
    assert sent(found.predicted) and found.stock.counts, "every plan sends something"
    assert {total.kind for total in found.predicted} == {total.kind for total in found.local}
    assert sum(total.count for total in found.local) <= sum(total.count for total in found.predicted)
    assert abs(found.memory_error) < 0.15
    assert found.is_sharded_so and found.stock.counts == found.ours
    assert "| yes |" in truth_table([found])
    assert "| no |" in truth_table([found._replace(ours={})]) and "| no |" in truth_table(
        [found._replace(is_sharded_so=False)]
    )


def test_other_shardings_are_seen() -> None:
    propagation = pyshardy.propagate(pyshardy.annotate(small_module("dense"), saved_specs("dense")))
    other = pyshardy.propagate(
        pyshardy.annotate(small_module("dense"), {"data[0]": Spec("model"), "data[1]": Spec("model")})
    )
    made = [stock("dense", one.input_shardings(), one.output_shardings()) for one in (propagation, other)]
    assert made[0].counts != made[1].counts
    leaves = jax.tree.leaves(numbers("dense"))
    assert are_same(made[0].inputs, made[0].inputs, leaves) and not are_same(made[0].inputs, made[1].inputs, leaves)
    assert sent(pyshardy.partition(propagation).traffic.kinds) != sent(
        pyshardy.compiled_collectives(pyshardy.partition(other))
    )


def test_equal_shardings_may_be_written_differently() -> None:
    mesh, x = jax_mesh(), np.ones((8, 8))
    one, other, third = (
        NamedSharding(mesh, jax.sharding.PartitionSpec(*spec)) for spec in (("data",), ("data", None), (None, "data"))
    )
    assert are_same([one], [other], [x]) and not are_same([one], [third], [x])
    with pytest.raises(ValueError):
        are_same([one], [other, third], [x, x])


def test_wrong_numbers_are_seen() -> None:
    x = np.array([1.0, -4.0])
    assert largest_difference([x], [x]) == 0
    assert largest_difference([x + 0.04], [x]) == pytest.approx(0.01)
    assert not largest_difference([x * np.nan], [x]) < 1
    assert not largest_difference([x, x * np.nan, x], [x, x, x]) < 1
    with pytest.raises(ValueError):
        largest_difference([x], [x, x])


def test_numbers_are_fit_for_the_program() -> None:
    params, mean, square, *_ = numbers("dense")
    assert not mean["up"].any() and (square["up"] == 1).all() and params["up"].std() > 0.05
    step, *_ = small("dense")
    before, after = jax.jit(step)(*numbers("dense")), jax.jit(lambda *args: step(*args[:3], 1.01 * args[3], args[4]))
    changed = jax.tree.leaves(after(*numbers("dense")))
    assert largest_difference(changed, jax.tree.leaves(before)) > 5e-3, "other gradients are seen"
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.jit(lambda *args: args)(*numbers("routed"))))


def test_correlation_is_that_of_ranks() -> None:
    assert correlation([1, 2, 30], [1, 5, 6]) == pytest.approx(1) and correlation(
        [1, 2, 3], [9, 5, 1]
    ) == pytest.approx(-1)
    assert correlation([1, 2, 3, 4], [1, 1, 2, 2]) == pytest.approx(0.894, abs=1e-3)


def test_predicted_and_compiled_bytes_of_random_plans() -> None:
    module = small_module("dense")
    plans = drawn("dense", "a task for every axis", module)
    rows = [measured("dense", module, next(plans)) for _ in range(4)]
    assert [row[0] for row in rows] == [row[1] for row in rows] and len({row[0] for row in rows}) > 2
    assert correlation([row[3] for row in rows], [row[4] for row in rows]) > 0.7
    assert "| 0.500 |" in ranks_table([Ranks("dense", "any", 4, 1.0, 0.5, 1.0, 1.0)])
