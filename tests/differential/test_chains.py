"""Laws of explanations, on random programs and on the corpus: chains are complete, they replay, they need their origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.errors import ShardyError
from pyshardy.explain.history import GIVEN_STEP, AxisPlacement
from pyshardy.ir.module import Module
from pyshardy.passes.flow import for_module, propagation_passes
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.transforms.context import Traced
from support.chains import all_chains, history_of, incomplete, kept_without_origin, not_replayed

from .random_programs import Features, random_program

FEATURES = [
    Features(ops=8),
    Features(ops=8, priorities=0.5, constraints=0.3, meshes=2, groups=0.1),
    Features(ops=8, manual=0.3, groups=0.1),
]


def traced(module: Module, view: str) -> Traced | None:
    """The traced run over a module; None if propagation refuses it."""
    options = PropagateOptions(trace=True).with_view(view)
    root = module.copy_root()
    try:
        context = run_on_root(module, root, propagation_passes(for_module(options, root)))
    except ShardyError:
        return None
    return context.runs[-1]


def runs(features: Features, count: int) -> Iterator[tuple[int, Traced]]:
    """The traced runs over random programs, each with its seed."""
    for seed in range(count):
        found = traced(Module.parse(random_program(seed, features)), ("stablehlo", "xla")[seed % 2])
        if found is not None:
            yield seed, found


@pytest.mark.parametrize("features", FEATURES, ids=["plain", "priorities", "manual"])
def test_laws_hold_for_random_programs(features: Features) -> None:
    chains = removed = 0
    for seed, run in runs(features, 120):
        history = history_of(run.program, run.propagated)
        assert list(incomplete(history)) == []
        assert list(not_replayed(history, run.propagated.steps.visits)) == []
        found = [item for item in all_chains(history) if item[2].links]
        chains += len(found)
        for value, dim, chain in Random(seed).sample(found, min(3, len(found))):
            assert kept_without_origin(run.program, history, chain, (value, dim)) is None
            removed += 1
    assert chains > 300
    assert removed > 50


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("flax")])
def test_laws_hold_for_jax_programs(name: str) -> None:
    run = traced(pyshardy.load(PROGRAMS[name].lower()), "xla")
    assert run is not None
    history = history_of(run.program, run.propagated)
    assert list(incomplete(history)) == []
    assert list(not_replayed(history, run.propagated.steps.visits)) == []


# The checkers themselves


def some_run() -> Traced:
    run = traced(pyshardy.load(PROGRAMS["mlp_training"].lower()), "xla")
    assert run is not None
    return run


def test_a_missing_step_is_found() -> None:
    run = some_run()
    steps = tuple(run.propagated.steps)
    history = history_of(run.program, replace(run.propagated, steps=steps[1:]))
    assert any("has the chains []" in problem for problem in incomplete(history))


def test_a_step_too_many_is_found() -> None:
    run = some_run()
    history = history_of(run.program, run.propagated)
    value, dim, chain = next(item for item in all_chains(history) if item[2].links)
    history.placements[value].append(AxisPlacement(dim, chain.axis, GIVEN_STEP))
    problems = list(incomplete(history))
    assert any("has the chains" in problem for problem in problems)
    assert any("begins at no annotation" in problem for problem in problems)


def test_a_wrong_way_is_found() -> None:
    run = some_run()
    steps = run.propagated.steps
    history = history_of(run.program, run.propagated)
    visits = [(op, step._replace(directions=(step.directions[0].NONE,) * len(step.directions)), *rest)
              for op, step, *rest in steps.visits]  # fmt: skip
    assert any("does not come by" in problem for problem in not_replayed(history, visits))


def test_an_origin_that_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from support import chains

    run = some_run()
    history = history_of(run.program, run.propagated)
    value, dim, chain = next(item for item in all_chains(history) if item[2].links)
    assert kept_without_origin(run.program, history, chain, (value, dim)) is None
    monkeypatch.setattr(chains, "_without_origin", lambda program, chain: program)
    problem = kept_without_origin(run.program, history, chain, (value, dim))
    assert problem is not None
    assert "still comes from" in problem
