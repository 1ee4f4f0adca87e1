"""What a plan claims to be proven, against all shardings of tiny programs and random shardings of large ones."""

from __future__ import annotations

from itertools import islice
from random import Random

import jax
import pytest
from search import blocks
from search.compare import load
from search.evaluator import Evaluator, at_random, enumerated
from search.experts import experts_of, random_plans
from search.test_constraints import megatron
from search.tiny import TINY

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.least import least_seconds
from pyshardy.costing.topology import make_topology
from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.shardings import module_meshes
from pyshardy.searching.planning.candidates import LayeredCandidates

MESH = {"data": 2, "model": 4}
CHIPS = ("v5e", "h100")
NO_LIMIT = 1e18
ONE_OF_ALL = 14
"""Of all shardings of a tiny program every so many is priced."""


def bound_of(module: pyshardy.Module, chip: str, devices: int) -> float:
    return least_seconds(cost_program(module.root, module_meshes(module.root)), find_hardware(chip), devices)


def tiny(name: str, mesh: dict[str, int]) -> pyshardy.Module:
    step, arguments, donated = TINY[name]
    return pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=mesh, platform="tpu")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TINY)
def test_no_sharding_of_a_tiny_program_is_below_the_bound(name: str) -> None:
    module = tiny(name, MESH)
    chip = CHIPS[list(TINY).index(name) % 2]
    evaluator = Evaluator(module, MESH, chip, memory=NO_LIMIT)
    found = [evaluator.seconds(choice) for choice in islice(enumerated(evaluator), 0, 1400, ONE_OF_ALL)]
    bound = bound_of(module, chip, 8)
    assert 0 < bound <= min(found) < bound_of(module, chip, 1) * 20
    assert min(found) < max(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("program", "chip"), [("dense", "v5e"), ("routed", "h100"), ("graph", "v5e")])
def test_no_plan_of_people_or_chance_is_below_the_bound(program: str, chip: str) -> None:
    module = load(program, MESH)
    shapes = {port.name: port.shape for port in input_tensors(module.root)}
    evaluator = Evaluator(module, MESH, chip, memory=NO_LIMIT)
    plans = [*experts_of(program, shapes, MESH), *islice(random_plans(program, shapes, MESH, Random(1)), 4)]
    found = [evaluator.from_scratch(plan.specs) for plan in plans]
    found += map(evaluator.seconds, islice(at_random(evaluator, seed=3), 4))
    assert 0 < bound_of(module, chip, 8) <= min(found)


def test_constraints_do_not_go_below_the_bound() -> None:
    plan = pyshardy.search(megatron(MESH, blocks.layers()), hardware="h100", budget_s=600, candidates=30)
    assert plan.constraints and 0 < plan.bound <= plan.step_seconds
    assert plan.bound == pytest.approx(bound_of(plan.apply(), "h100", 8)), "constraints compute nothing"
    assert "the plan takes at most" in str(plan) and not plan.is_best


def test_many_equal_layers_have_the_bound_of_all() -> None:
    module = pyshardy.load(blocks.descent(blocks.loss), *blocks.layers(count=9), mesh=MESH)
    plan = pyshardy.search(module, hardware="h100", budget_s=600, candidates=8, constraints=False)
    topology = make_topology(find_hardware("h100"), tuple(MESH.items()))
    assert not LayeredCandidates(module, "mesh", topology).is_whole
    assert plan.bound == pytest.approx(bound_of(module, "h100", 8), rel=1e-12)


@pytest.mark.parametrize("name", ["product", "inner product", "convolution"])
def test_a_plan_that_is_said_to_be_the_best_is(name: str) -> None:
    module = tiny(name, {"data": 8})
    evaluator = Evaluator(module, {"data": 8}, "v5e")
    every = list(enumerated(evaluator))
    plan = pyshardy.search(module, hardware="v5e", budget_s=600, constraints=False)
    assert plan.is_best and plan.summary.all_tried == len(every)
    assert plan.step_seconds == pytest.approx(min(map(evaluator.seconds, every)), rel=1e-9)
    assert f"all {len(every)} shardings that inputs may have were tried: none is better" in str(plan)


def test_what_was_not_tried_in_full_is_not_said_to_be_the_best() -> None:
    module = tiny("product", MESH)
    assert pyshardy.search(module, hardware="v5e", budget_s=600, constraints=False).is_best
    few = pyshardy.search(module, hardware="v5e", budget_s=600, constraints=False, candidates=24)
    assert not few.is_best and few.summary.all_tried == 0 and "none is better" not in str(few)
    kept = pyshardy.search(module.annotate({"x": "data", "w": "model"}), hardware="v5e", constraints=False)
    assert not kept.is_best, "there was nothing to find"
