"""Random programs: every level of propagation, and the whole pipeline, gives the reference's result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.reference import jaxlib_version

from .compare import compare
from .random_programs import Features, random_program

PREPARE = "sdy-lift-inlined-meshes,sdy-add-data-flow-edges,sdy-sharding-group-import,"
LEVELS = {
    "basic": ("sdy-basic-propagate", Features(unreduced=0.1)),
    "aggressive": ("sdy-aggressive-propagate", Features(ops=30, meshes=2)),
    "op": ("sdy-op-priority-propagate", Features(ops=30)),
    "user": ("sdy-user-priority-propagate", Features(priorities=0.4)),
    "pipeline": ("sdy-propagation-pipeline", Features(priorities=0.2, groups=0.0)),
}
CHUNK = 25
CHANGED_RULES = frozenset(("reshape", "pad", "dynamic_update_slice"))
"""Ops whose rule is another before jaxlib 0.12 (sharding-rule spec, section 12)."""
IS_OLD = jaxlib_version() < (0, 12)


def pipeline_of(level: str) -> tuple[str, Features]:
    """The passes that a level runs, and what its programs hold."""
    pipeline, features = LEVELS[level]
    if IS_OLD:
        features = replace(features, without=CHANGED_RULES)
    return (pipeline if level == "pipeline" else PREPARE + pipeline), features


@pytest.mark.parametrize("start", range(0, 100, CHUNK))
@pytest.mark.parametrize("level", LEVELS)
def test_random_programs(level: str, start: int) -> None:
    if IS_OLD and level == "pipeline":
        pytest.skip("before jaxlib 0.12 the import passes run in another order (import spec, section 10)")
    pipeline, features = pipeline_of(level)
    for seed in range(start, start + CHUNK):
        found = compare(random_program(seed, features), pipeline)
        assert found == "", f"seed {seed}: {found}"


def test_programs_are_deterministic_and_differ() -> None:
    texts = [random_program(seed) for seed in range(10)]
    assert texts == [random_program(seed) for seed in range(10)]
    assert len(set(texts)) == 10
    assert random_program(1, replace(Features(), ops=3)) != random_program(1)
