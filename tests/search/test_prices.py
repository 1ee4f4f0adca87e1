"""The price inside of the search is that of `pyshardy.cost`, for shardings at random."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

import pytest
from search.compare import MESHES, given_back, load, with_specs
from search.evaluator import Evaluator, at_random
from search.experts import random_plans
from search.models import PROGRAMS

import pyshardy
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.topology import make_topology
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.searching.planning.candidates import LayeredCandidates

_CHIP = "v5e"
_EACH = 2


def drawn(program: str, module: pyshardy.Module, mesh: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Shardings of every input by itself, and by people's tasks for axes."""
    evaluator = Evaluator(module, mesh, _CHIP)
    yield from map(evaluator.specs, islice(at_random(evaluator, seed=7), _EACH))
    shapes = {port.name: port.shape for port in input_tensors(module.root)}
    yield from (plan.specs for plan in islice(random_plans(program, shapes, mesh, Random(7)), _EACH))


def border(module: pyshardy.Module, specs: dict[str, Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """The shardings of inputs and outputs by position."""
    found = {name: TensorSharding("mesh", [list(axes) for axes in spec]) for name, spec in specs.items()}
    ties = given_back(module)
    outputs = {port.index: found[ties[port.name]] for port in output_tensors(module.root) if port.name in ties}
    return {port.index: found[port.name] for port in input_tensors(module.root)}, outputs


def wrong(program: str, mesh: dict[str, int], scale: float = 1.0) -> list[Any]:
    """The random shardings for which the search has another price; `scale` makes its prices wrong."""
    module = load(program, mesh)
    prices = LayeredCandidates(module, "mesh", make_topology(find_hardware(_CHIP), tuple(mesh.items())))
    found = []
    for specs in drawn(program, module, mesh):
        own = prices.price(*border(module, specs))
        cost = pyshardy.cost(with_specs(module, specs), _CHIP)
        if (own.seconds * scale, own.bytes) != (pytest.approx(cost.step_seconds, rel=1e-9), cost.peak_bytes):
            found.append((specs, own, cost.step_seconds, cost.peak_bytes))
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_price_inside_of_the_search_is_that_of_cost(program: str) -> None:
    mesh = MESHES["2x2x2" if list(PROGRAMS).index(program) % 2 else "2x4"]
    assert wrong(program, mesh) == []


def test_another_price_is_found() -> None:
    assert len(wrong("dense", MESHES["2x4"], 1.0001)) == 2 * _EACH
