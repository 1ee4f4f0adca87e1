"""One estimated run of a program on a page: what runs when, the memory in use, and what limits each kernel."""

from __future__ import annotations

from typing import Any, Final

from pyshardy.core.scopes import scope_path
from pyshardy.costing.estimate import Estimate
from pyshardy.costing.launches import Launches
from pyshardy.costing.places import launched
from pyshardy.costing.program import OpOrigin
from pyshardy.costing.roofline import Bound
from pyshardy.costing.timeline import kernel_name, timeline
from pyshardy.source.places import format_place

_MOST_SPANS: Final = 1500
_SHORTEST: Final = 1 / 4000
"""Spans of a smaller part of the run are not drawn."""
_MOST_MOMENTS: Final = 600
_MOST_KERNELS: Final = 150
BOUNDS: Final = tuple(bound.value for bound in Bound)


def run_data(launches: Launches, estimated: Estimate) -> dict[str, Any]:
    """The data of the cards that show a run.

    Args:
        launches: The kernels of the program.
        estimated: The estimate of the same program.
    """
    found = timeline(launches)
    hardware = launches.topology.hardware
    end = max((span.start + span.seconds for span in found.spans), default=0.0)
    drawn = sorted(found.spans, key=lambda span: -span.seconds)[:_MOST_SPANS]
    drawn = [span for span in drawn if span.seconds >= end * _SHORTEST]
    drawn.sort(key=lambda span: (span.start, -span.seconds))
    step = -(-len(found.moments) // _MOST_MOMENTS) or 1
    moments = [found.moments[at : at + step] for at in range(0, len(found.moments), step)]
    rate = estimated.flops_per_device / (estimated.utilization * estimated.step_seconds) if estimated.utilization else 0
    return {
        "hardware": estimated.hardware,
        "seconds": end,
        "tracks": ["kernels", *(network.name for network in hardware.networks), "host"],
        "bounds": list(BOUNDS),
        "spans": [
            [
                0 if span.stream is None else span.stream + 1,
                span.start,
                span.seconds,
                _title(span.op, span.origin),
                _line(span.origin),
                BOUNDS.index(span.bound) if span.bound else -1,
                span.rounds,
            ]
            for span in drawn
        ],
        "memory": [[part[0].start, max(one.bytes for one in part)] for part in moments],
        "limit": estimated.memory_limit_bytes,
        "bandwidth": hardware.memory_bytes_per_s,
        "flops": round(rate or hardware.flops_per_s[0][1]),
        "kernels": _kernels(launches),
    }


def _kernels(launches: Launches) -> list[list[Any]]:
    """Like kernels: name, line, FLOPs and bytes of one, seconds of all, count, and the number of what limits them."""
    like: dict[tuple[Any, ...], list[float]] = {}
    for kernel, times in launched(launches):
        if kernel.root.traffic is not None:
            continue
        price = launches.roofline.price(kernel)
        place = kernel.root.place
        key = (
            _title(kernel_name(kernel), place),
            _line(place),
            price.flops,
            price.bytes,
            BOUNDS.index(price.bound.value),
        )
        found = like.setdefault(key, [0.0, 0])
        found[0] += times * price.seconds
        found[1] += times
    rows = [[*key[:4], seconds, count, key[4]] for key, (seconds, count) in like.items() if seconds]
    return sorted(rows, key=lambda row: -row[4])[:_MOST_KERNELS]


def _title(op: str, origin: OpOrigin | None) -> str:
    path = None if origin is None else scope_path(origin.scope)
    return op if path is None else f"{path}/{op}"


def _line(origin: OpOrigin | None) -> str:
    source = None if origin is None else origin.source
    return "" if source is None else format_place(source, only_name=True)
