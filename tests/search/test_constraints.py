"""Constraints of intermediate values: in a module as in the source, in stock JAX as predicted, and worth their lines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from search import blocks, models
from search.models import PROGRAMS, SMALL
from search.patching import apply_patch, imported
from search.truth import MESH, compiled, jax_mesh

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy import UsageError
from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.interface import input_tensors
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.source_values import SourceValue, constrained, source_values
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.patch import patched
from pyshardy.source.assignments import SourceAssignment, assignments, read_lines

Loader = Callable[[ModuleType], pyshardy.Module]
FILES = {"models": models, "blocks": blocks}
LOSSES = {
    "loss": blocks.small_layers,
    "remembered": blocks.small_layers,
    "scanned": blocks.stacked,
    "dispatched": blocks.experts,
}


def model_loader(program: str) -> Loader:
    def load(source: ModuleType) -> pyshardy.Module:
        step, arguments, _ = source.PROGRAMS[program](**SMALL[program])
        return pyshardy.load(step, *arguments, mesh=MESH)

    return load


def block_loader(loss: str) -> Loader:
    def load(source: ModuleType) -> pyshardy.Module:
        return pyshardy.load(source.descent(getattr(source, loss)), *LOSSES[loss](), mesh=MESH)

    return load


def one_constraint(value: SourceValue, statement: SourceAssignment) -> PlanConstraint | None:
    """The value along its first dimension that has an even size."""
    dim = next((dim for dim, size in enumerate(value.shape) if size % 2 == 0), None)
    axes = tuple(("data",) if place == dim else () for place in range(len(value.shape)))
    if dim is None:
        return None
    return PlanConstraint(
        statement.name, value.function, *value.span, value.shape, value.element, axes, value.count, 0.0, 0.0
    )


def constraints_of(module: pyshardy.Module) -> Counter[tuple[str, str]]:
    """The types and shardings of the constraints of a module."""
    found = ops_named(module.root, (CONSTRAINT,))
    return Counter((str(op.result.type), str(op.attrs["sharding"])) for op in found)


def traffic(module: pyshardy.Module) -> Counter[Any]:
    rows = pyshardy.partition(module).traffic.collectives
    return Counter((row.kind, row.axes, row.shape_before, row.shape_after) for row in rows)


ROUNDS_ARE_FUNCTIONS = jax.__version_info__ < (0, 12)
"""Whether JAX calls a function for every round of a scan, in which no value is found."""
WITHOUT_VALUES = {"dense", "scanned", "graph"} | ({"recurrent"} if ROUNDS_ARE_FUNCTIONS else set())

MOST = 4
"""Values of a program that are constrained, each in a module of its own."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "file, program, least",
    [
        *(("models", name, int(name not in WITHOUT_VALUES)) for name in PROGRAMS),
        ("blocks", "loss", 4),
        ("blocks", "remembered", 4),
        ("blocks", "scanned", 0 if ROUNDS_ARE_FUNCTIONS else 3),
        ("blocks", "dispatched", 2),
    ],
)
def test_a_constraint_of_a_module_is_that_of_its_line(file: str, program: str, least: int, tmp_path: Path) -> None:
    """Of the first values that assignments make: as many constraints as JAX makes of the line, at the same values."""
    load = model_loader(program) if file == "models" else block_loader(program)
    module, checked = load(FILES[file]), 0
    for value in source_values(module.root):
        lines = read_lines(value.span.file)
        statement = assignments(value.span.file, lines).get(value.span)
        one = None if statement is None else one_constraint(value, statement)
        if statement is None or one is None or checked == MOST:
            continue
        checked += 1
        ours = constrained(module, [(value, TensorSharding("mesh", [list(axes) for axes in one.axes]))])
        name = f"patched_{file}_{program}_{value.span.line}"
        theirs = load(imported(tmp_path / f"{name}.py", patched(lines, [(statement, one)])))
        assert constraints_of(ours) == constraints_of(theirs), one.place
        assert traffic(ours) == traffic(theirs), one.place
    assert checked >= least


