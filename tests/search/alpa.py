"""Alpa's integer program, rebuilt: one strategy per op, collectives where strategies differ, memory as a limit.

After "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep Learning" (arXiv 2201.12023), within ops:
ops that compute little follow one of their operands; the others, and inputs, choose. HiGHS (`scipy.optimize.milp`)
solves it. What its costs are made of is what `pyshardy.cost` is made of too: rates of the chip, and times of collectives.
"""

from __future__ import annotations

from typing import NamedTuple

from search.alpa_graph import Graph
from search.alpa_solver import solve
from search.evaluator import Evaluator, Spec

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.results.search_problem import problem_of


class Answer(NamedTuple):
    """What the integer program says.

    Attributes:
        specs: The shardings by the names of inputs.
        objective: Seconds, by its own sum of costs.
        gap: How far it may be from the best of that sum, as a part of it.
        is_optimal: Whether it is the best of that sum.
        strategies: How many strategies there are to choose from.
    """

    specs: dict[str, Spec]
    objective: float
    gap: float
    is_optimal: bool
    strategies: int


def alpa(evaluator: Evaluator, seconds: float = 60.0) -> Answer:
    """The shardings of inputs that the integer program finds.

    Args:
        evaluator: The program, the mesh and the chip.
        seconds: How long HiGHS may take.

    Raises:
        ValueError: It finds no answer.
    """
    model = CollectiveModel(evaluator.model)
    problem = problem_of(evaluator.module, evaluator.topology, model, evaluator.memory)
    names = {fact.name: place for place, fact in enumerate(problem.inputs)}
    ties = {
        place: names[evaluator.ties[fact.name]]
        for place, fact in enumerate(problem.outputs)
        if fact.name in evaluator.ties
    }
    graph = Graph(problem, ties)
    chosen, found = solve(graph, evaluator.memory, seconds)
    specs = {}
    for fact, cluster in zip(problem.inputs, graph.inputs):
        layout = graph.clusters[cluster].strategies[chosen[cluster]]
        specs[fact.name] = tuple(
            tuple(name for (name, _), place in zip(graph.prices.axes, layout) if place == dim)
            for dim in range(len(fact.shape))
        )
    count = sum(len(cluster.strategies) for cluster in graph.clusters)
    return Answer(specs, found.fun / 1e6, found.mip_gap or 0.0, found.status == 0, count)
