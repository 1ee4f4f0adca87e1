"""The collectives of an estimate, by kind, axes and line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyshardy.costing.counting import Counted
from pyshardy.costing.program import OpTraffic, SourceLine
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
    shares = ((entry, *share) for entry in counted for share in entry.shares())
    for entry, op, times, share in shares:
        traffic, place, whole = op.traffic, op.place, entry.op.traffic
        assert traffic is not None and whole is not None
        source, cause, windowed = (None,) * 3 if place is None else (place.source, place.cause, place.windowed)
        kind, count, sent_bytes = traffic.kind, 1, traffic.sent_bytes
        if isinstance(place, WindowedOrigin):
            kind, count, sent_bytes = "collective_permute", place.count, place.sent_bytes
        axes = None if traffic.axes is None else ", ".join(name for name, _ in traffic.axes)
        lanes = topology.lanes_of(traffic.axes, traffic.group_size)
        names = [network.name for network in topology.hardware.networks]
        networks = ", ".join(f"{names[lane.network]} {lane.size}" for lane in lanes)
        key = (kind, axes, networks, None if source is None else source[:2], cause)
        if place is not None and place.scope is not None:
            ops.setdefault(key, {})[place.scope] = None
        count, sent = times * count, entry.times * sent_bytes
        seconds = share * entry.times * seconds_of(whole)
        if key in found:
            row = found[key]
            found[key] = replace(
                row,
                count=row.count + count,
                sent_bytes_per_device=row.sent_bytes_per_device + sent,
                seconds=row.seconds + seconds,
            )
        else:
            row = CollectiveCost(kind, axes, networks, source, cause, count, sent, seconds, windowed=windowed)
            found[key] = row
    rows = (replace(row, ops=tuple(ops.get(key, ()))) for key, row in found.items())
    return tuple(sorted(rows, key=lambda row: -row.seconds))
