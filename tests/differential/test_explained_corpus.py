"""Everything in the corpus of JAX programs, and in random programs, can be explained: every value, every dimension, every collective."""

from __future__ import annotations

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy import Propagation, ShardyError

from .random_programs import Features, random_program

NAMES = [name for name in PROGRAMS if not name.startswith("flax")]
NOT_FOUND = {
    "branches": 1,
    "callbacks": 2,
    "exported_call": 1,
    "explicit_types": 2,
    "fully_sharded": 1,
    "unconstrained": 1,
}
"""Per program, the most collectives of which the cause is told in the words of the program per device."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_a_story(name: str) -> None:
    result = pyshardy.propagate(pyshardy.load(PROGRAMS[name].lower()), pyshardy.PropagateOptions(trace=True))
    check_stories(result)


def check_stories(result: Propagation) -> None:
    why = result.why
    for value in range(len(why.subject.program.shapes)):
        story = why.story(value)
        for dim in story.dims:
            assert dim.axes or dim.reasons
            assert not (dim.axes and dim.reasons)
    for row in result.conflicts():
        assert row.loser
        assert row.bytes_per_device >= 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_every_collective_has_a_cause(name: str) -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAMS[name].lower()))
    stories = partition.collectives
    assert sum(story.times for story in stories) == sum(row.times for row in partition.traffic.collectives)
    assert sum(story.total_bytes for story in stories) == sum(row.total_bytes for row in partition.traffic.collectives)
    found = [story.text for story in stories if "the program asks for it" not in story.text and story.operand is None]
    assert len(found) <= NOT_FOUND.get(name, 0), found
    assert not any("operand 0" in story.text for story in stories if story.operand is not None)


@pytest.mark.parametrize(
    "features",
    [
        Features(ops=8),
        Features(ops=8, priorities=0.5, constraints=0.3, meshes=2, groups=0.1),
        Features(ops=8, manual=0.3, groups=0.1),
        Features(ops=10, unreduced=0.2),
    ],
    ids=["plain", "priorities", "manual", "unreduced"],
)
def test_random_programs_can_be_explained(features: Features) -> None:
    explained = told = unknown = 0
    for seed in range(40):
        module, view = pyshardy.load(random_program(seed, features)), ("xla", "stablehlo")[seed % 2]
        try:
            result = pyshardy.propagate(module, pyshardy.PropagateOptions(trace=True), view=view)
        except ShardyError:
            continue
        check_stories(result)
        explained += 1
        try:
            partition = pyshardy.partition(result)
        except ShardyError:
            continue
        told += len(partition.collectives)
        unknown += sum(story.operand is None for story in partition.collectives)
    assert explained > 15
    assert told > 20
    assert unknown <= told / 6
