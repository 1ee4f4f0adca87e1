"""Plans compared with shardings written by people, with the best of all shardings, and with stock JAX."""

from __future__ import annotations

from itertools import islice, product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import jax
import numpy as np
import pytest
from search.compare import (
    CHIPS,
    MESHES,
    MODELS,
    Case,
    Result,
    best_expert,
    compared,
    every,
    experts_for,
    given_back,
    load,
    part,
    table,
    with_specs,
)
from search.experts import experts_of, random_plans
from search.models import PROGRAMS
from search.page import END, begin, read_part, write_part

import pyshardy
from pyshardy import PartitionSpec as Spec
from pyshardy import UsageError
from pyshardy.frontend.interface import input_tensors, output_tensors

MESH = {"data": 2, "model": 4}
TINY = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<4096x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4096x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16>
  %1 = stablehlo.tanh %0 : tensor<4096x4096xbf16>
  return %1 : tensor<4096x4096xbf16>
}"""

TWO_LAYERS = """
sdy.mesh @mesh = <["data"=8, "model"=4]>
func.func @main(%a: tensor<8192x4096xbf16>, %b: tensor<4096x16384xbf16>, %c: tensor<16384x4096xbf16>)
    -> tensor<8192x4096xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8192x4096xbf16>, tensor<4096x16384xbf16>) -> tensor<8192x16384xbf16>
  %1 = stablehlo.tanh %0 : tensor<8192x16384xbf16>
  %2 = stablehlo.dot_general %1, %c, contracting_dims = [1] x [0]
    : (tensor<8192x16384xbf16>, tensor<16384x4096xbf16>) -> tensor<8192x4096xbf16>
  return %2 : tensor<8192x4096xbf16>
}"""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("program", "chip"), [*product(["dense", "experts", "scanned"], ["v5e", "h100"])])
def test_no_worse_than_people(program: str, chip: str) -> None:
    found = compared(Case(program, "2x4", chip), budget_s=120, candidates=200)
    assert found.verdict in ("win", "equal"), found


def test_the_comparison_says_when_people_are_better() -> None:
    loss = Result(Case("p", "8", "h100"), 2.0, 1.0, "Megatron", True, 1, 1.0)
    assert loss.verdict == "loss"
    assert loss._replace(plan=0.5).verdict == "win"
    assert loss._replace(plan=1.0).verdict == "equal"
    assert loss._replace(fits=False).verdict == "does not fit"
    assert "1 loss" in table([loss])


def test_people_disagree_and_their_shardings_are_used() -> None:
    module = load("dense", MESH)
    experts = experts_for("dense", module, MESH)
    assert len({str(expert.specs) for expert in experts}) > 4
    annotated = with_specs(module, experts[-1].specs)
    assert any(port.sharding is not None and port.sharding.all_axes() for port in input_tensors(annotated.root))
    seconds, name = best_expert("dense", module, MESH, "h100", "formula")
    assert 0 < seconds < pyshardy.cost(module, "h100").step_seconds and name


def _all_specs(shape: tuple[int, ...], mesh: dict[str, int]) -> list[Any]:
    """All shardings of an input: every axis on one dimension or none, in both orders."""
    found = []
    for places in product(range(-1, len(shape)), repeat=len(mesh)):
        for order in (list(mesh), list(mesh)[::-1]):
            axes = [[name for name in order if places[list(mesh).index(name)] == dim] for dim in range(len(shape))]
            if all(size % prod(mesh[name] for name in names) == 0 for size, names in zip(shape, axes)):
                found.append(tuple(tuple(names) for names in axes))
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("chip", ["v5e", "h100"])
def test_tiny_program_gets_the_best_of_all(chip: str) -> None:
    module = pyshardy.load(TINY)
    mesh = {"a": 2, "b": 2}
    best = min(
        pyshardy.cost(module.annotate({"arg0": Spec(*map(list, x)), "arg1": Spec(*map(list, w))}), chip).step_seconds
        for x in _all_specs((4096, 1024), mesh)
        for w in _all_specs((1024, 4096), mesh)
    )
    plan = pyshardy.search(module, hardware=chip, budget_s=120)
    assert plan.step_seconds == pytest.approx(best, rel=1e-9)


def test_same_seed_same_plan() -> None:
    first, second = (pyshardy.search(TINY, hardware="v5e", seed=3, budget_s=120).summary for _ in range(2))
    assert first.ended_by != "time"
    assert first.specs == second.specs
    assert (first.rows, first.front, first.candidates) == (second.rows, second.front, second.candidates)


def test_plan_is_no_worse_than_what_it_shows_beside_it() -> None:
    plan = pyshardy.search(load("dense", MESH), hardware="h100", budget_s=120, candidates=60)
    rows = [row for row in plan.summary.rows if row.is_exact and row.fits]
    assert rows and all(plan.step_seconds <= row.seconds for row in rows)
    assert {row.name for row in rows} & {"data over data+model", "Megatron over model, data over data"}


def test_plan_is_what_cost_says_of_it(tmp_path: Path) -> None:
    module = load("dense", MESH)
    plan = pyshardy.search(module, hardware="h100", budget_s=120, candidates=40)
    again = pyshardy.cost(plan.apply(module), "h100")
    assert (again.step_seconds, again.peak_bytes) == (plan.step_seconds, plan.peak_bytes)
    plan.save(tmp_path / "plan.json")
    loaded = pyshardy.load_plan(tmp_path / "plan.json")
    assert loaded == plan and loaded.to_json() == plan.to_json() and str(loaded) == str(plan)
    assert pyshardy.cost(loaded.apply(module), "h100").step_seconds == plan.step_seconds
    with pytest.raises(UsageError, match="for_module"):
        loaded.apply()


def test_stock_jax_shards_as_the_plan_says() -> None:
    def step(params: Any, x: Any) -> Any:
        return {"w": params["w"] * 0.9, "v": params["v"] * 0.9}, jax.numpy.tanh(x @ params["w"]) @ params["v"]

    params = {"w": jax.ShapeDtypeStruct((128, 512), "float32"), "v": jax.ShapeDtypeStruct((512, 128), "float32")}
    x = jax.ShapeDtypeStruct((4096, 128), "float32")
    auto = (jax.sharding.AxisType.Auto,) * 2
    mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=auto)
    plan = pyshardy.search(step, params, x, mesh=mesh, hardware="v5e", budget_s=120)
    jitted = jax.jit(step, in_shardings=plan.in_shardings, out_shardings=plan.out_shardings)
    compiled = jitted.lower(params, x).compile()
    for wanted, got, leaf in zip(
        jax.tree.leaves((plan.in_shardings, plan.out_shardings)),
        jax.tree.leaves((compiled.input_shardings[0], compiled.output_shardings)),
        [*jax.tree.leaves((params, x)), *jax.tree.leaves(jax.eval_shape(step, params, x))],
        strict=True,
    ):
        assert got.is_equivalent_to(wanted, len(leaf.shape)), (got, wanted)
    rng = np.random.default_rng(0)
    arrays = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape).astype(leaf.dtype), (params, x))
    for got, wanted in zip(jax.tree.leaves(jitted(*arrays)), jax.tree.leaves(jax.jit(step)(*arrays)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-3)


def test_a_plan_over_names_and_sizes_runs_on_devices() -> None:
    """JAX does not run on arrays over an abstract mesh, so the test asks for shardings with devices."""
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((4096, 128), (128, 512))]
    plan = pyshardy.search(jax.numpy.matmul, *shapes, mesh={"data": 8}, hardware="v5e", candidates=20)
    devices = jax.devices()
    into, out = plan.input_shardings(devices), plan.output_shardings(devices)
    assert into != plan.in_shardings and {leaf.mesh.size for leaf in jax.tree.leaves((into, out))} == {8}
    arrays = [jax.numpy.ones(shape.shape, shape.dtype) for shape in shapes]
    found = jax.jit(jax.numpy.matmul, in_shardings=into, out_shardings=out)(*arrays)
    assert found.sharding.is_equivalent_to(out, 2) and len(found.addressable_shards) == 8
    np.testing.assert_allclose(found, np.full((4096, 512), 128.0))
    with pytest.raises(UsageError, match="8"):
        plan.input_shardings(devices[:4])


def test_memory_is_a_hard_limit() -> None:
    module = pyshardy.load(TWO_LAYERS)
    free = pyshardy.search(module, hardware="h100", budget_s=60, candidates=60)
    tight = pyshardy.search(module, hardware="h100", budget_s=60, candidates=60, memory=150e6)
    assert free.peak_bytes > 150e6 >= tight.peak_bytes and tight.fits
    assert free.step_seconds < tight.step_seconds
    none = pyshardy.search(module, hardware="h100", budget_s=60, candidates=60, memory=1e6)
    assert not none.fits and "no candidate fits" in none.notes[0]
    assert "MiB, " in none.notes[0] and "0.0 GiB" not in "".join(none.notes)
    assert none.peak_bytes <= tight.peak_bytes


def test_given_shardings_are_kept_or_let_go() -> None:
    module = pyshardy.load(TINY).annotate({"arg0": Spec(None, "a")})
    kept = pyshardy.search(module, hardware="v5e", budget_s=60)
    assert "arg0" not in kept.specs
    assert str(input_tensors(kept.apply().root)[0].sharding) == '<@mesh, [{}, {"a"}]>'
    free = pyshardy.search(module, hardware="v5e", budget_s=60, keep=False)
    assert "arg0" in free.specs and free.step_seconds < kept.step_seconds


def test_mesh_is_chosen() -> None:
    plan = pyshardy.search(TINY.split("\n", 2)[2], hardware="v5e", devices=4, budget_s=30)
    assert prod(plan.mesh.values()) == 4 and plan.fits


@pytest.mark.parametrize(
    "options, message",
    [
        ({"budget_s": 0}, "more than 0"),
        ({"memory": -1}, "more than 0"),
        ({"devices": 4, "mesh": {"a": 4}}, "one of them"),
        ({"hardware": "abacus"}, "abacus"),
        ({"devices": 0}, "a number from 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        pyshardy.search(TINY, **options)


def test_no_mesh_is_refused() -> None:
    with pytest.raises(UsageError, match="without a mesh"):
        pyshardy.search(TINY.split("\n", 2)[2])


def test_interrupted_search_gives_the_best_so_far() -> None:
    told: list[str] = []

    def interrupt(text: str) -> None:
        told.append(text)
        if len(told) > 1:
            raise KeyboardInterrupt

    plan = pyshardy.search(load("dense", MESH), hardware="h100", progress=interrupt)
    assert plan.summary.ended_by == "interruption" and plan.step_seconds > 0


def test_the_part_that_is_compared_has_everything_twice() -> None:
    cases = list(part())
    assert len(set(cases)) == len(cases) == len(PROGRAMS) * len(MESHES)
    for names, place in ((PROGRAMS, 0), (MESHES, 1), (CHIPS, 2), (MODELS, 3)):
        counts = [sum(case[place] == name for case in cases) for name in names]
        assert len(counts) > 2 and min(counts) >= 2
    assert {case[1:] for case in cases} == {
        (mesh, chip, model) for mesh in MESHES for chip in CHIPS for model in MODELS
    }
    assert set(cases) < set(every(PROGRAMS, MESHES, CHIPS, MODELS))


@pytest.mark.parametrize("program", PROGRAMS)
def test_people_have_several_ways_for_every_program(program: str) -> None:
    shapes = {port.name: port.shape for port in input_tensors(load(program, MESH).root)}
    for mesh in MESHES.values():
        found = list(experts_of(program, shapes, mesh))
        assert len(found) >= 4 and len({str(expert.specs) for expert in found}) == len({one.name for one in found})
        assert any(any(spec) for expert in found for spec in expert.specs.values())
        for name, spec in ((name, spec) for expert in found for name, spec in expert.specs.items()):
            used = [axis for axes in spec for axis in axes]
            assert len(set(used)) == len(used) and len(spec) == len(shapes[name])
            assert all(size % prod(mesh[axis] for axis in axes) == 0 for size, axes in zip(shapes[name], spec))


def test_what_a_step_gives_back_is_sharded_as_what_it_takes() -> None:
    module = load("decode", MESH)
    assert given_back(module) == {f"result[0]['{name}']": f"cache['{name}']" for name in ("keys", "values")}
    specs = {port.name: ((),) * len(port.shape) for port in input_tensors(module.root)}
    found = with_specs(module, {**specs, "cache['keys']": (("data",), (), (), ())})
    outputs = {port.name: str(port.sharding) for port in output_tensors(found.root)}
    assert '"data"' in outputs["result[0]['keys']"] and '"data"' not in outputs["result[0]['values']"]


def test_random_plans_are_different_and_fit() -> None:
    shapes = {port.name: port.shape for port in input_tensors(load("routed", MESH).root)}
    plans = list(islice(random_plans("routed", shapes, MESH, Random(0)), 30))
    assert len({str(plan.specs) for plan in plans}) == 30
    assert plans == list(islice(random_plans("routed", shapes, MESH, Random(0)), 30))


def test_a_tool_writes_its_own_part_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"a\n{begin('one')}\nold\n{END}\nb\n{begin('two')}\nkept\n{END}\nc\n")
    write_part("one", "new\nlines", page)
    assert page.read_text() == f"a\n{begin('one')}\nnew\nlines\n{END}\nb\n{begin('two')}\nkept\n{END}\nc\n"
    assert read_part("two", page) == "kept"
    with pytest.raises(ValueError):
        write_part("three", "new", page)


def test_the_page_shows_wins_and_losses() -> None:
    rows = [line.split(" | ") for line in read_part("compare").splitlines() if line.startswith("| ")][2:]
    verdicts = [row[8] for row in rows]
    for row, verdict in zip(rows, verdicts):
        ratio = float(row[7])
        assert verdict == "loss" if ratio > 1.002 else verdict in ("win", "equal", "loss"), row
        assert verdict == "win" if ratio < 0.985 else verdict in ("win", "equal", "loss"), row
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in ("win", "equal", "loss", "does not fit"))
    assert read_part("compare").endswith(f"Of {len(rows)}: {counts}.")
