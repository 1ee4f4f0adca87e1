"""The collectives of an estimate are those of the program of one device: kinds, counts and bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.costing.counting import Counted, count_collectives
from pyshardy.ir.cost_program import cost_program
from pyshardy.report.traffic import KindTotal, Traffic


def totals(counted: list[Counted]) -> dict[str, tuple[int, int, bool]]:
    found: dict[str, tuple[int, int, bool]] = {}
    for entry in counted:
        assert entry.op.traffic is not None
        count, sent, is_exact = found.get(entry.op.traffic.kind, (0, 0, True))
        found[entry.op.traffic.kind] = (count + entry.times, sent + entry.sent_bytes, is_exact and entry.is_exact)
    return found


def expected(traffic: Traffic) -> dict[str, tuple[int, int, bool]]:
    kinds: tuple[KindTotal, ...] = traffic.kinds
    return {total.kind: (total.count, total.sent_bytes_per_device, not total.is_lower_bound) for total in kinds}


@pytest.mark.parametrize("name", PROGRAMS)
def test_collectives_are_those_of_the_program(name: str) -> None:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    partition = pyshardy.partition(pyshardy.load(program.lower()))
    counted = count_collectives(cost_program(partition.module.root, partition.meshes))
    assert totals(counted) == expected(partition.traffic)


def test_another_count_is_seen() -> None:
    partition = pyshardy.partition(pyshardy.load(PROGRAMS["mlp_training"].lower()))
    counted = count_collectives(cost_program(partition.module.root, partition.meshes))
    assert totals(counted) == expected(partition.traffic)
    assert totals(counted[1:]) != expected(partition.traffic)
    row = partition.traffic.collectives[0]
    wrong = Traffic(
        (replace(row, sent_bytes_per_device=row.sent_bytes_per_device + 1), *partition.traffic.collectives[1:])
    )
    assert totals(counted) != expected(wrong)
