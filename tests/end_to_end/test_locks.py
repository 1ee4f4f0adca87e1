"""The locks of real programs: written, read and compared, and with one annotation less."""

from __future__ import annotations

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.report.lock_files import parse_lock
from pyshardy.results.partition import Partition

SEVERAL_MESHES = "several_meshes"
"""The one program of which no name of an axis says on which mesh it is."""


def partitioned(name: str) -> Partition:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    return pyshardy.partition(pyshardy.load(program.lower()))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_lock_that_is_read_again_is_that_of_the_program(name: str) -> None:
    found = partitioned(name)
    lock = pyshardy.lock(found)
    assert parse_lock(lock.text()) == lock
    assert pyshardy.check(found, parse_lock(lock.text()))
    assert lock.sent_bytes == sum(row.bytes for row in lock.collectives if not row.if_taken)
    assert sum(row.layers for row in lock.inputs) == len(found.inputs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted({*PROGRAMS} - {SEVERAL_MESHES}))
def test_without_an_annotation_what_differs_has_a_reason(name: str) -> None:
    found = partitioned(name)
    row = next((row for row in found.propagated.summary.inputs if row.given_by == "user"), None)
    if row is None:
        pytest.skip("no input is annotated")
    other = found.before.annotate({row.name: None})
    checked = pyshardy.check(other, pyshardy.lock(found))
    differs = pyshardy.lock(other).text() != pyshardy.lock(found).text()
    assert differs  # at least in who annotated it
    shardings = [one for one in checked.changes if one.kind == "input" and one.before and one.after]
    explained = {(one.before, one.after) for one in shardings if one.why}
    assert {(one.before, one.after) for one in shardings} == explained
    assert len(str(checked)) > 0 and checked.to_json()["equal"] == (not checked.differs)