def test_the_comparison_sees_a_missing_constraint_of_a_gradient() -> None:
    load = block_loader("loss")
    module = load(blocks)
    value = next(value for value in source_values(module.root) if value.function == "block" and len(value.shape) == 3)
    sharding = TensorSharding("mesh", [["data"], [], []])
    forward_alone = SourceValue(
        value.span, value.function, value.shape, value.element, value.count, value.made[: value.count]
    )
    whole, part = (constrained(module, [(one, sharding)]) for one in (value, forward_alone))
    assert constraints_of(whole).total() == 2 * constraints_of(part).total() == 2 * value.count


def megatron(mesh: Any, shapes: Any) -> pyshardy.Module:
    """Two blocks as people shard them."""
    module = pyshardy.load(blocks.descent(blocks.loss), *shapes, mesh=mesh, donate_argnums=0)
    return module.annotate({name: Spec(*axes) for name, axes in blocks.MEGATRON.items()})


@pytest.fixture(scope="module")
def plan() -> pyshardy.Plan:
    """A plan for blocks whose inputs are sharded already: only constraints are left to find."""
    return pyshardy.search(megatron(MESH, blocks.layers()), hardware="h100", budget_s=300, candidates=30)


def test_constraints_make_a_step_faster(plan: pyshardy.Plan) -> None:
    """Megatron's shardings take 1.46 ms on eight H100, with a constraint of what attention makes 1.35 ms."""
    given = next(row for row in plan.summary.rows if row.name == "as it was given")
    assert plan.summary.ended_by != "time" and given.is_exact
    assert plan.step_seconds < 0.95 * given.seconds
    assert 1 <= len(plan.constraints) <= 3
    again = pyshardy.cost(plan.apply(plan.module), "h100")
    assert (again.step_seconds, again.peak_bytes) == (plan.step_seconds, plan.peak_bytes)
    without = pyshardy.cost(plan.apply(constraints=False), "h100")
    assert without.step_seconds == pytest.approx(given.seconds)


def test_no_constraint_is_there_that_gains_nothing(plan: pyshardy.Plan) -> None:
    assert all(one.seconds > 1e-3 * plan.step_seconds for one in plan.constraints)
    assert all("longer" in one.why and one.place.split("/")[-1].startswith("blocks.py:") for one in plan.constraints)


def test_long_sequences_are_split_between_the_layers() -> None:
    """Sequence parallelism: what a block hands on is split along the sequence, what is in it along its weights.

    In the plan the new weights come back as the old ones; as it was given, they come back as propagation likes.
    """
    module = megatron(MESH, blocks.layers(width=4096, batch=2, length=4096))
    plan = pyshardy.search(module, hardware="v5e", budget_s=300, candidates=30)
    given = next(row for row in plan.summary.rows if row.name == "as it was given")
    specs = {one.name: one.spec for one in plan.constraints}
    assert specs[""] == Spec("data", "model", None)
    assert specs["mixed"] == Spec("data", None, "model")
    assert plan.step_seconds < 0.9 * given.seconds


def test_the_same_seed_finds_the_same_constraints(plan: pyshardy.Plan) -> None:
    again = pyshardy.search(megatron(MESH, blocks.layers()), hardware="h100", budget_s=300, candidates=30)
    assert again.constraints == plan.constraints


def test_a_plan_is_saved_with_its_constraints(plan: pyshardy.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "plan.json")
    loaded = pyshardy.load_plan(tmp_path / "plan.json")
    assert loaded == plan and loaded.constraints == plan.constraints and loaded.patch() == plan.patch()
    assert loaded.to_json() == plan.to_json() and str(loaded) == str(plan)
    assert plan.to_json()["constraints"][0]["line"] == plan.constraints[0].line
    module = loaded.apply(megatron(MESH, blocks.layers()))
    assert pyshardy.cost(module, "h100").step_seconds == plan.step_seconds


def test_the_plan_shows_its_constraints(plan: pyshardy.Plan) -> None:
    text = str(plan)
    assert "constraints of intermediate values" in text and "the best plan without constraints" in text
    assert all(f"blocks.py:{one.line} " in text and one.why.split()[5] in text for one in plan.constraints)


