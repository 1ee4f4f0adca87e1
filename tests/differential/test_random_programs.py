"""Random programs: every level of propagation, and the whole pipeline, gives the reference's result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .compare import compare, our_outcome
from .random_programs import Features, random_program

PREPARE = "sdy-lift-inlined-meshes,sdy-add-data-flow-edges,sdy-sharding-group-import,"
PIPELINE = "sdy-propagation-pipeline"
LEVELS = {
    "basic": ("sdy-basic-propagate", Features(unreduced=0.1)),
    "aggressive": ("sdy-aggressive-propagate", Features(ops=30, meshes=2)),
    "op": ("sdy-op-priority-propagate", Features(ops=30)),
    "user": ("sdy-user-priority-propagate", Features(priorities=0.4)),
    "pipeline": (PIPELINE, Features(priorities=0.2, groups=0.0)),
    "large": (PIPELINE, Features(ops=200, priorities=0.1, groups=0.0, meshes=2)),
}
PROGRAMS = dict.fromkeys(LEVELS, 150) | {"large": 50}
CHUNK = 25
CHANGED_RULES = frozenset(("reshape", "pad", "dynamic_update_slice"))
"""Ops whose rule is another before jaxlib 0.12.

Source: docs/semantics/rules.md#older-versions-of-jaxlib
"""
IS_OLD = jaxlib_version() < (0, 12)


def pipeline_of(level: str) -> tuple[str, Features]:
    """The passes that a level runs, and what its programs hold."""
    pipeline, features = LEVELS[level]
    if IS_OLD:
        features = replace(features, without=CHANGED_RULES)
    return (pipeline if pipeline == PIPELINE else PREPARE + pipeline), features


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("level", "start"), [(level, start) for level, count in PROGRAMS.items() for start in range(0, count, CHUNK)]
)
def test_random_programs(level: str, start: int) -> None:
    if IS_OLD and LEVELS[level][0] == PIPELINE:
        pytest.skip(
            "before jaxlib 0.12 the import passes run in another order. "
            "Source: docs/semantics/import.md#older-versions-of-jaxlib"
        )
    pipeline, features = pipeline_of(level)
    for seed in range(start, start + CHUNK):
        found = compare(random_program(seed, features), pipeline)
        assert found == "", f"seed {seed}: {found}"


@pytest.mark.skipif(IS_OLD, reason="before jaxlib 0.12 the import passes run in another order")
def test_a_second_run_does_what_the_reference_does() -> None:
    for seed in range(20):
        once = our_outcome(random_program(seed, LEVELS["pipeline"][1]), PIPELINE).text
        assert once is not None
        found = compare(once, PIPELINE)
        assert found == "", f"seed {seed}: {found}"


def test_programs_are_deterministic_and_differ() -> None:
    texts = [random_program(seed) for seed in range(10)]
    assert texts == [random_program(seed) for seed in range(10)]
    assert len(set(texts)) == 10
    assert random_program(1, replace(Features(), ops=3)) != random_program(1)


def test_programs_have_from_a_few_to_a_few_hundred_ops() -> None:
    few, many = (random_program(2, Features(ops=ops)).count("stablehlo.") for ops in (3, 300))
    assert few < 20 < 300 < many
