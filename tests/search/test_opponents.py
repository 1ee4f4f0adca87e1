"""Our search against other searches of the same cost; a worse search of ours would fail."""

from __future__ import annotations

from itertools import islice
from math import inf, prod

import jax
import numpy as np
import pytest
from search.alpa import alpa
from search.alpa_graph import Graph
from search.alpa_prices import Prices
from search.alpa_solver import solve
from search.compare import load, with_specs
from search.evaluator import Best, Evaluator, Spec, at_random, best_of, enumerated
from search.opponents import MESH, Contest, Found, classes_of, contest, table, tiny_contest
from search.tiny import TINY

import pyshardy
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.program.search_program import problem_of


def evaluator_of(name: str, mesh: dict[str, int] = MESH, chip: str = "v5e", memory: float = 0.0) -> Evaluator:
    step, arguments, donated = TINY[name]
    module = pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")
    return Evaluator(module, mesh, chip, memory=memory)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["product", "attention", "convolution"])
def test_ours_is_the_best_there_is(name: str) -> None:
    found = tiny_contest(name, "v5e")
    assert found.found["ours"].seconds == pytest.approx(found.found["all"].seconds, rel=1e-9)


def test_no_less_than_the_integer_program_and_as_many_evaluations_of_other_searches() -> None:
    found = contest("dense", "v5e", candidates=30)
    assert list(found.found) == ["ours", "integer program", "chance", "enumeration"]
    assert found.verdict in ("win", "equal"), found


def test_the_table_says_when_another_search_is_better() -> None:
    one = Contest("p", "2x4", "v5e", 10, {"ours": Found(2.0, 1.0), "chance": Found(1.0, 1.0), "all": Found(3.0, 1.0)})
    assert one.verdict == "loss" and "1 loss" in table([one])
    ours = [one._replace(found={**one.found, "ours": Found(seconds, 1.0)}).verdict for seconds in (1.0, 0.5, inf)]
    assert ours == ["equal", "win", "loss"]


def test_too_many_classes_are_counted() -> None:
    assert classes_of(load("transformer", MESH), "v5e") > 6 >= classes_of(evaluator_of("attention").module, "v5e")


def test_the_evaluator_says_what_cost_says() -> None:
    evaluator = Evaluator(load("dense", MESH), MESH, "h100")
    for choice in islice(at_random(evaluator), 5):
        cost = pyshardy.cost(with_specs(evaluator.module, evaluator.specs(choice)), "h100")
        assert evaluator.seconds(choice) == pytest.approx(cost.step_seconds, rel=1e-9)
        assert evaluator.from_scratch(evaluator.specs(choice)) == cost.step_seconds
    assert len({evaluator.seconds(choice) for choice in islice(at_random(evaluator), 5)}) > 1


def test_what_does_not_fit_is_not_the_best() -> None:
    choices = list(islice(enumerated(evaluator_of("product")), 20))
    free, none = evaluator_of("product"), evaluator_of("product", memory=1.0)
    assert best_of(none, iter(choices), 20) == Best(inf, None, 0, 20)
    best = best_of(free, iter(choices), 20)
    assert best.seconds == min(map(free.seconds, choices)) and choices[best.at - 1] == best.choice


def test_all_and_random_choices() -> None:
    evaluator = evaluator_of("product")
    every = list(enumerated(evaluator))
    assert len(set(every)) == len(every) == prod(len(evaluator.all_specs(shape)) for shape in evaluator.shapes)
    assert ((("data", "model"), ()), ((), ())) in every and ((("model", "data"), ()), ((), ())) in every
    first = list(islice(at_random(evaluator), 40))
    assert first == list(islice(at_random(evaluator), 40)) != list(islice(at_random(evaluator, seed=1), 40))
    assert len(set(first)) == 40 and set(first) <= set(every)
    assert len(list(at_random(evaluator))) <= len(every)
    assert not evaluator.fits((6, 8), (("model",), ()))


def test_layers_are_one_group_and_state_comes_back_alike() -> None:
    evaluator = Evaluator(load("transformer", MESH), MESH, "v5e")
    assert any(len(names) == 2 and "layers" in names[0] for names in evaluator.groups)
    assert evaluator.ties["result[1]['embed']"] == "mean['embed']"


@pytest.mark.parametrize("chip", ["v5e", "h100"])
@pytest.mark.parametrize("name", ["product", "gradient descent", "two products"])
def test_the_integer_program_finds_something_good(name: str, chip: str) -> None:
    evaluator = evaluator_of(name, chip=chip)
    answer = alpa(evaluator, 60)
    assert answer.is_optimal and answer.strategies > 20
    whole = {name: ((),) * len(spec) for name, spec in answer.specs.items()}
    assert evaluator.from_scratch(answer.specs) < 0.6 * evaluator.from_scratch(whole)


def test_the_integer_program_keeps_to_memory() -> None:
    limit = 26e6
    free, tight = (alpa(evaluator_of("two products", memory=memory), 60) for memory in (0.0, limit))

    def held(specs: dict[str, Spec]) -> float:
        arguments = zip(TINY["two products"].arguments, specs.values())
        return sum(
            2 * prod(leaf.shape) / prod(MESH[axis] for axes in spec for axis in axes) for leaf, spec in arguments
        )

    assert held(tight.specs) <= limit < held(free.specs) and tight.objective > free.objective
    with pytest.raises(ValueError, match="infeasible"):
        alpa(evaluator_of("two products", memory=1e6), 60)


def test_costs_of_the_integer_program_by_hand() -> None:
    evaluator = evaluator_of("product", {"data": 8})
    problem = problem_of(evaluator.module, evaluator.topology, CollectiveModel.FORMULA, Objective(1e12))
    graph = Graph(problem, {})
    prices = Prices(problem)
    assert prices.send((0,), (0,), (4096, 4096), 2.0) == prices.send((-1,), (0,), (4096, 4096), 2.0) == 0.0
    assert prices.send((0,), (-1,), (4096, 4096), 2.0) > prices.send((0,), (1,), (4096, 4096), 2.0) > 0
    assert prices.all_reduce([("data", 8)], 1e9) > 1.5 * prices.send((0,), (-1,), (500_000, 1000), 2.0)
    product = graph.clusters[2]
    by_factor = dict(zip(product.strategies, product.seconds))
    assert by_factor[(-1,)] > 6 * by_factor[(0,)] > 0, "whole on every device, and an eighth on each"
    assert by_factor[(2,)] > by_factor[(0,)], "partial sums are added up"
    chosen, found = solve(graph, 1e12, 60)
    total = sum(cluster.seconds[one] for cluster, one in zip(graph.clusters, chosen))
    total += sum(matrix[chosen[left], chosen[right]] for (left, right), matrix in graph.pairs.items())
    assert found.fun / 1e6 == pytest.approx(total, rel=1e-6)
    every = np.array(
        [
            sum(cluster.seconds[one] for cluster, one in zip(graph.clusters, picks))
            + sum(matrix[picks[left], picks[right]] for (left, right), matrix in graph.pairs.items())
            for picks in np.ndindex(*(len(cluster.strategies) for cluster in graph.clusters))
        ]
    )
    assert every.min() == pytest.approx(total, rel=1e-6) and every.max() > 2 * total