def test_constraints_are_not_put_where_nothing_is_made(plan: pyshardy.Plan) -> None:
    module = pyshardy.load(blocks.descent(blocks.loss), *blocks.small_layers(), mesh=MESH)
    with pytest.raises(UsageError, match=r"values of shape \[16, 1024") as caught:
        plan.apply(module)
    assert "constraints=False" in str(caught.value)
    assert constraints_of(plan.apply(module, constraints=False)).total() == 0


def stock(source: ModuleType, mesh: Any, shardings: Any, arguments: Any) -> Any:
    """A step, compiled by JAX without pyshardy."""
    step = jax.jit(source.descent(source.loss), in_shardings=shardings[0], out_shardings=shardings[1])
    with jax.set_mesh(mesh):
        return step.lower(*arguments).compile()


def test_stock_jax_makes_the_same_of_patched_source(plan: pyshardy.Plan, tmp_path: Path) -> None:
    """The patch in a copy of the source, compiled by JAX alone: the collectives and shardings of our module."""
    mesh, arguments = jax_mesh(), blocks.small_layers()
    small = pyshardy.load(blocks.descent(blocks.loss), *arguments, mesh=mesh)
    small = small.annotate({name: Spec(*axes) for name, axes in blocks.MEGATRON.items()})
    here = [{**one, "shape": (8, 32, 64 if one["shape"][-1] == 1024 else 256), "element": "f32"}
            for one in plan.to_json()["constraints"]]  # fmt: skip
    data = {**plan.to_json(), "constraints": here, "specs": []}
    (tmp_path / "plan.json").write_text(json.dumps(data))
    scaled = pyshardy.load_plan(tmp_path / "plan.json").for_module(small)
    lines = read_lines(blocks.__file__)
    source = imported(tmp_path / "patched_copy.py", apply_patch(lines, plan.patch()))
    shardings = scaled.in_shardings, scaled.out_shardings
    found, plain = (stock(one, mesh, shardings, arguments) for one in (source, blocks))
    ours = compiled(scaled.propagated.executable(engine="xla")._compiled.compiled())
    assert compiled(found).counts == ours.counts
    assert compiled(plain).counts != ours.counts
    leaves = jax.tree.leaves(arguments)
    for wanted, got, leaf in zip(
        jax.tree.leaves(shardings[0]), jax.tree.leaves(found.input_shardings[0]), leaves, strict=True
    ):
        assert got.is_equivalent_to(wanted, len(leaf.shape))
    rng = np.random.default_rng(0)
    arrays = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(leaf.dtype) * 0.1, arguments)
    wanted = jax.jit(blocks.descent(blocks.loss))(*arrays)
    with jax.set_mesh(mesh):
        step = jax.jit(source.descent(source.loss), in_shardings=shardings[0], out_shardings=shardings[1])
        made = step(*arrays)
    for one, other in zip(jax.tree.leaves(made), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_tokens_come_back_from_the_experts() -> None:
    """Experts along `model`, tokens along both axes: 3.75 ms; constrained, what the experts make goes back at once."""
    step, arguments, donated = PROGRAMS["routed"]()
    module = pyshardy.load(step, *arguments, mesh=MESH, donate_argnums=donated)
    specs = {port.name: Spec("model") if port.shape[0] == 16 else Spec() for port in input_tensors(module.root)}
    specs |= {f"data[{place}]": Spec(("data", "model")) for place in range(2)}
    plan = pyshardy.search(module.annotate(specs), hardware="v5e", candidates=400, budget_s=300)
    given = next(row for row in plan.summary.rows if row.name == "as it was given")
    assert [one.name for one in plan.constraints] == ["made"] and plan.constraints[0].spec == Spec(
        None, ("data", "model"), None, None
    )
    assert plan.step_seconds < 0.95 * given.seconds


def test_source_that_cannot_be_read_is_told_by_line(plan: pyshardy.Plan) -> None:
    text = plan.module.text(debug_info=True).replace("search/blocks.py", "nowhere/blocks.py")
    found = pyshardy.search(pyshardy.load(text), hardware="h100", budget_s=300, candidates=300)
    assert found.constraints and "@@" not in found.patch()
    assert all(
        line.startswith("after ") and "jax.lax.with_sharding_constraint(...," in line
        for line in found.patch().splitlines()
    )
    assert pyshardy.cost(found.apply(), "h100").step_seconds == found.step_seconds
