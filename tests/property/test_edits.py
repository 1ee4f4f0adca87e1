"""Laws of edits: an edit gives what annotating and propagating from the start gives, value by value."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pyshardy
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.propagation.layout import Layout
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.rerun import Rerun, rerun
from pyshardy.propagation.run import Propagated, propagate_program
from pyshardy.propagation.timeline import ShardingTimeline
from pyshardy.results.edit_base import INPUT
from support.edits import (
    Changes,
    program_with_dead_code,
    random_annotations,
    random_changes,
    random_options,
    with_changes,
)

from ..differential.random_programs import Features, random_program

SEEDS = st.integers(0, 100_000)
FEATURES = st.sampled_from(
    (Features(), Features(ops=30, priorities=0.3), Features(ops=40, meshes=2), Features(annotated=0, constraints=0))
)
FEW = settings(max_examples=max(8, settings().max_examples // 4))
EVERYTHING = 10**9


def run_of(seed: int, features: Features, options: PropagateOptions) -> tuple[Program, Propagated]:
    try:
        result = pyshardy.propagate(Module.parse(random_program(seed, features)), options)
    except ShardyError:
        assume(False)
    run = result.sharded.runs[-1]
    return run.program, run.propagated


def timeline_of(program: Program, run: Propagated, options: PropagateOptions) -> ShardingTimeline:
    assert run.recording is not None
    return ShardingTimeline(Layout(program, options, run.recording), run.recording.visits)


def check_rerun(program: Program, run: Propagated, changes: Changes, found: Rerun, options: PropagateOptions) -> None:
    """That a run again gives what a run over everything gives."""
    expected = propagate_program(with_changes(program, changes), options).shardings
    got = [found.shardings.get(value, sharding) for value, sharding in enumerate(run.shardings)]
    assert [str(one) for one in got] == [str(one) for one in expected]


@FEW
@given(SEEDS, FEATURES)
def test_a_timeline_ends_with_what_propagation_found(seed: int, features: Features) -> None:
    options = random_options(Random(seed))
    program, run = run_of(seed, features, options)
    assert tuple(timeline_of(program, run, options).last[: len(program.shapes)]) == run.shardings


@pytest.mark.slow
@FEW
@given(SEEDS, FEATURES)
def test_running_again_gives_what_a_run_over_everything_gives(seed: int, features: Features) -> None:
    random = Random(seed)
    options = random_options(random)
    program, run = run_of(seed, features, options)
    timeline = timeline_of(program, run, options)
    for _ in range(4):
        changes = random_changes(random, program, run)
        found = rerun(timeline, changes, EVERYTHING)
        if found is not None:
            check_rerun(program, run, changes, found, options)


@given(SEEDS)
def test_running_again_through_dead_code_gives_what_a_run_over_everything_gives(seed: int) -> None:
    random = Random(seed)
    program, options = program_with_dead_code(random), random_options(random)
    run = propagate_program(program, options)
    timeline = timeline_of(program, run, options)
    assert tuple(timeline.last[: len(program.shapes)]) == run.shardings
    assert sorted(timeline.layout.erasures.turns) == list(run.erased)
    for _ in range(4):
        changes = random_changes(random, program, run)
        found = rerun(timeline, changes, EVERYTHING)
        if found is not None:
            check_rerun(program, run, changes, found, options)


def test_a_wrong_run_is_found() -> None:
    options = PropagateOptions()
    for seed in range(40):
        program, run = run_of(seed, Features(annotated=0, constraints=0), options)
        changes = random_changes(Random(seed), program, run)
        found = rerun(timeline_of(program, run, options), changes, EVERYTHING)
        if found is not None and len(found.shardings) > 1:
            some = dict(list(found.shardings.items())[1:])
            with pytest.raises(AssertionError):
                check_rerun(program, run, changes, Rerun(some, found.ops, found.visits), options)
            return
    pytest.fail("no edit changes anything")


@pytest.mark.slow
@FEW
@given(SEEDS, FEATURES)
def test_an_edit_gives_what_annotating_and_propagating_gives(seed: int, features: Features) -> None:
    random = Random(seed)
    module = Module.parse(random_program(seed, features))
    try:
        result = pyshardy.propagate(module, random_options(random))
    except ShardyError:
        assume(False)
    for _ in range(3):
        annotations = random_annotations(random, result)
        annotated = module.annotate(annotations)
        try:
            expected = pyshardy.propagate(annotated, result.options)
        except ShardyError:
            with pytest.raises(ShardyError):
                _ = result.edit(annotations).result
            continue
        edit = result.edit(annotations)
        _ = edit.difference
        found = edit.result
        assert found.module.text(debug_info=True) == expected.module.text(debug_info=True)
        assert found.warnings == expected.warnings
        assert found.summary.to_json() == expected.summary.to_json()
        if edit.state is not None:
            for kind, port in edit.state.base.tensors():
                ports = found.inputs if kind == INPUT else found.outputs
                expected_sharding = next(one.sharding for one in ports if one.index == port.index)
                assert edit.state.base.final(edit.state, kind, port) is expected_sharding
        if random.random() < 0.5:
            result, module = found, annotated
