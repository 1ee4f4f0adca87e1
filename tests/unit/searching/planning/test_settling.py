"""The plan is never worse than a row beside it, nor than the program as it was given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.step_cost import StepCost
from pyshardy.report.plan import PlanRow, PlanSummary
from pyshardy.results.plan import load_plan
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.registry import Answer
from pyshardy.searching.autopartition.space import with_dims
from pyshardy.searching.planning import settling
from pyshardy.searching.planning.compiled import AS_GIVEN
from pyshardy.searching.planning.constraining import ConstrainedAssignment, ExpertPlan
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.planning.search import Search
from pyshardy.searching.planning.settling import _partition_experts, _with_batch

MESH = {"x": 8}
W = jax.ShapeDtypeStruct((4096, 2048), "float32")
ARGUMENTS = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((4096, 1024), (1024, 2048))]


def step(params, a, b):
    return {"w": params["w"] * 0.5 + a @ b}


def loaded() -> pyshardy.Module:
    """A parameter that is whole; its update is split, unless it has to be whole again, as the search would have it."""
    module = pyshardy.load(step, {"w": W}, *ARGUMENTS, mesh=MESH)
    return module.annotate({"params['w']": Spec(), "a": Spec("x"), "b": Spec()})


def better_rows(found: PlanSummary) -> list[str]:
    """The rows beside a plan that look better than it."""
    return [row.name for row in (*found.rows, *found.front) if Objective(found.limit).is_better(row, found.chosen)]


def test_a_given_program_that_is_better_is_the_plan(tmp_path: Path) -> None:
    module = loaded()
    given = pyshardy.cost(module, "v5e")
    plan = pyshardy.search(module, hardware="v5e", candidates=8)
    assert plan.step_seconds == given.step_seconds and not better_rows(plan.summary)
    again = pyshardy.cost(plan.apply(), "v5e")
    assert (again.step_seconds, again.peak_bytes) == (plan.step_seconds, plan.peak_bytes)
    assert "no plan that was found is better than the program as it was given" in " ".join(plan.notes)
    row = next(row for row in plan.summary.rows if row.name == "the best plan that was found")
    assert row.seconds > plan.step_seconds and AS_GIVEN not in {row.name for row in plan.summary.rows}
    plan.save(tmp_path / "plan.json")
    assert load_plan(tmp_path / "plan.json") == plan
    assert {name: str(spec) for name, spec in plan.specs.items()}["a"] == "PartitionSpec('x', None)"
    fresh = pyshardy.load(step, {"w": W}, *ARGUMENTS, mesh=MESH)
    assert pyshardy.cost(plan.apply(fresh), "v5e").step_seconds == plan.step_seconds


def test_what_fits_as_it_was_given_fits() -> None:
    module = loaded()
    memory = 1.01 * pyshardy.cost(module, "v5e").peak_bytes
    plan = pyshardy.search(module, hardware="v5e", candidates=8, memory=memory)
    assert plan.fits and "no candidate fits" not in " ".join(plan.notes)
    assert not next(row for row in plan.summary.rows if row.name == "the best plan that was found").fits


def test_without_keeping_a_better_plan_is_found() -> None:
    module = loaded()
    plan = pyshardy.search(module, hardware="v5e", candidates=60, keep=False)
    given = pyshardy.cost(module, "v5e")
    assert plan.step_seconds <= given.step_seconds and plan.peak_bytes < given.peak_bytes
    assert AS_GIVEN in {row.name for row in plan.summary.rows} and not better_rows(plan.summary)


def test_the_comparison_sees_a_better_row() -> None:
    found = pyshardy.search(loaded(), hardware="v5e", candidates=8).summary
    assert better_rows(replace(found, chosen=replace(found.chosen, seconds=100 * found.chosen.seconds)))


class Looks:
    """A state of a search in which the plans of experts look better than the plan, which takes a second."""

    def __init__(self, *wholes: float, is_like_whole: bool = False) -> None:
        self.plan, self.constrained = PlanRow("", 1.0, 1.0, True, True), None
        found = [ConstrainedAssignment(Answer((), {at: ()}), StepCost(0.5, 1.0)) for at in range(len(wholes))]
        self.experts = [ExpertPlan(str(at), one) for at, one in enumerate(found)]
        self.estimates = SimpleNamespace(
            is_like_whole=is_like_whole,
            best=lambda: (self.plan, ()),
            exact_row=lambda name, cost: PlanRow(name, cost.seconds, cost.bytes, True, False),
        )
        self.constraining = SimpleNamespace(module_of=lambda answer: wholes[next(iter(answer.constraints))])
        self.objective = Objective(limit=1e12)
        self.options = SimpleNamespace(row=lambda name, seconds: PlanRow(name, seconds, 1.0, True, True))


def test_plans_of_experts_that_look_better_are_partitioned() -> None:
    state = Looks(1.1, 0.999, 0.8)
    _partition_experts(state)
    assert [one.row.seconds for one in state.experts if one.row is not None] == [1.1, 0.999, 0.8]
    assert state.constrained is not None and state.constrained[0].seconds == 0.8  # 0.999 gains too little
    assert state.constrained[1] == state.experts[2].found


def test_exact_estimates_are_not_made_again() -> None:
    state = Looks(0.8, is_like_whole=True)
    _partition_experts(state)
    assert state.constrained is None and state.experts[0].row is None


def test_small_parameters_stay_whole_where_that_costs_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """By time alone, the plan would split a norm and its state too."""

    def loss(params, x):
        for w in params:
            wide = x.astype("float32")
            x = (wide * jax.lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * w["norm"]
            x = jax.numpy.tanh(x @ w["up"]) @ w["down"]
        return (x.astype("float32") ** 2).mean()

    def descent(params, mean, x):
        mean = jax.tree.map(lambda m, g: 0.9 * m + g, mean, jax.grad(loss)(params, x))
        return jax.tree.map(lambda p, m: p - m.astype(p.dtype), params, mean), mean

    shapes = {"up": (2048, 8192), "down": (8192, 2048), "norm": (2048,)}
    params, mean = (
        [{name: jax.ShapeDtypeStruct(shape, dtype) for name, shape in shapes.items()}] * 2
        for dtype in ("bfloat16", "float32")
    )
    x = jax.ShapeDtypeStruct((8192, 2048), "bfloat16")
    step = jax.jit(descent, donate_argnums=(0, 1))
    module = pyshardy.load(step, params, mean, x, mesh={"x": 4, "y": 2}, platform="tpu")

    def norms() -> set[str]:
        plan = pyshardy.search(module, hardware="v5e", candidates=60, constraints=False)
        return {str(spec) for name, spec in plan.specs.items() if "norm" in name}

    assert norms() == {"PartitionSpec(None)"}
    monkeypatch.setattr(settling, "_make_usual", lambda state: None)
    assert norms() != {"PartitionSpec(None)"}


@pytest.mark.slow
@pytest.mark.parametrize("count", [64, 3])
def test_the_batch_of_inputs_is_split_where_that_costs_nothing(count: int) -> None:
    """Where the program itself splits what it looks up, tokens may be whole at the same cost; people split them."""
    batch = "x" if count == 64 else None
    axes = jax.sharding.AbstractMesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def loss(params, tokens):
        x = params["table"][tokens]
        x = jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(axes, jax.sharding.PartitionSpec(batch)))
        return (jax.numpy.tanh(x @ params["w"]) ** 2).mean()

    params = {"table": jax.ShapeDtypeStruct((4096, 256), "float32"), "w": jax.ShapeDtypeStruct((256, 256), "float32")}
    tokens = jax.ShapeDtypeStruct((count, 512), "int32")
    module = pyshardy.load(loss, params, tokens, mesh={"x": 4, "y": 2}, platform="tpu")
    options = SearchOptions(find_hardware("v5e"), None, None, CollectiveModel.FORMULA, Objective(1e12), 600.0, 60, 0)
    search = Search(module, options, True, lambda text: None)
    search.explorer.seed()
    place = next(number for number, group in enumerate(search.space.groups) if group.name == "tokens")
    found = _with_batch(search, Answer(search.space.empty, {}))[place]
    assert found in ([(("x",), ()), (("y",), ())] if count == 64 else [((), ())])
    split = with_dims(search.space.empty, {place: found})
    assert _with_batch(search, Answer(split, {})) == split
