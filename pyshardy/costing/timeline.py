"""When the kernels and collectives of one run start, and how much memory is in use by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyshardy.costing.kernels import Kernel
from pyshardy.costing.launches import Launches
from pyshardy.costing.memory import Planner
from pyshardy.costing.peak import fixed_bytes
from pyshardy.costing.program import OpOrigin
from pyshardy.costing.schedule import COMPUTE, Scheduler, Task


class Span(NamedTuple):
    """What runs from one time to another.

    Attributes:
        op: The name of the op that computes the result, or the kind of the collective.
        origin: The name and the line of the op; None if unknown.
        stream: -1 for kernels, or the number of a network; None for what takes all streams.
        start: The seconds from the start of the run.
        seconds: How long it runs.
        rounds: How often the body of a loop runs; 0 for anything else.
        flops: The floating-point operations.
        bytes: The bytes that a kernel reads and writes, or that a device sends.
        bound: What limits the time of a kernel, in words; empty for others.
        axes: The mesh axes of a collective; empty for others.
    """

    op: str
    origin: OpOrigin | None
    stream: int | None
    start: float
    seconds: float
    rounds: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    bound: str = ""
    axes: str = ""


class Moment(NamedTuple):
    """The memory in use from a time on, in bytes."""

    start: float
    bytes: int


class Timeline(NamedTuple):
    """One run of a program.

    Attributes:
        spans: What runs, by start. Of a loop the first round of its body is listed, within the span of the loop; of a
            conditional the slowest branch.
        moments: The memory in use, by time.
    """

    spans: tuple[Span, ...]
    moments: tuple[Moment, ...]


def timeline(launches: Launches) -> Timeline:
    """The timeline of one run. Collectives overlap kernels as in the estimate; devices do not wait for slower ones.

    Args:
        launches: The kernels of the program.
    """
    scheduler = launches.scheduler()
    started = scheduler.started(launches.block)
    spans = _spans(started, scheduler, 0.0)
    starts = {kernel.writes: start for kernel, _, start in started}
    planner = Planner(launches.flat, launches.compiler, launches.expected_seconds())
    plan = planner.main(launches.block, launches.program.inputs)
    base = sum(fixed_bytes(launches.program, launches.flat, launches.block))
    held = [(starts[kernel.writes], base + held) for kernel, held in zip(plan.kernels, plan.held)]
    most: dict[float, int] = {}
    for start, bytes in held:
        most[start] = max(bytes, most.get(start, 0))
    return Timeline(
        tuple(sorted(spans, key=lambda span: (span.start, -span.seconds))),
        tuple(Moment(start, bytes) for start, bytes in sorted(most.items())),
    )


def _spans(started: Sequence[tuple[Kernel, Task, float]], scheduler: Scheduler, begin: float) -> Iterator[Span]:
    for kernel, task, start in started:
        if not task.seconds:
            continue
        op = kernel.root
        if kernel.inner:
            rounds = (1 if op.rounds is None else op.rounds) if op.is_loop else 0
            yield Span(kernel_name(kernel), op.place, task.stream, begin + start, task.seconds, rounds)
            if op.is_loop:
                if rounds:
                    first = begin + start + scheduler.block(kernel.inner[0]).seconds
                    yield from _spans(scheduler.started(kernel.inner[1]), scheduler, first)
            else:
                slowest = max(kernel.inner, key=lambda one: scheduler.block(one).seconds)
                yield from _spans(scheduler.started(slowest), scheduler, begin + start)
        elif op.traffic is not None:
            axes = ", ".join(name for name, _ in op.traffic.axes or ())
            sent = float(op.traffic.sent_bytes)
            yield Span(op.traffic.kind, op.place, task.stream, begin + start, task.seconds, bytes=sent, axes=axes)
        else:
            price = scheduler.roofline.price(kernel)
            yield Span(
                kernel_name(kernel), op.place, COMPUTE, begin + start, task.seconds,
                flops=price.flops, bytes=price.bytes, bound=price.bound.value,
            )  # fmt: skip


def kernel_name(kernel: Kernel) -> str:
    """The op that stands for a kernel: its product if it has one, else its last op."""
    names = [op.kind.name.partition(".")[2] or op.kind.name for op in kernel.ops]
    return next((name for name in names if name in ("dot_general", "convolution")), names[-1])
