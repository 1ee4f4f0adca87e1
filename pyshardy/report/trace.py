"""A timeline as a trace in Chrome's format, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from typing import Any

from pyshardy.core.scopes import is_gradient, scope_path
from pyshardy.costing.estimate import Estimate
from pyshardy.costing.timeline import Span, Timeline

_KERNELS = 0
"""The number of the track of kernels; networks follow."""


def chrome_trace(found: Timeline, estimated: Estimate, networks: tuple[str, ...]) -> dict[str, Any]:
    """A timeline as a trace, with a track of kernels, one of every network in use, and the memory.

    Times are in microseconds. Every event has its source line and its scope in `args`.

    Args:
        found: The timeline.
        estimated: The estimate of the same program.
        networks: The names of the networks of the chip, by number.
    """
    title = f"one of {estimated.devices} x {estimated.hardware} (estimated)"
    events: list[dict[str, Any]] = [_named("process_name", _KERNELS, title)]
    tracks = sorted({_track(span) for span in found.spans} | {_KERNELS})
    for track in tracks:
        events.append(_named("thread_name", track, "kernels" if track == _KERNELS else networks[track - 1]))
        events.append({"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": track, "args": {"sort_index": track}})
    events += [_event(span) for span in found.spans]
    events += [
        {"ph": "C", "name": "memory", "pid": 0, "ts": _us(one.start), "args": {"bytes": one.bytes}}
        for one in found.moments
    ]
    about = {"speaker": "pyshardy", "collectives": estimated.collective_model, "assumption": estimated.assumption}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


def _named(what: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": 0, "tid": track, "args": {"name": name}}


def _track(span: Span) -> int:
    return _KERNELS if span.stream is None else span.stream + 1


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 4)


def _event(span: Span) -> dict[str, Any]:
    scope = None if span.origin is None else span.origin.scope
    source = None if span.origin is None else span.origin.source
    path = scope_path(scope)
    name = span.op if path is None else f"{path}/{span.op}"
    if span.axes:
        name += f" over {span.axes}"
    if span.rounds:
        name += f", {span.rounds} rounds (the first is shown)"
    cause = None if span.origin is None or not span.axes else span.origin.cause
    details = {
        "line": None if source is None else f"{source[0]}:{source[1]}",
        "name": scope,
        "direction": "backward" if is_gradient(scope) else None,
        "bound by": span.bound or None,
        "flops": round(span.flops) or None,
        "bytes": round(span.bytes) or None,
        "because of": cause,
    }
    kind = "collective" if span.stream is not None and span.stream >= 0 else "loop" if span.stream is None else "kernel"
    return {
        "ph": "X", "name": name, "cat": kind, "pid": 0, "tid": _track(span),
        "ts": _us(span.start), "dur": _us(span.seconds),
        "args": {key: value for key, value in details.items() if value is not None},
    }  # fmt: skip
