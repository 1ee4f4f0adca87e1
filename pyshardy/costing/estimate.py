"""Estimates the cost of a program on a chip: time, traffic and memory together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any

from pyshardy.costing.collective_rows import CollectiveCost, rows_of
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.counting import Counted, count_kernels
from pyshardy.costing.donation import donatable_bytes, donated_inputs, donation_note
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.kernels import Kernels, all_kernels
from pyshardy.costing.known_errors import KnownError, is_conflicting, known_error
from pyshardy.costing.launches import Launches
from pyshardy.costing.peak import Peak, find_peak
from pyshardy.costing.program import CostOp
from pyshardy.costing.roofline import Bound, Roofline, multiplied
from pyshardy.costing.schedule import UNKNOWN_ROUNDS, Totals
from pyshardy.costing.topology import Topology

_AGAIN = "rematted_computation"
"""In the name of an op that `jax.checkpoint` computes again."""


@dataclass(frozen=True, slots=True)
class CustomCallCost:
    """Custom calls of one kernel.

    Attributes:
        name: The name of the kernel, or else the target of the calls.
        target: The target, such as "tpu_custom_call".
        count: How many run.
        seconds: The time they take; without a price that of reading the operands and writing the results.
        priced_by: What gives them a price: "its author", who states a cost beside the kernel, or "its shapes"; None if
            they have no price.
    """

    name: str
    target: str
    count: int
    seconds: float
    priced_by: str | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated cost of one run of a program. No figure is measured.

    Attributes:
        hardware: The name of the chip.
        topology: The networks of every mesh axis.
        devices: The number of devices.
        collective_model: The model that priced collectives.
        step_seconds: The time from start to end, with collectives overlapping kernels.
        serial_seconds: The same without any overlap.
        compute_seconds: The time of all kernels.
        communication_seconds: The time of all collectives, with waiting for the slowest device.
        exposed_seconds: The part of the step in which no kernel runs.
        waiting_seconds: The part of the communication that waits for the slowest of many slices or nodes.
        host_seconds: The time of all copies to and from the memory of the host.
        host_bytes: The bytes that they copy.
        compute_by_bound: The seconds of kernels by what limits them.
        flops_per_device: The floating-point operations of one device.
        transcendentals_per_device: The evaluations of functions such as the exponential on one device.
        bytes_per_device: The bytes that the kernels of one device read and write.
        utilization: The fraction of the peak rate of products that the step reaches.
        model_utilization: The same for the products of the model alone, without what `jax.checkpoint` computes again.
        collectives: The collectives by kind, axes and line, the longest first.
        memory: The peak memory of a device.
        donation_saves_bytes: How much lower the peak is if results take the place of arguments of their types; 0 if
            anything is donated.
        memory_limit_bytes: The memory that a device has.
        memory_error: How far such estimates were from what compilers needed.
        unknown_ops: The names of ops without a price, and how often they run; for custom calls those of their kernels.
        custom_calls: The custom calls by kernel, the longest first, with and without a price.
        assumption: The assumption that matters most.
        notes: What the figures leave out, and which form of the program they are of.
    """

    hardware: str
    topology: tuple[tuple[str, str], ...]
    devices: int
    collective_model: str
    step_seconds: float
    serial_seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_seconds: float
    waiting_seconds: float
    host_seconds: float
    host_bytes: int
    compute_by_bound: tuple[tuple[str, float], ...]
    flops_per_device: float
    transcendentals_per_device: float
    bytes_per_device: float
    utilization: float
    model_utilization: float
    collectives: tuple[CollectiveCost, ...]
    memory: Peak
    donation_saves_bytes: int
    memory_limit_bytes: float
    memory_error: KnownError
    unknown_ops: tuple[tuple[str, int], ...]
    custom_calls: tuple[CustomCallCost, ...]
    assumption: str
    notes: tuple[str, ...]

    @property
    def is_close(self) -> bool:
        """Whether the limit is among what nine of ten steps with this estimate need: the estimate cannot tell."""
        low, high = self.memory_error.range(self.memory.bytes)
        return low <= self.memory_limit_bytes <= high

    @property
    def fits(self) -> bool:
        """Whether the estimated peak is within the memory of a device."""
        return self.memory.bytes <= self.memory_limit_bytes

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-ready data, under the key "estimated"."""
        from dataclasses import asdict

        figures = {
            name: value
            for name, value in asdict(self).items()
            if name not in ("hardware", "topology", "devices", "collective_model", "assumption", "notes")
        }
        figures["compute_by_bound"] = dict(self.compute_by_bound)
        figures["memory_error"] = self.memory_error._asdict()
        figures["unknown_ops"] = dict(self.unknown_ops)
        figures["memory"]["categories"] = dict(self.memory.categories)
        return {
            "hardware": self.hardware,
            "topology": dict(self.topology),
            "devices": self.devices,
            "collective_model": self.collective_model,
            "assumption": self.assumption,
            "notes": list(self.notes),
            "estimated": {**figures, "fits": self.fits, "is_close": self.is_close},
        }


def estimate(launches: Launches, is_compilers: bool = False, conflicts: bool = False) -> Estimate:
    """Estimate the cost of one run of a program.

    Args:
        launches: The kernels of the program.
        is_compilers: Whether a compiler partitioned it.
        conflicts: Whether shardings are known to conflict; else its collectives tell.
    """
    program, topology, block, roofline = launches.program, launches.topology, launches.block, launches.roofline
    hardware = topology.hardware
    scheduler = launches.scheduler()
    totals = scheduler.block(block)
    memory = find_peak(program, launches.flat, launches.compiler, block=block, seconds_of=launches.expected_seconds())
    saved = memory.bytes - _donated_peak(launches, memory.bytes)
    counted = count_kernels(block)
    waiting = totals.seconds * straggling(counted, topology)
    step = totals.seconds + waiting
    rate = _product_rate(block, roofline)
    return Estimate(
        hardware=hardware.name,
        topology=tuple(topology.describe().items()),
        devices=topology.devices,
        collective_model=launches.model.value,
        step_seconds=step,
        serial_seconds=totals.serial_seconds + waiting,
        compute_seconds=totals.compute_seconds,
        communication_seconds=totals.communication_seconds + waiting,
        exposed_seconds=max(0.0, totals.seconds + waiting - totals.compute_seconds),
        waiting_seconds=waiting,
        host_seconds=totals.host_seconds,
        host_bytes=round(totals.host_bytes),
        compute_by_bound=tuple((bound.value, totals.by_bound[bound]) for bound in Bound if bound in totals.by_bound),
        flops_per_device=totals.flops,
        transcendentals_per_device=totals.transcendentals,
        bytes_per_device=totals.bytes,
        utilization=totals.flops / (step * rate) if totals.seconds else 0.0,
        model_utilization=_model_flops(block, roofline) / (step * rate) if totals.seconds else 0.0,
        collectives=rows_of(counted, launches.seconds_of, topology),
        memory=memory,
        donation_saves_bytes=saved,
        memory_limit_bytes=hardware.memory_bytes,
        memory_error=known_error(hardware, is_compilers, conflicts or is_conflicting(_sent(counted))),
        unknown_ops=tuple(sorted(totals.unknown.items())),
        custom_calls=_custom_calls(totals),
        assumption=_assumption(totals, topology, launches.model),
        notes=(
            *totals.notes,
            *filter(None, [donation_note(program, memory.bytes, saved), _dispatch_note(step, hardware)]),
        ),
    )


def _sent(counted: Iterable[Counted]) -> Iterator[tuple[str, int]]:
    """The kinds of collectives and the bytes that a device sends."""
    return ((one.op.traffic.kind, one.sent_bytes) for one in counted if one.op.traffic is not None)


def _donated_peak(launches: Launches, peak: int) -> int:
    """The peak memory with everything donated that can be."""
    program = launches.program
    if not donatable_bytes(program):
        return peak
    donated = replace(program, inputs=donated_inputs(program))
    found = find_peak(
        donated,
        launches.flat,
        launches.compiler,
        with_live=False,
        block=launches.block,
        seconds_of=launches.expected_seconds(),
    )
    return min(peak, found.bytes)


def _dispatch_note(seconds: float, hardware: Hardware) -> str | None:
    """What to say of a step that is over before the host can start the next one."""
    if not 0.0 < seconds < hardware.dispatch_s:
        return None
    return f"a host starts a program about every {hardware.dispatch_s * 1e6:.0f} us: a loop of such steps takes longer"


def _model_flops(block: Kernels, roofline: Roofline) -> float:
    """The FLOPs of the products of one run, without those that are computed again; loops count as in `Scheduler`."""
    found = 0.0
    for kernel in block.kernels:
        if kernel.inner:
            inside = [_model_flops(one, roofline) for one in kernel.inner]
            found += inside[-1] * (kernel.root.rounds or 1) if kernel.root.is_loop else max(inside)
        else:
            works = ((op, roofline.work(op.kind)) for op in kernel.ops)
            found += sum(work.flops for op, work in works if work.is_matrix and not _is_again(op))
    return found


def _is_again(op: CostOp) -> bool:
    return op.place is not None and _AGAIN in (op.place.scope or "")


def _product_rate(block: Kernels, roofline: Roofline) -> float:
    """The highest peak rate of products among the element types that a program multiplies."""
    hardware = roofline.hardware
    products = (op.kind for kernel in all_kernels(block) for op in kernel.ops if roofline.work(op.kind).is_matrix)
    rates = [hardware.matrix_flops_per_s(multiplied(kind)) for kind in dict.fromkeys(products)]
    return max(rates, default=hardware.flops_per_s[0][1])


def straggling(counted: Sequence[Counted], topology: Topology) -> float:
    """The fraction of a step that devices wait for the slowest: the largest of any collective's networks.

    A device that sends to a single other device waits for that one only.
    """
    most = 0.0
    for traffic in dict.fromkeys(entry.op.traffic for entry in counted if entry.op.traffic is not None):
        if traffic.kind == "collective_permute":
            continue
        lanes = topology.lanes_of(traffic.axes, traffic.group_size)
        found = (
            topology.hardware.networks[lane.network].straggling * log2(lane.size) for lane in lanes if lane.size > 1
        )
        most = max(most, sum(found))
    return most


def _custom_calls(totals: Totals) -> tuple[CustomCallCost, ...]:
    rows = (
        CustomCallCost(call.name, call.target, count, seconds, call.priced_by)
        for call, (count, seconds) in totals.calls.items()
        if count
    )
    return tuple(sorted(rows, key=lambda row: -row.seconds))


def _assumption(totals: Totals, topology: Topology, model: CollectiveModel) -> str:
    """The assumption that the step time depends on most."""
    hardware = topology.hardware
    exposed = max(0.0, totals.seconds - totals.compute_seconds)
    copied = min(exposed, totals.host_seconds)
    if UNKNOWN_ROUNDS in totals.notes:
        return "loops with an unknown number of rounds run once"
    shares: Mapping[str, float] = {
        f"products reach {hardware.matrix_efficiency:.0%} of the peak": totals.by_bound.get(Bound.MATRIX, 0.0),
        f"kernels reach {hardware.memory_efficiency:.0%} of the memory's bandwidth": totals.by_bound.get(
            Bound.MEMORY, 0.0
        ),
        f"a kernel takes at least {hardware.kernel_floor_s * 1e6:g} us": totals.by_bound.get(Bound.FLOOR, 0.0),
        "copies to the host take as long as the link's data sheet says": copied,
        f"collectives take as long as the {model.value} model says": exposed - copied,
    }
    return max(shares.items(), key=lambda pair: pair[1])[0]
