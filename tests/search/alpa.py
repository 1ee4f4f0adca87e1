"""Alpa's integer program, rebuilt: one strategy per op, collectives where strategies differ, memory as a limit.

It follows "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep Learning" (arXiv 2201.12023),
the part within operators. Ops that compute little follow one of their operands; other ops, and inputs, have a choice.
HiGHS (`scipy.optimize.milp`) solves the program. Its costs come from the same source as those of `pyshardy.cost`: the
rates of the chip, and the times of collectives.
"""

from __future__ import annotations

from typing import NamedTuple

from search.alpa_graph import Graph
from search.alpa_solver import solve
from search.evaluator import Evaluator, Spec

from pyshardy.costing.collectives import CollectiveModel
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.program.search_program import problem_of


class Answer(NamedTuple):
    """The solution of the integer program.

    Attributes:
        specs: The shardings by the names of inputs.
        objective: The value of the objective, in seconds.
        gap: The relative gap between the objective and its proven bound.
        is_optimal: Whether the solution is proven optimal.
        strategies: The number of strategies to choose from.
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
        seconds: The time limit of HiGHS.

    Raises:
        ValueError: HiGHS finds no solution.
    """
    model = CollectiveModel(evaluator.model)
    problem = problem_of(evaluator.module, evaluator.topology, model, Objective(evaluator.memory))
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
