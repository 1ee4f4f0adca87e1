"""The rough estimate: what it sends, and that it ranks tactics as the exact one does."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from search.compare import MESHES, load

import pyshardy
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel, collective_seconds
from pyshardy.costing.program import OpTraffic
from pyshardy.costing.topology import make_topology
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.pricing import RoughPricer
from pyshardy.searching.autopartition.space import Space
from pyshardy.searching.autopartition.tactics import tactics
from pyshardy.searching.planning.candidates import LayeredCandidates
from pyshardy.searching.program.search_program import problem_of

from .problems import space_from

PRODUCT = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<4096x4096xf32>, %b: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""


def test_sums_of_results_that_nobody_shards_are_sent() -> None:
    space = space_from(PRODUCT)
    pricer = RoughPricer(space.problem)
    contracted, rows = (((), ("x",)), (("x",), ())), ((("x",), ()), ((), ()))
    for assignment, is_sent in ((contracted, True), (rows, False)):
        rough = pricer.price(space.shardings(assignment), 0.0)
        assert (rough.communication_seconds > 0) == is_sent


CONVOLUTION = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<64x32x32x128xbf16>, %k: tensor<3x3x128x256xbf16>) -> tensor<64x32x32x256xbf16> {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<64x32x32x128xbf16>, tensor<3x3x128x256xbf16>) -> tensor<64x32x32x256xbf16>
  return %0 : tensor<64x32x32x256xbf16>
}"""
SORT = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""


@pytest.mark.parametrize("text", [PRODUCT, CONVOLUTION, SORT], ids=["product", "convolution", "sort"])
@pytest.mark.parametrize("axes", [(), ("x",)], ids=["whole", "split"])
def test_one_op_costs_what_the_exact_estimate_says(text: str, axes: tuple[str, ...]) -> None:
    space = space_from(text)
    values = {fact.value: len(fact.shape) for fact in (space.problem.inputs[0], space.problem.outputs[0])}
    sharding = {value: TensorSharding("mesh", [axes, *[()] * (rank - 1)]) for value, rank in values.items()}
    own = RoughPricer(space.problem).price(sharding, 0.0)
    row = "None" if not axes else "x"
    cost = pyshardy.cost(pyshardy.load(text).annotate({"arg0": row, "result": row}), "h100")
    assert own.seconds == pytest.approx(cost.step_seconds, rel=1e-9)


@pytest.mark.parametrize(("read", "rounds"), [(False, 1), (True, 8)])
def test_sums_that_a_loop_only_adds_up_are_made_once(read: bool, rounds: int) -> None:
    """A gradient that is added up over micro-batches, and one that every round reads."""

    def step(w, x):
        def add(total, part):
            new = total + part.T @ (part @ w)
            return new, jnp.max(new) if read else None

        return jax.lax.scan(add, jnp.zeros_like(w), x)

    arguments = (jax.ShapeDtypeStruct(shape, "float32") for shape in ((256, 512), (8, 4096, 256)))
    module = pyshardy.load(step, *arguments, mesh={"data": 8})
    topology = make_topology(find_hardware("h100"), (("data", 8),))
    space = Space(problem_of(module, topology, CollectiveModel.FORMULA, Objective(1e12)))
    rows = next(fact for fact in space.problem.inputs if fact.shape == (8, 4096, 256))
    sharding = TensorSharding("mesh", [[], ["data"], []])
    own = RoughPricer(space.problem).price({rows.value: sharding}, 0.0)
    one = collective_seconds(
        OpTraffic("all_reduce", "mesh", (("data", 8),), 8, 512 * 1024, 512 * 1024, 7 * 128 * 1024), topology,
        CollectiveModel.FORMULA,
    )  # fmt: skip
    assert own.communication_seconds == pytest.approx(rounds * one, rel=0.35)


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("program", "mesh", "chip", "model", "least"),
    [
        ("recurrent", "2x2x2", "v5e", "measured", 0.9),
        ("graph", "2x4", "v5e", "formula", 0.9),
        ("transformer", "4x64", "h100", "measured", 0.9),
    ],
)
def test_tactics_are_ranked_as_the_exact_estimate_ranks_them(
    program: str, mesh: str, chip: str, model: str, least: float
) -> None:
    module = load(program, MESHES[mesh])
    topology = make_topology(find_hardware(chip), tuple(MESHES[mesh].items()))
    space = Space(problem_of(module, topology, CollectiveModel(model), Objective(1e12)))
    rough, exact = (
        RoughPricer(space.problem, space.tied),
        LayeredCandidates(module, "mesh", topology, CollectiveModel(model)),
    )
    pairs = []
    for assignment in list(tactics(space).values())[::3]:
        inputs, outputs = {}, {}
        for number, (group, dims) in enumerate(zip(space.groups, assignment)):
            sharding = space.sharding(number, dims)
            inputs.update(dict.fromkeys(group.members, sharding))
            outputs.update(dict.fromkeys(group.outputs, sharding))
        own = rough.price(space.shardings(assignment), space.base_bytes(assignment))
        pairs.append((own.seconds, exact.price(inputs, outputs).seconds))
    from scipy.stats import spearmanr  # which takes a second to import

    assert len(pairs) > 10
    assert spearmanr(*zip(*pairs)).statistic > least
