"""Laws of propagation: of projection, of single steps, and of whole random programs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyshardy.core.axis_lists import is_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.propagation import run as run_module
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions, StrategyOption
from pyshardy.propagation.program import Direction, Program
from pyshardy.propagation.projection import axes_if_same, project, unproject
from pyshardy.propagation.run import propagate_program
from pyshardy.propagation.step import StepInput, Strategy, explain_step, propagate_step
from pyshardy.rules.rule import Rule
from support.hash_seeds import printed_under_hash_seeds
from support.traces import unexplained

from ..differential.random_programs import Features, random_program
from .strategies import meshes, tensor_shardings
from .test_rules import rules

Shardings = list[TensorSharding | None]
MESHES = meshes(min_axes=1)
PRIME_SIZES = st.lists(st.sampled_from((2, 3, 2, 5)), min_size=1, max_size=3)
PRIME_MESHES = PRIME_SIZES.map(lambda sizes: Mesh(zip("pqr", sizes)))
"""Meshes whose axes have no sub-axes."""


class Case(NamedTuple):
    """A step and the shardings it starts from."""

    step: StepInput
    shardings: Shardings
    mesh: Mesh

    def after(self, shardings: Shardings | None = None) -> Shardings:
        """All shardings after one step."""
        found = list(self.shardings if shardings is None else shardings)
        for tensor, new in propagate_step(self.step, found, {"mesh": self.mesh}):
            found[tensor] = new
        return found


@st.composite
def cases(draw: st.DrawFn, axes: st.SearchStrategy[Mesh] = MESHES) -> Case:
    """A step through a random rule, with random directions, from shardings on one mesh."""
    rule = draw(rules)
    mesh = draw(axes)
    shardings = [draw(st.none() | tensor_shardings(mesh, rank=len(tensor))) for tensor in rule.tensors]
    count = len(rule.factor_sizes)
    directions = draw(st.lists(st.sampled_from(Direction), min_size=count, max_size=count))
    step = StepInput(rule, tuple(directions), draw(st.sampled_from(Strategy)), draw(st.booleans()), draw(st.booleans()))
    return Case(step, shardings, mesh)


# Projection


@given(rules, MESHES, st.data())
def test_projecting_back_gives_what_was_projected(rule: Rule, mesh: Mesh, data: st.DataObject) -> None:
    for mapping in rule.tensors:
        sharding = data.draw(tensor_shardings(mesh, rank=len(mapping)))
        state = project(sharding, mapping, rule.factor_sizes, mesh)
        dims = unproject(state, mapping, rule.factor_sizes, mesh)
        assert dims == tuple(dim.without_priority() for dim in sharding.dims)


# One step


@given(cases(PRIME_MESHES))
def test_a_repeated_step_changes_nothing(case: Case) -> None:
    # The exceptions are rare, and the engine knows them: a sub-axis that grows may stop cutting another one in an
    # impossible place, and where a dimension has several factors an axis may be dropped when it is written.
    assume(not case.step.rule.has_compound_dims)
    once = case.after()
    assert case.after(once) == once


@given(cases(), st.data())
def test_no_step_changes_tensors_that_show_the_same(case: Case, data: st.DataObject) -> None:
    found = case.after(case.after())
    rule = case.step.rule
    assume(axes_if_same(rule, found) is not None)
    states = [project(one, mapping, rule.factor_sizes, case.mesh) for one, mapping in zip(found, rule.tensors)]
    for factor, axes in (axes_if_same(rule, found) or {}).items():
        assert {state.factors[factor].axes for state in states if factor in state.factors} == {axes}
    count = len(rule.factor_sizes)
    directions = data.draw(st.lists(st.sampled_from(Direction), min_size=count, max_size=count))
    for strategy in Strategy:
        step = case.step._replace(directions=tuple(directions), strategy=strategy)
        assert propagate_step(step, found, {"mesh": case.mesh}) == ()


@given(cases())
def test_repeated_steps_come_to_an_end(case: Case) -> None:
    found = case.after()
    for _ in range(4):
        found = case.after(found)
    assert case.after(found) == found


@given(cases())
def test_a_step_only_adds(case: Case) -> None:
    for old, new in zip(case.shardings, case.after()):
        if old is None:
            assert new is None or (any(dim.axes for dim in new.dims) and all(dim.is_open for dim in new.dims))
        elif new is not old:
            assert new is not None
            assert (new.replicated, new.unreduced, new.reduction) == (old.replicated, old.unreduced, old.reduction)
            for before, after in zip(old.dims, new.dims, strict=True):
                assert is_prefix(before.axes, after.axes)
                assert after.is_open == before.is_open
                assert before.is_open or after.axes == before.axes


@given(cases())
def test_a_step_gives_valid_shardings(case: Case) -> None:
    for tensor, new in propagate_step(case.step, case.shardings, {"mesh": case.mesh}):
        check_sharding(new, case.mesh, len(case.step.rule.tensors[tensor]))
        assert all(dim.priority is None for dim in new.dims)


@given(cases())
def test_what_a_step_moves_was_somewhere(case: Case) -> None:
    before = [
        project(sharding, mapping, case.step.rule.factor_sizes, case.mesh)
        for sharding, mapping in zip(case.shardings, case.step.rule.tensors)
    ]
    moves = explain_step(case.step, case.shardings, {"mesh": case.mesh})
    for move in moves:
        assert move.source is not None
        held = before[move.source].factors[move.factor].axes
        assert all(any(other.contains(axis) for other in held) for axis in move.axes)
    updated = {tensor for tensor, _ in propagate_step(case.step, case.shardings, {"mesh": case.mesh})}
    assert updated <= {move.target for move in moves}


# Whole programs

PREPARE = "sdy-lift-inlined-meshes,sdy-add-data-flow-edges,sdy-sharding-group-import"
FEATURES = Features(ops=20, priorities=0.3)
SEEDS = st.integers(0, 100_000)
FEW = settings(max_examples=settings().max_examples // 4)


def annotated_text(seed: int, features: Features = FEATURES) -> str:
    """A random module, imported as far as propagation needs it."""
    return run_passes(Module.parse(random_program(seed, features)), parse_pipeline(PREPARE)).text()


@cache
def annotated_program(seed: int) -> Program:
    """The same as a `Program`; without groups, whose members the passes give equal shardings first."""
    module = Module.parse(annotated_text(seed, replace(FEATURES, groups=0.0)))
    with module.context:
        return build_program(module.copy_root(), OpSpecReader())[0]


def propagated_text(text: str) -> str:
    """The module after user-priority propagation."""
    module = run_passes(Module.parse(text), parse_pipeline("sdy-user-priority-propagate"))
    module.verify()
    return module.text()


@FEW
@given(SEEDS)
def test_propagating_again_changes_nothing(seed: int) -> None:
    once = propagated_text(annotated_text(seed))
    assert propagated_text(once) == once


@FEW
@given(SEEDS, st.sampled_from(StrategyOption), st.booleans())
def test_propagation_only_adds(seed: int, strategy: StrategyOption, conservative: bool) -> None:
    program = annotated_program(seed)
    found = propagate_program(program, PropagateOptions(strategy, conservative=conservative)).shardings
    for value, old, new in zip(program.values, program.shardings, found):
        if new is not None:
            check_sharding(new, program.meshes[new.mesh], len(value.shape or ()))
        if old is None:
            continue
        assert new is not None
        assert (new.unreduced, new.reduction) == (old.unreduced, old.reduction)
        assert new.replicated == old.replicated
        for before, after in zip(old.dims, new.dims, strict=True):
            assert is_prefix(before.axes, after.axes)
            assert after.is_open == before.is_open
            assert before.is_open or after.axes == before.axes


@FEW
@given(SEEDS)
def test_what_waits_for_its_priority_is_not_used(seed: int) -> None:
    program = annotated_program(seed)
    viewed = {value for op in program.ops if op.view is not None for value in op.results}
    rounds = []

    def look(priority: int, engine: PropagationEngine) -> None:
        rounds.append(priority)
        for value, (original, now) in enumerate(zip(program.shardings, engine.shardings)):
            if original is None or value in viewed:
                continue
            assert now is not None
            waiting = [index for index, dim in enumerate(original.dims) if (dim.priority or 0) > priority]
            assert all(not now.dims[index].axes and not now.dims[index].is_open for index in waiting)
            hidden = [axis for index in waiting for axis in original.dims[index].axes]
            assert all(not axis.overlaps(other) for axis in hidden for dim in now.dims for other in dim.axes)
            assert set(hidden) <= set(now.replicated)

    propagate_program(program, after_user_priority=look)
    given_ = {dim.priority for one in program.shardings if one is not None for dim in one.dims if dim.priority}
    assert rounds == [0, *sorted(given_)]


@FEW
@given(SEEDS, st.sampled_from(StrategyOption))
def test_every_axis_is_explained(seed: int, strategy: StrategyOption) -> None:
    program = annotated_program(seed)
    traced = propagate_program(program, PropagateOptions(strategy, trace=True))
    assert list(unexplained(program, traced)) == []
    plain = propagate_program(program, PropagateOptions(strategy))
    assert (plain.shardings, plain.erased, plain.steps) == (traced.shardings, traced.erased, ())


class Thorough(PropagationEngine):
    """Visits every op in every sweep, whatever it knows of earlier visits."""

    def _visit(self, number: int, clean: bytearray, plans: list, round_: int) -> None:
        super()._visit(number, clean, plans, round_)
        clean[number] = 0


@FEW
@given(SEEDS)
def test_what_the_engine_skips_would_change_nothing(seed: int) -> None:
    program = annotated_program(seed)
    found = propagate_program(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "PropagationEngine", Thorough)
        assert propagate_program(program) == found


@pytest.mark.slow
def test_an_order_of_hashes_that_matters_is_noticed() -> None:
    assert len(printed_under_hash_seeds("print(*{'one', 'two', 'three', 'four', 'five', 'six'})")) > 1


@pytest.mark.slow
def test_the_order_of_hashes_does_not_matter() -> None:
    code = (
        "from tests.property.test_propagation import *\n"
        "for seed in range(12): print(propagated_text(annotated_text(seed)))\n"
        "print(run_passes(Module.parse(random_program(1)), parse_pipeline('sdy-propagation-pipeline')).text())"
    )
    (text,) = printed_under_hash_seeds(code)
    assert text.count(b"sdy.mesh") >= 13
