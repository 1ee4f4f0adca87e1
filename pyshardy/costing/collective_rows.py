"""The collectives of an estimate, by kind, axes and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyshardy.costing.counting import Counted
from pyshardy.costing.program import CostOp, OpTraffic, SourceLine
from pyshardy.costing.topology import Topology
from pyshardy.costing.windowed_products import WindowedOrigin


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """Collectives of one kind, along the same axes, from the same line.

    A gather or a scatter that XLA for TPUs cuts into permutes beside a product counts as these permutes. In an estimate
    of pyshardy's program its time is that of the gather or the scatter.

    Attributes:
        kind: The op's name without the dialect, such as "all_gather".
        axes: The mesh axes, such as "data"; None if the groups match no axes.
        networks: The networks that they use, such as "nvlink 8".
        source: File, line and column; None if unknown.
        cause: The op or reshard that needs them; None if unknown.
        count: How many run; one that is joined with larger ones from other lines counts there.
        sent_bytes_per_device: The bytes that every device sends.
        seconds: The time they take if nothing else runs.
        ops: The names that JAX gave the ops which need them.
        windowed: For permutes, the collective that a compiler cuts into them beside a product, such as "all_gather".
    """

    kind: str
    axes: str | None
    networks: str
    source: SourceLine | None
    cause: str | None
    count: int
    sent_bytes_per_device: int
    seconds: float
    ops: tuple[str, ...] = ()
    windowed: str | None = None


def rows_of(
    counted: Iterable[Counted], seconds_of: Callable[[OpTraffic], float], topology: Topology
) -> tuple[CollectiveCost, ...]:
    """The collectives by kind, axes and line, the longest first.

    Args:
        counted: The collectives that run.
        seconds_of: Gives the time of one.
        topology: The networks of the mesh axes.
    """
    found: dict[tuple[Any, ...], CollectiveCost] = {}
    ops: dict[tuple[Any, ...], dict[str, None]] = {}
    for entry in counted:
        assert entry.op.traffic is not None
        seconds = seconds_of(entry.op.traffic)
        for op, times, share in entry.shares():
            row = _row(op, times, entry.times, share * entry.times * seconds, topology)
            key = (row.kind, row.axes, row.networks, None if row.source is None else row.source[:2], row.cause)
            if op.place is not None and op.place.scope is not None:
                ops.setdefault(key, {})[op.place.scope] = None
            found[key] = _joined(found[key], row) if key in found else row
    rows = (replace(row, ops=tuple(ops.get(key, ()))) for key, row in found.items())
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _row(op: CostOp, times: int, runs: int, seconds: float, topology: Topology) -> CollectiveCost:
    """A collective that counts some times, and is sent in some runs."""
    traffic, place = op.traffic, op.place
    assert traffic is not None
    source, cause, windowed = (None,) * 3 if place is None else (place.source, place.cause, place.windowed)
    kind, count, sent_bytes = traffic.kind, 1, traffic.sent_bytes
    if isinstance(place, WindowedOrigin):
        kind, count, sent_bytes = "collective_permute", place.count, place.sent_bytes
    axes = None if traffic.axes is None else ", ".join(name for name, _ in traffic.axes)
    names = [network.name for network in topology.hardware.networks]
    lanes = topology.lanes_of(traffic.axes, traffic.group_size)
    networks = ", ".join(f"{names[lane.network]} {lane.size}" for lane in lanes)
    return CollectiveCost(
        kind, axes, networks, source, cause, times * count, runs * sent_bytes, seconds, windowed=windowed
    )


def _joined(one: CollectiveCost, other: CollectiveCost) -> CollectiveCost:
    sent = one.sent_bytes_per_device + other.sent_bytes_per_device
    return replace(one, count=one.count + other.count, sent_bytes_per_device=sent, seconds=one.seconds + other.seconds)
