"""Laws of estimates, on every test program: collectives are those of the program, and all of the peak is alive."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.costing.counting import Counted, count_collectives
from pyshardy.costing.traffic import KindTotal, Traffic
from pyshardy.ir.cost_program import cost_program


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


@cache
def partitioned(name: str) -> pyshardy.Partition:
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    return pyshardy.partition(pyshardy.load(program.lower()))


@pytest.mark.slow_but_for("manual_collectives")
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_alive_at_the_peak_is_the_peak(name: str) -> None:
    memory = pyshardy.cost(partitioned(name), "h100").estimate.memory
    assert sum(one.bytes for one in memory.live) == memory.bytes == max(memory.curve)
    assert sum(dict(memory.categories).values()) == memory.bytes


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_overlap_saves_time_and_hides_no_kernel(name: str) -> None:
    found = pyshardy.cost(partitioned(name), "v5e").estimate
    assert found.compute_seconds <= found.step_seconds * (1 + 1e-9)
    assert found.step_seconds <= found.serial_seconds * (1 + 1e-9)
    both = found.compute_seconds + found.communication_seconds
    assert both == pytest.approx(found.serial_seconds)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_collectives_are_those_of_the_program(name: str) -> None:
    partition = partitioned(name)
    counted = count_collectives(cost_program(partition.module.root, partition.meshes))
    assert totals(counted) == expected(partition.traffic)


@pytest.mark.slow
def test_another_count_is_seen() -> None:
    partition = partitioned("mlp_training")
    counted = count_collectives(cost_program(partition.module.root, partition.meshes))
    assert totals(counted) == expected(partition.traffic)
    assert totals(counted[1:]) != expected(partition.traffic)
    row = partition.traffic.collectives[0]
    wrong = Traffic(
        (replace(row, sent_bytes_per_device=row.sent_bytes_per_device + 1), *partition.traffic.collectives[1:])
    )
    assert totals(counted) != expected(wrong)
